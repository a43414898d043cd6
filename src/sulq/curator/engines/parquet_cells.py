"""Parquet files that DuckDB fails to read, cell by cell: written anew by Arrow, as cells that every engine reads.

DuckDB stops at a text that is no UTF-8 and at a timestamp beyond its microseconds. Such a cell is one row's: it
becomes missing, or lies beyond every bound where its type has an order, and the other rows are what they were.

Privacy: trusted. Whether a file is rewritten depends on its rows and changes the time of preparing alone, which is
the owner's to see; questions read the same kept rows either way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet

from sulq.curator.engines import arrow
from sulq.curator.engines.grammar import Cell
from sulq.curator.engines.person import Form
from sulq.curator.engines.person_column import person_column
from sulq.curator.engines.source import POSITION, WHO, Registered, exact_path, suffix, whom
from sulq.errors import SetupError

BATCH_ROWS: Final = 65_536


def rewrite(tables: Sequence[Registered], folder: Path) -> tuple[Registered, ...]:
    """The same tables, those in Parquet files read from copies of their needed columns in a private folder.

    Raises:
        SetupError: `unreadable-data`: Arrow cannot read them either.
    """
    return tuple(_rewritten(item, folder) if _parquet(item) else item for item in tables)


def _parquet(registered: Registered) -> bool:
    path = registered.origin.path
    return path is not None and suffix(path) == ".parquet"


def _rewritten(registered: Registered, folder: Path) -> Registered:
    made = folder / f"source{registered.number}.parquet"
    columns = list(registered.source.columns)
    named = registered.unit.column
    needed = list(dict.fromkeys([*columns, *([] if named is None else [named])]))
    failed = False
    try:
        with registered.origin.open_parquet() as file:
            plain, cells, form = _plain(file.schema_arrow.empty_table().select(needed), registered)
            with pa.parquet.ParquetWriter(made, plain.schema) as writer:
                for batch in file.iter_batches(BATCH_ROWS, columns=needed):
                    writer.write_table(_plain(batch.select(needed), registered)[0])
    except (pa.ArrowException, OSError, UnicodeError):
        failed = True
    if failed:
        raise SetupError("unreadable-data", "The Parquet file cannot be read to its end.")
    reader = f"read_parquet({exact_path(made)}, can_have_nan = true"
    place = f", {POSITION}" if registered.unit.positions_are_public else ""
    numbered = ", file_row_number = true" if place else ""
    source = replace(
        registered.source,
        relation=f"(SELECT * FROM {reader}{numbered})) AS source({', '.join(plain.schema.names)}{place})",
        columns={name: (cells[name], f"s{i}") for i, name in enumerate(columns)},
        files=(made,),
        person=None if form is None else whom((form, WHO), registered.schema, registered.unit),
    )
    return replace(registered, source=source)


def _plain(data: pa.Table | pa.RecordBatch, registered: Registered) -> tuple[pa.Table, dict[str, Cell], Form | None]:
    """The needed columns as plain cells, those that name persons as exact values."""
    unit, names = registered.unit, list(data.schema.names)
    table, cells = arrow.plain_table(data, {name: names.index(name) for name in registered.source.columns})
    if unit.column is None:
        return table, cells, None
    form, persons = person_column(data, names.index(unit.column), unit.column, unit.fold)
    return table.append_column(WHO, persons), cells, form
