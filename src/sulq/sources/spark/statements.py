"""Certified statements and programs over pages of kept rows: an executor's partition, or here in the curator's process.

A statement over one table that joins and merges no rows is a sum over persons of what each person's rows alone give,
so its sums over parts that hold whole persons add up to those over all rows: the same function, the same certificate.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import duckdb
import pyarrow as pa

from sulq.compile.statements.kept_table import OWNER
from sulq.kernel.private import SATURATED, Integers, Stored
from sulq.kernel.programs import Fold
from sulq.kernel.request import Scan
from sulq.language.domain import Schema
from sulq.sources.duckdb import pages, results
from sulq.sources.duckdb.connection import Connection
from sulq.sources.duckdb.runner import run_program, stream
from sulq.sources.folds.totals import RunningTotals
from sulq.sources.spark import chunks


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
            every, there = pages.columns_of(given.schema, owned=given.owned, owner="BLOB"), False
            for page in chunks.tables(given.chunks, given.schema):
                if not there:  # without persons there is no column of them: were it missing, all rows would be one's
                    unnamed = {OWNER} - set(page.column_names)
                    pages.create(
                        connection, name, {column: kind for column, kind in every.items() if column not in unnamed}
                    )
                there = True
                pages.insert(connection, name, page)
                rows += page.num_rows
            if not there:
                pages.create(connection, name, every)
        connection.lock()
        yield connection.cursor(), rows
    finally:
        connection.close()


def run(
    scans: Sequence[Scan], tables: Mapping[str, TablePages], *, threads: int | None = 1
) -> tuple[list[pa.Table], int]:
    """The result of each statement over these rows, and how many those are; statements of one job read the same."""
    with opened(tables, threads=threads) as (cursor, rows):
        return [results.table(cursor, scan.sql, scan.bound) for scan in scans], rows


def fold(asked: Fold, tables: Mapping[str, TablePages], *, threads: int | None = 1) -> tuple[list[Integers], int]:
    """The sums of a program over the rows of its statement, and how many rows there are."""
    with opened(tables, threads=threads) as (cursor, rows):
        return run_program(asked, stream(cursor, asked, chunks.CHUNK_ROWS)), rows


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
    return [results.numpy_column(column) for column in pa.concat_tables(parts).columns]


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
