"""Prepared rows as Spark holds them: some thousands of rows side by side in one row of the prepared table.

Each column of such a chunk is one cell: its integers as bytes, as narrow as its
declaration allows. So Spark moves a few large cells where it would convert
millions of small ones, reads no column that is not asked for, and a chunk
becomes NumPy columns without a look at a single row.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
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
from sulq.language.domain import Column, Schema, Text
from sulq.sources.duckdb.connection import (
    Connection,
    arrow_table,
    create_table,
    insert_page,
    numpy_column,
    stored_columns,
)
from sulq.sources.duckdb.kept_rows import OWNER_DIGITS
from sulq.sources.duckdb.runner import run_program, stream
from sulq.sources.fold import RunningTotals

CHUNK_ROWS: Final = 32_768  # of a chunk: 50 columns of them as doubles are what a kernel takes at a time
COUNT: Final = "n"
WIDTHS: Final = {"TINYINT": "<i1", "SMALLINT": "<i2", "INTEGER": "<i4", "BIGINT": "<i8"}
TYPES: Final = {"TINYINT": pa.int8(), "SMALLINT": pa.int16(), "INTEGER": pa.int32(), "BIGINT": pa.int64()}


def _gone(name: str) -> str:
    """The column beside a column that says which of its cells are not missing, in Arrow's bits; none where all are."""
    return f"m{name[1:]}"


def _stored(schema: Schema, *, owned: bool) -> list[tuple[str, pa.DataType]]:
    """The columns of a chunk."""
    found = [(COUNT, pa.int32())]
    for name, (_, column) in zip(names(schema).values(), schema.columns, strict=True):
        found.append((name, pa.list_(pa.string()) if isinstance(column, Text) else pa.binary()))
        found += [] if isinstance(column, Text) else [(_gone(name), pa.binary())]
    return found + ([(PERSON, pa.binary()), (OWNER, pa.binary())] if owned else [])


def layout(schema: Schema, *, owned: bool) -> str:
    """The columns of a chunk in Spark's words."""
    words = {pa.int32(): "int", pa.binary(): "binary"}
    return ", ".join(f"{name} {words.get(kind, 'array<string>')}" for name, kind in _stored(schema, owned=owned))


def wanted_columns(schema: Schema, wanted: Needed, *, owned: bool) -> list[str]:
    """The columns of a chunk that are looked at."""
    found = [COUNT]
    for stored, (name, column) in zip(names(schema).values(), schema.columns, strict=True):
        if name in wanted.columns:
            found += [stored] if isinstance(column, Text) else [stored, _gone(stored)]
    return found + ([PERSON] if wanted.person else []) + ([OWNER] if owned else [])


def packed(rows: pa.Table, schema: Schema, *, owned: bool) -> pa.RecordBatch:
    """Rows of codes as one chunk."""
    cells: dict[str, object] = {COUNT: rows.num_rows}
    for name, (_, column) in zip(names(schema).values(), schema.columns, strict=True):
        if isinstance(column, Text):
            cells[name] = rows.column(name).to_pylist()
            continue
        values, missing = numpy_column(rows.column(name))
        cells[name] = values.astype(_width(column), copy=False).tobytes()
        cells[_gone(name)] = None if missing is None else np.packbits(~missing, bitorder="little").tobytes()
    if owned:
        cells[PERSON] = numpy_column(rows.column(PERSON))[0].astype("<i8", copy=False).tobytes()
        cells[OWNER] = "".join(rows.column(OWNER).to_pylist()).encode()
    columns = _stored(schema, owned=owned)
    return pa.RecordBatch.from_arrays(
        [pa.array([cells[name]], kind) for name, kind in columns], schema=pa.schema(columns)
    )


def unpacked(chunks: Iterable[pa.RecordBatch], schema: Schema) -> Iterator[pa.Table]:
    """Chunks as tables of Arrow's, a column by the name it is stored under; nothing is copied."""
    kinds = {names(schema)[name]: kept_table.smallest(column) for name, column in schema.columns}
    for several in chunks:
        there = several.schema.names
        for place in range(several.num_rows):
            cells = {name: several.column(i)[place] for i, name in enumerate(there)}
            size = int(cells[COUNT].as_py())
            found = {}
            for name in there:
                if name in kinds and kinds[name] not in TYPES:
                    found[name] = cells[name].values
                elif name in kinds:
                    bits = cells[_gone(name)]
                    buffers = [_aligned(bits) if bits.is_valid else None, _aligned(cells[name])]
                    found[name] = pa.Array.from_buffers(TYPES[kinds[name]], size, buffers)
                elif name in (PERSON, OWNER):
                    kind = pa.int64() if name == PERSON else pa.binary(OWNER_DIGITS)
                    found[name] = pa.Array.from_buffers(kind, size, [None, _aligned(cells[name])])
            yield pa.table(found) if found else pa.table({"c0": pa.nulls(size, pa.int8())})


def _aligned(cell: pa.Scalar) -> pa.Buffer:
    """A cell's bytes where numbers may begin: within a column of cells they can lie anywhere."""
    found = cell.as_buffer()
    return found if found.address % 8 == 0 else pa.py_buffer(found.to_pybytes())


def _width(column: Column) -> str:
    return WIDTHS[kept_table.smallest(column)]


def rows_layout(schema: Schema, *, owned: bool) -> tuple[str, pa.Schema]:
    """Single rows of codes, as they are sorted and bounded before they are packed: in Spark's words and in Arrow's."""
    words, kinds = [], []
    for name, (_, column) in zip(names(schema).values(), schema.columns, strict=True):
        kind = kept_table.smallest(column)
        words.append(f"{name} {'string' if isinstance(column, Text) else kind.lower()}")
        kinds.append((name, TYPES.get(kind, pa.string())))
    if owned:
        words += [f"{PERSON} bigint", "u string", "r string", f"{OWNER} string"]
        kinds += [(PERSON, pa.int64()), ("u", pa.string()), ("r", pa.string()), (OWNER, pa.string())]
    return ", ".join(words), pa.schema(kinds)


def arrow_layout(schema: Schema, asked: list[str], *, owned: bool) -> pa.Schema:
    """Some columns of a chunk in Arrow's words."""
    kinds = dict(_stored(schema, owned=owned))
    return pa.schema([(name, kinds[name]) for name in asked])


class TablePages(NamedTuple):
    """A table's kept rows as chunks."""

    schema: Schema
    owned: bool
    chunks: Iterable[pa.RecordBatch]


@contextmanager
def opened(
    tables: Mapping[str, TablePages], *, threads: int | None = 1
) -> Iterator[tuple[duckdb.DuckDBPyConnection, int]]:
    """A cursor of a private, locked DuckDB that holds these rows; and how many they are."""
    connection = Connection(threads=threads)
    rows = 0
    try:
        for name, given in tables.items():
            every, there = stored_columns(given.schema, owned=given.owned, owner="BLOB"), False
            for page in unpacked(given.chunks, given.schema):
                if not there:  # without persons there is no column of them: were it missing, all rows would be one's
                    unnamed = {OWNER} - set(page.column_names)
                    create_table(
                        connection, name, {column: kind for column, kind in every.items() if column not in unnamed}
                    )
                there = True
                insert_page(connection, name, page)
                rows += page.num_rows
            if not there:
                create_table(connection, name, every)
        connection.lock()
        yield connection.cursor(), rows
    finally:
        connection.close()


def run(
    scans: Sequence[Scan], tables: Mapping[str, TablePages], *, threads: int | None = 1
) -> tuple[list[pa.Table], int]:
    """The result of each statement over these rows, and how many those are; statements of one job read the same."""
    with opened(tables, threads=threads) as (cursor, rows):
        return [arrow_table(cursor, scan.sql, scan.bound) for scan in scans], rows


def fold(asked: Fold, tables: Mapping[str, TablePages], *, threads: int | None = 1) -> tuple[list[Integers], int]:
    """The sums of a program over the rows of its statement, and how many rows there are."""
    with opened(tables, threads=threads) as (cursor, rows):
        return run_program(asked, stream(cursor, asked, CHUNK_ROWS)), rows


def sent(table: pa.Table) -> bytes:
    """A result as bytes."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return bytes(sink.getvalue())


def received(found: bytes) -> pa.Table:
    """A result from bytes."""
    return pa.ipc.open_stream(found).read_all()


def columns(parts: Sequence[pa.Table]) -> list[Stored]:
    """The results of one statement over several parts, one after the other: what is of one cell is added later."""
    return [numpy_column(column) for column in pa.concat_tables(parts).columns]


def groups(parts: Sequence[pa.Table], keys: int) -> list[tuple[object, ...]]:
    """Groups found in several parts: those of the same keys are one, their sums and their people added."""
    found: dict[tuple[object, ...], list[int]] = {}
    for part in parts:
        for row in zip(*(column.to_pylist() for column in part.columns), strict=True):
            key = tuple(cell + 0.0 if isinstance(cell, float) else cell for cell in row[:keys])
            sums = [0 if cell is None else int(cell) for cell in row[keys:]]
            before = found.setdefault(key, [0] * len(sums))
            found[key] = [a + b for a, b in zip(before, sums, strict=True)]
    return [(*key, *sums) for key, sums in found.items()]


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
