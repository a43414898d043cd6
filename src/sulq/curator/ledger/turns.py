"""Group commit: threads queue up, one of them writes for all who wait."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Final, Generic, TypeVar

from sulq.curator.ledger.failures import opening, writing
from sulq.curator.ledger.postgres_place import PostgresPlace
from sulq.curator.ledger.sqlite_file import SqliteFile
from sulq.errors import CuratorError, SulqError
from sulq.kernel.ledger.entries import Draft, Follower, State
from sulq.kernel.ledger.store import Store
from sulq.kernel.ledger.writer import Writer

T = TypeVar("T")
PATIENCE: Final = 0.0005  # seconds a leader waits for as many as came last time


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
            patience = time.monotonic() + PATIENCE
            while len(self._waiting) < self._last and time.monotonic() < patience:
                time.sleep(PATIENCE / 10)
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
        mechanisms: Collection[str],
        failpoint: Callable[[str], None],
        *,
        follower: Callable[[], Follower],
        last: Callable[[Draft], None],
    ) -> None:
        with opening():
            super().__init__(store, lambda: State(mechanisms, follower()), failpoint)
        self._place = store
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

    def remove(self) -> None:
        """Remove the ledger again, if this opening began it and nothing was written to it since."""
        with opening(), self._alone():
            if self._place.begun:
                self._place.remove()

    def _settle(self, batch: Sequence[Turn[object]]) -> None:
        def propose(draft: Draft) -> None:
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
