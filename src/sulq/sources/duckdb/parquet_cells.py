"""Parquet files that DuckDB fails to read, read by Arrow instead: their needed columns are written anew."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from sulq.sources.decode import files, frames
from sulq.sources.source import RegisteredTable, plain, suffix, whom


def rewrite(tables: Sequence[RegisteredTable], folder: Path) -> tuple[RegisteredTable, ...]:
    """The same tables, those in Parquet files read from copies of their needed columns in a private folder.

    Raises:
        SetupError: `unreadable-data`: Arrow cannot read them either.
    """
    return tuple(_rewritten(item, folder) if _parquet(item) else item for item in tables)


def _parquet(registered: RegisteredTable) -> bool:
    path = registered.origin.path
    return path is not None and suffix(path) == ".parquet"


def _rewritten(registered: RegisteredTable, folder: Path) -> RegisteredTable:
    made, schema, unit = folder / f"source{registered.number}.parquet", registered.schema, registered.unit
    path = registered.origin.path or made
    table, kinds, named = frames.rewrite(path, made, list(registered.source.columns), unit.column, unit.fold)
    source = replace(
        registered.source,
        relation=files.parquet_records(made, table.schema.names, places=unit.positions_are_public),
        columns=plain(kinds, schema),
        files=(made,),
        person=whom(named, schema, unit),
    )
    return replace(registered, source=source)
