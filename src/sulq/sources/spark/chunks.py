"""Prepared rows as Spark holds them: some thousands of rows side by side in one row of the prepared table.

Each column of such a chunk is one cell: its codes in Arrow's own bytes, as narrow as
its declaration allows. So Spark moves a few large cells where it would convert
millions of small ones, reads no column that is not asked for, and a chunk
becomes NumPy columns without a look at a single row.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final, NamedTuple

import duckdb
import numpy as np
import pyarrow as pa

from sulq.compile.statements import kept_table
from sulq.compile.statements.kept_table import OWNER, PERSON, names
from sulq.compile.statements.tally_functions import Needed
from sulq.kernel.private import SATURATED, Integers, Stored
from sulq.kernel.programs import Fold
from sulq.kernel.request import Scan
from sulq.language.domain import Schema
from sulq.sources.duckdb.connection import (
    Connection,
    arrow_table,
    create_table,
    insert_page,
    numpy_column,
    stored_columns,
)
from sulq.sources.duckdb.runner import run_program, stream
from sulq.sources.fold import RunningTotals

CHUNK_ROWS: Final = 32_768  # of a chunk: 50 columns of them as doubles are what a kernel takes at a time
COUNT: Final = "n"
BUCKET: Final = "b"  # of persons: where tables of the same persons lie side by side, a chunk is of one bucket
SIDE: Final = "t"  # which of these tables a chunk is of
PAGE_ROWS: Final = 2**22  # worked on at a time
UNREAD: Final = "error('persons were not read')"  # were they missing instead, all rows would be one person's
TYPES: Final = {"TINYINT": pa.int8(), "SMALLINT": pa.int16(), "INTEGER": pa.int32(), "BIGINT": pa.int64()}


def _stored(schema: Schema, *, owned: bool) -> dict[str, pa.DataType]:
    """The columns of rows of codes, under the names they are stored by."""
    columns = zip(names(schema).values(), schema.columns, strict=True)
    found = {name: TYPES.get(kept_table.smallest(column), pa.string()) for name, (_, column) in columns}
    return found | ({PERSON: pa.int64(), OWNER: pa.binary()} if owned else {})


def layout(schema: Schema, *, owned: bool, bucketed: bool = False) -> str:
    """The columns of a chunk in Spark's words."""
    numbers = [f"{BUCKET} int"] * bucketed + [f"{COUNT} int"]
    return ", ".join([*numbers, *(f"{name} binary" for name in stored_names(schema, owned=owned))])


def stored_names(schema: Schema, *, owned: bool) -> list[str]:
    """The columns of a chunk that hold cells."""
    return list(_stored(schema, owned=owned))


def wanted_columns(schema: Schema, wanted: Needed, *, owned: bool) -> list[str]:
    """The columns of a chunk that are looked at."""
    found = [stored for name, stored in names(schema).items() if name in wanted.columns]
    return [COUNT, *found, *([PERSON] if wanted.person else []), *([OWNER] if owned else [])]


def packed(rows: pa.Table, schema: Schema, *, owned: bool) -> pa.RecordBatch:
    """Rows of codes as one chunk: each column is one cell, in Arrow's own bytes."""
    cells = {BUCKET: rows.column(BUCKET).combine_chunks()[:1].cast(pa.int32())} if BUCKET in rows.column_names else {}
    cells[COUNT] = pa.array([rows.num_rows], pa.int32())
    for name, kind in _stored(schema, owned=owned).items():
        cells[name] = pa.array([sent(pa.table({name: rows.column(name).cast(kind)}))], pa.binary())
    return pa.RecordBatch.from_pydict(cells)


def unpacked(chunks: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Chunks as tables of Arrow's, a column by the name it is stored under; numbers are not copied."""
    for several in chunks:
        names_there = [name for name in several.schema.names if name not in (COUNT, BUCKET)]
        for place in range(several.num_rows):
            found = {name: received(_aligned(several.column(name)[place])).column(0) for name in names_there}
            size = several.column(COUNT)[place].as_py()
            yield pa.table(found) if found else pa.table({"c0": pa.nulls(size, pa.int8())})


def _aligned(cell: pa.Scalar) -> pa.Buffer:
    """A cell's bytes where numbers may begin: within a column of cells they can lie anywhere."""
    found = cell.as_buffer()
    return found if found.address % 8 == 0 else pa.py_buffer(found.to_pybytes())


def paged(chunks: Iterable[pa.RecordBatch], most: int) -> Iterator[list[pa.RecordBatch]]:
    """Chunks some at a time, each by itself; all of one bucket, which follow each other, at once."""
    held: list[pa.RecordBatch] = []
    rows, last = 0, None
    for several in chunks:
        buckets = several.column(BUCKET).to_pylist() if BUCKET in several.schema.names else [None] * several.num_rows
        for i, (count, bucket) in enumerate(zip(several.column(COUNT).to_pylist(), buckets, strict=True)):
            if held and rows >= most and (bucket is None or bucket != last):
                yield held
                held, rows = [], 0
            held.append(several.slice(i, 1))
            rows, last = rows + count, bucket
    if held:
        yield held


def beside(side: int, column: str) -> str:
    """The name of a table's column where several tables lie side by side."""
    return f"{SIDE}{side}_{column}"


def of_side(chunks: Iterable[pa.RecordBatch], side: int | None) -> Iterator[pa.RecordBatch]:
    """One table's chunks among those of several, under its own names; all where there is but one."""
    for chunk in chunks:
        if side is None:
            yield chunk
        elif chunk.column(SIDE)[0].as_py() == side:
            start = beside(side, "")
            found = [name for name in chunk.schema.names if name.startswith(start)]
            named = [COUNT, *(name.removeprefix(start) for name in found)]
            yield chunk.select([COUNT, *found]).rename_columns(named)


def rows_layout(schema: Schema, *, owned: bool) -> tuple[str, pa.Schema]:
    """Single rows of codes, as they are sorted and bounded before they are packed: in Spark's words and in Arrow's."""
    stored = _stored(schema, owned=False)
    words = {pa.int8(): "tinyint", pa.int16(): "smallint", pa.int32(): "int", pa.int64(): "bigint"}
    if owned:
        stored |= {PERSON: pa.int64(), "u": pa.string(), "r": pa.string(), OWNER: pa.string()}
    return ", ".join(f"{name} {words.get(kind, 'string')}" for name, kind in stored.items()), pa.schema(stored)


class TablePages(NamedTuple):
    """Rows of a table's as chunks; a table that nothing is read of has none."""

    schema: Schema
    owned: bool
    chunks: Iterable[pa.RecordBatch] = ()


@functools.cache
def _connection(process: int, threads: int | None) -> Connection:  # noqa: ARG001 - a process that was forked has its own
    """The private, locked DuckDB of this process: it holds nothing, and what it spills lies where Spark's files do."""
    found = Connection(threads=threads, folder=_spark_folder())
    found.lock()
    return found


def _spark_folder() -> Path | None:
    """Where Spark has an executor's Python put its files; Spark removes them, however the process ends."""
    places = [Path(place) for place in os.environ.get("SPARK_LOCAL_DIRS", "").split(",") if place]
    return next((place for place in places if place.is_dir()), None)


@contextmanager
def opened(
    tables: Mapping[str, TablePages], connection: Connection | None = None, *, threads: int | None = 1
) -> Iterator[tuple[duckdb.DuckDBPyConnection, int]]:
    """A cursor that reads these rows where they lie in memory, uncopied; and how many they are.

    The tables are the cursor's own and go with it: the next question finds none of them (T38).
    """
    with closing((connection or _connection(os.getpid(), threads)).cursor()) as cursor:
        rows = 0
        for name, given in tables.items():
            pages = list(unpacked(given.chunks))
            rows += sum(page.num_rows for page in pages)
            cursor.execute(f"CREATE TEMP VIEW {name} AS {_read(given, name, pages, cursor)}")
        yield cursor, rows


def _read(given: TablePages, name: str, pages: list[pa.Table], cursor: duckdb.DuckDBPyConnection) -> str:
    """All columns of a table; those that were not sent are missing, but whose a row is: who looks at that fails."""
    every = stored_columns(given.schema, owned=given.owned, owner="BLOB")
    there = pages[0].column_names if pages else ()
    if pages:
        cursor.register(f"rows_{name}", pa.concat_tables(pages))
    none = {column: f"CAST({UNREAD if pages and column == OWNER else 'NULL'} AS {every[column]})" for column in every}
    listed = [column if column in there else f"{none[column]} AS {column}" for column in every]
    return f"SELECT {', '.join(listed)} FROM " + (f"rows_{name}" if pages else "range(0)")


@contextmanager
def gathered(tables: Mapping[str, TablePages]) -> Iterator[Connection]:
    """A private, locked DuckDB that holds these rows on disk, in memory that does not grow with them."""
    connection = Connection(on_disk=True)
    try:
        for name, given in tables.items():
            create_table(connection, name, stored_columns(given.schema, owned=given.owned, owner="BLOB"))
            with connection.writing():
                for page in unpacked(given.chunks):
                    insert_page(connection, name, page)
        connection.lock()
        yield connection
    finally:
        connection.close()


def run(
    scans: Sequence[Scan],
    tables: Mapping[str, TablePages],
    connection: Connection | None = None,
    *,
    threads: int | None = 1,
) -> tuple[list[pa.Table], int]:
    """The result of each statement over these rows, and how many those are; statements of one job read the same."""
    with opened(tables, connection, threads=threads) as (cursor, rows):
        return [arrow_table(cursor, scan.sql, scan.bound) for scan in scans], rows


def fold(
    asked: Fold, tables: Mapping[str, TablePages], connection: Connection | None = None, *, threads: int | None = 1
) -> tuple[list[Integers], int]:
    """The sums of a program over the rows of its statement, and how many rows there are."""
    with opened(tables, connection, threads=threads) as (cursor, rows):
        return run_program(asked, stream(cursor, asked, CHUNK_ROWS)), rows


def sent(table: pa.Table) -> bytes:
    """A result as bytes."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return bytes(sink.getvalue())


def received(found: bytes | pa.Buffer) -> pa.Table:
    """A result from bytes."""
    return pa.ipc.open_stream(found).read_all()


def columns(parts: Sequence[pa.Table]) -> list[Stored]:
    """The results of one statement over several parts, one after the other: what is of one cell is added later."""
    return [numpy_column(column) for column in pa.concat_tables(parts).columns]


def groups(parts: Sequence[pa.Table], keys: int) -> list[Stored]:
    """Groups found in several parts: those of the same keys are one, their sums and their people added."""
    found: dict[tuple[object, ...], list[int]] = {}
    for part in parts:
        for row in zip(*(column.to_pylist() for column in part.columns), strict=True):
            key = tuple(cell + 0.0 if isinstance(cell, float) else cell for cell in row[:keys])
            sums = [0 if cell is None else int(cell) for cell in row[keys:]]
            before = found.setdefault(key, [0] * len(sums))
            found[key] = [a + b for a, b in zip(before, sums, strict=True)]
    types = parts[0].schema.types[:keys]  # a key of Python's own numbers would be none of doubles
    cells = [pa.array([key[i] for key in found], type=kind) for i, kind in enumerate(types)]
    totals = [np.array([sums[i] for sums in found.values()], object) for i in range(parts[0].num_columns - keys)]
    return [*map(numpy_column, cells), *((each, None) for each in totals)]


def added(parts: Sequence[Sequence[Integers]]) -> list[Integers]:
    """The sums of a program over several parts, added up: each of them is saturated, and so is their sum (T5)."""
    found = []
    for several in zip(*parts, strict=True):
        totals = RunningTotals(*several[0].shape)
        for sums in several:
            totals.reserve(SATURATED)
            totals.small += sums
        found.append(totals.saturated())
    return found
