"""A ledger's place in PostgreSQL: its address, its beginning, and servers that meet there.

    postgresql://HOST/DATABASE?ledger=survey        one schema, `survey`, holds one ledger

Servers that write at once queue up by an advisory lock, so that each comes to its turn. That is a courtesy: what is
written is compared by the kernel's statement, whoever came first.
"""

from __future__ import annotations

import hashlib
import importlib.util
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Self
from urllib.parse import unquote

from sulq.errors import SetupError
from sulq.kernel.ledger.chain import Row
from sulq.kernel.ledger.postgres import PostgresStore
from sulq.kernel.ledger.store import Busy

if TYPE_CHECKING:
    import psycopg

SCHEMES: Final = ("postgresql://", "postgres://")
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
        if self._known is not None and self._head == self._known and self._quiet >= QUIET and self._quiet % TURN:
            return self._known
        head = self._queue()
        if head != self._known:
            self._quiet = 0
        return head

    def _queue(self) -> tuple[int, bytes] | None:
        """Wait for the servers that came before, then read the head."""
        import psycopg

        try:
            cursor = self._run(QUEUE.replace("{1}", str(PATIENCE)).replace("{2}", str(self._key)))
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
                pause = min(2 * pause, LONGEST_PAUSE)
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
