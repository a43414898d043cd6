"""A ledger's file: begun whole or not at all, and taken back while it holds nothing but its first entry."""

from __future__ import annotations

import ctypes
import errno
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Self

import apsw

from sulq.errors import SetupError
from sulq.kernel.entropy import random_bytes
from sulq.kernel.ledger.chain import Row
from sulq.kernel.ledger.sqlite import MEMORY, SCHEMA, SqliteStore


class SqliteFile(SqliteStore):
    """A store of the kernel's, and what is done with its file besides adding entries."""

    begun = False  # whether this opening wrote the first entry
    _deadline = 0.0  # until when another process's lock is waited for

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
            store.fill(rows)
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
        store.fill(rows)
        return store

    def fill(self, rows: Sequence[Row]) -> None:
        """Make the tables of an empty file, with their first entries."""
        self.begin()
        for statement in SCHEMA:
            self._db.execute(statement)
        self._db.execute("INSERT INTO head VALUES (1, 0, zeroblob(32))")
        if rows:
            self.append(rows)
        self.commit()

    @property
    def readonly(self) -> bool:
        """Whether the file cannot be written."""
        return self._db.readonly("main")

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

    def _busy(self, before: int) -> bool:
        """Wait a little for another process's lock, in all at most `wait` seconds."""
        now = time.monotonic()
        if before == 0:
            self._deadline = now + self.wait
        if now >= self._deadline:
            return False
        time.sleep(min(0.0005 * (before + 1), 0.005))
        return True


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
