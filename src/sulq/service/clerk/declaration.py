"""An owner's words to a dataset the server can hold: the same as `sulq.connect` takes, for what workers can reach."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from sulq.addresses.defaults import beside, copy_of, ledger_of
from sulq.addresses.postgres import is_address
from sulq.api.declarations import single_facts, table_facts
from sulq.api.locations import SUFFIXES, in_spark
from sulq.errors import SetupError
from sulq.language.domain import Schema
from sulq.language.privacy import Budget, Unit
from sulq.service.settings import DatasetSettings, TableSettings
from sulq.service.worker import database


def declare(
    name: str,
    data: Path | str | Mapping[str, Path | str],
    columns: Mapping[str, object],
    *,
    budget: Budget,
    unit: Unit | None = None,
    table: str | None = None,
    size: int | Mapping[str, int] | None = None,
    synthetic: bool = False,
    ledger: str | Path | None = None,
    prepared: Path | Literal[False] | None = None,
    keys: Mapping[str, str] | None = None,
    public: tuple[str, ...] = (),
    persons: Mapping[str, str] | None = None,
    references: Mapping[str, Mapping[str, str]] | None = None,
    shares: Mapping[str, tuple[float, float]] | None = None,
    anchor: Path | None = None,
    schedule: float | None = None,
    renew: bool = False,
    graph: tuple[str, ...] | None = None,
    estimators: Mapping[str, object] | None = None,
) -> DatasetSettings:
    """A dataset from the same words as `sulq.connect`; a server reads files and tables in PostgreSQL, never frames."""
    whole = Unit() if unit is None else unit
    if isinstance(data, Mapping):
        facts = table_facts(
            data, columns, whole, keys=keys or {}, public=public, persons=persons or {}, references=references or {}
        )
        sizes = dict(size) if isinstance(size, Mapping) else {}
        tables = tuple(
            TableSettings(
                _source(data[item.schema.table], name), item, sizes.get(item.schema.table),
                item.schema.table if _several(data[item.schema.table]) else None,
            )
            for item in facts
        )  # fmt: skip
    else:
        alone = single_facts(Schema.of(table or name, columns), whole, graph, estimators)
        number = size if isinstance(size, int) else None
        tables = (TableSettings(_source(data, name), alone, number, table if _several(data) else None),)
    place = str(ledger) if ledger is not None else _beside(tables)
    return DatasetSettings(
        name=name,
        tables=tables,
        unit=whole,
        budget=budget,
        ledger=place if "://" in place else str(Path(place).resolve()),
        prepared=_prepared(tables, prepared, place, name),
        alone=not isinstance(data, Mapping),
        synthetic=synthetic,
        shares=dict(shares or {}),
        anchor=anchor,
        schedule=schedule,
        renew=renew,
    )


def _source(data: Path | str, name: str) -> Path | str:
    """A data file, or the address of a database whose host is known; other addresses no worker reaches."""
    if is_address(data):
        database.ways(str(data))
        return str(data)
    if in_spark(data):
        raise SetupError(
            "engine-not-available",
            f"The data set {name[:80]!r} lies on Spark, which a server does not hold: Spark's driver starts programs "
            "and is connected to by the cluster, and a process that sees rows may do neither here.",
            "Ask it by `sulq query` or from Python, or serve an export of it (docs/operate/spark.md).",
        )
    if isinstance(data, str):
        raise SetupError(
            "bad-config",
            f"The data set {name[:80]!r} names an address; a server reads files and tables in PostgreSQL.",
            "Take it out of the file that is served: another curator's data is asked there.",
        )
    if not data.name.lower().endswith(SUFFIXES):
        raise SetupError("unreadable-data", f"{data.name!r} is none of {', '.join(SUFFIXES)}.")
    return data.resolve()


def _beside(tables: tuple[TableSettings, ...]) -> str:
    """Where the ledger lies by default: beside the data file, or in the database."""
    first = tables[0]
    if isinstance(first.data, Path):
        return str(beside(first.data))
    return ledger_of(first.data, first.facts.schema.table if len(tables) == 1 else None)


def _prepared(
    tables: tuple[TableSettings, ...], told: Path | Literal[False] | None, ledger: str, name: str
) -> Path | Literal[False] | None:
    """Where the prepared copy lies: as told, or beside the ledger; that of tables in a database lies there."""
    homes = {isinstance(table.data, str) for table in tables}
    if len(homes) > 1 or (True in homes and told is not None):
        raise SetupError(
            "bad-declaration",
            "Tables in PostgreSQL are prepared and asked there, all of them, and nothing else is.",
            "Leave prepared out, and name tables of one place.",
        )
    first = tables[0].data
    if isinstance(first, str) or told is not None:
        return told
    return copy_of(first if "://" in ledger else Path(ledger), name)


def _several(data: Path | str) -> bool:
    return is_address(data) or str(data).lower().endswith(".duckdb")
