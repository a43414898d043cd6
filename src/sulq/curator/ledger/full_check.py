"""A ledger is read again on a connection of its own, while asks are answered: to verify it, and after an opening."""

from __future__ import annotations

import itertools
import os
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from sulq.curator.ledger import history
from sulq.curator.ledger.history import History
from sulq.curator.ledger.opening import look
from sulq.curator.ledger.postgres_place import Address
from sulq.curator.ledger.turns import opening
from sulq.errors import SulqError
from sulq.kernel.ledger.chain import Row
from sulq.kernel.ledger.entries import State
from sulq.kernel.ledger.store import Store, damaged

DELAY_SECONDS: Final = 2.0  # before it begins: a command that asks once is over by then
PIECE: Final = 200  # entries between two pauses

# A fork waits until nobody reads, as it waits for writers (kernel.ledger.writer): a child that copied a lock which a
# reader held within SQLite could never open a ledger of its own.
_reading = threading.RLock()
os.register_at_fork(before=_reading.acquire, after_in_parent=_reading.release, after_in_child=_reading.release)


@contextmanager
def _looking(place: Path | Address) -> Iterator[Store]:
    """A connection to read by, which is opened and closed while no fork is made."""
    with _reading:
        store = look(place, 5.0)
    try:
        yield store
    finally:
        with _reading:
            store.close()


def _in_pieces(rows: Iterable[Row]) -> Iterator[list[Row]]:
    """The rows, some at a time; between two pieces the process may be forked."""
    each = iter(rows)
    while True:
        with _reading:
            piece = list(itertools.islice(each, PIECE))
        if not piece:
            return
        yield piece


class Verification:
    """Reads one ledger again, one reading at a time; it holds no lock on the file but for pieces of entries.

    A reading begins at the first entry or, unless it is to be of the `whole` ledger, at the last checkpoint that the
    reading before came past. What changed in an older entry since then, a reading of the whole finds.
    """

    def __init__(self, place: Path | Address) -> None:
        self._place = place
        self._one = threading.Lock()
        self._passed: tuple[int, str] | None = None

    def read(self, *, whole: bool = False) -> State:
        """What the entries up to the present last one come to.

        Raises:
            SetupError: `ledger-damaged`.
        """
        with self._one, opening(), _looking(self._place) as store:
            passed = None if whole else self._passed
            with _reading:
                state = State((), History(thorough=True)) if passed is None else self._resumed(store, passed)
                head = store.head()
            for row in itertools.chain.from_iterable(_in_pieces(store.rows(state.seq, 0 if head is None else head[0]))):
                state.follow(row)
            if state.seq == 0 or head != (state.seq, state.hash):
                raise damaged("the end", "is missing, or was not written by sulq")
            with _reading:
                sound = store.sound(whole=passed is None)
            if not sound:
                raise damaged("the file", "is not whole, or holds more or less than a ledger")
            self._passed = history.of(state).checkpoint
            return state

    @staticmethod
    def _resumed(store: Store, passed: tuple[int, str]) -> State:
        state = history.begun(store, (), passed[0], thorough=True)
        if (history.of(state).begun_at, history.of(state).begun_hash) != passed:
            raise damaged(f"entry {passed[0]}", "is not the checkpoint that was read before")
        return state


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
        with _looking(self._place) as store:
            began = time.monotonic()
            for piece in _in_pieces(store.rows(0, seq)):
                for row in piece:
                    state.follow(row)
                if self._stopped.wait(time.monotonic() - began if pausing else 0):
                    return
                began = time.monotonic()
        if (state.seq, state.hash.hex()) != self._checkpoint:
            raise damaged(f"entry {seq}", "is not the checkpoint that the ledger was opened at")
