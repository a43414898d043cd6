"""The ledger in PostgreSQL, for several servers on one budget: a debit is one statement, a compare-and-swap.

    postgresql://HOST/DATABASE?ledger=survey        one schema, `survey`, holds one ledger

Nobody is kept out while a debit is decided. The statement that writes it moves
the head only from where the decision was taken, and adds the entries only if
the head moved: of servers that decided at once one is written, and the others
catch up and decide again. Servers that meet queue up by an advisory lock, so that
each comes to its turn; it is a courtesy that safety does not rest on. So all debits stand in one order, each decided on
all that came before it, as if one server had taken them one after another.

If the connection breaks during the statement, nobody knows whether it was
written. The same statement is then sent again: a head never returns to where
it was, so at most one sending can move it, and if it has moved already the
entries say by whom.
"""

from __future__ import annotations

import hashlib
import importlib.util
import re
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Self
from urllib.parse import unquote

from sulq.errors import SetupError, SulqError
from sulq.kernel.ledger.chain import Row
from sulq.kernel.ledger.store import Behind, Busy, Doubt, Store, damaged

if TYPE_CHECKING:
    import psycopg

SCHEMES: Final = ("postgresql://", "postgres://")
OLDEST: Final = 140000  # the oldest PostgreSQL still cared for
PIECE: Final = 2000  # entries fetched at a time
QUIET: Final = 8  # commits in a row between which nobody else wrote, after which one need not queue
TURN: Final = 16  # but every so many one does all the same: who does not is faster, and would always be first
PATIENCE: Final = 250  # milliseconds to queue behind a server that does not move on
LONGEST_PAUSE: Final = 0.25  # seconds between two tries to connect

# Names of ledgers hold nothing that would need quoting.
NAME: Final = re.compile(r"(?!pg_|public$|information_schema$)[a-z_][a-z0-9_]{0,62}")
CREATE: Final = """
CREATE TABLE {0}.entries (seq bigint PRIMARY KEY, body text NOT NULL, hash bytea NOT NULL);
CREATE TABLE {0}.head (one smallint PRIMARY KEY CHECK (one = 1), seq bigint NOT NULL, hash bytea NOT NULL);
REVOKE ALL ON {0}.entries, {0}.head FROM PUBLIC;
"""
QUEUE: Final = "SET LOCAL lock_timeout = {1}; SELECT pg_advisory_lock({2}); SELECT seq, hash FROM {0}.head"
# What the tables are made of, and that nothing stands between an entry and its table: no trigger, rule, policy,
# child or view; and that both survive a crash (an UNLOGGED table is emptied by one).
STRUCTURE: Final = """
SELECT coalesce(string_agg(concat_ws(' ', relname, relkind, relpersistence, relhastriggers, relhasrules,
    relrowsecurity, relhassubclass, columns), '; ' ORDER BY relname COLLATE "C"), '')
FROM pg_class LEFT JOIN LATERAL (
    SELECT string_agg(concat_ws(' ', attname, format_type(atttypid, atttypmod), attnotnull), ', ' ORDER BY attnum)
    FROM pg_attribute WHERE attrelid = pg_class.oid AND attnum > 0 AND NOT attisdropped AND relkind = 'r'
) AS made (columns) ON true
"""
SOUND: Final = (
    "entries r p f f f f seq bigint t, body text t, hash bytea t; entries_pkey i p f f f f; "
    "head r p f f f f one smallint t, seq bigint t, hash bytea t; head_pkey i p f f f f"
)
OURS: Final = ", ".join(f"to_regclass('{{0}}.{name}')" for name in ("entries", "entries_pkey", "head", "head_pkey"))
# The tables and the entries before are looked at again in the statement itself: nothing can happen in between.
APPEND: Final = f"""
WITH moved AS (
    UPDATE {{0}}.head SET seq = %(last)s, hash = %(tip)b
    WHERE ({STRUCTURE} WHERE pg_class.oid IN ({OURS})) = %(sound)s
    AND EXISTS (SELECT FROM {{0}}.entries WHERE seq = %(seq)s AND hash = %(hash)b)
    AND (SELECT count(*) FROM {{0}}.entries WHERE seq > %(low)s AND seq <= %(high)s) = %(high)s - %(low)s
    AND seq = %(seq)s AND hash = %(hash)b RETURNING one
)
INSERT INTO {{0}}.entries (seq, body, hash)
SELECT %(seq)s + place, body, hash
FROM moved, unnest(%(bodies)b::text[], %(hashes)b::bytea[]) WITH ORDINALITY AS added (body, hash, place)
"""  # noqa: S608 - put together from constants
# What must hold on each connection. Without fsync nothing is durable; a commit that does not wait is none.
SETTLE: Final = """
SET search_path = pg_catalog;
SET default_transaction_isolation = 'read committed';
SET lock_timeout = {0}; SET statement_timeout = {1};
SELECT current_setting('fsync') || ' ' || current_setting('full_page_writes'), current_setting('synchronous_commit'),
    pg_is_in_recovery(), current_setting('server_version_num')::integer
"""
# A server that stops, crashes or starts: the connection is gone or will be.
GONE: Final = ("08", "57P")
HELD: Final = ("55P03", "57014", "53")  # a lock or statement that took too long; no connection, memory or room
RACED: Final = ("40001", "40P01")
BROKEN: Final = ("23", "42P01", "42703", "3F000")  # entries past the head, or tables that are not ours


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


class PostgresStore(Store):
    """One connection to a ledger in PostgreSQL, made again when it breaks."""

    def __init__(self, address: Address, *, wait: float = 5.0, looking: bool = False) -> None:
        self.wait = wait
        self._address = address
        self._looking = looking  # whether nothing is to be written
        self._db: psycopg.Connection | None = None
        self._closed = False
        self._writing = False
        self._snapshot = False
        self._head: tuple[int, bytes] | None = None  # as this transaction takes it to be
        self._known: tuple[int, bytes] | None = None  # as our last commit left it
        self._quiet = 0
        self._queued = False
        self._key = int.from_bytes(hashlib.sha256(f"sulq {address.ledger}".encode()).digest()[:8], "big", signed=True)
        self._rows: list[Row] = []
        self._standby = False
        self._connected(time.monotonic() + wait, first=True)

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

    def begin(self) -> None:
        """Begin to decide; others are not kept out."""
        self._writing, self._head, self._rows = True, None, []

    def append(self, rows: Iterable[Row]) -> None:
        """Keep entries for the one statement that adds them all."""
        self._rows += rows

    def commit(self) -> None:
        """Move the head from where it was read and add the entries, or neither; without entries, look at it again."""
        rows, head = self._rows, self._head
        if head is None:
            raise damaged("the head", "is missing")
        self._known, quiet, self._quiet = None, self._quiet, 0
        if rows:
            self._swap(head, rows)
        elif self.ask("SELECT seq, hash FROM {0}.head") != [head]:
            raise Behind
        self._known, self._quiet = (rows[-1].seq, rows[-1].hash) if rows else head, quiet + 1
        self._writing = False
        self._leave()

    def _swap(self, head: tuple[int, bytes], rows: Sequence[Row]) -> None:
        import psycopg

        low, high = self._window(head[0])
        said = {
            "seq": head[0], "hash": head[1], "last": rows[-1].seq, "tip": rows[-1].hash,
            "sound": SOUND, "low": low, "high": high,
            "bodies": [row.body for row in rows], "hashes": [row.hash for row in rows],
        }  # fmt: skip
        deadline, sent = time.monotonic() + self.wait, 0
        while True:
            try:
                db = self._connected(deadline)
            except (Busy, SulqError) as error:
                raise (Doubt(str(error)) if sent else error) from error
            sent += 1
            try:
                if db.execute(self._named(APPEND), said, prepare=True).rowcount == len(rows):
                    return
                # The head is elsewhere. After a sending whose fate is unknown it may be we who moved it.
                if sent > 1 and self._is_ours(db, rows[-1]):
                    return
                if db.execute(self._named("SELECT seq, hash FROM {0}.head")).fetchall() == [head]:
                    raise damaged("the schema", "does not hold what was written")  # the head is not what stopped it
                raise Behind
            except psycopg.Error as error:
                if not self._is_lost(error) and sent == 1:
                    raise self._meaning(error) from error  # the server said no, and to all of it
                if time.monotonic() >= deadline:
                    raise Doubt(type(error).__name__) from error
            except (Behind, SulqError):
                raise
            except BaseException:  # an interrupt: the statement may still be on its way
                self._drop()
                raise

    def rollback(self) -> None:
        """Forget what was to be added; end a reading."""
        import psycopg

        self._writing, self._head, self._rows = False, None, []
        self._leave()
        if self._snapshot:
            self._snapshot = False
            try:
                if self._db is not None:
                    self._db.execute("ROLLBACK")
            except psycopg.Error:
                self._drop()

    def reading(self) -> None:
        """Begin to read one state of the ledger."""
        self._run("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        self._snapshot = True

    def head(self) -> tuple[int, bytes] | None:
        """The place and hash of the last entry; while deciding it may be as we left it, since the commit compares."""
        if self._writing and self._known is not None and self._quiet >= QUIET and self._quiet % TURN:
            self._head = self._known
            return self._head
        self._head = None
        match self._queue() if self._writing else self.ask("SELECT seq, hash FROM {0}.head"):
            case [(int() as seq, bytes() as digest)]:
                self._head = seq, digest
        if self._head != self._known:  # also when only read: what follows it is past what our last commit left
            self._quiet = 0
        return self._head

    def _queue(self) -> list[tuple[object, ...]]:
        """Wait for the servers that came before, then read the head."""
        import psycopg

        try:
            cursor = self._run(QUEUE.replace("{1}", str(PATIENCE)).replace("{2}", str(self._key)))
        except Busy as error:
            if not isinstance(error.__cause__, psycopg.errors.LockNotAvailable):
                raise
            return self.ask("SELECT seq, hash FROM {0}.head")
        self._queued = True
        while cursor.nextset():
            pass
        return cursor.fetchall()

    def _leave(self) -> None:
        """Let the next in the queue go on."""
        import psycopg

        if self._queued and self._db is not None:
            try:
                self._db.execute(f"SELECT pg_advisory_unlock({self._key})")
            except psycopg.Error:
                self._drop()
        self._queued = False

    def rows(self, after: int = 0) -> Iterator[Row]:
        """The entries after a place; while deciding, up to the head that was read, since more may come at any time."""
        last = self._head[0] if self._writing and self._head is not None else 2**63 - 1
        query = "SELECT seq, body, hash FROM {0}.entries WHERE seq > %s AND seq <= %s ORDER BY seq LIMIT %s"
        while found := self._run(query, after, last, PIECE).fetchall():
            for row in found:
                yield Row(*row)
            after = found[-1][0]

    def row(self, seq: int) -> Row | None:
        """One entry."""
        match self.ask("SELECT seq, body, hash FROM {0}.entries WHERE seq = %s", seq):
            case [(int() as place, str() as body, bytes() as digest)]:
                return Row(place, body, digest)
        return None

    def sound(self) -> bool:
        """Whether the schema holds our two tables as we made them, and nothing else."""
        where = "WHERE relnamespace = to_regnamespace(%s)"
        return self.ask(f"{STRUCTURE} {where}", self._address.ledger) == [(SOUND,)]

    @property
    def readonly(self) -> bool:
        """Whether this is a standby, or this role may not add entries."""
        rights = (
            "SELECT has_table_privilege('{0}.entries', 'INSERT') AND has_any_column_privilege('{0}.head', 'UPDATE')"
            " AND NOT current_setting('transaction_read_only')::boolean"
        )
        return self._standby or self.ask(rights) != [(True,)]

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
            self._is_lost(error)
            raise self._meaning(error) from error

    def close(self) -> None:
        """Let the connection go."""
        self._closed = True
        self._drop()

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
            self._is_lost(error)
            raise self._meaning(error) from error

    def _named(self, query: str) -> str:
        """A statement about this ledger; its name needs no quotes."""
        return query.replace("{0}", self._address.ledger)

    def ask(self, query: str, *values: object) -> list[tuple[object, ...]]:
        """Look something up in the database; {0} is the ledger's schema."""
        return self._run(query, *values).fetchall()

    def _run(self, query: str, *values: object) -> psycopg.Cursor:
        """Read something, connecting again if need be; one state cannot be read over two connections."""
        import psycopg

        deadline = time.monotonic() + self.wait
        while True:
            db = self._connected(deadline)
            try:
                return db.execute(self._named(query), values or None)
            except psycopg.Error as error:
                if not self._is_lost(error):
                    raise self._meaning(error) from error
                if self._snapshot or time.monotonic() >= deadline:
                    raise Busy("The ledger's connection to PostgreSQL broke.") from error
            except BaseException:
                self._drop()
                raise

    def _is_ours(self, db: psycopg.Connection, row: Row) -> bool:
        """Whether an entry is the one we sent; its hash covers it and all before it."""
        found = db.execute(self._named("SELECT hash FROM {0}.entries WHERE seq = %s"), [row.seq]).fetchone()
        return found == (row.hash,)

    def _connected(self, deadline: float, *, first: bool = False) -> psycopg.Connection:
        """A connection that works as far as anyone knows; made anew with growing pauses until the deadline."""
        if self._closed:
            raise SetupError("ledger-failed", "The ledger's connection was closed.")
        if self._db is not None:
            return self._db
        _needs_extra()
        import psycopg

        pause = 0.01
        while self._db is None:
            try:
                self._connect()
            except psycopg.OperationalError as error:
                # An answer other than "starting" or "stopping" will not change by waiting: a wrong name or password.
                refused = psycopg.pq.PGconn.ping(self._address.url.encode()) == psycopg.pq.Ping.OK
                if first and (refused or time.monotonic() >= deadline):
                    text = str(error).strip().splitlines()[0] if str(error).strip() else "no reason given"
                    raise SetupError(
                        "missing-file",
                        f"The ledger {self._address} cannot be reached: {text}",
                        "Check the address, the role and that PostgreSQL runs.",
                    ) from error
                if time.monotonic() >= deadline:
                    raise Busy("The ledger's PostgreSQL cannot be reached.") from error
                time.sleep(pause)
                pause = min(2 * pause, LONGEST_PAUSE)
            except psycopg.ProgrammingError as error:
                # The library's own text could show a piece of a password with a character that was not escaped.
                raise SetupError("bad-config", "The ledger's postgresql:// address cannot be read.") from error
        return self._db

    def _connect(self) -> None:
        import psycopg
        from psycopg.conninfo import conninfo_to_dict

        # A peer that is silently gone is noticed in some seconds; an owner's own words in the URL win.
        ours = {
            "application_name": "sulq", "connect_timeout": max(2, round(self.wait)), "keepalives_idle": 5,
            "keepalives_interval": 2, "keepalives_count": 3, "tcp_user_timeout": 15_000,
        }  # fmt: skip
        db = psycopg.connect(**(ours | conninfo_to_dict(self._address.url)), autocommit=True)  # type: ignore[arg-type]
        try:
            cursor = db.execute(SETTLE.format(max(10, round(1000 * self.wait)), round(1000 * max(self.wait, 30))))
            while cursor.nextset():
                pass
            settings, waits, self._standby, version = cursor.fetchone() or ("", "", True, 0)
            if waits != "remote_apply":  # which waits for still more
                db.execute("SET synchronous_commit = on")
            if self._looking:
                db.execute("SET default_transaction_read_only = on")
        except BaseException:
            db.close()
            raise
        if settings != "on on" or version < OLDEST:
            db.close()
            raise SetupError(
                "ledger-failed",
                "PostgreSQL is older than 14, or runs with fsync or full_page_writes off, and could lose debits.",
                "Correct postgresql.conf, or keep the ledger in a file.",
            )
        self._db = db

    def _drop(self) -> None:
        """Let a connection go without a word."""
        db, self._db = self._db, None
        self._queued = False
        if db is not None:
            db.close()

    def _is_lost(self, error: psycopg.Error) -> bool:
        """Whether the connection is gone, so that nobody knows what became of the last statement."""
        state = error.sqlstate or ""
        lost = self._db is None or self._db.closed or state.startswith(GONE)
        if lost:
            self._drop()
        return lost

    def _meaning(self, error: psycopg.Error) -> Exception:
        """What it means that the server refused a statement, none of which was then done."""
        state = error.sqlstate or ""
        if state.startswith(RACED):
            return Behind()
        if state.startswith(HELD) or self._db is None:
            return Busy("The ledger's PostgreSQL was too busy.")
        if state.startswith(BROKEN):
            return damaged("the schema", "does not hold what was written")
        return SetupError("ledger-failed", f"PostgreSQL refused to read or write the ledger (SQLSTATE {state}).")


def _needs_extra() -> None:
    if importlib.util.find_spec("psycopg") is None:
        line = "pip install 'sulq[postgres]'"
        raise SetupError("missing-extra", "A ledger in PostgreSQL needs the extra 'postgres'.", line)
