"""What runs on Spark's executors: our own functions, found there by name, and canonical JSON of our own values.

Nothing an analyst wrote comes here but numbers, and no random number is drawn here. An
error's text may hold a cell, and Spark writes it into its logs: what leaves is
the name of its kind and no more (T31).
"""

from __future__ import annotations

import functools
import gc
import itertools
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, cast

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sulq.answers import wire
from sulq.compile.statements import kept_table
from sulq.kernel import matrix
from sulq.kernel.programs import Fold
from sulq.kernel.request import Scan
from sulq.language.domain import Schema, Text
from sulq.language.privacy import Unit
from sulq.sources.cell_reading import Cell
from sulq.sources.decode.frames import records
from sulq.sources.decode.person import Person
from sulq.sources.duckdb import kept_rows, prepare
from sulq.sources.duckdb.connection import Connection, arrow_table, numpy_column
from sulq.sources.duckdb.runner import run_program
from sulq.sources.origin import Origin
from sulq.sources.source import RegisteredTable, TableSource
from sulq.sources.spark import chunks
from sulq.sources.spark.chunks import TablePages
from sulq.version import __version__

Batches = Iterable[pa.RecordBatch]

VERSIONS: Final = f"sulq {__version__}, " + ", ".join(f"{p.__name__} {p.__version__}" for p in (duckdb, np, pa))
RESULTS: Final = "i int, r binary"
HOLDERS: Final = "o binary, n bigint, b int"
READ_ROWS: Final = 65_536  # rows read at a time


class FailedError(Exception):
    """Something failed on an executor; of what it was, the kind alone is told."""


@functools.cache
def _settle() -> None:
    """Take what is loaded out of the garbage to come: Spark has Python look through all of it after each task."""
    gc.collect()
    gc.freeze()


def silent(work: Callable[..., Iterator[pa.RecordBatch]]) -> Callable[..., Iterator[pa.RecordBatch]]:
    """Let no error's text out of a function of batches."""

    @functools.wraps(work)
    def wrapped(*given: object) -> Iterator[pa.RecordBatch]:
        failed = ""
        try:
            _settle()
            yield from work(*given)
        except Exception as error:  # noqa: BLE001 - whatever a row may cause has one outcome (T30, T31)
            failed = type(error).__name__
        if failed:
            raise FailedError(failed)

    return wrapped


class OtherVersionError(Exception):
    """This executor has another version than the curator: it would go by other rules."""


def _same(versions: str) -> None:
    if versions != VERSIONS:
        raise OtherVersionError


@silent
def versions(rows: Batches) -> Iterator[pa.RecordBatch]:
    """Which versions are installed where this runs."""
    for _ in rows:
        pass
    yield pa.RecordBatch.from_pydict({"v": [VERSIONS]})


@dataclass(frozen=True)
class CellReading:
    """How the cells of one table are read, in words that travel."""

    schema: str
    unit: str
    key: str
    cells: str  # of each declared column, in order: its name, what it holds and how DuckDB gets at it
    person: str  # how DuckDB gets at the person, whose column comes after them, where there is one
    versions: str

    @classmethod
    def of(
        cls, schema: Schema, unit: Unit, key: bytes, cells: dict[str, tuple[Cell, str]], person: Person | None
    ) -> CellReading:
        """The words for one table."""
        told = json.dumps(cells), json.dumps(person)
        return cls(wire.encode(schema), wire.encode(unit), key.hex(), *told, VERSIONS)

    def registered(self) -> RegisteredTable:
        """The table as the reading of cells knows it: its source are batches."""
        _same(self.versions)
        schema, unit = cast("Schema", wire.decode(self.schema)), cast("Unit", wire.decode(self.unit))
        columns = {name: (cell, sql) for name, (cell, sql) in json.loads(self.cells).items()}
        person = json.loads(self.person)
        source = TableSource("source", columns, None, person=None if person is None else Person(*person))
        return RegisteredTable(Origin(None), source, schema, unit, bytes.fromhex(self.key))


@silent
def read_rows(reading: CellReading, rows: Batches) -> Iterator[pa.RecordBatch]:
    """A source's cells as codes, with what says which of a person's rows count (SR2)."""
    registered = reading.registered()
    target = chunks.rows_layout(registered.schema, owned=registered.unit.column is not None)[1]
    for table in _read(registered, rows):
        yield from table.cast(target).to_batches()


@silent
def read_chunks(reading: CellReading, rows: Batches) -> Iterator[pa.RecordBatch]:
    """A source's cells as chunks of codes, where every row counts."""
    registered = reading.registered()
    for table in _read(registered, rows):
        yield from _packed(table, registered.schema)


@silent
def pack(schema: str, rows: Batches) -> Iterator[pa.RecordBatch]:
    """Rows that count, as chunks; where they have a person, each of whole persons, whose rows follow each other."""
    found = cast("Schema", wire.decode(schema))
    held: pa.Table | None = None
    for table in _gathered(rows, chunks.CHUNK_ROWS):
        if kept_table.OWNER not in table.column_names:
            yield from _packed(table, found)
            continue
        whole = table if held is None else pa.concat_tables([held, table])
        others = _changes(whole, kept_table.OWNER)  # where another person begins
        last = others[-1] if others else 0
        yield from _bucketed(whole.slice(0, last), found)
        held = whole.slice(last)
    if held is not None:
        yield from _bucketed(held, found)


def _changes(table: pa.Table, column: str) -> list[int]:
    """The rows whose cell is not that of the row before."""
    cells = table.column(column).to_numpy()
    return [int(place) for place in np.flatnonzero(cells[1:] != cells[:-1]) + 1]


def _bucketed(table: pa.Table, schema: Schema) -> Iterator[pa.RecordBatch]:
    """Rows of whole persons as a chunk, or one for each bucket of persons; those of a bucket follow each other."""
    cuts = [0, *(_changes(table, chunks.BUCKET) if chunks.BUCKET in table.column_names else ()), table.num_rows]
    for start, end in itertools.pairwise(cuts):
        if end > start:
            yield chunks.packed(table.slice(start, end - start), schema, owned=True)


def _packed(table: pa.Table, schema: Schema) -> Iterator[pa.RecordBatch]:
    for start in range(0, table.num_rows, chunks.CHUNK_ROWS):
        yield chunks.packed(table.slice(start, chunks.CHUNK_ROWS), schema, owned=False)


@silent
def holders(schema: str, rows: Batches) -> Iterator[pa.RecordBatch]:
    """Of each chunk its persons, and how many rows each has; a cell outside its declaration fails."""
    found = cast("Schema", wire.decode(schema))
    declared = [(kept_table.names(found)[name], column) for name, column in found.columns]
    for chunk, table in _each(rows):
        for name, column in declared:
            cells = table.column(name)
            if cells.null_count and not column.missing:
                raise ValueError
            some = cells.drop_null()
            if len(some) and not isinstance(column, Text):
                low, high = pc.min_max(some).as_py().values()
                if not column.low <= low <= high <= column.high:
                    raise ValueError
        if kept_table.OWNER in table.column_names:
            persons = table.column(kept_table.OWNER).value_counts()
            bucket = chunk.column(chunks.BUCKET)[0].as_py() if chunks.BUCKET in chunk.schema.names else 0
            buckets = pa.array([bucket] * len(persons), pa.int32())
            yield pa.RecordBatch.from_arrays([*persons.flatten(), buckets], names=["o", "n", chunks.BUCKET])


def _each(rows: Batches) -> Iterator[tuple[pa.RecordBatch, pa.Table]]:
    """Each chunk, and its rows."""
    for page in chunks.paged(rows, 0):
        yield from zip(page, chunks.unpacked(page), strict=True)


def _read(registered: RegisteredTable, rows: Batches) -> Iterator[pa.Table]:
    """Cells to codes by the rules of every engine: DuckDB on this executor, locked, a batch at a time."""
    asked = kept_rows.every(registered)
    connection = Connection(threads=1)
    try:
        prepare.open_sources(connection, [registered])
        connection.lock()
        cursor = connection.cursor()
        for table in _gathered(rows, READ_ROWS):
            places = {name: i for i, name in enumerate(registered.source.columns)}
            who = None if registered.unit.column is None else (registered.unit.column, table.num_columns - 1)
            cursor.register("source", records(table, places, who, registered.unit.fold).table)
            found = arrow_table(cursor, f"SELECT * FROM {asked.relation}", asked.parameters)
            cursor.unregister("source")
            yield found
    finally:
        connection.close()


def _gathered(rows: Batches, size: int) -> Iterator[pa.Table]:
    """Batches put together until there are so many rows, or none are left."""
    held: list[pa.RecordBatch] = []
    for batch in rows:
        held.append(batch)
        if sum(item.num_rows for item in held) >= size:
            yield pa.Table.from_batches(held)
            held = []
    if any(item.num_rows for item in held):
        yield pa.Table.from_batches(held)


class SentTable(NamedTuple):
    """A table that statements name: its schema in words; which side of the rows it is; all of it, where it is public.

    `side`: None where the rows are this table's alone.
    """

    name: str
    schema: str
    owned: bool
    side: int | None = None
    public: bytes | None = None

    def pages(self, rows: Sequence[pa.RecordBatch]) -> TablePages:
        """Its rows among those of a page."""
        found = chunks.of_side(rows, self.side) if self.public is None else chunks.received(self.public).to_batches()
        return TablePages(cast("Schema", wire.decode(self.schema)), self.owned, found)


@dataclass(frozen=True)
class PartitionTask:
    """Certified statements, or a program, over some tables: generated names and numbers, no text of anybody's."""

    statements: tuple[str, ...]
    fold: Fold | None
    tables: tuple[SentTable, ...]
    versions: str

    @classmethod
    def of(cls, asked: Sequence[Scan] | Fold, tables: Sequence[SentTable]) -> PartitionTask:
        """The words for statements, or a program, in which no text is bound."""
        fold, scans = (asked, ()) if isinstance(asked, Fold) else (None, asked)
        if any(each.texts for each in (scans if fold is None else [fold])):
            raise ValueError("a text is not sent")
        return cls(tuple(scan.sql for scan in scans), fold, tuple(tables), VERSIONS)


@silent
def run(task: PartitionTask, rows: Batches) -> Iterator[pa.RecordBatch]:
    """The results of statements, or the sums of a program, over this partition's rows, a page of them at a time."""
    _same(task.versions)
    for page in chunks.paged(rows, chunks.PAGE_ROWS):
        found = _results(task, page)
        yield pa.RecordBatch.from_pydict({"i": pa.array(range(len(found)), pa.int32()), "r": found})


def _results(task: PartitionTask, page: Sequence[pa.RecordBatch]) -> list[bytes]:
    tables = {table.name: table.pages(page) for table in task.tables}
    if task.fold is None:
        results, _ = chunks.run([Scan(sql) for sql in task.statements], tables)
        return [chunks.sent(table) for table in results]
    if task.fold.table is None:
        sums, _ = chunks.fold(task.fold, tables)
    else:  # columns of the table itself need no DuckDB
        pages = chunks.unpacked(tables[task.fold.table[0]].chunks)
        sums = run_program(task.fold, (_batch(table, task.fold.program.columns) for table in pages))
    return [each.astype("<i8").tobytes() for each in sums]


def _batch(table: pa.Table, columns: Sequence[str]) -> matrix.Batch:
    return matrix.Batch(table.num_rows, [numpy_column(table.column(column)) for column in columns])
