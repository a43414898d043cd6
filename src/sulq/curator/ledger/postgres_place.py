"""A ledger's place in PostgreSQL: its address, its beginning, and servers that meet there.

    postgresql://HOST/DATABASE?ledger=survey        one schema, `survey`, holds one ledger

Servers that write at once queue up by an advisory lock, so that each comes to its turn. That is a courtesy: what is
written is compared by the kernel's statement, whoever came first.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Self, cast
from urllib.parse import unquote

from sulq.curator.ledger.checkpoints import MARKED, MAX_SEARCHED_ENTRIES
from sulq.curator.ledger.sources import COVERING
from sulq.errors import SetupError, SulqError
from sulq.kernel.ledger.chain import Row
from sulq.kernel.ledger.postgres import PostgresStore
from sulq.kernel.ledger.store import Busy, damaged

if TYPE_CHECKING:
    import psycopg


SCHEMES: Final = ("postgresql://", "postgres://")
QUIET_COMMITS: Final = 8  # commits in a row between which nobody else wrote, after which one need not queue
QUEUED_COMMITS: Final = 16  # but every so many one does all the same: who does not is faster, and would always be first
QUEUE_MILLISECONDS: Final = 250  # milliseconds to queue behind a server that does not move on
MAX_PAUSE_SECONDS: Final = 0.25  # seconds between two tries to connect

# Names of ledgers hold nothing that would need quoting.
NAME: Final = re.compile(r"(?!pg_|public$|information_schema$)[a-z_][a-z0-9_]{0,62}")
CREATE: Final = """
CREATE TABLE {0}.entries (seq bigint PRIMARY KEY, body text NOT NULL, hash bytea NOT NULL);
CREATE TABLE {0}.head (one smallint PRIMARY KEY CHECK (one = 1), seq bigint NOT NULL, hash bytea NOT NULL);
REVOKE ALL ON {0}.entries, {0}.head FROM PUBLIC;
"""
QUEUE: Final = "SET LOCAL lock_timeout = {1}; SELECT pg_advisory_lock({2}); SELECT seq, hash FROM {0}.head"
# Whether this is no standby, and this role may add entries.
WRITABLE: Final = """
SELECT NOT pg_is_in_recovery() AND NOT current_setting('transaction_read_only')::boolean
AND has_table_privilege('{0}.entries', 'INSERT') AND has_any_column_privilege('{0}.head', 'UPDATE')
"""


@dataclass(frozen=True, slots=True, repr=False)
class Address:
    """Where a ledger lies; as text it shows no user and no password."""

    url: str  # for PostgreSQL's own library
    ledger: str
    shown: str

    @classmethod
    def of(cls, url: str) -> Self:
        """Read a URL, taking our own word out of it.

        Raises:
            SetupError: `bad-config` if the ledger's name could not be that of a schema.
        """
        start, mark, query = url.partition("?")
        words = [word for word in query.split("&") if word]
        named = [unquote(word.partition("=")[2]) for word in words if word.startswith("ledger=")] or ["sulq"]
        if len(named) != 1 or not NAME.fullmatch(named[0]):
            raise SetupError(
                "bad-config",
                "The name of a ledger in PostgreSQL is one word of small letters, digits and _, not public or pg_....",
                "Write postgresql://HOST/DATABASE?ledger=NAME.",
            )
        others = "&".join(word for word in words if not word.startswith("ledger="))
        place = start.partition("://")[2].rpartition("@")[2]
        return cls(f"{start}{mark if others else ''}{others}", named[0], f"postgresql://{place}?ledger={named[0]}")

    def __str__(self) -> str:
        return self.shown

    __repr__ = __str__


def is_address(place: object) -> bool:
    """Whether a ledger's place is a PostgreSQL database rather than a file."""
    return isinstance(place, str) and place.startswith(SCHEMES)


class PostgresPlace(PostgresStore):
    """A store of the kernel's at an address, and what is done there besides adding entries."""

    begun = False  # whether this opening wrote the first entry

    def __init__(self, address: Address, *, wait: float = 5.0, looking: bool = False) -> None:
        super().__init__(address.ledger, wait=wait)
        self._address = address
        self._looking = looking  # whether nothing is to be written
        self._reached = False  # whether it was ever connected
        self._known: tuple[int, bytes] | None = None  # the head as our last commit left it
        self._quiet = 0
        self._queued: psycopg.Connection | None = None
        self._key = int.from_bytes(hashlib.sha256(f"sulq {address.ledger}".encode()).digest()[:8], "big", signed=True)
        self._connected(time.monotonic() + wait)

    @classmethod
    def create(cls, address: Address, rows: Sequence[Row]) -> None:
        """Write a new ledger whole, in one transaction.

        Raises:
            FileExistsError: another server was first; nothing of theirs was touched.
        """
        store = cls(address)
        try:
            store._create(rows)
        finally:
            store.close()

    def exists(self) -> bool:
        """Whether anything lies at the address; an empty schema is room for a ledger, not one."""
        return bool(self.ask("SELECT 1 FROM pg_class WHERE relnamespace = to_regnamespace(%s)", self._address.ledger))

    @property
    def readonly(self) -> bool:
        """Whether this is a standby, or this role may not add entries."""
        return self.ask(WRITABLE) != [(True,)]

    def remove(self) -> None:
        """Remove a ledger that holds its first entry and no other; its schema stays as room for one."""
        import psycopg

        db = self._connected(time.monotonic() + self.wait)
        try:
            with db.transaction():
                db.execute(f"SET LOCAL lock_timeout = {round(1000 * self.wait)}")
                db.execute(self._named("LOCK TABLE {0}.head, {0}.entries"))
                if db.execute(self._named("SELECT seq FROM {0}.head")).fetchall() == [(1,)]:
                    db.execute(self._named("DROP TABLE {0}.head, {0}.entries"))
        except psycopg.Error as error:
            raise self._meaning(error) from error

    def _named(self, query: str) -> str:
        """A statement about this ledger."""
        return query.replace("{0}", self._ledger)

    def _create(self, rows: Sequence[Row]) -> None:
        import psycopg

        name = self._address.ledger
        db = self._connected(time.monotonic() + self.wait)
        try:
            with db.transaction():
                db.execute(f"SELECT pg_advisory_xact_lock({self._key})")
                if self.exists():
                    raise FileExistsError(name)
                if db.execute("SELECT to_regnamespace(%s)", [name]).fetchone() == (None,):
                    db.execute(self._named("CREATE SCHEMA {0}"))
                db.execute(self._named(CREATE))
                for row in rows:
                    db.execute(self._named("INSERT INTO {0}.entries VALUES (%s, %s, %s)"), row)
                last = (rows[-1].seq, rows[-1].hash) if rows else (0, bytes(32))
                db.execute(self._named("INSERT INTO {0}.head VALUES (1, %s, %s)"), last)
        except psycopg.errors.InsufficientPrivilege as error:
            raise SetupError(
                "ledger-failed",
                f"This role may not begin a ledger at {self._address}.",
                f"Create the schema {name} for it, or begin the ledger as the database's owner.",
            ) from error
        except psycopg.Error as error:
            raise self._meaning(error) from error

    def _enter(self) -> tuple[int, bytes] | None:
        """The head as our last commit left it, while nobody else writes; else queue up, then read it."""
        if (
            self._known is not None
            and self._head == self._known
            and self._quiet >= QUIET_COMMITS
            and self._quiet % QUEUED_COMMITS
        ):
            return self._known
        head = self._queue()
        if head != self._known:
            self._quiet = 0
        return head

    def _queue(self) -> tuple[int, bytes] | None:
        """Wait for the servers that came before, then read the head."""
        import psycopg

        try:
            cursor = self._run(QUEUE.replace("{1}", str(QUEUE_MILLISECONDS)).replace("{2}", str(self._key)))
        except Busy as error:
            if not isinstance(error.__cause__, psycopg.errors.LockNotAvailable):
                raise
            return None
        self._queued = self._db
        while cursor.nextset():
            pass
        match cursor.fetchall():
            case [(int() as seq, bytes() as digest)]:
                return seq, digest
        return None

    def _leave(self, *, committed: bool) -> None:
        """Let the next in the queue go on."""
        import psycopg

        if committed:
            self._known, self._quiet = self._head, self._quiet + 1
        else:
            self._known, self._quiet = None, 0
        queued, self._queued = self._queued, None
        if queued is not None and queued is self._db:
            try:
                queued.execute(f"SELECT pg_advisory_unlock({self._key})")
            except psycopg.Error:
                self._drop()

    def _dial(self, deadline: float) -> psycopg.Connection:
        """A new connection, tried for with growing pauses until the deadline."""
        if importlib.util.find_spec("psycopg") is None:
            line = "pip install 'sulq[postgres]'"
            raise SetupError("missing-extra", "A ledger in PostgreSQL needs the extra 'postgres'.", line)
        import psycopg

        pause = 0.01
        while True:
            try:
                db = self._connect()
            except psycopg.OperationalError as error:
                # An answer other than "starting" or "stopping" will not change by waiting: a wrong name or password.
                refused = psycopg.pq.PGconn.ping(self._address.url.encode()) == psycopg.pq.Ping.OK
                if not self._reached and (refused or time.monotonic() >= deadline):
                    text = str(error).strip().splitlines()[0] if str(error).strip() else "no reason given"
                    raise SetupError(
                        "missing-file",
                        f"The ledger {self._address} cannot be reached: {text}",
                        "Check the address, the role and that PostgreSQL runs.",
                    ) from error
                if time.monotonic() >= deadline:
                    raise Busy("The ledger's PostgreSQL cannot be reached.") from error
                time.sleep(pause)
                pause = min(2 * pause, MAX_PAUSE_SECONDS)
            except psycopg.ProgrammingError as error:
                # The library's own text could show a piece of a password with a character that was not escaped.
                raise SetupError("bad-config", "The ledger's postgresql:// address cannot be read.") from error
            else:
                self._reached = True
                return db

    def _connect(self) -> psycopg.Connection:
        import psycopg
        from psycopg.conninfo import conninfo_to_dict

        # A peer that is silently gone is noticed in some seconds; an owner's own words in the URL win.
        ours = {
            "application_name": "sulq", "connect_timeout": max(2, round(self.wait)), "keepalives_idle": 5,
            "keepalives_interval": 2, "keepalives_count": 3, "tcp_user_timeout": 15_000,
        }  # fmt: skip
        db = psycopg.connect(**(ours | conninfo_to_dict(self._address.url)), autocommit=True)  # type: ignore[arg-type]
        if self._looking:
            try:
                db.execute("SET default_transaction_read_only = on")
            except BaseException:
                db.close()
                raise
        return db


# A table, the tables that a view or its copy is made of, and those it is a partition or a child of.
UNDER: Final = """
WITH RECURSIVE under (oid) AS (
    SELECT c.oid FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
    WHERE n.nspname = %s AND c.relname = %s
    UNION
    SELECT found.oid FROM under, LATERAL (
        SELECT d.refobjid FROM pg_rewrite AS r
        JOIN pg_depend AS d ON d.classid = 'pg_rewrite'::regclass AND d.objid = r.oid
        WHERE r.ev_class = under.oid AND d.refclassid = 'pg_class'::regclass
        UNION ALL SELECT inhparent FROM pg_inherits WHERE inhrelid = under.oid
    ) AS found (oid)
)
SELECT oid::bigint FROM under ORDER BY oid
"""
# Schemas that hold what a ledger is made of, and that this role may read.
LEDGERS: Final = """
SELECT n.nspname::text FROM pg_namespace AS n JOIN pg_class AS e ON e.relnamespace = n.oid AND e.relname = 'entries'
JOIN pg_class AS h ON h.relnamespace = n.oid AND h.relname = 'head'
WHERE e.relkind = 'r' AND has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(e.oid, 'SELECT')
AND 3 = (SELECT count(*) FROM pg_attribute WHERE attrelid = e.oid AND attname IN ('seq', 'body', 'hash'))
ORDER BY n.nspname
"""
# The entry before the last checkpoint of a ledger, if that is near its end; 0 where there is none.
LAST: Final = f"""
SELECT coalesce(max(seq) - 1, 0) FROM {{0}}.entries
WHERE seq > (SELECT max(seq) FROM {{0}}.entries) - {MAX_SEARCHED_ENTRIES} AND {MARKED}
"""  # noqa: S608 - put together from constants
# The first entry of a ledger, its last checkpoint, and later entries that may say what data it covers.
TOLD: Final = """
SELECT seq, body, hash FROM {0}.entries WHERE seq = 1 OR (
    seq > {1} AND (seq = {1} + 1 OR position(%s in body) > 0 OR position(%s in body) > 0)
) ORDER BY seq
"""
# Whether each entry from a place on is there as it was chained: `chain.link` in SQL.
LINKED: Final = """
SELECT coalesce(bool_and(seq = place AND hash = sha256(before || int8send(seq) || convert_to(body, 'UTF8'))), false)
FROM (
    SELECT seq, body, hash, {1} + row_number() OVER chain AS place, coalesce(
        lag(hash) OVER chain, (SELECT hash FROM {0}.entries WHERE seq = {1}), decode(repeat('00', 32), 'hex')
    ) AS before
    FROM {0}.entries WHERE seq > {1} WINDOW chain AS (ORDER BY seq)
) AS chained
"""
# Settings under which the server writes values of a statement into its log: the first entry holds the ledger's keys.
LOGGED: Final = """
SELECT string_agg(name, ', ') FROM (VALUES
    ('log_statement', current_setting('log_statement') IN ('mod', 'all')),
    ('log_min_duration_statement', current_setting('log_min_duration_statement') <> '-1'),
    ('log_min_duration_sample', current_setting('log_min_duration_sample') <> '-1'),
    ('log_transaction_sample_rate', current_setting('log_transaction_sample_rate')::real > 0)
) AS log (name, written) WHERE written AND current_setting('log_parameter_max_length') <> '0'
UNION ALL SELECT string_agg(name, ', ') FROM (VALUES
    ('log_parameter_max_length_on_error', '0'), ('auto_explain.log_min_duration', '-1'),
    ('pgaudit.log_parameter', 'off'), ('debug_print_plan', 'off')
) AS log (name, off) WHERE coalesce(nullif(current_setting(name, true), ''), off) <> off
"""
BASE: Final = "SELECT oid::bigint FROM pg_database WHERE datname = current_database()"
CLUSTER: Final = "SELECT system_identifier FROM pg_control_system()"


def table_in(store: PostgresPlace, schema: str, name: str) -> tuple[str, tuple[int, ...]]:
    """A database by its oid and its cluster's number, where the role may ask for that; and a table's oids."""
    cluster = ""
    with contextlib.suppress(SulqError):
        cluster = str(store.ask(CLUSTER)[0][0])
    (base,) = store.ask(BASE)[0]
    return f"{base}@{cluster}", tuple(cast("int", oid) for (oid,) in store.ask(UNDER, schema, name))


def ledgers_in(store: PostgresPlace) -> Iterator[tuple[str, list[Row]]]:
    """The ledgers of a database by name, each with what it says of the data it covers."""
    for (name,) in store.ask(LEDGERS):
        if NAME.fullmatch(str(name)):
            yield str(name), told(store, str(name))


def told(store: PostgresPlace, ledger: str) -> list[Row]:
    """The first entry of a ledger of the database, its last checkpoint, and later ones that may say what it covers.

    Raises:
        SetupError: `ledger-damaged`.
    """
    ((place,),) = store.ask(LAST.replace("{0}", ledger))
    linked, told = (text.replace("{0}", ledger).replace("{1}", str(int(place))) for text in (LINKED, TOLD))
    if store.ask(linked) != [(True,)]:
        raise damaged(f"an entry of {ledger}", "is missing, or was changed")
    return [Row(*row) for row in store.ask(told, *COVERING)]


def refuse_logged(store: PostgresPlace) -> None:
    """Begin no ledger where its keys would stand in the server's log; values are bound, never part of a statement."""
    logged = ", ".join(str(names) for (names,) in store.ask(LOGGED) if names)
    if logged:
        raise SetupError(
            "statements-logged",
            f"The server logs the values of statements ({logged}), and a new ledger's keys would stand in its log.",
            "Begin it as a role with log_statement = none and log_min_duration_statement = -1 (ALTER ROLE ... SET), or "
            "with log_parameter_max_length = 0; the servers that ask afterwards should log no values either.",
        )
