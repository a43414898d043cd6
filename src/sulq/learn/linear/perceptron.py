"""The perceptron from sums of misclassified rows [S0.15, S0.16, S0.27].

A row counts as misclassified where its score is 0 too, and is added with its sign (E13).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np

from sulq.answers.oracle import ColumnChoice, SpendPlan, queries
from sulq.errors import BudgetExceeded, QuestionError
from sulq.forms.parameters import checked, number, whole
from sulq.language.domain import Bool, Category, Column, Text
from sulq.language.kinds import Floats
from sulq.language.privacy import Queries
from sulq.language.question import Sums
from sulq.language.rowfn import Col, Dot, Lit, Lookup, RowFn, Scaled, Vector, WithinBall
from sulq.learn.base import ScoreClassifier
from sulq.learn.evaluation.prediction import ClassPrediction
from sulq.learn.features import Feature, Features, Labels
from sulq.learn.noisy_sums import divided

ROUNDS: Final = 12
MAX_ROUNDS: Final = 10_000
BITS: Final = 14
SHORT: Final = 0.5  # of the cube's corner, that rows are shortened to; it moves none to the other side of a plane


@dataclass(eq=False, repr=False, kw_only=True)
class Perceptron(ScoreClassifier):
    """A linear separator, found by adding up the rows that are still on the wrong side.

    Each round asks one question: how many rows are misclassified, and what their signed sum is; the mean of those rows
    is added to the weights. The first round takes all rows to be misclassified. It ends when the noisy
    count does not stand out from its noise, or with the last round that the spend was divided for. Of all weights that
    were counted those of the lowest count are kept: where rows can be separated these are the last, and where not
    it is no matter which round ends it.

    Privacy: the spend's; one row moves a round's answers by 1 and by the ball it is shortened to (X1). A label's sign
    makes a coordinate range over [-1, 1], twice what Theorem 1 of the paper assumes; the plan's noise allows for it.
    Accuracy: if some unit vector separates all rows by `margin` and margin >> sqrt(d R)/s in each round, R the variance
    of the noise and s the count, at most 32 max|x|^2/margin^2 rounds are made w.h.p. (as printed, the statement and
    its proof each miss a power).
    Source: BDMN05, Theorem 2 and its Appendix A.

    Spend: the same part for each round; rounds that are not needed are not paid. Under a SubLinear budget a round
    costs 1 + d queries and rows are not shortened, as in the paper.

    max_iter: The number of rounds at most; left out 12, under a SubLinear budget as many as there are queries for.
    margin: A margin of the scaled rows that is known to exist, which bounds the rounds by the theorem.
    fit_intercept: Whether the plane may lie anywhere; else it goes through the origin of the columns' own units.
    stop: How many deviations of its noise the count must have for another round.

    Learned: `classes_`; `coef_` and `intercept_`, in the columns' own units (a label's indicator is 1 or -1);
    `n_iter_`, the rounds made; `error_count_`, the noisy number of rows that the weights misclassify.
    """

    binary = True

    max_iter: int | None = None
    margin: float | None = None
    fit_intercept: bool = True
    stop: float = 5.0

    def _fit(self, X: ColumnChoice, y: ColumnChoice, spending: SpendPlan) -> None:
        if self.max_iter is not None:
            whole(self.max_iter, "max_iter", 1, MAX_ROUNDS)
        checked(self.margin is None or number(self.margin) > 0, "margin is a positive number, or None.")
        checked(isinstance(self.fit_intercept, bool), "fit_intercept is True or False.")
        checked(number(self.stop) > 0, "stop is a positive number.")
        labels, features = Labels(y), Features.of(X)
        if labels.size != 2:
            raise QuestionError("wrong-kind", f"{labels.name} has {labels.size} classes; a perceptron tells two apart.")
        self.classes_ = labels.classes
        scales = [_scale(item, centred=self.fit_intercept) for item in features.items]
        rows = [_row(item, *scale) for item, scale in zip(features.items, scales, strict=True)]
        if self.fit_intercept:
            rows.append(Lit(1))
        weights = self._rounds(tuple(rows), labels, spending)
        self._features = features
        middles, halves = (np.array(part) for part in zip(*scales, strict=True))
        coef = weights[: len(scales)] / halves
        self.coef_ = coef[None]
        self.intercept_ = np.array([float(weights[len(scales) :].sum() - coef @ middles)])

    def _rounds(self, rows: tuple[RowFn, ...], labels: Labels, spending: SpendPlan) -> Floats:
        """The algorithm: count, sum, add."""
        vector: RowFn = Vector(rows, BITS)
        reach = math.sqrt(len(rows))
        if not spending.sublinear:
            reach *= SHORT
            vector = WithinBall(vector, reach)
        sign = Lookup((labels.row,), ((-1,), (1,)))
        shares = divided(
            (1, len(rows)), (1.0, reach * (math.sqrt(len(rows)) if spending.pure else 1.0)), pure=spending.pure
        )

        def question(weights: Floats) -> Sums:
            wrong = Dot(vector, tuple(weights.tolist()), 20) * sign <= 0
            return Sums((Lit(1), Scaled(vector, sign)), wrong, shares=shares)

        weights = np.zeros(len(rows))
        most = self._most(question(weights), reach**2, spending)
        spending.foresee(question(weights), Fraction(1, most))  # refuses what cannot be asked
        spending.plan(most)
        self.n_iter_, self.error_count_, best = 0, math.inf, weights
        for _ in range(most):
            released = spending.one(question(weights), Fraction(1, most)).released
            count = float(released.values()[0, 0])
            if count < self.error_count_:
                self.error_count_, best = count, weights
            if count <= self.stop * float(released.deviations()[0]):
                break
            self.n_iter_ += 1
            weights = weights + released.values()[0, 1:] / count
        return best

    def _most(self, question: Sums, longest: float, spending: SpendPlan) -> int:
        """How many rounds there may be: as asked for, by Theorem 2, and by the queries that are left."""
        bounds = [ROUNDS if self.max_iter is None and not spending.sublinear else self.max_iter or MAX_ROUNDS]
        if self.margin is not None:
            bounds.append(most_rounds(longest, self.margin))
        if spending.sublinear:
            price = queries(spending.oracle, question)
            if spending.queries < price:
                left = Queries(spending.queries)
                raise BudgetExceeded("budget-exceeded", f"A round asks {price} queries; {left} is left.")
            bounds.append(spending.queries // price)
        return max(1, min(bounds))

    def _scores(self, X: object) -> Floats:
        own = self._features.transform(X)
        numbers = [i for i, item in enumerate(self._features.items) if _is_number(item)]
        own[:, numbers] = self._features.restore(own)[:, numbers]
        score = own @ self.coef_[0] + self.intercept_[0]
        return np.stack([-score / 2, score / 2], axis=1)

    def _prediction(self) -> ClassPrediction:
        rows, weights, start = [], [], float(self.intercept_[0])
        for item, weight in zip(self._features.items, self.coef_[0].tolist(), strict=True):
            zero, half = (float(item.middle), float(item.half)) if _is_number(item) else (0.0, 1.0)
            rows.append(_row(item, zero, half))  # a missing number lies in the middle, as in prediction
            weights.append(weight * half)
            start += weight * zero
        score = Dot(Vector(tuple(rows), BITS), tuple(weights), 20) + start
        return ClassPrediction.of_odds(score, max(map(abs, [*weights, start])) / 8 or 1.0, calibrated=False)

    def _learned_columns(self) -> tuple[tuple[str, Column], ...]:
        return self._features.columns


def most_rounds(longest: float, margin: float) -> int:
    """Theorem 2's bound on the rounds: 32 max|x|^2/margin^2, from public bounds (corrected, E14)."""
    return math.ceil(32 * longest / margin**2)


def _is_number(item: Feature) -> bool:
    return item.label is None and not isinstance(item.domain, (Bool, Category, Text))


def _scale(item: Feature, *, centred: bool) -> tuple[float, float]:
    """Where a feature's zero lies and how large it is at most, in its own units."""
    if not _is_number(item):
        return 0.0, 1.0
    middle, half = float(item.middle), float(item.half)
    return (middle, half) if centred else (0.0, abs(middle) + half)


def _row(item: Feature, zero: float, largest: float) -> RowFn:
    """A feature within [-1, 1]; a missing number is in the middle."""
    if not _is_number(item):
        return item.row.fill(-1)
    return ((Col(item.column) - zero) / largest).clip(-1, 1).fill(0)
