"""The one way into a ledger's store: one transaction at a time, and no receipt for what is not known to be durable."""

from __future__ import annotations

import contextlib
import os
import threading
import time
import weakref
from collections.abc import Callable, Iterator

import apsw

from sulq.errors import AccessDenied, CuratorError, SulqError
from sulq.kernel.entropy import random_bytes
from sulq.kernel.facts import Event
from sulq.kernel.ledger.chain import Receipt, Seal
from sulq.kernel.ledger.entries import Draft, State, load
from sulq.kernel.ledger.store import Behind, Busy, Doubt, Store


class Writer:
    """Keeps one state in step with one store.

    Privacy: what a transaction adds is applied to the state, and has a receipt, only once it is durable. If a commit to
    a file fails, nobody knows whether it is on disk: the writer is then dead, gives no receipt for it, and refuses
    everything until the file is opened and read again (T48). If PostgreSQL cannot be asked whether a commit was made,
    no receipt is given for it either; the next transaction reads the chain on, and with it the commit if it was made.
    """

    def __init__(self, store: Store, empty: Callable[[], State], failpoint: Callable[[str], None]) -> None:
        self._store = store
        self._empty = empty
        self._failpoint = failpoint
        self._pid = os.getpid()
        self._io = threading.RLock()  # held by whoever is inside the store; again by its own failpoint's fork
        self._dead: SulqError | None = None  # why nothing is done any more
        self._stale = False  # an interrupt left the state in doubt: read it anew
        self._due: dict[int, tuple[str, str, Event]] = {}  # durable debits without a receipt, by their entries
        self.state: State = load(store, empty())
        self.seal = Seal(random_bytes(32))
        with _forking:
            _open.add(self)

    def guard(self) -> None:
        """Refuse a child of the process that opened the file, a closed ledger, and a dead one."""
        if os.getpid() != self._pid:
            raise AccessDenied("forked", "This ledger was opened before the process forked.")
        if self._dead is not None:
            raise type(self._dead)(self._dead.code, self._dead.message)

    def transact(self, propose: Callable[[Draft], None]) -> None:
        """Write what is proposed, in one transaction; it is durable when this returns.

        Where other servers write at the same time, what they came before is proposed again on top of theirs.

        Raises:
            Busy, apsw.BusyError: Nothing was written.
            Doubt, CuratorError: Whether it was written is not known, and there are no receipts.
        """
        with self._alone():
            try:
                self._failpoint("before-begin")
                deadline = time.monotonic() + self._store.wait
                while not self._attempt(propose):
                    if time.monotonic() >= deadline:
                        raise Busy("Other servers wrote to the ledger first each time.")
            except apsw.BusyError:
                raise
            except (apsw.Error, OSError) as error:
                failed = CuratorError("ledger-failed", "The ledger's file was not written, or nobody knows.")
                self._die(failed)
                raise failed from error

    def receipt(self, seq: int) -> Receipt:
        """The receipt of a debit, once: there is one when its entry is durable, and not before."""
        return self.seal.stamp(seq, *self._due.pop(seq))

    @contextlib.contextmanager
    def reading(self) -> Iterator[tuple[State, Store]]:
        """The state, in step with the file, and the file itself."""
        with self._alone():
            self._renew()
            if self._store.head() != (self.state.seq, self.state.hash):
                self._store.reading()
                self.state.catch_up(self._store)
            yield self.state, self._store

    def close(self) -> None:
        """Let the file go."""
        if self._dead is None:
            self.guard()
            with self._io:
                self._die(AccessDenied("closed", "This ledger is closed."))

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """Have the store to oneself; afterwards the state is in step with it, or read anew, or the writer is dead."""
        self.guard()
        with self._io:
            self.guard()
            try:
                yield
            except (Busy, Doubt, apsw.BusyError):
                raise
            except SulqError as error:
                if error.code in ("ledger-damaged", "ledger-format"):
                    self._die(error)
                raise
            except BaseException:
                self._stale = True
                raise
            finally:
                if self._dead is None:
                    try:
                        self._store.rollback()
                    except apsw.Error:
                        self._die(CuratorError("ledger-failed", "The ledger's file could not be written."))

    def _attempt(self, propose: Callable[[Draft], None]) -> bool:
        """Write what is proposed; False if others came first."""
        try:
            self._renew()
            self._store.begin()
            self._failpoint("after-begin")
            self.state.catch_up(self._store)
            draft = Draft(self.state)
            propose(draft)
            if draft.rows:
                self._store.append(draft.rows)
                self._failpoint("after-insert")
                self._failpoint("before-commit")
            self._store.commit()  # without entries too: what was refused, or found, rests on a head that still stands
        except Behind:
            self._store.rollback()
            return False
        self._failpoint("after-commit")
        for row in draft.rows:
            self.state.follow(row)
        self._due |= draft.debits
        return True

    def _renew(self) -> None:
        if self._stale:
            self.state, self._stale = load(self._store, self._empty()), False

    def _die(self, error: SulqError) -> None:
        """Stop for good, and let the file go so that others need not wait."""
        self._dead = error
        with contextlib.suppress(apsw.Error):
            self._store.close()


# SQLite must not be used across a fork: a child that closed an inherited connection in the middle of a transaction
# would roll the parent's debit back. So a fork waits until no ledger of this process is inside its store; between
# transactions an inherited connection holds no lock and no journal, and the child is refused every use of it.
_open: weakref.WeakSet[Writer] = weakref.WeakSet()
_forking = threading.RLock()
_held = contextlib.ExitStack()  # locks that a fork has taken; nobody touches it without `_forking`


def _hold() -> None:
    _forking.acquire()
    for writer in list(_open):
        _held.enter_context(writer._io)  # noqa: SLF001 - of this module


def _release() -> None:
    _held.close()
    _forking.release()


os.register_at_fork(before=_hold, after_in_parent=_release, after_in_child=_release)
