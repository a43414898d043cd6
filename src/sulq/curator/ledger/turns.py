"""Stores of ledgers: their files, what they say in our own errors, and threads that take turns at one transaction."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final, Generic, Self, TypeVar

import apsw

from sulq.curator.ledger.postgres_place import PostgresPlace
from sulq.errors import CuratorError, SetupError, SulqError
from sulq.kernel.entropy import random_bytes
from sulq.kernel.ledger.chain import Row
from sulq.kernel.ledger.entries import Draft, State
from sulq.kernel.ledger.sqlite import MEMORY, SCHEMA, SqliteStore
from sulq.kernel.ledger.store import Busy, Doubt, Store, damaged
from sulq.kernel.ledger.writer import Writer


@contextlib.contextmanager
def opening() -> Iterator[None]:
    """Turn what is said while a ledger is opened or read into our own errors."""
    try:
        with writing():
            yield
    except (apsw.CantOpenError, apsw.PermissionsError, apsw.ReadOnlyError) as error:
        raise SetupError("missing-file", "The ledger's file cannot be opened.") from error
    except (apsw.IOError, apsw.FullError, apsw.NoMemError) as error:
        raise SetupError("ledger-failed", "The ledger's file cannot be read or written.") from error
    except OSError as error:
        raise SetupError("missing-file", f"The ledger's file cannot be reached: {error.strerror}.") from error
    except (apsw.Error, ValueError) as error:
        raise damaged("the file", "is not a ledger's") from error


@contextlib.contextmanager
def writing() -> Iterator[None]:
    """Turn what is said while entries are written into our own errors; a failed file's is the writer's own."""
    try:
        yield
    except (Busy, apsw.BusyError) as error:  # nothing was written
        why = str(error) if isinstance(error, Busy) else "Another process has held the ledger for too long."
        raise SetupError("ledger-busy", why, "Nothing was spent; try again.") from error
    except Doubt as error:
        unknown = "PostgreSQL could not be asked whether the debit was written; if it was, it stays charged."
        raise CuratorError("ledger-failed", unknown, "Ask again once it runs.") from error


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
            sync_directory(path.parent)

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

    @property
    def moved(self) -> bool:
        """Whether the file lies no more where it was opened: moved, removed, or another put in its place."""
        found = ctypes.c_int(0)
        self._db.file_control("main", apsw.SQLITE_FCNTL_HAS_MOVED, ctypes.addressof(found))
        return bool(found.value)

    def remove(self) -> None:
        """Remove a ledger that holds its first entry and no other; who has it open can write to it no more."""
        self.begin()
        try:
            head = self.head()
            if head is not None and head[0] == 1 and not self.moved:
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


def sync_directory(directory: Path) -> None:
    """Make names in a directory durable."""
    handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


T = TypeVar("T")
LEADER_WAIT_SECONDS: Final = 0.0005  # seconds a leader waits for as many as came last time


class Turn(Generic[T]):
    """One thing a thread wants done in the next transaction, and what came of it."""

    __slots__ = ("_propose", "_result", "error", "woken")

    def __init__(self, propose: Callable[[Draft], T]) -> None:
        self._propose = propose
        self._result: list[T] = []
        self.error: SulqError | None = None
        self.woken = threading.Event()

    @property
    def settled(self) -> bool:
        """Whether its outcome is known."""
        return bool(self._result) or self.error is not None

    def run(self, draft: Draft) -> None:
        """Put its entries into the draft, or be refused; again if another server came first."""
        self._result, self.error = [], None
        try:
            self._result = [self._propose(draft)]
        except SulqError as error:
            if error.code == "ledger-damaged":
                raise
            self.error = error

    def spoil(self, error: SulqError) -> None:
        """Take back what was not durable; a refusal too, as it may rest on what others in the batch did not get."""
        self._result, self.error = [], error

    def outcome(self) -> T:
        """What came of it."""
        if self.error is not None:
            raise self.error
        return self._result[0]


class Turns:
    """Hands each batch of waiting turns to one of the threads that wait."""

    def __init__(self, work: Callable[[Sequence[Turn[object]]], None]) -> None:
        self._work = work
        self._mutex = threading.Lock()
        self._waiting: list[Turn[object]] = []
        self._led = False
        self._last = 1  # how many the last batch served

    def take(self, turn: Turn[T]) -> T:
        """Wait for a transaction that settles this turn, leading it if nobody else does."""
        with self._mutex:
            self._waiting.append(turn)  # type: ignore[arg-type]  # the queue never looks at results
            lead = not self._led
            self._led = True
        if not lead:
            try:
                turn.woken.wait()
            except BaseException:
                self._leave(turn)
                raise
        if not turn.settled:
            self._lead()
        return turn.outcome()

    def _lead(self) -> None:
        batch: list[Turn[object]] = []
        # From here on an interrupt, wherever it strikes, must leave somebody else to lead.
        try:
            # Whoever was served together is likely back in a moment: a commit costs more than the wait for them.
            patience = time.monotonic() + LEADER_WAIT_SECONDS
            while len(self._waiting) < self._last and time.monotonic() < patience:
                time.sleep(LEADER_WAIT_SECONDS / 10)
            with self._mutex:
                batch, self._waiting = self._waiting, []
                self._last = len(batch)
            self._work(batch)
        finally:
            if not batch:
                with self._mutex:
                    batch, self._waiting = self._waiting, []
            # Whatever happened, nobody is left waiting, and what is not known to be durable gives no answer.
            for turn in batch:
                if not turn.settled:
                    turn.spoil(CuratorError("ledger-failed", "The debit was interrupted."))
            self._pass_on()
            for turn in batch:
                turn.woken.set()

    def _pass_on(self) -> None:
        with self._mutex:
            self._led = bool(self._waiting)
            if self._waiting:
                self._waiting[0].woken.set()

    def _leave(self, turn: Turn[T]) -> None:
        """Step out of the queue after an interrupt; whoever was to lead passes it on."""
        with self._mutex:
            if turn not in self._waiting:
                return
            called = turn.woken.is_set()
            self._waiting.remove(turn)  # type: ignore[arg-type]
        if called:
            self._pass_on()


class SharedWriter(Writer):
    """A writer of the kernel's whose transactions are shared by all threads that wait."""

    def __init__(
        self,
        store: SqliteFile | PostgresPlace,
        empty: Callable[[], State],
        failpoint: Callable[[str], None],
        *,
        first: Callable[[Draft], None],
        last: Callable[[Draft], None],
    ) -> None:
        with opening():
            super().__init__(store, empty, failpoint)
        self._place = store
        self._first = first  # what is added to a draft before anyone has proposed
        self._last = last  # what is added to a draft when all who wait have proposed
        self._turns = Turns(self._settle)

    def take(self, propose: Callable[[Draft], T]) -> T:
        """Have something done in the next transaction; returns when it is durable."""
        self.guard()
        return self._turns.take(Turn(propose))

    @contextlib.contextmanager
    def looking(self) -> Iterator[tuple[State, Store]]:
        """The state, in step with the store, and the store itself."""
        with opening(), self.reading() as found:
            yield found

    def fail(self, error: SulqError) -> None:
        """Do nothing any more, for what was found aside."""
        with self._io:
            if self._dead is None:
                self._die(error)

    def remove(self) -> None:
        """Remove the ledger again, if this opening began it and nothing was written to it since."""
        with opening(), self._alone():
            if self._place.begun:
                self._place.remove()

    def _settle(self, batch: Sequence[Turn[object]]) -> None:
        def propose(draft: Draft) -> None:
            self._first(draft)
            for turn in batch:
                turn.run(draft)
            self._last(draft)

        try:
            with writing():
                self.transact(propose)
        except SulqError as error:
            for turn in batch:
                turn.spoil(type(error)(error.code, error.message, error.remedy))
        except BaseException:
            for turn in batch:
                turn.spoil(CuratorError("ledger-failed", "The debit was interrupted."))
            raise
