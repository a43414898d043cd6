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
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import duckdb
import psycopg
import pyarrow as pa
import pyarrow.csv

from sulq.addresses import TableAddress
from sulq.errors import SetupError
from sulq.kernel.entropy import random_bytes
from sulq.language.domain import Schema, Text
from sulq.language.privacy import Unit
from sulq.sources import cell_reading
from sulq.sources.cell_reading import Cell
from sulq.sources.decode.postgres import PostgresColumn, Records, quoted, records
from sulq.sources.duckdb import kept_rows, prepare
from sulq.sources.duckdb.connection import Connection, insert_batches, record_batches, stored_columns
from sulq.sources.postgres import session
from sulq.sources.postgres.session import PostgresCopy, meaning, opened, refuse_writer
from sulq.sources.source import RegisteredTable, TableSource, whom
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
            session.refuse_published(db, schema)
            with db.transaction():
                db.execute("SELECT pg_advisory_xact_lock(%s)", [int(schema[-15:], 16)])  # of several, one builds
                copy = None if renew else session.found(db, schema, facts)
                if copy is None:
                    _build(db, address, tables, (schema, facts), progress)
                    copy = session.found(db, schema, facts)
                if copy is not None:
                    session.check(db, copy, address.reader)
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
    folder = Connection(most=prepare.MAX_BUILD_MEMORY_MIB)
    try:
        folder.attach(folder.folder / "origin", "origin", writable=True)
        _snapshot(address, folder, tables)
        prepare.fill(folder, [table.registered for table in tables], into="origin.", progress=progress)
        session.emptied(db, schema)
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
    session.record(db, schema, facts | told)
    session.close(db, schema, address.reader)


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
    statement = f"CREATE TABLE {table.registered.source.relation} AS SELECT * FROM page"
    insert_batches(folder, statement, table.records.schema, table.records.batches(db))


def _sent(db: psycopg.Connection, folder: Connection, registered: RegisteredTable, relation: str) -> int:
    """Write a table's kept rows; how many there are."""
    columns = stored_columns(registered.schema, owned=registered.unit.column is not None)
    names, rows = ", ".join(columns), 0
    made = ", ".join(f"{name} {TYPES[kind]}" for name, kind in columns.items())
    db.execute(f"CREATE TABLE {relation} ({made}) WITH (autovacuum_enabled = off)")
    cursor = folder.cursor()
    with db.cursor().copy(f"COPY {relation} ({names}) FROM STDIN (FORMAT csv, FREEZE)") as sent:
        for batch in record_batches(cursor, f"SELECT {names} FROM origin.{registered.kept}", SENT_ROWS):
            text = io.BytesIO()
            pa.csv.write_csv(batch, text, pa.csv.WriteOptions(include_header=False))
            sent.write(text.getvalue())
            rows += batch.num_rows
    cursor.close()
    db.execute(f"ANALYZE {relation}")
    return rows


KINDS: Final = ("r", "p", "v", "m", "f")  # tables, partitioned or not, views, foreign tables
SHAPE: Final = """
SELECT c.oid::bigint, c.relkind::text, a.attname::text, base.name, base.kind
FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
LEFT JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
LEFT JOIN LATERAL (
    WITH RECURSIVE under (oid, up) AS (
        SELECT t.oid, t.typbasetype FROM pg_type AS t WHERE t.oid = a.atttypid
        UNION ALL SELECT t.oid, t.typbasetype FROM under JOIN pg_type AS t ON t.oid = under.up
    )
    SELECT format_type(t.oid, NULL), t.typtype::text
    FROM under JOIN pg_type AS t ON t.oid = under.oid WHERE under.up = 0
) AS base (name, kind) ON true
WHERE n.nspname = %s AND c.relname = %s ORDER BY a.attnum
"""
# What a view calls, itself or through views it reads, that may hide rows from one role and show them to another, or
# draw them by chance: functions that run with the rights or settings of another (row-level policies of theirs apply,
# whatever this session says), volatile ones, and the owner's own that are not immutable; and TABLESAMPLE.
HIDING: Final = r"""
WITH RECURSIVE viewed (oid) AS (
    SELECT %s::oid
    UNION SELECT found.oid::oid FROM viewed JOIN pg_rewrite AS rule ON rule.ev_class = viewed.oid,
        LATERAL (SELECT (regexp_matches(rule.ev_action::text, ':relid (\d+)', 'g'))[1]) AS found (oid)
), defined (action) AS (
    SELECT ev_action::text FROM viewed JOIN pg_class ON pg_class.oid = viewed.oid AND relkind = 'v'
    JOIN pg_rewrite ON ev_class = viewed.oid
)
SELECT proname::text FROM defined,
    LATERAL (SELECT (regexp_matches(action, ':(?:op|)funcid (\d+)', 'g'))[1]) AS called (oid)
    JOIN pg_proc ON pg_proc.oid = called.oid::oid
WHERE prosecdef OR proconfig IS NOT NULL OR provolatile = 'v' OR (pg_proc.oid >= 16384 AND provolatile <> 'i')
UNION ALL SELECT 'TABLESAMPLE' FROM defined WHERE action LIKE '%%:tablesample {%%'
ORDER BY 1 LIMIT 1
"""


@dataclass(frozen=True, slots=True)
class OfferedTable:
    """A table as it stands: its oid and its columns, each with PostgreSQL's name of what is under its type."""

    oid: int
    kind: str
    relation: str  # quoted
    columns: tuple[tuple[str, str, str], ...]  # name, type, kind of type

    @property
    def lockable(self) -> bool:
        """Whether it can be locked against being altered."""
        return self.kind in ("r", "p", "v")


def offered(db: psycopg.Connection, schema: str, name: str) -> OfferedTable:
    """A table's columns by the catalogue; no row is read.

    Raises:
        SetupError: there is no such table, nothing rows can be read from, or a view whose rows may be hidden or drawn
            by chance.
    """
    found = db.execute(SHAPE, [schema, name]).fetchall()
    if not found or found[0][1] not in KINDS:
        raise SetupError(
            "unreadable-data",
            f"The database has no table {name[:63]!r} in its schema {schema[:63]!r}.",
            "Name the table: table=NAME, or ?table=SCHEMA.NAME in the address.",
        )
    hiding = db.execute(HIDING, [found[0][0]]).fetchone() if found[0][1] == "v" else None
    if hiding is not None:
        raise SetupError(
            "bad-declaration",
            f"The view {name[:63]!r} calls {str(hiding[0])[:63]}, which may hide rows or draw them by chance.",
            "Give the tables it reads, or a copy: CREATE TABLE ... AS SELECT, as a role that sees all rows.",
        )
    columns = tuple((str(row[2]), str(row[3]), str(row[4])) for row in found if row[2] is not None)
    return OfferedTable(int(found[0][0]), str(found[0][1]), f"{quoted(schema)}.{quoted(name)}", columns)


def stream(table: OfferedTable, schema: Schema, unit: Unit, number: str) -> tuple[TableSource, Records]:
    """How the needed columns of a table are selected, and how DuckDB reads them; refuses what is missing or unfit."""
    places = cell_reading.places([name for name, _, _ in table.columns], schema, unit)
    wanted = [
        PostgresColumn(*table.columns[places[name]], column.longest if isinstance(column, Text) else None)
        for name, column in schema.columns
    ]
    named = None if unit.column is None else PostgresColumn(*table.columns[places[unit.column]])
    read = records(table.relation, wanted, named, unit.fold)
    columns = {column.name: _plain(column, f"s{i}") for i, column in enumerate(wanted)}
    for name, declared in schema.columns:
        numeric = table.columns[places[name]][1] == "numeric"
        cell_reading.agree(name, declared, "number" if numeric else columns[name][0])
    return TableSource(f"origin.source{number}", columns, None, person=whom(read.named, schema, unit)), read


def _plain(column: PostgresColumn, item: str) -> tuple[Cell, str]:
    """What a column holds, and how DuckDB gets at it from PostgreSQL's text."""
    base = column.base
    if base == "boolean":
        return "truth", f"TRY_CAST({item} AS BOOLEAN)"
    if base in ("smallint", "integer", "bigint"):
        return "whole", f"TRY_CAST({item} AS BIGINT)"
    if base in ("real", "double precision"):
        return "number", f"TRY_CAST({item} AS DOUBLE)"
    if base == "numeric":
        ends = "WHEN 'NaN' THEN NULL WHEN 'Infinity' THEN '1e308' WHEN '-Infinity' THEN '-1e308'"
        return "text", f"CASE {item} {ends} ELSE {item} END"
    if base == "date":
        return "date", _saturated(item, f"(TRY_CAST({item} AS DATE) - DATE '1970-01-01')")
    if base.startswith("timestamp"):
        return "moment", _saturated(item, f"epoch_us(TRY_CAST({item} AS TIMESTAMP))")
    return "text", item


def _saturated(item: str, inside: str) -> str:
    """Days and moments of the years 1 to 9999; what lies beyond, infinities too, is past every bound."""
    low, high = f"({-cell_reading.BEYOND})", cell_reading.BEYOND
    early = f"WHEN regexp_full_match({item}, '-infinity|.* BC') THEN {low}"
    return f"CASE {early} WHEN regexp_full_match({item}, 'infinity|[0-9]{{5,}}-.*') THEN {high} ELSE {inside} END"
