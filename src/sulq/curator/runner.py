"""What the curator needs of the part that sees rows, in this process or in another."""

from __future__ import annotations

from typing import Protocol

from sulq.answers.answer import Receipt
from sulq.answers.plan import Plan
from sulq.answers.released import Released
from sulq.answers.wire import Writer


class Runner(Protocol):
    """Runs plans that were paid for; certifies them before."""

    def ready(self) -> None:
        """Make the kept rows available before anything is paid; releases nothing."""
        ...

    def check(self, plan: Plan, whose: str = "") -> Writer:
        """Refuse a plan that the kernel does not certify, before anything is paid; where rows are elsewhere, there.

        `whose`: the asker, whose certificates are remembered apart (T39). Returns the writer that wrote the plan's
        canonical text: an ask serialises its plan once.
        """
        ...

    def run(self, plan: Plan, receipt: Receipt) -> tuple[Released, ...]:
        """Exact sums and their noise, for a plan that was paid for and once."""
        ...
