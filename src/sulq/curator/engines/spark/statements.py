"""Certified statements over pages of kept rows: on an executor over its partition, or in the curator's process.

A statement over one table that joins and merges no rows is a sum over persons of what each person's rows alone give,
so its sums over parts that hold whole persons add up to those over all rows: the same function, the same certificate.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import pyarrow as pa

from sulq.curator.engines import arrow, pages
from sulq.curator.engines.connection import Connection
from sulq.curator.engines.kept import OWNER
from sulq.curator.engines.spark import chunks
from sulq.kernel.arrays import Stored
from sulq.kernel.request import Scan
from sulq.terms.domain import Schema


class Pages(NamedTuple):
    """A table's kept rows as chunks."""

    schema: Schema
    owned: bool
    chunks: Iterable[pa.RecordBatch]


def run(scans: Sequence[Scan], tables: Mapping[str, Pages], *, threads: int | None = 1) -> tuple[list[pa.Table], int]:
    """The result of each statement over these rows, in a private, locked DuckDB of its own; and how many those are.

    The statements of one job read the same rows.
    """
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
        cursor = connection.cursor()
        return [arrow.table(cursor, scan.sql, scan.bound) for scan in scans], rows
    finally:
        connection.close()


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
    return [arrow.numpy_column(column) for column in pa.concat_tables(parts).columns]


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
