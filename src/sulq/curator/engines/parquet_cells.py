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
from sulq.curator.engines.source import POSITION, Registered, exact_path, suffix
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
    names = list(registered.source.columns)
    places = {name: i for i, name in enumerate(names)}
    cells, failed = {}, False
    try:
        with registered.origin.open_parquet() as file:
            plain, cells = arrow.plain_table(file.schema_arrow.empty_table().select(names), places)
            with pa.parquet.ParquetWriter(made, plain.schema) as writer:
                for batch in file.iter_batches(BATCH_ROWS, columns=names):
                    writer.write_table(arrow.plain_table(batch.select(names), places)[0])
    except (pa.ArrowException, OSError, UnicodeError):
        failed = True
    if failed:
        raise SetupError("unreadable-data", "The Parquet file cannot be read to its end.")
    reader = f"read_parquet({exact_path(made)}, can_have_nan = true"
    place = f", {POSITION}" if registered.unit.positions_are_public else ""
    numbered = ", file_row_number = true" if place else ""
    aliases = ", ".join(f"s{i}" for i in range(len(names)))
    source = replace(
        registered.source,
        relation=f"(SELECT * FROM {reader}{numbered})) AS source({aliases}{place})",
        columns={name: (cells[name], f"s{i}") for name, i in places.items()},
        files=(made,),
    )
    return replace(registered, source=source)
