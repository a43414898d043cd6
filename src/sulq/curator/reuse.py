"""Re-use of stored answers: an Oracle around the curator (SR12). Post-processing of what has left it already."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import cast

from sulq.answers import wire
from sulq.answers.answer import Answer, Answers
from sulq.answers.budget import BudgetLeft
from sulq.answers.plan import Plan
from sulq.answers.released import Released
from sulq.answers.reuse import nothing, rearranged, serves, strength
from sulq.answers.waits import Waits
from sulq.curator.curator import Curator, Flights, PlannedAsk
from sulq.language.facts import Facts
from sulq.language.privacy import Event, Loss
from sulq.language.question import Question


class ReusingOracle:
    """A curator that gives a stored answer where it is asked to and one is as accurate.

    Privacy: a stored answer has left the curator, to somebody of the same scope: to give it again debits nothing,
    reads no row and draws no noise (T10, T39).
    """

    def __init__(self, curator: Curator, flights: Flights | None = None, waits: Waits | None = None) -> None:
        self.curator = curator
        self._flights = Flights() if flights is None else flights  # shared by the views of all analysts
        self._waits = waits  # of who may stop waiting; None at a server, where nobody does

    def for_analyst(self, name: str, *, scope: str | None = None, dataset: str = "") -> ReusingOracle:
        """The same for one analyst (see `Curator.for_analyst`)."""
        return ReusingOracle(self.curator.for_analyst(name, scope=scope, dataset=dataset), self._flights, self._waits)

    @property
    def facts(self) -> Facts:
        """Everything public, as it stands now."""
        return self.curator.facts

    @property
    def known_facts(self) -> Facts:
        """The same as this process last knew it: nobody waits for the ledger's disk or database."""
        return self.curator.current_facts(fresh=False)

    def foresee(self, question: Question, *, spend: Loss | None = None) -> Plan:
        """Price, sensitivity, mechanism and accuracy; free, reads no row."""
        if self._waits is None:
            return self.curator.foresee(question, spend=spend)
        return self._waits.run(lambda: self.curator.foresee(question, spend=spend), always=False)

    def afford(self, events: Sequence[Event]) -> tuple[BudgetLeft | None, ...]:
        """What would be left after each of these losses; None: it would be refused. Free, reads no row."""
        return self.curator.afford(events)

    def ask(
        self, question: Question, *, spend: Loss | None = None, key: str | None = None, reuse: bool = False
    ) -> Answer | Answers:
        """Pay and answer; with `reuse` give a stored answer to the same question instead, if it is as accurate.

        The question is planned first either way, so that no refusal depends on what is stored (T39).
        Of such asks that are on their way at once, for one price, one is charged and all get its answer (T102).
        Who asked may stop waiting (docs/decisions/0080-ending-a-call.md); what was charged runs to its end.
        """
        if self._waits is None:
            return self._asked(question, spend=spend, key=key, reuse=reuse)
        return self._waits.run(lambda: self._asked(question, spend=spend, key=key, reuse=reuse))

    def _asked(self, question: Question, *, spend: Loss | None, key: str | None, reuse: bool) -> Answer | Answers:
        if not reuse:
            return self.curator.ask(question, spend=spend, key=key)
        asked = self.curator.plan(question, spend=spend)
        event = asked.plan.event
        return self._flights.one(
            (asked.name, self.curator.version, asked.plan.guarantee, event.epsilon, event.rho, event.key_delta),
            lambda: self._stored(asked, key),
            lambda flight: self.curator.buy(asked, flight, key=key),
        )

    def stored(self, question: Question, *, spend: Loss | None = None) -> Answer | Answers | None:
        """What `ask` would give again, free; None where it would have to be bought."""
        return self._stored(self.curator.plan(question, spend=spend), None)

    def _stored(self, asked: PlannedAsk, key: str | None) -> Answer | Answers | None:
        """The strongest stored answer that is as accurate as the plan would be, if any; the first of equals."""
        plan, lines = asked.plan, self.curator.stored(asked, key)
        text = wire.encode(plan.question) if lines else ""
        for line in sorted(lines, key=lambda line: (*(-part for part in strength(line.event)), line.seq)):
            released = cast("tuple[Released, ...]", wire.decode(line.answer or ""))
            if line.question != text:  # the same question, in other words
                released = rearranged(released, cast("Question", wire.decode(line.question)), plan.question)
            if serves(released, line.event, plan):
                note = f"reused: entry {line.seq} of the ledger, free; fresh=True draws new noise at full price"
                found = self.curator.again(plan, line, released)
                given = tuple(
                    replace(item, spent=nothing(plan.spend), event=line.event, notes=(*item.notes, note))
                    for item in (found if isinstance(found, Answers) else (found,))
                )
                return Answers(given) if isinstance(found, Answers) else given[0]
        return None
