"""The ledger's file: SQLite with a rollback journal, synced before a commit returns (T48, T49)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import apsw

from sulq.errors import SetupError
from sulq.kernel.ledger.chain import Row
from sulq.kernel.ledger.store import Store, damaged

OLDEST: Final = (3, 51, 3)  # older ones have the WAL-reset bug (T49); we keep away from WAL and from them
MEMORY: Final = ":memory:"
SCHEMA: Final = (
    "CREATE TABLE entries (seq INTEGER PRIMARY KEY, body TEXT NOT NULL, hash BLOB NOT NULL) STRICT",
    "CREATE TABLE head (one INTEGER PRIMARY KEY CHECK (one = 1), seq INTEGER NOT NULL, hash BLOB NOT NULL) STRICT",
)
STRUCTURE: Final = "SELECT group_concat(coalesce(sql, ''), '; ' ORDER BY name) FROM sqlite_schema"
SOUND: Final = "; ".join(SCHEMA)
# Whether the tables are ours, the last entry is the one the head names, and none is gone between two places.
WHOLE: Final = f"""
SELECT ({STRUCTURE}) = ?3 AND EXISTS (SELECT 1 FROM entries JOIN head USING (seq, hash))
AND (SELECT count(*) FROM entries WHERE seq > ?1 AND seq <= ?2) = ?2 - ?1
"""  # noqa: S608 - put together from constants
# Settings of each connection, and what they must read back as. EXTRA also syncs the
# directory; without spilling, nothing is written to the file before the commit.
SETTINGS: Final = (("synchronous", "EXTRA", 3), ("fullfsync", "ON", 1), ("cache_spill", "OFF", 0),
                   ("trusted_schema", "OFF", 0), ("cell_size_check", "ON", 1))  # fmt: skip


class SqliteStore(Store):
    """One connection to a ledger's file."""

    def __init__(self, path: str, *, wait: float = 5.0, vfs: str = "", flags: int = apsw.SQLITE_OPEN_READWRITE) -> None:
        version = apsw.sqlite_lib_version()
        if tuple(int(part) for part in version.split(".")) < OLDEST:
            why = f"SQLite {version} is older than {'.'.join(map(str, OLDEST))}."
            raise SetupError("ledger-failed", why, "Install a newer apsw.")
        self.wait = wait
        create = apsw.SQLITE_OPEN_CREATE if path == MEMORY else 0
        self._db = apsw.Connection(path, flags=flags | create, vfs=vfs or None)
        try:
            self._db.set_busy_handler(self._busy)
            self._settle("memory" if path == MEMORY else "truncate")
        except BaseException:
            self._db.close(True)
            raise

    def begin(self) -> None:
        """Take the file's write lock, waiting a bounded time."""
        self._db.execute("BEGIN IMMEDIATE")

    def append(self, rows: Sequence[Row]) -> None:
        """Add entries and move the head, if what is there was written by us; SQLite refuses a file that was moved."""
        last = rows[0].seq - 1
        if last and self.ask(WHOLE, *self._window(last), SOUND) != [(1,)]:
            raise damaged("the file", "does not hold what was written")
        self._db.executemany("INSERT INTO entries VALUES (?, ?, ?)", rows)
        self._db.execute("UPDATE head SET seq = ?, hash = ?", (rows[-1].seq, rows[-1].hash))

    def commit(self) -> None:
        """Make the transaction durable; returns only when it is."""
        self._db.execute("COMMIT")

    def reading(self) -> None:
        """Begin to read one state of the file."""
        self._db.execute("BEGIN")

    def rollback(self) -> None:
        """Leave the file as it was."""
        if self._db.in_transaction:
            self._db.execute("ROLLBACK")

    def sound(self, *, whole: bool = True) -> bool:
        """Whether the file holds our tables and nothing else; of the `whole` file also whether its pages are sound."""
        return self.ask(STRUCTURE) == [(SOUND,)] and (not whole or self._db.pragma("integrity_check") == "ok")

    def ask(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        """Look something up in the file."""
        return self._db.execute(query.replace("{0}", "main"), values).fetchall()

    def close(self) -> None:
        """Let the file go."""
        self._db.close(True)

    def _settle(self, journal: str) -> None:
        mode = self._db.pragma("journal_mode")
        if mode != "wal":
            # Truncating spares two directory operations a commit, and is synced like a deletion.
            mode = self._db.pragma("journal_mode", "TRUNCATE")
        if mode != journal:
            raise SetupError("ledger-damaged", f"The ledger was switched to journal mode {mode} by another program.")
        for name, value, read_back in SETTINGS:
            self._db.pragma(name, value)
            if self._db.pragma(name) != read_back:
                raise SetupError("ledger-failed", f"SQLite does not take the setting {name}={value}.")

    def _busy(self, before: int) -> bool:
        """Whether to try again for another process's lock, after so many tries; without it nothing is written."""
        return False
