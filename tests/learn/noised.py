"""An Oracle over made-up rows, noise from a seed: real plans, exact sums, no ledger. For accuracy, never privacy."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

import sulq.testing
from sulq.answers.answer import Answer, Answers
from sulq.answers.oracle import ColumnChoice
from sulq.answers.plan import Part, Plan
from sulq.api.database import Database
from sulq.language.facts import Facts
from sulq.language.privacy import Loss
from sulq.language.question import Question
from tests.stub import noise


class Noised:
    """The same database with noise of the planned laws from a seeded generator; remembers what was asked."""

    def __init__(self, database: Database, seed: int) -> None:
        self.exact = sulq.testing.exact(database)._oracle
        self.rng = np.random.default_rng(seed)
        self.asked: list[tuple[Question, Answer | Answers]] = []

    @property
    def facts(self) -> Facts:
        return self.exact.facts

    def foresee(self, question: Question, *, spend: Loss | None = None) -> Plan:
        return self.exact.foresee(question, spend=spend)

    def ask(
        self, question: Question, *, spend: Loss | None = None, key: str | None = None, reuse: bool = False
    ) -> Answer | Answers:
        plan = self.foresee(question, spend=spend)
        found = self.exact.ask(question, spend=spend)
        several = found.answers if isinstance(found, Answers) else (found,)
        noisy = tuple(self._add(answer, part) for answer, part in zip(several, plan.parts, strict=True))
        answer = Answers(noisy) if isinstance(found, Answers) else noisy[0]
        self.asked.append((question, answer))
        return answer

    def _add(self, answer: Answer, part: Part) -> Answer:
        laws = [law for law, block in zip(part.laws, part.tally.blocks, strict=True) for _ in range(block.width)]
        units = answer.released.units
        drawn = np.stack([noise(law, self.rng, (len(units),)) for law in laws], axis=1)
        return replace(answer, released=replace(answer.released, units=units + drawn, exact=False))


class Replayed:
    """Answers that were given before, in their order, and no data at all."""

    def __init__(self, before: Noised) -> None:
        self.facts = before.facts
        self.foresee = before.foresee
        self.answers = [answer for _, answer in before.asked]

    def ask(
        self, question: Question, *, spend: Loss | None = None, key: str | None = None, reuse: bool = False
    ) -> Answer | Answers:
        return self.answers.pop(0)


def columns(oracle: object, names: list[str]) -> ColumnChoice:
    """Handles on columns of such an Oracle."""
    return ColumnChoice(tuple(names), oracle)
