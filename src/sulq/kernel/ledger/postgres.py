"""The ledger in PostgreSQL, for several servers on one budget: a debit is one statement, a compare-and-swap.

The statement that writes a debit moves the head only from where the decision was taken, and adds the entries only if
the head moved: of servers that decided at once one is written, and the others catch up and decide again. If the
connection breaks meanwhile, the same statement is sent again: a head never returns to where it was, so at most one
sending can move it, and if it has moved already the entries say by whom.
"""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from sulq.errors import CuratorError, SetupError, SulqError
from sulq.kernel.ledger.chain import Row
from sulq.kernel.ledger.store import END, Behind, Busy, Doubt, Store, damaged

if TYPE_CHECKING:
    import psycopg
    from psycopg.abc import Params

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
# What must hold on each connection. Without fsync nothing is durable; a commit that does not wait is none, and one that
# waits for a standby to apply it waits for still more. No PostgreSQL older than 14 is cared for any more.
SETTLE: Final = """
SET search_path = pg_catalog;
SET default_transaction_isolation = 'read committed';
SET lock_timeout = {0}; SET statement_timeout = {1};
SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') <> 'remote_apply';
SELECT current_setting('fsync')::boolean AND current_setting('full_page_writes')::boolean
    AND current_setting('server_version_num')::integer >= 140000
"""
# A server that stops, crashes or starts: the connection is gone or will be.
GONE: Final = ("08", "57P")
HELD: Final = ("55P03", "57014", "53")  # a lock or statement that took too long; no connection, memory or room
RACED: Final = ("40001", "40P01")
BROKEN: Final = ("23", "42P01", "42703", "3F000")  # entries past the head, or tables that are not ours


class PostgresStore(Store):
    """One connection to a ledger in PostgreSQL, made again when it breaks."""

    def __init__(self, ledger: str, *, wait: float) -> None:
        self.wait = wait
        self._ledger = ledger  # its schema, whose name needs no quotes
        self._db: psycopg.Connection | None = None
        self._closed = False
        self._snapshot = False
        self._head: tuple[int, bytes] | None = None  # as it was last seen, or as our last commit left it
        self._rows: list[Row] | None = None  # what is to be added, while it is decided

    @abstractmethod
    def _dial(self, deadline: float) -> psycopg.Connection:
        """A new connection, not in a transaction; raises `Busy` if there is none by the deadline."""

    def _enter(self) -> tuple[int, bytes] | None:
        """Wait for other servers, as a courtesy; may say where the head is believed to be: the commit compares it."""
        return None

    def _leave(self, *, committed: bool) -> None:
        """Let other servers go on."""

    def begin(self) -> None:
        """Begin to decide; others are not kept out."""
        self._rows = []

    def head(self) -> tuple[int, bytes] | None:
        """The place and hash of the last entry; while deciding it may be as is believed."""
        self._head = (None if self._rows is None else self._enter()) or super().head()
        return self._head

    def rows(self, after: int = 0, last: int = END) -> Iterator[Row]:
        """The entries after a place; while deciding, up to the head that was read, since more may come at any time."""
        return super().rows(after, last if self._rows is None or self._head is None else self._head[0])

    def append(self, rows: Sequence[Row]) -> None:
        """Keep entries for the one statement that adds them all."""
        self._rows = [*(self._rows or ()), *rows]

    def commit(self) -> None:
        """Move the head from where it was read and add the entries, or neither; without entries, look at it again."""
        rows, head, self._head = self._rows, self._head, None
        if head is None:
            raise damaged("the head", "is missing")
        if rows:
            self._swap(head, rows)
        elif super().head() != head:
            raise Behind
        self._head, self._rows = (rows[-1].seq, rows[-1].hash) if rows else head, None
        self._leave(committed=True)

    def _swap(self, head: tuple[int, bytes], rows: Sequence[Row]) -> None:
        low, high = self._window(head[0])
        said = {
            "seq": head[0], "hash": head[1], "last": rows[-1].seq, "tip": rows[-1].hash, "sound": SOUND,
            "low": low, "high": high,
            "bodies": [row.body for row in rows], "hashes": [row.hash for row in rows],
        }  # fmt: skip
        sent, cursor = self._send(APPEND, said, writes=True)
        if cursor.rowcount == len(rows):
            return
        # The head is elsewhere. After a sending whose fate is unknown it may be we who moved it.
        try:
            if sent > 1 and self.row(rows[-1].seq) == rows[-1]:
                return
            moved = super().head() != head
        except (Busy, SulqError) as error:
            raise (Doubt(str(error)) if sent > 1 else error) from error
        raise Behind if moved else damaged("the schema", "does not hold what was written")

    def reading(self) -> None:
        """Begin to read one state of the ledger."""
        self._run("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        self._snapshot = True

    def rollback(self) -> None:
        """Forget what was to be added; end a reading."""
        import psycopg

        if self._rows is not None:
            self._head = self._rows = None
            self._leave(committed=False)
        if self._snapshot:
            self._snapshot = False
            try:
                if self._db is not None:
                    self._db.execute("ROLLBACK")
            except psycopg.Error:
                self._drop()

    def sound(self, *, whole: bool = True) -> bool:
        """Whether the schema holds our two tables as we made them, and nothing else."""
        return self.ask(f"{STRUCTURE} WHERE relnamespace = to_regnamespace(%s)", self._ledger) == [(SOUND,)]

    def ask(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        """Look something up in the database; {0} is the ledger's schema."""
        return self._run(query, *values).fetchall()

    def close(self) -> None:
        """Let the connection go."""
        self._closed = True
        self._drop()

    def _run(self, query: str, *values: object) -> psycopg.Cursor:
        """Read something."""
        return self._send(query, values or None)[1]

    def _send(self, query: str, values: Params | None, *, writes: bool = False) -> tuple[int, psycopg.Cursor]:
        """Run a statement, connecting again if need be; says how often it was sent.

        One state cannot be read over two connections. What writes is sent again as it is; once a sending is lost,
        nothing but an answer tells whether it was written.
        """
        import psycopg

        deadline, sent = time.monotonic() + self.wait, 0
        while True:
            try:
                db = self._connected(deadline)
            except (Busy, SulqError) as error:
                raise (Doubt(str(error)) if writes and sent else error) from error
            if writes and (not db.autocommit or db.info.transaction_status):  # what is added in one is not durable
                self._drop()
                raise CuratorError("ledger-failed", "The ledger's connection is inside a transaction.")
            sent += 1
            try:
                return sent, db.execute(query.replace("{0}", self._ledger), values, prepare=writes or None)
            except psycopg.Error as error:
                meaning = self._meaning(error)
                if self._db is not None and not (writes and sent > 1):
                    raise meaning from error  # the server said no, and to all of it
                if self._snapshot or time.monotonic() >= deadline:
                    raise (Doubt(str(meaning)) if writes else meaning) from error
            except BaseException:  # an interrupt: the statement may still be on its way
                self._drop()
                raise

    def _connected(self, deadline: float) -> psycopg.Connection:
        """A connection that works as far as anyone knows, and on which a commit is durable."""
        while self._db is None:
            if self._closed:
                raise SetupError("ledger-failed", "The ledger's connection was closed.")
            db = self._dial(deadline)
            import psycopg

            try:
                cursor = db.execute(SETTLE.format(max(10, round(1000 * self.wait)), round(1000 * max(self.wait, 30))))
                while cursor.nextset():
                    pass
                if cursor.fetchone() != (True,):
                    why = "PostgreSQL is older than 14, or has fsync or full_page_writes off, and may lose debits."
                    raise SetupError("ledger-failed", why, "Correct postgresql.conf, or keep the ledger in a file.")
                self._db = db
            except psycopg.OperationalError as error:  # it broke at once
                if time.monotonic() >= deadline:
                    raise Busy("The ledger's PostgreSQL cannot be reached.") from error
            finally:
                if self._db is not db:
                    db.close()
        return self._db

    def _drop(self) -> None:
        """Let a connection go without a word."""
        db, self._db = self._db, None
        if db is not None:
            db.close()

    def _meaning(self, error: psycopg.Error) -> Exception:
        """What a failed statement means: nothing was done; where the connection is gone and dropped nobody knows."""
        state = error.sqlstate or ""
        if self._db is None or self._db.closed or state.startswith(GONE):
            self._drop()
            return Busy("The ledger's connection to PostgreSQL broke.")
        if state.startswith(RACED):
            return Behind()
        if state.startswith(HELD):
            return Busy("The ledger's PostgreSQL was too busy.")
        if state.startswith(BROKEN):
            return damaged("the schema", "does not hold what was written")
        return SetupError("ledger-failed", f"PostgreSQL refused to read or write the ledger (SQLSTATE {state}).")
