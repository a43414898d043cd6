"""Sessions with PostgreSQL: what is set on each, who may ask, and what its errors mean to an owner.

No text of PostgreSQL's gets out: it may hold a cell (T31). An owner hears one of
a few sentences, chosen by the error's class alone.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import weakref
from collections.abc import Iterator
from typing import Final

import psycopg
from psycopg.conninfo import conninfo_to_dict

from sulq.addresses.postgres import TableAddress
from sulq.errors import SetupError

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
