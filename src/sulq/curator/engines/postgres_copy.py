"""The prepared copy in PostgreSQL: kept rows as integers, in a schema of its own that only its owner and reader reach.

One snapshot of all tables is streamed out, DuckDB reads the cells and chooses the
kept rows exactly as for a file (kept.py), and their integers go back into a schema
named by a digest of what they are made of: other declarations have another copy. It
is written in one transaction, whole or not at all.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

import duckdb
import psycopg
import pyarrow as pa
import pyarrow.csv

from sulq.curator.engines import arrow, grammar, kept, prepare
from sulq.curator.engines.connection import Connection
from sulq.curator.engines.kept import OWNER, PERSON, PLACE
from sulq.curator.engines.postgres_address import Address
from sulq.curator.engines.postgres_session import meaning, opened, refuse_writer
from sulq.curator.engines.postgres_source import Offered, Stream, offered, quoted, stream
from sulq.curator.engines.source import Registered
from sulq.curator.engines.tables import Dataset
from sulq.errors import SetupError
from sulq.terms.domain import Schema
from sulq.terms.privacy import Unit

FORMAT: Final = "1"
PART: Final = 65_536  # rows sent at a time
TYPES: Final = {
    "TINYINT": "smallint", "SMALLINT": "smallint", "INTEGER": "integer", "BIGINT": "bigint",
    "VARCHAR": 'text COLLATE "C"',
}  # fmt: skip
# Everybody but the owner whom a schema or a table in it was opened to, by whatever default privileges there are.
OTHERS: Final = """
SELECT DISTINCT acl.grantee::bigint, coalesce(quote_ident(r.rolname), 'PUBLIC') FROM (
    SELECT nspowner, nspacl FROM pg_namespace WHERE nspname = %(schema)s
    UNION ALL SELECT relowner, relacl FROM pg_class WHERE relnamespace = to_regnamespace(%(schema)s)
) AS held (owner, acls), LATERAL aclexplode(acls) AS acl LEFT JOIN pg_roles AS r ON r.oid = acl.grantee
WHERE acl.grantee <> held.owner AND NOT (
    acl.grantee = coalesce((SELECT oid FROM pg_roles WHERE rolname = %(reader)s), 0) AND acl.grantee <> 0
    AND acl.privilege_type IN ('USAGE', 'SELECT') AND NOT acl.is_grantable
)
"""
Progress = Callable[[float], None]


@dataclass(frozen=True, slots=True)
class Copy:
    """A prepared copy: its schema, which build of it, and each table's rows and pages."""

    schema: str
    build: str
    rows: dict[str, int]
    pages: dict[str, int]
    sources: dict[str, str]  # the tables it was read from, as the ledger registers them

    def relation(self, registered: Registered) -> str:
        """The table that holds a table's kept rows."""
        return f"{self.schema}.{registered.kept}_{self.build}"


class Preparing:
    """Finds the copy of a dataset, or builds it."""

    def __init__(self, dataset: Dataset, address: Address) -> None:
        self._dataset = dataset
        self._address = address

    def copy(self, *, renew: bool, progress: Progress | None) -> tuple[Copy, tuple[Registered, ...]]:
        """The copy that is there, or a new one; a source that is no longer the one that was copied stops the owner."""
        try:
            with opened(self._address, limit=self._address.limit, write=True) as db:
                shown = [offered(db, *given.origin.place(given.inside)) for given in self._dataset.tables]
                streams = [
                    stream(table, given.facts.schema, given.unit(self._dataset.unit), self._number(i))
                    for i, (table, given) in enumerate(zip(shown, self._dataset.tables, strict=True))
                ]
                registered = self._registered(streams)
                schema, facts = self._named(db, registered, shown)
                with db.transaction():
                    db.execute("SELECT pg_advisory_xact_lock(%s)", [int(schema.removeprefix("sulq_")[:15], 16)])
                    found = None if renew else _found(db, schema, facts)
                    if found is None:
                        found = self._build(db, schema, facts, registered, streams, shown, progress)
                self._check(db, found, registered)
                return found, registered
        except psycopg.Error as error:
            raise meaning(error) from None

    def _number(self, place: int) -> str:
        return "" if len(self._dataset.tables) == 1 else str(place)

    def _registered(self, streams: Sequence[Stream]) -> tuple[Registered, ...]:
        found, first = [], 0
        dataset = self._dataset
        for i, (given, read) in enumerate(zip(dataset.tables, streams, strict=True)):
            schema = given.facts.schema
            unit, checked = given.unit(dataset.unit), (given.facts.key, given.facts.references)
            found.append(
                Registered(
                    given.origin, read.source, schema, unit, dataset.key, dataset.space, self._number(i), first, *checked
                )
            )
            first += len(schema.columns)
        return tuple(found)

    def _named(
        self, db: psycopg.Connection, registered: Sequence[Registered], shown: Sequence[Offered]
    ) -> tuple[str, dict[str, str]]:
        """The name of the copy's schema, of what must not change under it, and what else it records."""
        facts = prepare.facts(registered)
        (base,) = db.execute("SELECT current_database()::text").fetchone() or ("",)
        relations = {item.schema.table: table.relation for item, table in zip(registered, shown, strict=True)}
        fixed = [base, relations, facts["declarations"], facts["space"], facts["key"]]
        digest = hashlib.sha256(json.dumps(fixed, sort_keys=True).encode()).hexdigest()
        tables = {item.schema.table: [table.oid, table.written] for item, table in zip(registered, shown, strict=True)}
        return f"sulq_{digest[:32]}", {"format": f"{FORMAT} {prepare.FORMAT}", "tables": json.dumps(tables)}

    def _build(  # noqa: PLR0913 - the steps of one transaction
        self,
        db: psycopg.Connection,
        schema: str,
        facts: dict[str, str],
        registered: tuple[Registered, ...],
        streams: Sequence[Stream],
        shown: Sequence[Offered],
        progress: Progress | None,
    ) -> Copy:
        build = os.urandom(8).hex()
        failed = ""
        try:
            folder = Connection()
            try:
                folder.attach(folder.folder / "origin", "origin", writable=True)
                read = self._snapshot(folder, registered, streams, shown)
                prepare.fill(folder, read, into="", progress=progress)
                _emptied(db, schema)
                copy = Copy(schema, build, {}, {}, {})
                for item in read:
                    copy.rows[item.schema.table] = _sent(db, folder, copy, item)
            finally:
                folder.close()
        except (duckdb.Error, pa.ArrowException, OSError) as error:
            failed = type(error).__name__  # its text may hold a cell (T31)
        if failed:
            raise SetupError("unreadable-data", "The data could not be read to its end.", "Check its texts and the disk.")
        sources = {item.schema.table: table.relation for item, table in zip(registered, shown, strict=True)}
        facts = facts | {"build": build, "rows": json.dumps(copy.rows), "sources": json.dumps(sources)}
        db.execute(f"CREATE TABLE {schema}.facts (name text PRIMARY KEY, value text NOT NULL)")
        db.cursor().executemany(f"INSERT INTO {schema}.facts VALUES (%s, %s)", list(facts.items()))
        self._closed(db, schema, [copy.relation(item) for item in registered])
        return _found(db, schema, facts) or copy

    def _snapshot(
        self,
        folder: Connection,
        registered: Sequence[Registered],
        streams: Sequence[Stream],
        shown: Sequence[Offered],
    ) -> tuple[Registered, ...]:
        """All tables as they stood at one moment, in a private file of DuckDB's; how many rows each has is known then."""
        found = []
        with opened(self._address, limit=self._address.limit) as db:
            db.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            for item, read, table in zip(registered, streams, shown, strict=True):
                name, schema = read.source.relation, read.schema
                reader = pa.RecordBatchReader.from_batches(schema, read.batches(db))
                folder.root.register("streamed", reader)
                folder.root.execute(f"CREATE TABLE {name} AS SELECT * FROM streamed")
                folder.root.unregister("streamed")
                ((rows,),) = folder.root.execute(f"SELECT count(*) FROM {name}").fetchall()
                given = next(each for each in self._dataset.tables if each.facts.schema.table == item.schema.table)
                if offered(db, *given.origin.place(given.inside)) != table:
                    raise SetupError("source-changed", f"Table {item.schema.table!r} was altered while it was read.")
                found.append(replace(item, source=replace(read.source, rows=int(rows))))
            db.execute("ROLLBACK")
        return tuple(found)

    def _closed(self, db: psycopg.Connection, schema: str, tables: Sequence[str]) -> None:
        """Open the copy to nobody but its owner, whatever default privileges say, and to the reader."""
        names = ", ".join([*tables, f"{schema}.facts"])
        asked = {"schema": schema, "reader": None}
        others = [str(name) for _, name in db.execute(OTHERS, asked).fetchall()]
        for name in {"PUBLIC", *others}:
            db.execute(f"REVOKE ALL ON SCHEMA {schema} FROM {name}")
            db.execute(f"REVOKE ALL ON {names} FROM {name}")
        if self._address.reader is not None:
            db.execute(f"GRANT USAGE ON SCHEMA {schema} TO {quoted(self._address.reader)}")
            db.execute(f"GRANT SELECT ON {names} TO {quoted(self._address.reader)}")

    def _check(self, db: psycopg.Connection, copy: Copy, registered: Sequence[Registered]) -> None:
        """Stop where the copy is open to others, or the reader may write."""
        reader = self._address.reader
        tables = [*(copy.relation(item) for item in registered), f"{copy.schema}.facts"]
        if reader is not None:
            refuse_writer(db, reader, copy.schema, [*tables, *copy.sources.values()])
            missing = db.execute(
                "SELECT 1 FROM unnest(%s::text[]) AS named (name) WHERE NOT has_table_privilege(%s, name, 'SELECT')",
                [tables, reader],
            ).fetchone()
            if missing is not None:
                with db.transaction():
                    self._closed(db, copy.schema, tables[:-1])
        if db.execute(OTHERS, {"schema": copy.schema, "reader": reader}).fetchone() is not None:
            raise SetupError(
                "prepared-unusable",
                "The private schema of the copy is open to another role.",
                "Take the rows anew with renew=True, which closes it, or revoke what was granted.",
            )


def _found(db: psycopg.Connection, schema: str, facts: dict[str, str]) -> Copy | None:
    """The copy in a schema, if there is one and it is of these tables as they stand."""
    if db.execute("SELECT to_regnamespace(%s)", [schema]).fetchone() == (None,):
        return None
    owned = db.execute(
        "SELECT 1 FROM pg_class WHERE relnamespace = to_regnamespace(%s) AND relname = 'facts'"
        " AND pg_has_role(relowner, 'USAGE')",
        [schema],
    ).fetchone()
    if owned is None:
        raise SetupError("prepared-unusable", f"The schema {schema} of the database is not a copy of this role's.")
    found = {str(name): str(value) for name, value in db.execute(f"SELECT name, value FROM {schema}.facts").fetchall()}
    if found.get("format") != facts["format"]:
        raise SetupError(
            "prepared-unusable",
            "The copy in the database was made by another version of sulq.",
            "Take the rows anew: renew=True.",
        )
    if found.get("tables") != facts["tables"]:
        raise SetupError("source-changed", "A table of the data was altered or made anew since it was copied.")
    rows, pages = json.loads(found["rows"]), {}
    kept_tables = db.execute(
        "SELECT relname::text, pg_relation_size(oid) / current_setting('block_size')::bigint FROM pg_class"
        " WHERE relnamespace = to_regnamespace(%s) AND relkind = 'r'",
        [schema],
    ).fetchall()
    sizes = {str(name): int(size) for name, size in kept_tables}
    for i, table in enumerate(rows):
        number = "" if len(rows) == 1 else str(i)
        pages[table] = sizes.get(f"kept{number}_{found['build']}", -1)
    if min(pages.values(), default=0) < 0:
        raise SetupError("prepared-unusable", "The copy in the database is not whole.", "Take the rows anew: renew=True.")
    return Copy(schema, found["build"], rows, pages, json.loads(found["sources"]))


def _emptied(db: psycopg.Connection, schema: str) -> None:
    """A new schema in place of an earlier copy; never of what is somebody else's."""
    there = db.execute("SELECT to_regnamespace(%s)", [schema]).fetchone() != (None,)
    if there:
        mine = db.execute(
            "SELECT pg_has_role(nspowner, 'USAGE') FROM pg_namespace WHERE nspname = %s", [schema]
        ).fetchone()
        if mine != (True,):
            raise SetupError("prepared-unusable", f"The schema {schema} of the database is another role's.")
        db.execute(f"DROP SCHEMA {schema} CASCADE")
    db.execute(f"CREATE SCHEMA {schema}")


def _stored(schema: Schema, unit: Unit) -> dict[str, str]:
    """The columns of a table of kept rows and their types."""
    names = kept.names(schema)
    found = {names[name]: TYPES[grammar.smallest(column)] for name, column in schema.columns}
    beside = [PERSON] if unit.column is not None or unit.positions_are_public else []
    beside += [PLACE] if unit.positions_are_public else []
    beside += [OWNER] if unit.column is not None else []
    return found | dict.fromkeys(beside, "bigint")


def _sent(db: psycopg.Connection, folder: Connection, copy: Copy, registered: Registered) -> int:
    """Write a table's kept rows; how many there are."""
    columns = _stored(registered.schema, registered.unit)
    relation, names = copy.relation(registered), ", ".join(columns)
    made = ", ".join(f"{name} {kind}" for name, kind in columns.items())
    db.execute(f"CREATE TABLE {relation} ({made}) WITH (autovacuum_enabled = off)")
    db.execute(f"REVOKE ALL ON {relation} FROM PUBLIC")
    rows = 0
    cursor = folder.cursor()
    with db.cursor().copy(f"COPY {relation} ({names}) FROM STDIN (FORMAT csv, FREEZE)") as sent:
        for batch in arrow.record_batches(cursor, f"SELECT {names} FROM {registered.kept}", PART):
            text = io.BytesIO()
            pa.csv.write_csv(batch, text, pa.csv.WriteOptions(include_header=False))
            sent.write(text.getvalue())
            rows += batch.num_rows
    cursor.close()
    db.execute(f"ANALYZE {relation}")
    return rows
