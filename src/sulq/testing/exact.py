"""The same database with the noise left out, for made-up data alone (SR9)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final, Protocol, TypeVar, cast

import numpy as np

from sulq.answers import wire
from sulq.answers.answer import Answer, Answers, Receipt
from sulq.answers.budget import BudgetLeft
from sulq.answers.oracle import Oracle
from sulq.answers.plan import Plan
from sulq.answers.relation_oracle import RowsOracle, base_of
from sulq.compile.plan import draw
from sulq.curator.curator import Curator, Flight, PlannedAsk
from sulq.curator.reuse import ReusingOracle
from sulq.curator.run import Release, Rows
from sulq.errors import AccessDenied
from sulq.kernel.laws import AboveLaw, ExponentialLaw, FlipLaw, Law, MetricLaw
from sulq.kernel.mechanisms import Columns, Shown
from sulq.kernel.private import Private
from sulq.language.facts import Facts
from sulq.language.kinds import Integers
from sulq.language.privacy import Epsilon, EpsilonDelta, Event, Loss, SubLinear
from sulq.language.question import Choose, OpenSums, Question, Single, Together
from sulq.language.score import Rank
from sulq.language.tally import Groups

DELTA: Final = EpsilonDelta(1, 1e-9)


def without_noise(law: Law, exact: Private[Integers]) -> Integers:
    """What a mechanism would be given, as it is; of scores the first best, of a threshold the first sum past it."""
    given = exact.open()
    if isinstance(law, AboveLaw):
        first: Integers = np.where(given >= 0, np.arange(law.sums), law.sums).min(axis=1, keepdims=True)
        return first
    return given.argmax(axis=1)[:, None] if isinstance(law, (FlipLaw, ExponentialLaw, MetricLaw)) else given


def all_groups(_noise: tuple[Columns, ...], exact: Private[Groups]) -> Shown:
    """Every group there is, with its exact numbers: no noise, no threshold."""
    groups = exact.open()
    return Shown(np.column_stack([groups.persons, groups.sums]), groups.keys)


class ExactOracle:
    """An Oracle that answers exactly and charges nothing."""

    def __init__(self, curator: Curator) -> None:
        self.curator = curator
        rows = curator._rows  # noqa: SLF001 - no door leads here; that is the point
        if not isinstance(rows, Rows):
            raise AccessDenied("private-value", "These rows are in another process, which gives nothing exact.")
        engine, own = rows._engine, rows._own  # noqa: SLF001
        ledger = curator._ledger  # noqa: SLF001
        free = Rows(engine, lambda _receipt, _plan, _event: True, own, budget=ledger.budget)
        self._rows = free.replace_noise(ledger, without_noise, all_groups)

    @property
    def facts(self) -> Facts:
        """The database's public facts."""
        return self.curator.facts

    def foresee(self, question: Question, *, spend: Loss | None = None) -> Plan:
        """What the noisy database would plan; without a spend, for epsilon 1."""
        facts = self.facts
        if spend is not None or isinstance(facts.budget, SubLinear):
            return draw(question, facts, spend)
        asked = question.questions if isinstance(question, Together) else (question,)
        if any(isinstance(item, OpenSums) for item in asked):  # a delta, whether or not the budget has one to spend
            return draw(question, replace(facts, budget=DELTA), DELTA)
        return draw(question, facts, Epsilon(1))

    def afford(self, events: Sequence[Event]) -> tuple[BudgetLeft | None, ...]:
        """Nothing is charged: the same is left after each."""
        facts = self.facts
        return tuple(BudgetLeft(facts.remaining, facts.rho) for _ in events)

    def ask(
        self, question: Question, *, spend: Loss | None = None, key: str | None = None, reuse: bool = False
    ) -> Answer | Answers:
        """The exact answer, in the shape the noisy one would have, and marked as what it is."""
        plan = self.foresee(_own_ranks(question), spend=spend)
        self._rows.ready()
        receipt = Receipt(0, "exact", "", "")
        found = self.curator.answer(plan, receipt, self._rows.run(plan, receipt))
        return Answers(tuple(map(_marked, found))) if isinstance(found, Answers) else _marked(found)


def _own_ranks(question: Question) -> Question:
    """The question with minima and maxima asked at their own rank: they are shifted inside for the noise alone."""
    if isinstance(question, Together):
        several = tuple(cast("Single", _own_ranks(item)) for item in question.questions)
        return Together(several, question.shares)
    if not isinstance(question, Choose) or not isinstance(question.score, Rank):
        return question
    inside = {0: 1, question.score.denominator: -1}.get(question.score.numerator)
    return question if inside is None else replace(question, score=replace(question.score, shift=inside))


def _marked(answer: Answer) -> Answer:
    released = replace(answer.released, exact=True)
    return replace(
        answer, released=released, notes=(*answer.notes, "exact: no noise was added and nothing was charged")
    )


D_co = TypeVar("D_co", covariant=True)


class HasOracle(Protocol[D_co]):
    """A database or a client, as seen from below: it can be put before another Oracle."""

    _oracle: Oracle

    def asking(self, oracle: Oracle) -> D_co:
        """The same before another Oracle."""
        ...


def exact(database: HasOracle[D_co]) -> D_co:
    """The same database without noise; refused unless the database was opened with synthetic=True."""
    oracle = database._oracle  # noqa: SLF001 - likewise
    base = base_of(oracle)
    if not isinstance(base, ReusingOracle):
        raise AccessDenied("not-synthetic", "Only an open database of synthetic data can be asked without noise.")
    found = ExactOracle(base.curator)
    return database.asking(oracle.upon(found) if isinstance(oracle, RowsOracle) else found)


def silent(release: Release) -> Release:
    """Releases a single cell as it is: a count without noise."""
    return lambda law, exact: exact.open() if exact.open().size == 1 else release(law, exact)


class Late(Curator):
    """Computes first and debits afterwards, so that a failure is free."""

    def buy(
        self, ask: PlannedAsk, flight: Flight, *, key: str | None = None, reuse: bool = False, at_once: bool = False
    ) -> Answer | Answers:
        """Answer, then pay."""
        plan = ask.plan
        released = self._rows.run(plan, Receipt(0, "", "", ""))
        question, digest = wire.encode(plan.question), wire.digest(plan)
        receipt = self._ledger.debit(plan.event, question=question, plan_digest=digest, key=key)
        return self.answer(plan, receipt, released)
