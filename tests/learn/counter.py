"""The least of learners, for tests of what all learners share."""

from __future__ import annotations

from fractions import Fraction

import sulq
from sulq.answers.oracle import ColumnChoice, SpendPlan
from sulq.forms.parameters import whole
from sulq.learn.base import Learner


class Counter(Learner):
    """Counts the rows, in three asks."""

    def __init__(self, *, rounds: int = 3) -> None:
        self.rounds = rounds

    def _fit(self, X: ColumnChoice, y: ColumnChoice | None, spending: SpendPlan) -> None:
        rounds = whole(self.rounds, "rounds", 1, 100)
        question = sulq.Sums((sulq.lit(1),))
        spending.plan(rounds, *[question] * rounds)
        self.counts_ = [spending.one(question, Fraction(1, rounds)).value for _ in range(rounds)]
