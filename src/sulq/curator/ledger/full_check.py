"""A ledger is read again on a connection of its own, while asks are answered: to verify it, and after an opening."""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from sulq.curator.ledger import history
from sulq.curator.ledger.history import History
from sulq.curator.ledger.opening import Report, look
from sulq.curator.ledger.postgres_place import Address
from sulq.curator.ledger.reading import pieces, read_on, unforked
from sulq.curator.ledger.turns import opening
from sulq.errors import SetupError, SulqError
from sulq.kernel.ledger.entries import State
from sulq.kernel.ledger.store import Store, damaged

DELAY_SECONDS: Final = 2.0  # before it begins: a command that asks once is over by then
MAX_WAITING_READERS: Final = 8  # callers who share one reading; each holds a thread of a server
MAX_REST_SECONDS: Final = 2.0  # between two readings of a server's ledger


@contextmanager
def looking(place: Path | Address) -> Iterator[Store]:
    """A connection to read by, which is opened and closed while no fork is made."""
    with unforked():
        store = look(place, 5.0)
    try:
        yield store
    finally:
        with unforked():
            store.close()


class LedgerMoment(NamedTuple):
    """A ledger up to an entry: its place, its hash, and a digest of all that the entries up to it come to."""

    seq: int
    hash: str
    digest: str

    @classmethod
    def of(cls, state: State) -> LedgerMoment:
        """The present one."""
        told = history.of(state).told(state)
        return cls(state.seq, state.hash.hex(), hashlib.sha256(told.encode("utf-8", "surrogatepass")).hexdigest())


class LedgerReading(NamedTuple):
    """What a reading found: the ledger at the moment that was asked for, and the last checkpoint it came past."""

    moment: LedgerMoment
    passed: tuple[int, str] | None


Read = Callable[[Path | Address, tuple[int, str] | None, int], LedgerReading]


def read_ledger(place: Path | Address, passed: tuple[int, str] | None, at: int) -> LedgerReading:
    """Read a ledger to its end: from its first entry, or from a checkpoint that was `passed`.

    Nobody who writes waits for it. The pages of a file are left to `sulq ledger verify`: SQLite checks them all at
    once, and lets nobody commit meanwhile. Every entry lies on them and is read here.

    Args:
        place: Where the ledger lies.
        passed: The place and hash of the checkpoint; None reads the whole ledger.
        at: The entry of which the moment is asked for.

    Raises:
        SetupError: `ledger-damaged`.
    """
    with opening(), looking(place) as store:
        with unforked():
            state = State((), History(thorough=True)) if passed is None else _resumed(store, passed)
        read_on(store, state, at)
        moment = LedgerMoment.of(state)
        known = history.of(state).checkpoint
        read_on(store, state)
        with unforked():
            sound = store.sound(whole=False)
        if not sound:
            raise damaged("the file", "holds more or less than a ledger")
        return LedgerReading(moment, known)


def _resumed(store: Store, passed: tuple[int, str]) -> State:
    state = history.begun(store, (), passed[0], thorough=True)
    if (history.of(state).begun_at, history.of(state).begun_hash) != passed:
        raise damaged(f"entry {passed[0]}", "is not the checkpoint that was read before")
    return state


class Verification:
    """Has one ledger read again, one reading at a time; who comes while one is under way shares the next.

    A reading begins at the first entry or, unless it is to be of the `whole` ledger, at the last checkpoint that the
    reading before came past. What changed in an older entry since then, a reading of the whole finds.

    Privacy: `failed` stops the ledger when a reading finds it damaged, whether or not anybody still waits to hear it.
    """

    def __init__(self, place: Path | Address, failed: Callable[[SulqError], None]) -> None:
        self._place = place
        self._failed = failed
        self._one = threading.Lock()  # held by the reading that is under way
        self._mutex = threading.Lock()
        self._next: dict[bool, Future[Report]] = {}  # readings that have not begun: of the whole, and the others
        self._waiting = 0
        self._passed: tuple[int, str] | None = None
        self._rested = 0.0  # when the rest after the last reading is over

    def report(
        self,
        present: Callable[[], tuple[LedgerMoment, Report]],
        *,
        whole: bool = False,
        read: Read = read_ledger,
        patience: float | None = None,
    ) -> Report:
        """What the ledger says at a moment after this is called, once a reading has found the same.

        Args:
            present: Takes the moment that this process enforces, and what it says.
            whole: Whether to begin at the first entry.
            read: Reads the ledger: here, or in another process.
            patience: Seconds that a server's caller waits; a reading that takes longer goes on, and who asks again
                shares it or the next. Such a reading begins after a rest as long as the one before it took, so that
                an auditor in a loop takes half of a processor at most.

        Raises:
            SetupError: `ledger-damaged`; `not-ready`: it takes longer, or too many wait.
        """
        with self._mutex:
            if patience is not None and self._waiting >= MAX_WAITING_READERS:
                raise _not_read("Too many wait for the ledger to be read.")
            found = self._next.get(whole)
            first = found is None
            if found is None:
                found = self._next[whole] = Future()
            self._waiting += 1
        try:
            if first:
                self._start(found, present, read, whole=whole, patience=patience)
            return found.result(patience)
        except TimeoutError:
            raise _not_read("The ledger is still being read.") from None
        finally:
            with self._mutex:
                self._waiting -= 1

    def _start(
        self,
        found: Future[Report],
        present: Callable[[], tuple[LedgerMoment, Report]],
        read: Read,
        *,
        whole: bool,
        patience: float | None,
    ) -> None:
        """Read here, or in a thread of its own for who may stop waiting.

        A thread that ends gives back what OpenSSL keeps of it, under a lock that a fork at that moment copies: so
        where nobody needs one there is none (T67). A server's process does not fork.
        """
        if patience is not None:
            about = {"whole": whole, "rest": True}
            threading.Thread(target=self._run, args=(found, present, read), kwargs=about, daemon=True).start()
            return
        try:
            self._run(found, present, read, whole=whole, rest=False)
        except BaseException:  # Ctrl-C, also while it waited for its turn
            with self._mutex:
                if self._next.get(whole) is found:
                    del self._next[whole]
            if not found.done():
                found.set_exception(_not_read("The reading of the ledger was interrupted."))
            raise

    def _run(
        self,
        found: Future[Report],
        present: Callable[[], tuple[LedgerMoment, Report]],
        read: Read,
        *,
        whole: bool,
        rest: bool,
    ) -> None:
        with self._one:
            if rest:
                time.sleep(max(self._rested - time.monotonic(), 0.0))
            with self._mutex:
                del self._next[whole]
            began = time.monotonic()
            try:
                moment, said = present()
                reading = read(self._place, None if whole else self._passed, moment.seq)
                if reading.moment != moment:
                    raise damaged("the file", "differs from what this process enforces")
                self._passed = reading.passed
                found.set_result(said)
            except Exception as error:  # noqa: BLE001 - whoever waits raises it
                if isinstance(error, SetupError) and error.code in ("ledger-damaged", "ledger-format"):
                    self._failed(error)
                found.set_exception(error)
            finally:
                ended = time.monotonic()
                self._rested = ended + min(ended - began, MAX_REST_SECONDS)


def _not_read(why: str) -> SetupError:
    return SetupError("not-ready", why, "Ask again in a moment: what was read is not read again.")


class FullCheck:
    """Follows the entries up to the checkpoint, and the checkpoint itself; it holds no lock between pieces of them.

    Privacy: a checkpoint that says less than the entries before it is found here if no anchor has; `failed` then stops
    the ledger.
    """

    def __init__(
        self,
        place: Path | Address,
        mechanisms: Collection[str],
        checkpoint: tuple[int, str],
        failed: Callable[[SulqError], None],
    ) -> None:
        self._place = place
        self._mechanisms = mechanisms
        self._checkpoint = checkpoint
        self._failed = failed
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="sulq ledger check", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End it, done or not."""
        self._stopped.set()
        if self._thread is not threading.current_thread():
            self._thread.join()

    def _run(self) -> None:
        while not self._stopped.wait(DELAY_SECONDS):
            try:
                with opening():
                    self.check(pausing=True)
            except SulqError as error:
                if error.code not in ("ledger-damaged", "ledger-format"):  # a place may be in reach again later
                    continue
                self._failed(error)
            except Exception as error:  # noqa: BLE001 - what cannot be read is not what was written
                self._failed(damaged("an entry before the checkpoint", f"cannot be read ({type(error).__name__})"))
            return

    def check(self, *, pausing: bool = False) -> None:
        """Read it, pausing after each piece as long as it took.

        Raises:
            SetupError: `ledger-damaged`.
        """
        state, seq = State(self._mechanisms, History(self._mechanisms)), self._checkpoint[0]
        with looking(self._place) as store:
            began = time.monotonic()
            for piece in pieces(store, 0, seq):
                for row in piece:
                    state.follow(row)
                if self._stopped.wait(time.monotonic() - began if pausing else 0):
                    return
                began = time.monotonic()
        if (state.seq, state.hash.hex()) != self._checkpoint:
            raise damaged(f"entry {seq}", "is not the checkpoint that the ledger was opened at")
