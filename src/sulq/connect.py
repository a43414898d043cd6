"""The door: a path or a frame gives a database, a URL the curator behind it."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, cast

from sulq.errors import SetupError
from sulq.terms.domain import Schema
from sulq.terms.privacy import Budget, Epsilon, EpsilonDelta, Rho, SubLinear, Unit

if TYPE_CHECKING:
    from sulq.database import Database

SUFFIXES = (".parquet", ".csv", ".csv.gz", ".duckdb")


def connect(
    data: object,
    *,
    table: str | None = None,
    columns: Mapping[str, object] | None = None,
    unit: Unit | None = None,
    budget: Budget | None = None,
    size: int | None = None,
    synthetic: bool = False,
    ledger: str | os.PathLike[str] | None = None,
    prepared: str | os.PathLike[str] | bool | None = None,
    engine: str = "duckdb",
    renew: bool = False,
    progress: Callable[[float], None] | None = None,
    token: str | None = None,
    keys: Mapping[str, str] | None = None,
    public: list[str] | None = None,
    graph: tuple[str, str, str] | None = None,
) -> Database:
    """Open private data with its public facts, protected unit and budget.

    Args:
        data: a .parquet, .csv, .csv.gz or .duckdb file, or a pandas, polars or pyarrow table.
        table: its name in questions, and inside a .duckdb file of several; default the file's stem, or "data".
        columns: public facts, never read off the data: {"age": sulq.Int(0, 120), ...}.
        unit: whom an answer hides; default: the row, add_remove.
        budget: the total that may ever be lost: Epsilon, Rho, EpsilonDelta or SubLinear.
        size: the owner's declared public size, if n may be known.
        synthetic: True for made-up data; written into the ledger for ever.
        ledger: its path; default beside a data file, in memory for a frame.
        prepared: where the prepared copy lies; default beside the ledger, False for none.
        engine: "duckdb" or "memory".
        renew: accept a source that changed since it was registered.
        progress: called with the part done (0 to 1) while the prepared copy is built.
        token: for a remote curator.
        keys: for datasets of several tables.
        public: for datasets of several tables.
        graph: for graphs.
    """
    if isinstance(data, Mapping) or keys is not None or public is not None:
        raise SetupError("not-available", "Datasets of several tables are not in this version.")
    if graph is not None:
        raise SetupError("not-available", "Graphs are not in this version.")
    if isinstance(data, str) and "://" in data:
        scheme = data.split("://", 1)[0].lower()
        raise SetupError("engine-not-available", f"Connecting to {scheme}:// is not in this version.")
    if token is not None:
        raise SetupError("bad-declaration", "token is for a remote curator.")
    path = Path(data) if isinstance(data, (str, os.PathLike)) else None
    if path is not None and not path.name.lower().endswith(SUFFIXES):
        raise SetupError("unreadable-data", f"{path.name!r} is none of {', '.join(SUFFIXES)}.")
    if path is not None and not path.is_file():
        raise SetupError("missing-file", f"There is no file {path.name!r}.")
    _check(unit, budget, size)
    name = table if table is not None else _stem(path) if path is not None else "data"
    module = importlib.import_module("sulq.database")
    database = cast("type[Database]", module.Database)
    where = Path(ledger) if ledger is not None else None
    if where is None and path is not None:
        where = path.with_name(f"{_stem(path)}.ledger")
    if budget is None and (where is None or not where.exists()):
        raise SetupError("bad-declaration", "A new person space needs a budget: budget=sulq.Epsilon(1), say.")
    return database(
        data if path is None else path.resolve(),
        inside=table,
        schema=Schema.of(name, columns),
        unit=Unit() if unit is None else unit,
        budget=budget,
        size=size,
        synthetic=synthetic,
        ledger=where,
        prepared=_prepared(path, where, prepared),
        engine=engine,
        renew=renew,
        progress=progress,
    )


def _check(unit: object, budget: object, size: object) -> None:
    if unit is not None and not isinstance(unit, Unit):
        raise SetupError("bad-declaration", "unit must be a sulq.Unit.")
    if budget is not None and not isinstance(budget, (Epsilon, Rho, EpsilonDelta, SubLinear)):
        raise SetupError("bad-declaration", "budget must be Epsilon, Rho, EpsilonDelta or SubLinear.")
    if size is not None and (isinstance(size, bool) or not isinstance(size, int) or not 0 < size <= 2**40):
        raise SetupError("bad-declaration", "size must be a positive whole number.")


def _stem(path: Path) -> str:
    return path.name.removesuffix(".gz").rsplit(".", 1)[0] or "data"


def _prepared(path: Path | None, ledger: Path | None, told: str | os.PathLike[str] | object) -> Path | bool | None:
    """Where the prepared copy lies: as told, beside the ledger, or for a frame in memory."""
    if isinstance(told, (str, os.PathLike)):
        return Path(told)
    if told is None and path is not None and ledger is not None:
        return ledger.with_name(f"{ledger.name.removesuffix('.ledger')}.prepared")
    return None if told is None else bool(told)
