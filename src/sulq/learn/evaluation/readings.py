"""How noisy sums are read as a model's score: parts of counts, R^2, the area under a ROC curve, with their intervals.

Post-processing of released numbers and public noise. Each interval but the area's holds the exact score of the rows
except with probability beta, whatever the rows are; that of the area is a normal one (docs/guide/learn/evaluate.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from statistics import NormalDist
from typing import Final

import numpy as np

from sulq.answers.readings.noise_sums import added, least_total
from sulq.answers.readings.regions import (
    APART,
    NUISANCE,
    RATIO_ROUNDS,
    bernstein_mean,
    combined_reach,
    contracted,
    over,
    positive,
    ratios,
    squared,
)
from sulq.answers.released import Noise, Released
from sulq.language.kinds import Floats, Truths

AREA_STEPS: Final = 2001  # areas that are looked at
FAR: Final = 1e12  # a share of unexplained variance past which nothing is claimed


@dataclass(frozen=True, slots=True)
class ExplainedShare:
    """R^2 from the sum Q of squared residuals and the Bernstein sums p, q, r of degree 2 of y: 1 - Q/(p r - q^2/4) n.

    Accuracy: with m the mean of y, within its bounds, and s = 1 - R^2, the truth has
    Q = s ((1-m)^2 p - m(1-m) q + m^2 r), and the bracket is least at the mean: noise alone puts the equation out.
    """

    width: float  # of y's bounds

    def value(self, released: Released) -> Floats:
        """The formula on the released sums, at most 1; 0 where no variance of y is seen."""
        rest, terms = released.values()[:, 0], released.values()[:, 1:]
        p, q, r = terms.T
        spread = (p * r - q * q / 4) / positive(terms.sum(axis=1))
        known = (spread > 0) & (terms.sum(axis=1) > 0)
        return np.where(known, np.minimum(1 - rest / positive(spread), 1.0), 0.0)[:, None]

    def least(self, released: Released, beta: float) -> Floats:
        """The lower end of the number of rows, in units of the squared range."""
        terms = Released(released.units[:, 1:], released.noise[1:], exact=released.exact)
        return least_total(terms, slice(None), beta, self.width**2)

    def bounds(self) -> tuple[Floats, Floats]:
        """Anything up to 1."""
        return np.array([-np.inf]), np.array([1.0])

    def interval(self, released: Released, beta: float) -> tuple[Floats, Floats]:
        """Every R^2 that the sums allow, whatever the mean of y is that they allow."""
        unit = self.width**2 or 1.0
        values = released.values() / unit
        rest, terms = values[:, 0], values[:, 1:]
        first, second = (_in_units(noise, unit) for noise in released.noise)
        p, q, r = terms.T
        n = terms.sum(axis=1)
        m = bernstein_mean(terms, second, NUISANCE * beta)
        off = squared(*(end - (p + q / 2) / positive(n) for end in m))
        centred = (p * r - q * q / 4) / positive(n)
        low, high = centred + n * off[0], centred + n * off[1]
        middle = np.clip(0.5, *m)
        weights = [(1 - m[0]) ** 2, middle * (1 - middle), m[1] ** 2]
        noises, beta = [first, second, second, second], (1 - NUISANCE) * beta

        def narrowed(s: tuple[Floats, Floats]) -> tuple[Floats, Floats]:
            reach = combined_reach(noises, [np.ones_like(rest), *(s[1] * weight for weight in weights)], beta)
            return over(rest - reach, rest + reach, low, high)

        far = self._far((rest, low), noises, weights, beta)
        known = (n > 0) & (far < FAR)
        far = np.where(known, far, 0.0)
        at = np.clip(rest / positive(centred), 0.0, far)
        least, _ = contracted((np.zeros_like(rest), at), lambda s: narrowed((s[0], at)), RATIO_ROUNDS)
        _, most = contracted((at, far), narrowed, RATIO_ROUNDS)
        value = self.value(released)
        lowest, highest = np.where(known, 1 - most, -np.inf), np.where(known, 1 - least, 1.0)
        return np.minimum(lowest[:, None], value), np.maximum(highest[:, None], value)

    def _far(self, sums: tuple[Floats, Floats], noises: list[Noise], weights: list[Floats], beta: float) -> Floats:
        """A share that noise does not pass: a reach of several weights is at most the sum of their own."""
        (rest, low), more = sums, APART ** len(noises) + 1e-3
        above = np.maximum(rest, 0.0) + more * combined_reach(noises[:1], [np.ones_like(rest)], beta)
        below = low - more * combined_reach(noises[1:], weights, beta)
        return np.where(below > 0, above / positive(below), np.inf)


def _in_units(noise: Noise, unit: float) -> Noise:
    return Noise(noise.law, noise.step / Fraction(unit), noise.width)


@dataclass(frozen=True, slots=True)
class Part:
    """What part the first of two sums of numbers from 0 on is of both."""

    def value(self, released: Released) -> Floats:
        """The quotient within [0, 1]; a half where the noisy whole is not positive."""
        one, whole = released.values()[:, 0], released.values().sum(axis=1)
        return np.where(whole > 0, np.clip(one / positive(whole), 0.0, 1.0), 0.5)[:, None]

    def interval(self, released: Released, beta: float) -> tuple[Floats, Floats]:
        """Every part that the sums allow."""
        one, whole = released.values()[:, 0], released.values().sum(axis=1)
        noises = [noise for noise in released.noise for _ in range(noise.width)]
        return _within(*ratios(one, whole, _OF_BOTH, noises, beta, bounds=(0.0, 1.0)), self.value(released))


_OF_BOTH: Final = np.array([[1.0, 0.0], [1.0, 1.0]])


def _within(low: Floats, high: Floats, nothing: Truths, value: Floats) -> tuple[Floats, Floats]:
    """The ends within [0, 1], and beside the value; all of it where the whole may be nothing."""
    low = np.where(nothing, 0.0, np.clip(low, 0.0, 1.0))
    high = np.where(nothing, 1.0, np.clip(high, 0.0, 1.0))
    return np.minimum(low[:, None], value), np.maximum(high[:, None], value)


@dataclass(frozen=True, slots=True)
class PartOfCounts:
    """What part some of an answer's counts are of others: accuracy, precision and recall of a confusion matrix.

    Counts are those of one cell after another; `above` are among `below`.
    """

    above: tuple[int, ...]
    below: tuple[int, ...]

    def value(self, released: Released) -> Floats:
        """The quotient within [0, 1]; a half where the noisy whole is not positive."""
        counts = released.values().ravel()
        one, whole = counts[list(self.above)].sum(), counts[list(self.below)].sum()
        return np.array([[np.clip(one / whole, 0.0, 1.0) if whole > 0 else 0.5]])

    def least(self, released: Released, beta: float) -> Floats:
        """The lower end of the whole."""
        if not self.below:  # of a class that is never predicted
            return np.zeros(1)
        counts, noise = released.values().ravel()[list(self.below)], released.noise[0]
        away = 0.0 if released.exact else float(added(noise.law, len(self.below)).accuracy(beta) * noise.step)
        return np.array([counts.sum() - max(away, 0.5)])

    def bounds(self) -> tuple[Floats, Floats]:
        """From 0 to 1."""
        return np.zeros(1), np.ones(1)

    def interval(self, released: Released, beta: float) -> tuple[Floats, Floats]:
        """Every part that the counts allow."""
        if not self.below:
            return np.zeros((1, 1)), np.ones((1, 1))
        counts, noise = released.values().ravel(), released.noise[0]
        rest = [cell for cell in self.below if cell not in self.above]
        sums = np.array([[counts[list(self.above)].sum()], [counts[rest].sum()]])
        groups = [(len(self.above), 0), (len(rest), 1)]
        noises = [Noise(added(noise.law, many), noise.step, 1) for many, _ in groups if many]  # type: ignore[arg-type]
        weights = np.array([[float(i == 0) for many, i in groups if many], [1.0 for many, _ in groups if many]])
        found = ratios(sums[0], sums.sum(axis=0), weights, noises, beta, bounds=(0.0, 1.0))
        return _within(*found, self.value(released))


@dataclass(frozen=True, slots=True)
class AreaUnderCurve:
    """The area under the ROC curve of a graded score, equal grades counted half; counts by class, then by grade.

    With P and N the counts of either class by grade, U the pairs in which the positive row has the higher grade (or
    half of those with equal ones): U = area |P| |N|. The expectation of the released U is the exact one, as all cells
    have noise of their own.

    Accuracy: the interval holds every area at which the released equation is off by no more than a normal of the
    variance of its noise; the products of two noises are in that variance.
    """

    grades: int

    def _parts(self, released: Released) -> tuple[Floats, Floats]:
        counts = released.values().reshape(2, self.grades)
        return counts[1], counts[0]

    def value(self, released: Released) -> Floats:
        """The quotient within [0, 1]; a half where either class has no rows to be seen."""
        one, other = self._parts(released)
        pairs = one.sum() * other.sum()
        known = one.sum() > 0 and other.sum() > 0
        return np.array([[np.clip(one @ _wins(self.grades) @ other / pairs, 0.0, 1.0) if known else 0.5]])

    def least(self, released: Released, beta: float) -> Floats:
        """The lower end of the smaller class's size."""
        sizes = [part.sum() for part in self._parts(released)]
        noise = released.noise[0]
        away = 0.0 if released.exact else float(added(noise.law, self.grades).accuracy(beta / 2) * noise.step)
        return np.array([min(sizes) - max(away, 0.5)])

    def bounds(self) -> tuple[Floats, Floats]:
        """From 0 to 1."""
        return np.zeros(1), np.ones(1)

    def interval(self, released: Released, beta: float) -> tuple[Floats, Floats]:
        """Every area that the counts allow; all of them where a class may have no rows."""
        value = self.value(released)
        if self.least(released, beta)[0] <= 0:
            return np.zeros((1, 1)), np.ones((1, 1))
        one, other = self._parts(released)
        variance = 0.0 if released.exact else released.noise[0].deviation ** 2
        areas = np.linspace(0.0, 1.0, AREA_STEPS)
        wins = _wins(self.grades)
        above, beside = wins @ other, one @ wins
        off = one @ above - areas * one.sum() * other.sum()
        squares = _squares(above, areas * other.sum()) + _squares(beside, areas * one.sum())
        both = variance * _squares(wins.ravel(), areas)
        reach = -NormalDist().inv_cdf(beta / 2) * np.sqrt(variance * (squares + both))
        held = areas[np.abs(off) <= reach]
        step = 1 / (AREA_STEPS - 1)
        held = np.append(held, value)  # noise may be so small that it holds none of the areas looked at
        low, high = (np.clip(np.array([[end]]), 0.0, 1.0) for end in (held.min() - step, held.max() + step))
        return low, high


def _squares(values: Floats, less: Floats) -> Floats:
    """The sum of the squares of some values less a number, for each of several numbers."""
    found: Floats = (values**2).sum() - 2 * less * values.sum() + len(values) * less**2
    return np.maximum(found, 0.0)


def _wins(grades: int) -> Floats:
    """Whether the first of two grades is the higher one; a half where they are equal."""
    return np.tril(np.ones((grades, grades)), -1) + np.eye(grades) / 2
