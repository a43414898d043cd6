"""When answers leave: at fixed ticks of a monotonic clock, so that the time of an answer tells nothing.

The tick an ask is answered at follows from when it came and from the owner's
period alone: the first one at least a whole period later. Whatever is not ready
after one period is stopped, charged and answered with the one constant failure,
at the same tick (T35, T36, T37). Re-answers and refusals keep the same time (T39).

An answer is not even written down before its tick: the transcript, an export and
the stored answers that are given again would all tell when the work was done.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from sulq.answers.answer import Receipt
from sulq.answers.plan import Plan
from sulq.answers.released import Released
from sulq.answers.wire import Writer
from sulq.curator.curator import Runner


@dataclass(frozen=True, slots=True)
class Schedule:
    """Ticks `period` seconds apart."""

    period: float
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep

    def due(self, arrived: float) -> float:
        """The tick at which what came then is answered."""
        return self.tick(arrived + self.period)

    def tick(self, moment: float) -> float:
        """The first tick not before a moment."""
        return math.ceil(moment / self.period) * self.period

    def wait(self, due: float) -> bool:
        """Wait for a tick; past it, for the next one. Whether it was kept."""
        kept = self.clock() <= due
        target = due if kept else self.tick(self.clock())
        while (left := target - self.clock()) > 0:
            self.sleep(left)
        return kept


class ScheduledAsk:
    """One ask's tick, from when it came; `worked` is called when its work is done, before the tick is waited for."""

    def __init__(self, schedule: Schedule) -> None:
        self._schedule = schedule
        self.arrived = schedule.clock()
        self.worked: Callable[[], None] = lambda: None
        self.kept: bool | None = None  # None until the tick was waited for

    @property
    def late(self) -> bool:
        """Whether too much of its period has gone by for the work to begin: what is charged must have time to end."""
        return self._schedule.clock() - self.arrived > self._schedule.period / 2

    def wait(self) -> bool:
        """Wait for the tick, once; whether it was kept."""
        if self.kept is None:
            self.kept = self._schedule.wait(self._schedule.due(self.arrived))
        return self.kept


class PacedRows:
    """Rows that hand over what came of a plan, or that it failed, at its ask's tick and not before.

    The curator keeps an answer, or gives its debit up, when this returns: so nobody finds either in any book earlier.
    """

    def __init__(self, rows: Runner, schedule: Schedule) -> None:
        self._rows = rows
        self._schedule = schedule
        self._own = threading.local()

    @contextmanager
    def during(self, turn: ScheduledAsk) -> Iterator[None]:
        """Let this thread's run be handed over at a turn's tick."""
        self._own.turn = turn
        try:
            yield
        finally:
            self._own.turn = None

    def ready(self) -> None:
        """Refuse before anything is paid."""
        self._rows.ready()

    def check(self, plan: Plan, whose: str = "") -> Writer:
        """Refuse before anything is paid."""
        return self._rows.check(plan, whose)

    def run(self, plan: Plan, receipt: Receipt) -> tuple[Released, ...]:
        """Exact sums and their noise, at the tick."""
        turn: ScheduledAsk = getattr(self._own, "turn", None) or ScheduledAsk(self._schedule)
        try:
            return self._rows.run(plan, receipt)
        finally:
            turn.worked()
            turn.wait()
