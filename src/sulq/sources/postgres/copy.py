"""The prepared copy in PostgreSQL: kept rows as integers, built from one snapshot of all tables.

The snapshot is streamed out, DuckDB reads the cells and chooses the kept rows exactly
as for a file (kept_rows.py), and their integers go back into a schema named by a digest of
what they are made of: other declarations have another copy. It is written in one
transaction, whole or not at all.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

import duckdb
import psycopg
import pyarrow as pa
import pyarrow.csv

from sulq.addresses.postgres import TableAddress
from sulq.errors import SetupError
from sulq.kernel.entropy import random_bytes
from sulq.language.privacy import Unit
from sulq.sources.decode.postgres import Records
from sulq.sources.duckdb import kept_rows, pages, prepare, results
from sulq.sources.duckdb.connection import Connection
from sulq.sources.postgres import schema as postgres_schema
from sulq.sources.postgres.schema import PostgresCopy
from sulq.sources.postgres.session import meaning, opened, refuse_writer
from sulq.sources.postgres.source import OfferedTable, offered, stream
from sulq.sources.source import RegisteredTable, TableSource
from sulq.sources.tables import Dataset, Given

FORMAT: Final = "1"
SENT_ROWS: Final = 65_536  # rows sent at a time
TYPES: Final = {
    "TINYINT": "smallint", "SMALLINT": "smallint", "INTEGER": "integer", "BIGINT": "bigint",
    "VARCHAR": 'text COLLATE "C"',
}  # fmt: skip
Progress = Callable[[float], None]


class PlannedTable(NamedTuple):
    """One table: as it stands, how it is streamed, and how DuckDB is to read that."""

    offered: OfferedTable
    records: Records
    registered: RegisteredTable
    place: tuple[str, str]  # its schema and name

    @property
    def name(self) -> str:
        """Its name in questions."""
        return self.registered.schema.table


def copied(dataset: Dataset, address: TableAddress, *, renew: bool, progress: Progress | None) -> PostgresCopy:
    """The copy of a dataset that is there, or a new one; this is between the owner and all of the owner's rows.

    Raises:
        SetupError: the tables are not there, not as declared, or no longer those that were copied.
    """
    failed: SetupError | None = None
    copy: PostgresCopy | None = None
    try:
        with opened(address, limit=address.limit, write=True) as db:
            tables = _planned(db, dataset)
            if address.reader is not None:  # before anything is read
                refuse_writer(db, address.reader, "pg_catalog", [table.offered.relation for table in tables])
                opened(address, user=address.reader).close()
            schema, facts = _named(db, tables)
            postgres_schema.refuse_published(db, schema)
            with db.transaction():
                db.execute("SELECT pg_advisory_xact_lock(%s)", [int(schema[-15:], 16)])  # of several, one builds
                copy = None if renew else postgres_schema.found(db, schema, facts)
                if copy is None:
                    _build(db, address, tables, (schema, facts), progress)
                    copy = postgres_schema.found(db, schema, facts)
                if copy is not None:
                    postgres_schema.check(db, copy, address.reader)
    except psycopg.Error as error:
        failed = meaning(error)
    if failed is not None:  # raised out here: not even its context leads back to PostgreSQL's text (T31)
        raise failed
    if copy is None:
        raise SetupError("prepared-unusable", "The copy in the database is gone again.", "Try again.")
    return copy


def _planned(db: psycopg.Connection, dataset: Dataset) -> list[PlannedTable]:
    """How each table is read; what is missing or of no declared kind is refused."""
    read: list[tuple[OfferedTable, Records, tuple[str, str]]] = []

    def describe(given: Given, unit: Unit, number: str) -> TableSource:
        place = given.origin.place(given.inside)
        shown = offered(db, *place)
        source, records = stream(shown, given.facts.schema, unit, number)
        read.append((shown, records, place))
        return source

    registered = dataset.register(describe)
    return [
        PlannedTable(shown, records, item, place)
        for (shown, records, place), item in zip(read, registered, strict=True)
    ]


def _named(db: psycopg.Connection, tables: Sequence[PlannedTable]) -> tuple[str, dict[str, str]]:
    """The name of the copy's schema, by what it is made of, and what must not have changed since."""
    facts = prepare.facts([table.registered for table in tables])
    (base,) = db.execute("SELECT current_database()::text").fetchone() or ("",)
    sources = {table.name: table.offered.relation for table in tables}
    fixed = [base, sources, facts["declarations"], facts["space"], facts["key"]]
    digest = hashlib.sha256(json.dumps(fixed).encode()).hexdigest()
    shape = {table.name: [table.offered.oid, table.offered.columns] for table in tables}
    told = {"format": f"{FORMAT} {prepare.FORMAT}", "shape": json.dumps(shape), "sources": json.dumps(sources)}
    return f"sulq_{digest[:32]}", told


def _build(
    db: psycopg.Connection,
    address: TableAddress,
    tables: Sequence[PlannedTable],
    copy: tuple[str, dict[str, str]],
    progress: Progress | None,
) -> None:
    """Read, choose, write; the rows lie meanwhile in a private folder that is removed again."""
    schema, facts = copy
    build = random_bytes(8).hex()  # part of the tables' names: a question never meets rows of another build
    made, rows = {}, {}
    heavy: list[list[int]] = []
    failed = ""
    folder = Connection()
    try:
        folder.attach(folder.folder / "origin", "origin", writable=True)
        _snapshot(address, folder, tables)
        prepare.fill(folder, [table.registered for table in tables], into="origin.", progress=progress)
        postgres_schema.emptied(db, schema)
        for table in tables:
            made[table.name] = f"{schema}.{table.registered.kept}_{build}"
            rows[table.name] = _sent(db, folder, table.registered, made[table.name])
        if any(table.registered.unit.column is not None for table in tables):
            counts = f"SELECT heavy, others FROM origin.{kept_rows.HEAVY} ORDER BY t"
            heavy = [[int(n) for n in row] for row in folder.root.execute(counts).fetchall()]
    except (duckdb.Error, pa.ArrowException, OSError) as error:
        failed = type(error).__name__  # its text may hold a cell (T31)
    finally:
        folder.close()
    if failed:
        raise SetupError("unreadable-data", "The data could not be read to its end.", "Check its texts, and the disk.")
    persons = dict(zip(made, heavy, strict=bool(heavy)))
    told = {"build": build, "tables": json.dumps(made), "rows": json.dumps(rows), kept_rows.HEAVY: json.dumps(persons)}
    postgres_schema.record(db, schema, facts | told)
    postgres_schema.close(db, schema, address.reader)


def _snapshot(address: TableAddress, folder: Connection, tables: Sequence[PlannedTable]) -> None:
    """All tables as they stood at one moment, in a private file of DuckDB's.

    They are locked against being altered first: rows of a table that was truncated or
    rewritten after a snapshot was taken are not in that snapshot.
    """
    with opened(address, limit=address.limit) as db:
        db.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        lockable = [table.offered.relation for table in tables if table.offered.lockable]
        if lockable:
            db.execute(f"LOCK TABLE {', '.join(lockable)} IN ACCESS SHARE MODE")
        for table in tables:
            if offered(db, *table.place) != table.offered:
                raise SetupError("source-changed", f"Table {table.name!r} was altered while it was opened.")
            _streamed(folder, table, db)
        db.execute("ROLLBACK")


def _streamed(folder: Connection, table: PlannedTable, db: psycopg.Connection) -> None:
    """Write down a table's rows as they come; what PostgreSQL says on the way is not lost in DuckDB's words for it."""
    said: list[psycopg.Error] = []

    def batches() -> Iterator[pa.RecordBatch]:
        try:
            yield from table.records.batches(db)
        except psycopg.Error as error:
            said.append(error)
            raise

    folder.root.register("streamed", pa.RecordBatchReader.from_batches(table.records.schema, batches()))
    try:
        folder.root.execute(f"CREATE TABLE {table.registered.source.relation} AS SELECT * FROM streamed")
    except (duckdb.Error, pa.ArrowException):
        if not said:
            raise
    if said:
        raise said[0]
    folder.root.unregister("streamed")


def _sent(db: psycopg.Connection, folder: Connection, registered: RegisteredTable, relation: str) -> int:
    """Write a table's kept rows; how many there are."""
    columns = pages.columns_of(registered.schema, owned=registered.unit.column is not None)
    names, rows = ", ".join(columns), 0
    made = ", ".join(f"{name} {TYPES[kind]}" for name, kind in columns.items())
    db.execute(f"CREATE TABLE {relation} ({made}) WITH (autovacuum_enabled = off)")
    cursor = folder.cursor()
    with db.cursor().copy(f"COPY {relation} ({names}) FROM STDIN (FORMAT csv, FREEZE)") as sent:
        for batch in results.record_batches(cursor, f"SELECT {names} FROM origin.{registered.kept}", SENT_ROWS):
            text = io.BytesIO()
            pa.csv.write_csv(batch, text, pa.csv.WriteOptions(include_header=False))
            sent.write(text.getvalue())
            rows += batch.num_rows
    cursor.close()
    db.execute(f"ANALYZE {relation}")
    return rows
