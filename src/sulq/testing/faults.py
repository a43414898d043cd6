"""Deliberate faults of curators and mechanisms: an audit that does not notice them would notice nothing."""

from __future__ import annotations

from sulq.answers import wire
from sulq.answers.answer import Answer, Answers, Receipt
from sulq.curator.curator import Curator, Flight, PlannedAsk
from sulq.curator.run import Release


def silent(release: Release) -> Release:
    """Releases a single cell as it is: a count without noise."""
    return lambda law, exact: exact.open() if exact.open().size == 1 else release(law, exact)


class Late(Curator):
    """Computes first and debits afterwards, so that a failure is free."""

    def buy(self, ask: PlannedAsk, flight: Flight, *, key: str | None = None, reuse: bool = False) -> Answer | Answers:
        """Answer, then pay."""
        plan = ask.plan
        released = self._rows.run(plan, Receipt(0, "", "", ""))
        question, digest = wire.encode(plan.question), wire.digest(plan)
        receipt = self._ledger.debit(plan.event, question=question, plan_digest=digest, key=key)
        return self.answer(plan, receipt, released)
