"""The one way into a ledger's store: transactions shared by all threads, and no receipt for what is in doubt."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import TypeVar

import apsw

from sulq.errors import AccessDenied, CuratorError, SulqError
from sulq.kernel.ledger import forks
from sulq.kernel.ledger.draft import Draft
from sulq.kernel.ledger.seal import Seal
from sulq.kernel.ledger.state import Follower, State, load
from sulq.kernel.ledger.store import Behind, Busy, Doubt, Store, busy, opening
from sulq.kernel.ledger.turns import Turn, Turns

T = TypeVar("T")


class Writer:
    """Keeps one state in step with one store.

    What a transaction adds is applied to the state only once it is durable. If
    a commit to a file fails, nobody knows whether it is on disk: the writer is
    then dead, gives no receipt for it, and refuses everything until the file is
    opened and read again (T48). If PostgreSQL cannot be asked whether a commit
    was made, no receipt is given for it either; the next transaction reads the
    chain on from what is known, and with it the commit if it was made.

    Where other servers write at the same time, a transaction they came before is
    decided again on top of theirs.
    """

    def __init__(
        self,
        store: Store,
        mechanisms: Collection[str],
        failpoint: Callable[[str], None],
        *,
        follower: Callable[[], Follower],
        last: Callable[[Draft], None],
    ) -> None:
        self._store = store
        self._mechanisms = mechanisms
        self._follower = follower
        self._last = last  # what is added to a draft when all who wait have proposed
        self._failpoint = failpoint
        self._pid = os.getpid()
        self._io = threading.RLock()  # held by whoever is inside SQLite; again by its own failpoint's fork
        self._turns = Turns(self._transact)
        self._dead: SulqError | None = None
        self._closed = False
        self._stale = False  # an interrupt left the state in doubt: read it anew
        with opening():
            self.state: State = load(store, mechanisms, follower)
        self.seal = Seal(self.state.genesis.receipt_key)
        forks.watch(self)

    def guard(self) -> None:
        """Refuse a child of the process that opened the file, a closed ledger, and a dead one."""
        self._same_process()
        if self._closed:
            raise AccessDenied("closed", "This ledger is closed.")
        if self._dead is not None:
            raise type(self._dead)(self._dead.code, self._dead.message)

    def take(self, propose: Callable[[Draft], T]) -> T:
        """Have something done in the next transaction; returns when it is durable."""
        self.guard()
        return self._turns.take(Turn(propose))

    @contextlib.contextmanager
    def reading(self) -> Iterator[tuple[State, Store]]:
        """The state, in step with the file, and the file itself."""
        self.guard()
        with self._io:
            self.guard()
            try:
                with opening():
                    self._renew()
                    if self._store.head() != (self.state.seq, self.state.hash):
                        self._store.reading()
                        self.state.catch_up(self._store)
                    yield self.state, self._store
            except SulqError as error:
                if error.code in {"ledger-damaged", "ledger-failed", "ledger-format"}:
                    self._die(error)
                raise
            except BaseException:
                self._stale = True
                raise
            finally:
                with contextlib.suppress(apsw.Error):
                    self._store.rollback()

    def close(self) -> None:
        """Let the file go."""
        self._same_process()
        with self._io:
            if not self._closed:
                self._closed = True
                self._store.close()

    def remove(self) -> None:
        """Remove the store again, if this opening began it and nothing was written to it since."""
        self.guard()
        with self._io, opening():
            if self._store.begun:
                self._store.remove()

    def hold(self) -> None:
        """Let no transaction begin."""
        self._io.acquire()

    def release(self) -> None:
        """Let transactions begin again."""
        self._io.release()

    def _same_process(self) -> None:
        if os.getpid() != self._pid:
            raise AccessDenied("forked", "This ledger was opened before the process forked.")

    def _transact(self, batch: Sequence[Turn[object]]) -> None:
        with self._io:
            try:
                self.guard()
                self._failpoint("before-begin")
                self._write(batch)
            except Busy as error:
                self._undo()
                self._spoil(batch, busy(str(error)))  # nothing was written
            except apsw.BusyError:
                self._undo()
                self._spoil(batch, busy())  # likewise
            except Doubt:
                self._undo()
                unknown = "PostgreSQL could not be asked whether the debit was written; if it was, it stays charged."
                self._spoil(batch, CuratorError("ledger-failed", unknown, "Ask again once it runs."))
            except (apsw.Error, OSError):
                failed = CuratorError(
                    "ledger-failed", "The ledger's file could not be written; the outcome is unknown."
                )
                self._die(failed)
                self._spoil(batch, failed)
            except SulqError as error:
                if error.code in {"ledger-damaged", "ledger-format"}:
                    self._die(error)
                self._undo()
                self._spoil(batch, error)
            except BaseException:
                self._stale = True
                self._undo()
                self._spoil(batch, CuratorError("ledger-failed", "The debit was interrupted."))
                raise

    def _write(self, batch: Sequence[Turn[object]]) -> None:
        deadline = time.monotonic() + self._store.wait
        while True:
            try:
                self._attempt(batch)
            except Behind:
                self._store.rollback()
                if time.monotonic() >= deadline:
                    raise Busy("Other servers wrote to the ledger first each time.") from None
            else:
                return

    def _attempt(self, batch: Sequence[Turn[object]]) -> None:
        self._renew()
        self._store.begin()
        self._failpoint("after-begin")
        self.state.catch_up(self._store)
        draft = Draft(self.state, self.seal)
        for turn in batch:
            turn.run(draft)
        self._last(draft)
        if not draft.rows:
            self._store.commit()  # what was refused, or found, rests on a head that still stands
            return
        self._store.append(draft.rows)
        self._failpoint("after-insert")
        self._failpoint("before-commit")
        self._store.commit()
        self._failpoint("after-commit")
        for row in draft.rows:
            self.state.follow(row)

    def _renew(self) -> None:
        if self._stale:
            self.state = load(self._store, self._mechanisms, self._follower)
            self._stale = False

    def _undo(self) -> None:
        if self._dead is not None or self._closed:
            return
        try:
            self._store.rollback()
        except apsw.Error:
            self._die(CuratorError("ledger-failed", "The ledger's file could not be written."))

    def _die(self, error: SulqError) -> None:
        """Stop for good, and let the file go so that others need not wait."""
        self._dead = error
        with contextlib.suppress(apsw.Error):
            self._store.close()

    def _spoil(self, batch: Sequence[Turn[object]], error: SulqError) -> None:
        for turn in batch:
            turn.spoil(type(error)(error.code, error.message, error.remedy))
