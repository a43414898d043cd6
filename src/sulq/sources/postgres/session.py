"""Sessions with PostgreSQL: what is set on each, who may ask, and what its errors mean to an owner.

No text of PostgreSQL's gets out: it may hold a cell (T31). An owner hears one of a few sentences, chosen by the error's
class alone. The private schema of a prepared copy belongs to the role that built it: whatever default privileges that
role or database has, nobody else may look into it but the reader, if there is one.
"""

from __future__ import annotations

import contextlib
import json
import logging
import threading
import weakref
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import psycopg
from psycopg.conninfo import conninfo_to_dict

from sulq.addresses import TableAddress
from sulq.errors import SetupError
from sulq.kernel.private import Private
from sulq.sources.decode.postgres import quoted

MIN_SERVER_VERSION: Final = 140000
MAX_IDLE_SESSIONS: Final = 4  # sessions kept for the questions to come
# What holds on every session, whatever a role or database sets: what numbers and days mean, and that no limit
# of the server's ends a statement, as how long one takes depends on rows (T30).
SETTLE: Final = {
    "search_path": "pg_catalog",
    "TimeZone": "UTC",
    "extra_float_digits": "1",
    "jit": "off",
    "row_security": "off",
    "standard_conforming_strings": "on",
    "transform_null_equals": "off",
    "array_nulls": "on",
    "bytea_output": "hex",
    "IntervalStyle": "postgres",
    "DateStyle": "ISO, YMD",
    "quote_all_identifiers": "off",
    "synchronize_seqscans": "off",
    "lock_timeout": "0",
    "statement_timeout": "0",
    "idle_in_transaction_session_timeout": "0",
    "transaction_timeout": "0",
    "default_transaction_isolation": "read committed",
    "default_transaction_read_only": "on",
}
SINCE: Final = {"transaction_timeout": 170000}  # of the server's version
# How soon a server that computes notices that nobody waits for the answer any more, since its worker was killed (T75,
# T76). Those on systems that cannot tell refuse it.
NOTICE: Final = "SET client_connection_check_interval = '2s'"
# Members of the reader, who would read what it reads; from PostgreSQL 16 on its maker is one who neither inherits
# from it nor can become it.
MEMBERS: Final = """
SELECT 1 FROM pg_auth_members AS held, to_jsonb(held) AS how
WHERE held.roleid = (SELECT oid FROM pg_roles WHERE rolname = %(reader)s)
AND (coalesce((how->>'inherit_option')::boolean, true) OR coalesce((how->>'set_option')::boolean, true))
"""
# A reader that may do more than read, as a role, on the copy, or through another role; and whether it has members.
MAY_WRITE: Final = f"""
SELECT rolsuper OR rolcreaterole OR rolcreatedb OR rolreplication OR rolbypassrls
    OR pg_has_role(oid, %(owner)s::name, 'MEMBER')
    OR EXISTS (
        SELECT 1 FROM pg_roles AS other
        WHERE other.rolname IN ('pg_write_all_data', 'pg_write_server_files', 'pg_execute_server_program',
            'pg_read_server_files', 'pg_signal_backend', 'pg_database_owner')
        AND pg_has_role(pg_roles.oid, other.oid, 'MEMBER')
    )
    OR EXISTS (
        SELECT 1 FROM unnest(%(tables)s::text[]) AS named (name)
        WHERE has_table_privilege(pg_roles.oid, name, 'INSERT, UPDATE, DELETE, TRUNCATE, TRIGGER')
        OR has_any_column_privilege(pg_roles.oid, name, 'INSERT, UPDATE')
    )
    OR has_schema_privilege(oid, %(schema)s::text, 'CREATE'),
    EXISTS ({MEMBERS})
FROM pg_roles WHERE rolname = %(reader)s
"""

_log = logging.getLogger("sulq")


def opened(address: TableAddress, *, user: str | None = None, limit: float | None = None, write: bool = False) -> (
    psycopg.Connection
):  # fmt: skip
    """A session that is settled, in which nothing can be written unless said.

    Raises:
        SetupError: the database is not there, refuses, or is too old.
    """
    network: dict[str, object] = {
        "application_name": "sulq", "connect_timeout": 10, "keepalives_idle": 5, "keepalives_interval": 2,
        "keepalives_count": 3, "tcp_user_timeout": 15_000,
    }  # fmt: skip
    failed, unread = "", False
    try:
        told = network | conninfo_to_dict(address.url) | {"client_encoding": "UTF8"}
        if user is not None:  # the owner's password is not the reader's
            told = {name: value for name, value in told.items() if name != "password"} | {"user": user}
        db = psycopg.connect(**told, autocommit=True, prepare_threshold=None)  # type: ignore[arg-type]
    except psycopg.OperationalError as error:
        failed = type(error).__name__
    except psycopg.Error:
        unread = True
    if unread:  # the library's own text could show a piece of a password with a character that was not escaped
        raise SetupError("bad-config", "The postgresql:// address of the data cannot be read.")
    if failed:
        _log.error("no session with the database: %s", failed)
        raise SetupError(
            "unreadable-data",
            f"The database {address} cannot be reached, or lets its {'owner' if user is None else 'reader'} not in.",
            "Check the address, the role, its password (PGPASSWORD for both, or a passfile), and that PostgreSQL runs.",
        )
    try:
        milliseconds = 0 if limit is None else max(1, round(1000 * limit))
        ours = {"statement_timeout": str(milliseconds), "default_transaction_read_only": "off" if write else "on"}
        there = {name: value for name, value in SETTLE.items() if db.info.server_version >= SINCE.get(name, 0)}
        db.execute("; ".join(f"SET {name} = '{value}'" for name, value in (there | ours).items()))
        row = db.execute(
            "SELECT current_setting('server_version_num')::integer, current_setting('server_encoding')"
        ).fetchone()
        with contextlib.suppress(psycopg.DataError, psycopg.ProgrammingError, psycopg.NotSupportedError):
            db.execute(NOTICE)
    except psycopg.Error:
        row = None
    # Texts compare by the bytes of the server's encoding.
    if row is None or row[0] < MIN_SERVER_VERSION or row[1] != "UTF8":
        db.close()
        raise SetupError(
            "unreadable-data",
            "The database is older than PostgreSQL 14, or its encoding is not UTF8.",
            "Copy the tables into a database made with ENCODING 'UTF8'.",
        )
    return db


class Sessions:
    """The sessions questions are asked in: one a question, kept for the next unless it failed."""

    def __init__(self, address: TableAddress) -> None:
        self._address = address
        self._idle: list[psycopg.Connection] = []
        self._lock = threading.Lock()
        self._closed = False
        self._forget = weakref.finalize(self, _end, self._idle)  # with an engine that nobody closed

    @contextlib.contextmanager
    def one(self) -> Iterator[psycopg.Connection]:
        """A session for one question."""
        with self._lock:
            db = self._idle.pop() if self._idle else None
        if db is None or db.closed:
            db = opened(self._address, user=self._address.reader)
        good = False
        try:
            yield db
            good = True
        finally:
            if not self._keep(db, good=good):
                db.close()

    def _keep(self, db: psycopg.Connection, *, good: bool) -> bool:
        idle = psycopg.pq.TransactionStatus.IDLE
        with self._lock:
            kept = (
                good and not self._closed and len(self._idle) < MAX_IDLE_SESSIONS and db.info.transaction_status == idle
            )
            if kept:
                self._idle.append(db)
        return kept

    def close(self) -> None:
        """End those that are kept; those in use end with their question."""
        with self._lock:
            self._closed = True
        self._forget()


def _end(sessions: list[psycopg.Connection]) -> None:
    while sessions:
        sessions.pop().close()


def refuse_writer(db: psycopg.Connection, reader: str, schema: str, tables: list[str]) -> None:
    """Stop the owner where the reader may write, is not there, or lets others read what it may."""
    asked = {"reader": reader, "schema": schema, "tables": tables, "owner": db.info.user}
    found = db.execute(MAY_WRITE, asked).fetchone()
    if found is None or found[0]:
        raise SetupError(
            "bad-config",
            f"The reader {reader[:63]!r} of the address is no role, or one that may write.",
            "Make one that may log in and nothing else: CREATE ROLE NAME LOGIN.",
        )
    if found[1]:
        raise SetupError(
            "bad-config",
            f"The reader {reader[:63]!r} of the address has members: they could read the rows it reads.",
            "Revoke it from them, or make one of its own: CREATE ROLE NAME LOGIN.",
        )


def meaning(error: psycopg.Error) -> SetupError:
    """What an error while rows are prepared means to their owner; none of its text (T31)."""
    state = error.sqlstate or ""
    _log.error("preparing failed: %s %s", type(error).__name__, state)
    if state == "57014":
        return SetupError(
            "unreadable-data", "Preparing took longer than the limit in the address.", "Raise limit=, or take it out."
        )
    if state == "42501":
        return SetupError(
            "unreadable-data",
            "The role of the address may not read a table of the data, or not make the private schema.",
            "Grant it SELECT on the tables and CREATE on the database; row-level policies must not apply to it.",
        )
    if state in ("42P01", "42703", "3F000"):
        return SetupError("source-changed", "A table of the data was dropped or altered while it was read.")
    if state == "25006":
        return SetupError(
            "prepared-unusable", "The database cannot be written to.", "Prepare on the primary; a standby cannot."
        )
    if state.startswith("53"):
        return SetupError("prepared-unusable", "The database has no room for the copy.", "Check its disk and memory.")
    return SetupError("unreadable-data", "The data could not be read to its end.", "Check the database, and try again.")


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
