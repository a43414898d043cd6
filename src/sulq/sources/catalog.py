"""Which tables a data file holds, with their columns and kinds, by its own schema; no row is read."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet

from sulq.errors import SetupError
from sulq.sources.decode import csv_file
from sulq.sources.source import Origin, Shapes, suffix

Columns = list[tuple[str, str]]


def list_tables(path: Path) -> list[tuple[str, Columns]]:
    """Each table of a file with its columns: name and kind. A file of one table has it under the file's own name."""
    origin = Origin.of(path)
    place = path.resolve()
    alone = place.name.removesuffix(".gz").rsplit(".", 1)[0]
    if suffix(place) == ".csv":
        return [(alone, [(name, "text") for name in csv_file.header(place)])]
    if suffix(place) == ".parquet":
        origin.parquet()  # refuses what is not whole
        schema = pa.parquet.read_schema(place)
        return [(alone, [(str(field.name), str(field.type)) for field in schema])]
    if suffix(place) == ".duckdb":
        return _duckdb_tables(place)
    raise SetupError("unreadable-data", f"{path.name!r} is of no kind that is read here.")


def _duckdb_tables(path: Path) -> list[tuple[str, Columns]]:
    with Shapes() as shapes, shapes.attached(path):
        rows = shapes.ask(
            "SELECT table_name, column_name, data_type FROM duckdb_columns() "
            "WHERE database_name = 'origin' AND NOT internal ORDER BY table_name, column_index",
        )
    found: dict[str, Columns] = {}
    for table, column, kind in rows:
        found.setdefault(str(table), []).append((str(column), str(kind)))
    return list(found.items())
