"""One dataset as the clerk holds it: its ledger, its curator, and the workers that see its rows; no row itself."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from sulq.answers.oracle import Oracle
from sulq.curator.ledger.ledger import Ledger
from sulq.curator.reuse import ReusingOracle
from sulq.errors import SetupError, SulqError
from sulq.service.clerk.worker_pool import RemoteRows, stopped
from sulq.service.schedule import PacedRows, Schedule

MAX_ASKS_AT_ONCE: Final = 16  # asks between debit and answer at one time; the rest wait before they are charged
MAX_WAIT_SECONDS: Final = 30.0


@dataclass(eq=False, slots=True)
class OpenDataset:
    """A dataset under the clerk's hand; `curator` is None until its first worker has opened the rows."""

    name: str
    ledger: Ledger | None = None
    curator: ReusingOracle | None = None
    fault: SulqError | None = None  # why it could not be opened
    schedule: Schedule | None = None
    rows: RemoteRows | None = None  # None where the curator has rows of its own
    paced: PacedRows | None = None  # the rows as the curator has them, where there is a schedule
    share_answers: bool = False
    late: int = 0  # answers that missed the tick they were due at
    taken: float = field(default_factory=time.monotonic)  # when it was taken on
    _views: dict[str, ReusingOracle] = field(default_factory=dict)  # by analyst
    _slots: threading.BoundedSemaphore = field(default_factory=lambda: threading.BoundedSemaphore(MAX_ASKS_AT_ONCE))
    _own: dict[str, threading.BoundedSemaphore] = field(default_factory=dict)  # by analyst
    _asks: int = 0  # under way
    _change: threading.Condition = field(default_factory=threading.Condition)

    @property
    def problem(self) -> SulqError | None:
        """Why it cannot be asked, for its owner."""
        return self.fault or (None if self.rows is None else self.rows.stopped)

    @property
    def ready(self) -> bool:
        """Whether it can be asked."""
        return self.curator is not None and self.problem is None

    def opened(self) -> tuple[ReusingOracle, Ledger]:
        """Curator and ledger, or why not."""
        if self.problem is not None:
            raise stopped()
        if self.curator is None or self.ledger is None:
            raise SetupError("not-ready", "This dataset is being opened.")
        return self.curator, self.ledger

    def open_ledger(self) -> Ledger:
        """The ledger alone, which is there before the rows are."""
        if self.ledger is None:
            raise SetupError("not-ready", "This dataset's ledger is not open.", "See why in the list of datasets.")
        return self.ledger

    def oracle(self, analyst: str | None) -> Oracle:
        """The curator as one analyst sees it: its own share, its own idempotency keys, its own stored answers (SR12).

        None is the whole person space, for facts alone.
        """
        curator, _ = self.opened()
        if analyst is None:
            return curator
        view = self._views.get(analyst)
        if view is None:
            scope = "" if self.share_answers else None
            view = self._views[analyst] = curator.for_analyst(analyst, scope=scope, dataset=self.name)
        return view

    @contextmanager
    def asking(self) -> Iterator[None]:
        """One ask, from its coming to its reply."""
        with self._change:
            self._asks += 1
        try:
            yield
        finally:
            with self._change:
                self._asks -= 1
                self._change.notify_all()

    def drained(self, patience: float) -> bool:
        """Wait until no ask is under way, so that none is charged for nothing."""
        with self._change:
            return self._change.wait_for(lambda: self._asks == 0, timeout=patience)

    @contextmanager
    def slot(self, whose: str) -> Iterator[None]:
        """A place among the asks under way, so that what was charged never waits long for a worker.

        One analyst has half of them at most: whoever asks much keeps nobody else from asking (T85).
        """
        own = self._own.setdefault(whose, threading.BoundedSemaphore(MAX_ASKS_AT_ONCE // 2))
        until = time.monotonic() + MAX_WAIT_SECONDS
        with _place(own, until), _place(self._slots, until):
            yield


@contextmanager
def _place(slots: threading.BoundedSemaphore, until: float) -> Iterator[None]:
    if not slots.acquire(timeout=max(until - time.monotonic(), 0.0)):
        raise SetupError("not-ready", "Too many questions are under way.", "Try again in a moment.")
    try:
        yield
    finally:
        slots.release()
