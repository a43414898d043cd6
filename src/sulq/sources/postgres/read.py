"""The kept rows of a copy in PostgreSQL, read into a table of DuckDB: a few hundred pages at a time.

A statement packs each column of its pages into one string of bytes, so that a row
costs the client nothing. All aggregates of a statement take the rows in the same
order, whichever that is. All statements see one snapshot: whatever is done to the
copy meanwhile, its pages are the same rows.
"""

from __future__ import annotations

from typing import Final, cast

import numpy as np
import psycopg
import pyarrow as pa

from sulq.language.tally import BLANK
from sulq.sources.duckdb.connection import Connection
from sulq.sources.duckdb.pages import create, insert

MAX_READ_PAGES: Final = 512  # read by one statement: about 4 MiB of the copy
MAX_READ_TEXT_PAGES: Final = 16  # where there are texts: a page can name 12 MB, and no value may pass 1 GB (T30)
TEXT: Final = "VARCHAR"


def load(
    db: psycopg.Connection, copy: tuple[str, int], connection: Connection, into: str, columns: dict[str, str]
) -> int:
    """Read a table of the copy, and its number of pages, into a new table of DuckDB; how many rows it has.

    A session that is left in the middle is in a transaction, so it is not used again.
    """
    relation, pages = copy
    create(connection, into, columns)
    asked = ", ".join(f"array_agg({name})" if kind == TEXT else _packed(name) for name, kind in columns.items())
    some = "ctid >= CAST(%(first)s AS tid) AND ctid < CAST(%(last)s AS tid)"
    statement = f"SELECT count(*), {asked} FROM {relation} WHERE {some}"
    step, rows = MAX_READ_TEXT_PAGES if TEXT in columns.values() else MAX_READ_PAGES, 0
    with db.cursor(binary=True) as cursor:
        cursor.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        for first in range(0, pages, step):
            bound = {"first": f"({first},0)", "last": f"({min(first + step, pages)},0)"}
            found = cursor.execute(statement, bound).fetchone()
            if found is not None and found[0]:
                page = pa.table(dict(zip(columns, map(_unpacked, found[1:]), strict=True)))
                insert(connection, into, page)
                rows += int(found[0])
        cursor.execute("COMMIT")
    return rows


def _packed(item: str) -> str:
    """A column of whole numbers as eight bytes each; one that is missing as the number no column holds."""
    return f"string_agg(int8send(coalesce(CAST({item} AS bigint), {BLANK + 1} - 1)), ''::bytea)"


def _unpacked(cells: object) -> pa.Array:
    if isinstance(cells, list):
        return pa.array(cells, pa.string())
    values = np.frombuffer(cast("bytes", cells), dtype=">i8").astype(np.int64)
    return pa.array(values, mask=values == BLANK)
