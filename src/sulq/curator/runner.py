"""What the curator needs of the part that sees rows, in this process or in another."""

from __future__ import annotations

from typing import Protocol

from sulq.answers.plan import Plan
from sulq.answers.receipt import Receipt
from sulq.answers.released import Released


class Runner(Protocol):
    """Runs plans that were paid for; certifies them before."""

    def ready(self) -> None:
        """Make the kept rows available before anything is paid; releases nothing."""
        ...

    def check(self, plan: Plan, text: str | None = None, whose: str = "") -> None:
        """Refuse a plan that the kernel does not certify, before anything is paid; where rows are elsewhere, there.

        `text`: its canonical JSON, if at hand. `whose`: the asker, whose certificates are remembered apart (T39).
        """
        ...

    def run(self, plan: Plan, receipt: Receipt, text: str | None = None) -> tuple[Released, ...]:
        """Exact sums and their noise, for a plan that was paid for and once; `text`: its canonical JSON, if at hand."""
        ...
