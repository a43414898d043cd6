"""An Oracle for tests of the free half: exact sums over a handful of rows, real plans, noise from a seed or none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np

from sulq.answers.answer import Answer, Answers, Receipt
from sulq.answers.plan import Plan
from sulq.answers.readings.estimators import Plain
from sulq.answers.released import Noise, Released
from sulq.compile.plan import draw
from sulq.language.domain import Schema
from sulq.language.facts import Facts
from sulq.language.law import BinomialLaw, LaplaceLaw, Law
from sulq.language.privacy import Budget, Epsilon, EpsilonDelta, Loss, Queries, Rho, SubLinear, Unit
from sulq.language.question import Question, Together
from tests.frames import Frame, Row, sums

NOBODY = Epsilon.total(Fraction(0))


def facts(schema: Schema, unit: Unit | None = None, budget: Budget | None = None, size: int | None = None) -> Facts:
    """Public facts of a table with nothing spent."""
    budget = budget or Epsilon(900)
    left = Queries(budget.queries) if isinstance(budget, SubLinear) else budget
    spent = {
        Epsilon: NOBODY,
        Rho: Rho.total(Fraction(0)),
        EpsilonDelta: EpsilonDelta.total(Fraction(0), Fraction(0)),
        Queries: Queries(0),
    }[type(left)]
    return Facts(schema, unit or Unit(), budget, spent, left, size)


def noise(law: Law, rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Integer noise of a law from a seeded generator: for tests of accuracy, never of privacy."""
    if isinstance(law, BinomialLaw):
        return rng.binomial(law.coins, 0.5, shape) - law.coins // 2
    scale = float(law.scale)
    if isinstance(law, LaplaceLaw):  # the difference of two geometric variables
        p = -np.expm1(-1.0 / scale)
        return rng.geometric(p, shape) - rng.geometric(p, shape)
    if scale > 200:  # the rounded normal is within 1e-5 of it
        return np.rint(rng.normal(0.0, scale, shape)).astype(np.int64)
    z = np.arange(-int(12 * scale) - 2, int(12 * scale) + 3)
    mass = np.exp(-0.5 * (z / scale) ** 2)
    return rng.choice(z, shape, p=mass / mass.sum())


def exact(law: Law, rng: np.random.Generator | None, shape: tuple[int, ...]) -> np.ndarray:
    return np.zeros(shape, dtype=np.int64) if rng is None else noise(law, rng, shape)


class Stub:
    """The whole path from question to answer but for the ledger, over rows given as dictionaries."""

    def __init__(
        self,
        schema: Schema,
        rows: Sequence[Row],
        *,
        unit: Unit | None = None,
        budget: Budget | None = None,
        size: int | None = None,
        rng: np.random.Generator | None = None,
    ) -> None:
        self.frame = Frame(schema, rows)
        self.asked: list[tuple[Question, Loss | None]] = []
        self.rng = rng
        self._facts = facts(schema, unit, budget, size)

    @property
    def facts(self) -> Facts:
        return self._facts

    def foresee(self, question: Question, *, spend: Loss | None = None) -> Plan:
        return draw(question, self.facts, spend)

    def ask(
        self, question: Question, *, spend: Loss | None = None, key: str | None = None, reuse: bool = False
    ) -> Answer | Answers:
        plan = self.foresee(question, spend=spend)
        self.asked.append((question, spend))
        receipt = Receipt(len(self.asked), "", "", "")
        found = []
        for part in plan.parts:
            total = sums(part.tally, self.frame)
            laws = [law for law, block in zip(part.laws, part.tally.blocks, strict=True) for _ in range(block.width)]
            bits = [b for b, block in zip(part.refine, part.tally.blocks, strict=True) for _ in range(block.width)]
            columns = [
                (total[:, i] << bits[i]) + exact(law, self.rng, (part.tally.cells,)) for i, law in enumerate(laws)
            ]
            noises = tuple(
                Noise(law, step, block.width)
                for law, step, block in zip(part.laws, part.steps, part.tally.blocks, strict=True)
            )
            keys = tuple((f"key{i}", key.labels) for i, key in enumerate(part.tally.by))
            names = tuple(f"v{i}" for i in range(len(laws)))
            found.append(
                Answer(
                    Released(np.stack(columns, axis=1), noises), Plain(), keys, names, plan.spend,
                    self.facts.remaining, plan.unit, plan.guarantee, plan.event, receipt,
                )
            )  # fmt: skip
        return Answers(tuple(found)) if isinstance(question, Together) else found[0]

    def without(self, i: int) -> Stub:
        """The same database without one row."""
        found = Stub(self.frame.schema, [row for j, row in enumerate(self.frame.rows) if j != i])
        found._facts = replace(self._facts)
        return found
