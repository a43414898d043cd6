"""The private schema of a prepared copy: what it records, whom it is open to, and whether it is still the one.

It belongs to the role that built it. Whatever default privileges that role or
database has, nobody else may look into it but the reader, if there is one.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import psycopg

from sulq.errors import SetupError
from sulq.kernel.private import Private
from sulq.sources.decode.postgres import quoted
from sulq.sources.postgres.session import MEMBERS, refuse_writer

# Everybody but the owner whom a schema, its tables or columns are opened to; of the reader only what goes past reading.
OTHERS: Final = """
SELECT DISTINCT coalesce(quote_ident(r.rolname), 'PUBLIC') FROM (
    SELECT nspowner, nspacl FROM pg_namespace WHERE nspname = %(schema)s
    UNION ALL SELECT relowner, relacl FROM pg_class WHERE relnamespace = to_regnamespace(%(schema)s)
    UNION ALL SELECT relowner, attacl FROM pg_class JOIN pg_attribute ON attrelid = pg_class.oid
        WHERE relnamespace = to_regnamespace(%(schema)s) AND attacl IS NOT NULL
) AS held (owner, acls), LATERAL aclexplode(acls) AS acl LEFT JOIN pg_roles AS r ON r.oid = acl.grantee
WHERE acl.grantee <> held.owner AND NOT coalesce(
    r.rolname = %(reader)s AND acl.privilege_type IN ('USAGE', 'SELECT') AND NOT acl.is_grantable, false
)
"""
# Publications that send a copy's rows to whoever subscribes; one of all tables will send those of the next copy too.
PUBLISHED: Final = """
SELECT 1 FROM pg_publication WHERE puballtables
UNION ALL SELECT 1 FROM pg_publication_tables WHERE schemaname = %(schema)s
"""
# Which build a copy is, and whether anybody else can read it by now: in one statement, before each debit.
STILL: Final = f"""
SELECT (SELECT value FROM {{0}}.facts WHERE name = 'build'),
    EXISTS ({OTHERS}) OR EXISTS ({MEMBERS}) OR EXISTS ({PUBLISHED})
"""
TABLES: Final = """
SELECT relname::text, pg_relation_size(oid) / current_setting('block_size')::bigint
FROM pg_class WHERE relnamespace = to_regnamespace(%s) AND relkind = 'r'
"""


@dataclass(frozen=True, slots=True)
class PostgresCopy:
    """A prepared copy: its schema, which build of it, and of each table its own, its rows and its pages."""

    schema: str
    build: str
    sources: dict[str, str]  # the tables it was read from
    tables: dict[str, str]  # the tables that hold their kept rows
    rows: dict[str, int]
    pages: dict[str, int]
    heavy: Private[dict[str, list[int]]]  # of each table's persons those of whom not all rows are kept, and the others


def found(db: psycopg.Connection, schema: str, facts: dict[str, str]) -> PostgresCopy | None:
    """The copy in a schema, if there is one and it is of these tables as they stand.

    Raises:
        SetupError: what is there is not ours, of another version, not whole, or of tables that changed since.
    """
    if not _there(db, schema):
        return None
    held = {str(name): int(pages) for name, pages in db.execute(TABLES, [schema]).fetchall()}
    if "facts" not in held or not _ours(db, schema):
        raise SetupError("prepared-unusable", f"The schema {schema} of the database is not a copy of this role's.")
    recorded: dict[str, str] = dict(db.execute(f"SELECT name, value FROM {schema}.facts").fetchall())
    if recorded.get("format") != facts["format"]:
        raise SetupError(
            "prepared-unusable",
            "The copy in the database was made by another version of sulq.",
            "Take the rows anew: renew=True, or `sulq prepare --renew`.",
        )
    if recorded.get("shape") != facts["shape"]:
        raise SetupError("source-changed", "A table of the data was altered or made anew since it was copied.")
    tables = json.loads(recorded["tables"])
    if any(name.partition(".")[2] not in held for name in tables.values()):
        raise SetupError(
            "prepared-unusable",
            "The copy in the database is not whole.",
            "Take the rows anew: renew=True, or `sulq prepare --renew`.",
        )
    pages = {table: held[name.partition(".")[2]] for table, name in tables.items()}
    sources, rows, heavy = (json.loads(recorded[name]) for name in ("sources", "rows", "heavy"))
    return PostgresCopy(schema, recorded["build"], sources, tables, rows, pages, Private(heavy))


def record(db: psycopg.Connection, schema: str, facts: dict[str, str]) -> None:
    """Write down what a copy is made of."""
    db.execute(f"CREATE TABLE {schema}.facts (name text PRIMARY KEY, value text NOT NULL)")
    db.cursor().executemany(f"INSERT INTO {schema}.facts VALUES (%s, %s)", list(facts.items()))


def emptied(db: psycopg.Connection, schema: str) -> None:
    """A new schema in place of an earlier copy; never of what is somebody else's."""
    if _there(db, schema):
        if not _ours(db, schema):
            raise SetupError("prepared-unusable", f"The schema {schema} of the database is another role's.")
        db.execute(f"DROP SCHEMA {schema} CASCADE")
    db.execute(f"CREATE SCHEMA {schema}")


def close(db: psycopg.Connection, schema: str, reader: str | None) -> None:
    """Open a schema to nobody but its owner, whatever default privileges say, and to the reader for reading."""
    others = [str(name) for (name,) in db.execute(OTHERS, {"schema": schema, "reader": None}).fetchall()]
    for name in {"PUBLIC", *others}:
        db.execute(f"REVOKE ALL ON SCHEMA {schema} FROM {name} CASCADE")
        db.execute(f"REVOKE ALL ON ALL TABLES IN SCHEMA {schema} FROM {name} CASCADE")
    if reader is not None:
        db.execute(f"GRANT USAGE ON SCHEMA {schema} TO {quoted(reader)}")
        db.execute(f"GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO {quoted(reader)}")


def refuse_published(db: psycopg.Connection, schema: str) -> None:
    """Stop the owner where the tables of a copy, or of one to come, are replicated to subscribers."""
    if db.execute(PUBLISHED, {"schema": schema}).fetchone() is not None:
        raise SetupError(
            "prepared-unusable",
            "A publication of the database would send the copy to its subscribers.",
            "Name its tables in place of FOR ALL TABLES, or keep the data in a database of its own.",
        )


def check(db: psycopg.Connection, copy: PostgresCopy, reader: str | None) -> None:
    """Stop where a copy is open to others, or the reader may write; let a reader in who is new."""
    tables: Sequence[str] = [*copy.tables.values(), f"{copy.schema}.facts"]
    if reader is not None:
        refuse_writer(db, reader, copy.schema, [*tables, *copy.sources.values()])
    refuse_published(db, copy.schema)
    if db.execute(OTHERS, {"schema": copy.schema, "reader": reader}).fetchone() is not None:
        raise opened_to_others()
    if reader is not None:
        close(db, copy.schema, reader)


def still(db: psycopg.Connection, copy: PostgresCopy, reader: str | None) -> tuple[object, bool]:
    """Which build is there now, and whether others can read it; by the reader or the owner."""
    row = db.execute(STILL.format(copy.schema), {"schema": copy.schema, "reader": reader}).fetchone()
    return (None, False) if row is None else (row[0], bool(row[1]))


def opened_to_others() -> SetupError:
    """What an owner hears of a copy that others can read."""
    return SetupError(
        "prepared-unusable",
        "The private schema of the copy is open to another role, its reader has members, or a publication sends it.",
        "Revoke what was granted; renew=True closes the schema itself.",
    )


def _there(db: psycopg.Connection, schema: str) -> bool:
    return db.execute("SELECT to_regnamespace(%s)", [schema]).fetchone() != (None,)


def _ours(db: psycopg.Connection, schema: str) -> bool:
    asked = "SELECT pg_has_role(nspowner, 'USAGE') FROM pg_namespace WHERE nspname = %s"
    return db.execute(asked, [schema]).fetchone() == (True,)
