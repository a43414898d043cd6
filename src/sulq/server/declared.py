"""An owner's words to a dataset the server can hold: the same as `sulq.connect` takes, for files alone."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from sulq.connect import SUFFIXES, beside, copy_of, declarations, single
from sulq.errors import SetupError
from sulq.server.settings import Declared, Table
from sulq.terms.domain import Schema
from sulq.terms.privacy import Budget, Unit


def declare(
    name: str,
    data: Path | Mapping[str, Path],
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
) -> Declared:
    """A dataset from the same words as `sulq.connect`; a server reads files, never frames."""
    whole = Unit() if unit is None else unit
    if isinstance(data, Mapping):
        facts = declarations(
            data, columns, whole, keys=keys or {}, public=public, persons=persons or {}, references=references or {}
        )
        sizes = dict(size) if isinstance(size, Mapping) else {}
        tables = tuple(
            Table(
                _file(data[item.schema.table]), item, sizes.get(item.schema.table),
                item.schema.table if _several(data[item.schema.table]) else None,
            )
            for item in facts
        )  # fmt: skip
    else:
        alone = single(Schema.of(table or name, columns), whole, graph, estimators)
        number = size if isinstance(size, int) else None
        tables = (Table(_file(data), alone, number, table if _several(data) else None),)
    first = tables[0].data
    place = str(ledger) if ledger is not None else str(beside(first))
    near = first if "://" in place else Path(place)
    return Declared(
        name=name,
        tables=tables,
        unit=whole,
        budget=budget,
        ledger=place if "://" in place else str(Path(place).resolve()),
        prepared=prepared if prepared is not None else copy_of(near, name),
        alone=not isinstance(data, Mapping),
        synthetic=synthetic,
        shares=dict(shares or {}),
        anchor=anchor,
        schedule=schedule,
        renew=renew,
    )


def _file(data: Path) -> Path:
    if not data.name.lower().endswith(SUFFIXES):
        raise SetupError("unreadable-data", f"{data.name!r} is none of {', '.join(SUFFIXES)}.")
    return data.resolve()


def _several(data: Path) -> bool:
    return data.name.lower().endswith(".duckdb")
