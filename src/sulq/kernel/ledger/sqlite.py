"""The ledger's file: SQLite with a rollback journal, synced before a commit returns (T48, T49)."""

from __future__ import annotations

import ctypes
import errno
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final, Self

import apsw

from sulq.errors import SetupError
from sulq.kernel.entropy import random_bytes
from sulq.kernel.ledger.chain import Row
from sulq.kernel.ledger.store import Store, damaged

OLDEST: Final = (3, 51, 3)  # older ones have the WAL-reset bug (T49); we keep away from WAL and from them
MEMORY: Final = ":memory:"
SCHEMA: Final = (
    "CREATE TABLE entries (seq INTEGER PRIMARY KEY, body TEXT NOT NULL, hash BLOB NOT NULL) STRICT",
    "CREATE TABLE head (one INTEGER PRIMARY KEY CHECK (one = 1), seq INTEGER NOT NULL, hash BLOB NOT NULL) STRICT",
)
# Whether the last entry is the one the head names, and none is gone after one place and up to another.
WHOLE: Final = """
SELECT EXISTS (SELECT 1 FROM entries JOIN head USING (seq, hash))
AND (SELECT count(*) FROM entries WHERE seq > ?1 AND seq <= ?2) = ?2 - ?1
"""
# Settings of each connection, and what they must read back as. EXTRA also syncs the
# directory; without spilling, nothing is written to the file before the commit.
SETTINGS: Final = (
    ("synchronous", "EXTRA", 3),
    ("fullfsync", "ON", 1),
    ("cache_spill", "OFF", 0),
    ("trusted_schema", "OFF", 0),
    ("cell_size_check", "ON", 1),
)
READ: Final = apsw.SQLITE_OPEN_READONLY
WRITE: Final = apsw.SQLITE_OPEN_READWRITE


class SqliteStore(Store):
    """One connection to a ledger's file; not safe to share between threads without a lock."""

    def __init__(self, path: str, *, wait: float = 5.0, vfs: str = "", flags: int = WRITE) -> None:
        check_library()
        self.wait = wait
        self._deadline = 0.0
        memory = path == MEMORY
        self._db = apsw.Connection(path, flags=flags | (apsw.SQLITE_OPEN_CREATE if memory else 0), vfs=vfs or None)
        try:
            self._db.set_busy_handler(self._busy)
            self._settle(memory=memory)
        except BaseException:
            self._db.close(True)
            raise

    @classmethod
    def create(cls, path: Path, rows: Sequence[Row]) -> None:
        """Write a new ledger whole beside its place, then link it there: no half ledger ever bears the name.

        Raises:
            FileExistsError: another process was first; nothing of theirs was touched.
        """
        journal = path.with_name(path.name + "-journal")
        if journal.exists() and journal.stat().st_size:
            raise SetupError("ledger-damaged", f"{journal} is the journal of a ledger that is not there.")
        draft = path.with_name(f".{path.name}.{random_bytes(8).hex()}.new")
        os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600))
        try:
            store = cls(str(draft))
            store.write(rows, fresh=True)
            store.close()
            _link(draft, path)
        finally:
            for left in (draft, draft.with_name(draft.name + "-journal")):
                left.unlink(missing_ok=True)
            _sync_directory(path.parent)

    @classmethod
    def in_memory(cls, rows: Sequence[Row]) -> Self:
        """A ledger that is forgotten at exit."""
        store = cls(MEMORY)
        store.write(rows, fresh=True)
        return store

    def write(self, rows: Sequence[Row], *, fresh: bool = False) -> None:
        """Begin, append and commit at once."""
        self.begin()
        if fresh:
            for statement in SCHEMA:
                self._db.execute(statement)
            self._db.execute("INSERT INTO head VALUES (1, 0, zeroblob(32))")
        self.append(rows)
        self.commit()

    def begin(self) -> None:
        """Take the file's write lock, waiting a bounded time."""
        self._db.execute("BEGIN IMMEDIATE")

    def append(self, rows: Iterable[Row]) -> None:
        """Add entries and move the head, inside a transaction.

        SQLite refuses here if the file was moved, deleted or replaced while it was open.

        Raises:
            SetupError: `ledger-damaged`: the file no longer holds what was written to it.
        """
        last = None
        for row in rows:
            if last is None and row.seq > 1:
                self._recheck(row.seq - 1)
            self._db.execute("INSERT INTO entries VALUES (?, ?, ?)", row)
            last = row
        if last is not None:
            self._db.execute("UPDATE head SET seq = ?, hash = ?", (last.seq, last.hash))

    def commit(self) -> None:
        """Make the transaction durable; returns only when it is."""
        self._db.execute("COMMIT")

    def rollback(self) -> None:
        """Leave the file as it was."""
        if self._db.in_transaction:
            self._db.execute("ROLLBACK")

    def head(self) -> tuple[int, bytes] | None:
        """The place and hash of the last entry, as its transaction wrote them."""
        found = self._db.execute("SELECT seq, hash FROM head").fetchall()
        match found:
            case [(int() as seq, bytes() as digest)]:
                return seq, digest
        return None

    def rows(self, after: int = 0) -> Iterator[Row]:
        """The entries after a place, in order."""
        found = self._db.execute("SELECT seq, body, hash FROM entries WHERE seq > ? ORDER BY seq", (after,))
        return (Row(*row) for row in found)

    def row(self, seq: int) -> Row | None:
        """One entry."""
        found = self._db.execute("SELECT seq, body, hash FROM entries WHERE seq = ?", (seq,)).fetchall()
        match found:
            case [(int() as place, str() as body, bytes() as digest)]:
                return Row(place, body, digest)
        return None

    def sound(self) -> bool:
        """Whether the file's own structure is whole, and holds our tables and nothing else."""
        return self._is_ours() and self._db.pragma("integrity_check") == "ok"

    def _is_ours(self) -> bool:
        return tuple(sql for (sql,) in self._db.execute("SELECT sql FROM sqlite_schema ORDER BY name")) == SCHEMA

    def _recheck(self, seq: int) -> None:
        """Refuse to go on if the tables, the last entry or others were changed while the file was open."""
        if not self._is_ours() or self._db.execute(WHOLE, self._window(seq)).fetchall() != [(1,)]:
            raise damaged("the file", "does not hold what was written")

    @property
    def readonly(self) -> bool:
        """Whether the file cannot be written."""
        return self._db.readonly("main")

    def reading(self) -> None:
        """Begin to read one state of the file."""
        self._db.execute("BEGIN")

    def remove(self) -> None:
        """Remove a ledger that holds its first entry and no other; who has it open can write to it no more."""
        self.begin()
        try:
            moved = ctypes.c_int(0)
            self._db.file_control("main", apsw.SQLITE_FCNTL_HAS_MOVED, ctypes.addressof(moved))
            head = self.head()
            if head is not None and head[0] == 1 and not moved.value:
                for path in (f"{self._db.filename}-journal", self._db.filename):  # while the lock is held
                    Path(path).unlink(missing_ok=True)
        finally:
            self.rollback()

    def close(self) -> None:
        """Let the file go."""
        self._db.close(True)

    def _settle(self, *, memory: bool) -> None:
        mode = self._db.pragma("journal_mode")
        if not memory and mode != "wal":
            # Truncating spares two directory operations a commit, and is synced like a deletion.
            mode = self._db.pragma("journal_mode", "TRUNCATE")
        if mode != ("memory" if memory else "truncate"):
            raise SetupError("ledger-damaged", f"The ledger was switched to journal mode {mode} by another program.")
        for name, value, read_back in SETTINGS:
            self._db.pragma(name, value)
            if self._db.pragma(name) != read_back:
                raise SetupError("ledger-failed", f"SQLite does not take the setting {name}={value}.")

    def _busy(self, before: int) -> bool:
        """Wait a little for another process's lock, in all at most `wait` seconds."""
        now = time.monotonic()
        if before == 0:
            self._deadline = now + self.wait
        if now >= self._deadline:
            return False
        time.sleep(min(0.0005 * (before + 1), 0.005))
        return True


def check_library() -> None:
    """Refuse a SQLite with known ways to lose a ledger (T49)."""
    version = apsw.sqlite_lib_version()
    if tuple(int(part) for part in version.split(".")) < OLDEST:
        oldest = ".".join(map(str, OLDEST))
        raise SetupError("ledger-failed", f"SQLite {version} is older than {oldest}.", "Install a newer apsw.")


def _link(draft: Path, path: Path) -> None:
    try:
        os.link(draft, path)
    except OSError as error:
        if error.errno in (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS):
            raise SetupError(
                "bad-config",
                f"The file system of {path} has no hard links, so a ledger cannot be created safely.",
                "Keep the ledger on a local file system such as ext4, xfs, btrfs or apfs.",
            ) from error
        raise


def _sync_directory(directory: Path) -> None:
    """Make names in a directory durable."""
    handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
