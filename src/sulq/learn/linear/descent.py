"""Rounds of noisy gradients of the logistic loss, each followed by a noisy search along its direction.

The gradient of class k is the sum of (p_k - 1[y = k]) x over the rows. Its second part is known from
the first question of all; so a round asks for the sum of (p_k - 1/2) x alone, which one row
moves half as far, and which has nothing to do with labels. Curves are public tables (SR16).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np

from sulq.answers.oracle import SpendPlan
from sulq.language.kinds import Floats
from sulq.language.question import Sums, Together
from sulq.language.rowfn import Bins, Lit, Lookup, RowFn, Scaled
from sulq.learn.linear.discriminant import ClassMoments, Scores, metric
from sulq.learn.linear.windows import Design
from sulq.learn.noisy_sums import divided

FAR: Final = 8.0  # log-odds beyond which a row counts as this far: e^-8 is .0003
CELLS: Final = 256  # of a table of the logistic curve: it is off by 2e-5 at most, on average over a cell
FEWER: Final = 128  # of the exponential, of which there is one for each pair of classes
LENGTHS: Final = (0.5, 4.0, 32.0)  # steps that are tried along a direction
SEARCH: Final = 0.15  # of a round's spend
INTERCEPT: Final = 0.07  # of a gradient's
GROWTH: Final = 1.3  # of the spend from round to round: the last decides
GROWN: Final = 1000.0  # from the first to the last at most


@dataclass(frozen=True, slots=True, eq=False)
class Descent:
    """What the rounds have in common.

    `ball`: the numbers within a ball, for sums; `vector`: the same numbers, for scores; None where there are none.
    `known`: a condition, that the row has a label. `penalty`: of squared weights, 1/C.
    """

    design: Design
    moments: ClassMoments
    ball: RowFn | None
    vector: RowFn | None
    reach: float  # of the ball, in the norm the noise is calibrated to
    label: RowFn
    known: RowFn
    penalty: float

    def rounds(self, spending: SpendPlan, scores: Scores, count: int, part: float) -> Scores:
        """So many rounds from given scores, for a part of the spend."""
        for share in parts(count):
            scores = self._round(spending, scores, share * part)
        return scores

    def _round(self, spending: SpendPlan, scores: Scores, part: float) -> Scores:
        direction = self._direction(spending, scores, part * (1 - SEARCH))
        length = self._length(spending, scores, direction, part * SEARCH)
        return Scores(scores.weights + length * direction.weights, scores.intercepts + length * direction.intercepts)

    def gradient(self, scores: Scores, *, pure: bool) -> Together:
        """The sums of (p_k - 1/2) x over all rows with a label: of numbers, of ones, and by each key."""
        curves = self.curves(scores)
        n = len(curves)
        numbers = () if self.ball is None else tuple(Scaled(self.ball, curve) for curve in curves)
        reaches = (*((self.reach,) if numbers else ()), *(1.0 for _ in self.design.keys))
        shares = divided(self.design.widths, reaches, pure=pure)
        head = shares[0] if numbers else Fraction(0)
        least = Fraction(INTERCEPT)
        first = Sums(
            (*numbers, *curves),
            self.known,
            shares=(*(head * (1 - least) / n for _ in numbers), *(least / n for _ in curves)),
        )
        keys = tuple(Sums(tuple(curves), self.known, by=(key.row,)) for key in self.design.keys)
        rest = [share * (1 - least) for share in (shares[1:] if numbers else shares)]
        return Together((first, *keys), (head * (1 - least) + least, *rest))

    def _direction(self, spending: SpendPlan, scores: Scores, part: float) -> Scores:
        """Against the gradient, as the curvature of the loss allows at least, less where noise is strong."""
        moments, d = self.moments, len(self.design.numbers)
        first, *keys = spending.several(self.gradient(scores, pure=spending.pure), part)
        classes = len(moments.counts)
        asked = [1] if classes == 2 else list(range(classes))
        released, noise = first.released.values()[0], first.released.deviations()
        sums = np.zeros((len(asked), self.design.size))
        deviation = np.zeros(self.design.size)
        sums[:, :d] = released[: d * len(asked)].reshape(len(asked), d)
        deviation[:d] = noise[:d] if d else 0.0
        at = d
        for key, answer in zip(self.design.keys, keys, strict=True):
            sums[:, at : at + key.size] = answer.released.values().T
            deviation[at : at + key.size] = answer.released.deviations()[0]
            at += key.size
        ones = released[d * len(asked) :]
        slope = moments.sums[asked] - moments.sums.sum(axis=0) / 2 - sums
        level = moments.counts[asked] - moments.counts.sum() / 2 - ones
        # Of two classes the weights are the gap between the rows of scores.
        own = scores.weights[asked] - (scores.weights[[0]] if classes == 2 else 0.0)
        slope = slope - self.penalty * own
        means = moments.means
        curvature = moments.total * metric(moments, self.design) / 2
        ridge = np.diag(np.sqrt(deviation**2 + moments.noise**2))
        ridge += self.penalty * np.eye(self.design.size)
        weights = np.linalg.solve(curvature + ridge, (slope - level[:, None] * means).T).T
        intercepts = level / (moments.total / 2) - weights @ means
        if classes == 2:
            weights, intercepts = np.concatenate([-weights, weights]), np.concatenate([-intercepts, intercepts])
        return Scores(weights, intercepts)

    def _length(self, spending: SpendPlan, scores: Scores, direction: Scores, part: float) -> float:
        """How far to go: where the loss stops falling, between the lengths that are tried."""
        slopes = spending.one(self.search(scores, direction), part).released.values()[0]
        slopes = slopes + [self._penalised(scores, direction, length) for length in LENGTHS]
        lengths = np.log(LENGTHS)
        rising = np.flatnonzero(slopes > 0)
        if not len(rising):
            return LENGTHS[-1]
        first = int(rising[0])
        if first == 0:
            return LENGTHS[0] / 2
        before, after = slopes[first - 1], slopes[first]
        return float(np.exp(lengths[first - 1] + (lengths[first] - lengths[first - 1]) * before / (before - after)))

    def _penalised(self, scores: Scores, direction: Scores, length: float) -> float:
        """How fast the penalty rises there; of two classes, as the loss in `search`, half of it."""
        own, way = scores.weights, direction.weights
        if len(own) == 2:
            own, way = own[[1]] - own[[0]], way[[1]] - way[[0]]
        rise = self.penalty * float(((own + length * way) * way).sum())
        return rise / 2 if len(scores.weights) == 2 else rise

    def search(self, scores: Scores, direction: Scores) -> Sums:
        """How fast the loss falls or rises along a direction, at each length; of two classes, half of that."""
        spread = np.einsum("kd,de,ke->k", direction.weights, metric(self.moments, self.design), direction.weights)
        reach = 4 * float(np.sqrt(max(float(spread.max()), 1e-12)))
        classes = len(self.moments.counts)
        ways = [
            self.design.score(self.vector, direction.weights[k], float(direction.intercepts[k])).clip(-reach, reach)
            for k in range(classes)
        ]
        values: list[RowFn] = []
        for length in LENGTHS:
            there = Scores(
                scores.weights + length * direction.weights, scores.intercepts + length * direction.intercepts
            )
            terms = [
                (curve - Lookup((self.label,), tuple((0.5 if k == j else -0.5,) for j in range(classes)))) * ways[k]
                for k, curve in zip([1] if classes == 2 else range(classes), self.curves(there), strict=True)
            ]
            slope = terms[0]
            for term in terms[1:]:
                slope = slope + term
            values.append(slope.clip(-reach, reach))
        return Sums(tuple(values), self.known)

    def curves(self, scores: Scores) -> list[RowFn]:
        """How likely each class is, less one half; of two classes the second alone."""
        classes = len(scores.intercepts)
        if classes == 2:
            odds = self.design.score(
                self.vector, scores.weights[1] - scores.weights[0], float(scores.intercepts[1] - scores.intercepts[0])
            )
            return [_table(odds, _logistic, CELLS)]
        each = [self.design.score(self.vector, scores.weights[k], float(scores.intercepts[k])) for k in range(classes)]
        found: list[RowFn] = []
        for k in range(classes):
            others: RowFn = Lit(1)
            for j in range(classes):
                if j != k:
                    others = others + _table(each[j] - each[k], np.exp, FEWER)
            found.append((1 / others).clip(0, 1) - 0.5)
        return found


def parts(count: int) -> list[float]:
    """The rounds' parts of what all of them may cost."""
    growth = min(GROWTH, GROWN ** (1 / count)) ** np.arange(count)
    return [float(part) for part in growth / growth.sum()]


def _logistic(odds: Floats) -> Floats:
    """The logistic curve, less one half."""
    found: Floats = 1 / (1 + np.exp(-odds)) - 0.5
    return found


def _table(item: RowFn, curve: Callable[[Floats], Floats], size: int) -> Lookup:
    """A curve as a public table over [-FAR, FAR], of its values in the middles of as many cells."""
    edges = np.linspace(-FAR, FAR, size + 1)
    values = curve((edges[1:] + edges[:-1]) / 2)
    return Lookup((Bins(item.clip(-FAR, FAR), tuple(edges.tolist())),), tuple((float(value),) for value in values))
