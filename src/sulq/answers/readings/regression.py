"""SQL's statistics of a line y = a + b x, from a count, two sums and three products: REGR_SLOPE and its like.

Of y and x scaled to [-1, 1], with joint regions as in `regions`: the slope solves an equation that is linear in the
released sums and stationary in the means. Intervals hold the table's statistic except with probability beta.
Source: docs/theory/intervals.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Final, NamedTuple

import numpy as np

from sulq.answers.readings.joint import Correlation
from sulq.answers.readings.noise_sums import OfCountedRows
from sulq.answers.readings.regions import (
    CURVED,
    NUISANCE,
    Range,
    combined_reach,
    contracted,
    largest,
    less,
    mean_range,
    over,
    positive,
    squared,
    times,
)
from sulq.answers.released import Noise, Released
from sulq.language.kinds import Floats

Y, X = 0, 1  # the places of the two numbers, as SQL names them: REGR_SLOPE(y, x)
PRODUCT: Final = {(Y, Y): 0, (Y, X): 1, (X, Y): 1, (X, X): 2}


class PairSums(NamedTuple):
    """The released sums of two numbers z in [-1, 1] and the ranges of their means, each except with a part of beta."""

    n: Floats
    sums: Floats
    products: Floats
    noises: tuple[Noise, Noise, Noise]
    means: tuple[Range, Range]

    @classmethod
    def of(cls, released: Released, beta: float) -> PairSums:
        """With the means each within a range but for `beta`."""
        values, each = released.values(), [noise for noise in released.noise for _ in range(noise.width)]
        noises = each[0], each[1], each[3]
        low, high = mean_range(values[:, :1], values[:, 1:3], (each[0], each[1]), beta)
        means = (low[:, Y], high[:, Y]), (low[:, X], high[:, X])
        return cls(values[:, 0], values[:, 1:3], values[:, 3:], noises, means)

    def centred(self, i: int, j: int) -> Floats:
        """The sum of products of distances from the means, as it is released."""
        found: Floats = self.products[:, PRODUCT[i, j]] - self.sums[:, i] * self.sums[:, j] / positive(self.n)
        return found

    def off(self, i: int, j: int) -> Range:
        """What not knowing the means may add to it, the count times a product of their errors."""
        errors = [less(self.means[k], (self.sums[:, k] / positive(self.n),) * 2) for k in (i, j)]
        low, high = squared(*errors[0]) if i == j else times(*errors)
        return self.n * low, self.n * high

    def reach(self, weights: tuple[Floats, Floats, Floats, Floats, Floats, Floats], beta: float) -> Floats:
        """What the noises of count, y, x, yy, yx and xx, each times a weight of at most this size, pass seldom."""
        count, single, double = self.noises
        return combined_reach([count, single, single, double, double, double], weights, beta)

    def product(self, i: int, j: int, beta: float, slips: Floats) -> Range:
        """The sum of products of distances from the means; anything where there may be no rows."""
        zero, one = np.zeros_like(self.n), np.ones_like(self.n)
        both = largest(*times(self.means[i], self.means[j]))
        singles = [zero, zero]
        singles[i] = singles[i] + largest(*self.means[j])
        singles[j] = singles[j] + largest(*self.means[i])
        doubles = [one if place == PRODUCT[i, j] else zero for place in range(3)]
        reach = self.reach((both, singles[0], singles[1], doubles[0], doubles[1], doubles[2]), beta) + slips
        low, high = (self.centred(i, j) + end for end in self.off(i, j))
        some = self.n > 0
        return np.where(some, low - reach, -np.inf), np.where(some, high + reach, np.inf)


def _slips(sums: PairSums, rounding: Fraction, beta: float) -> Floats:
    """How far rounding may move a sum of products."""
    away = float(rounding * (2 + rounding))
    found: Floats = away * (np.maximum(sums.n, 0.0) + combined_reach([sums.noises[0]], [np.ones_like(sums.n)], beta))
    return found


def slopes(released: Released, beta: float, rounding: Fraction) -> Range:
    """The slopes of z that the sums allow: C_yx - b C_xx = 0; anything where x may not vary."""
    sums = PairSums.of(released, NUISANCE * beta)
    slips = _slips(sums, rounding, NUISANCE * beta)
    square = sums.product(X, X, CURVED * beta, slips)
    start = over(*sums.product(Y, X, CURVED * beta, slips), *square)
    known = np.isfinite(start[0]) & np.isfinite(start[1])
    start = np.where(known, start[0], 0.0), np.where(known, start[1], 0.0)
    mean_y, mean_x = sums.means
    box, own, one = sums.off(Y, X), sums.off(X, X), np.ones_like(sums.n)

    def narrowed(slope: Range) -> Range:
        weights = (
            largest(*less(times(mean_y, mean_x), times(slope, squared(*mean_x)))),
            largest(*mean_x),
            largest(*less(mean_y, times((2 * slope[0], 2 * slope[1]), mean_x))),
            np.zeros_like(one), one, largest(*slope),
        )  # fmt: skip
        reach = sums.reach(weights, (1 - 3 * NUISANCE - 2 * CURVED) * beta) + slips * (1 + largest(*slope))
        above = sums.centred(Y, X) + box[0] - reach, sums.centred(Y, X) + box[1] + reach
        return over(*above, sums.centred(X, X) + own[0], sums.centred(X, X) + own[1])

    low, high = contracted(start, narrowed)
    return np.where(known, low, -np.inf), np.where(known, high, np.inf)


@dataclass(frozen=True, slots=True)
class LinePair(OfCountedRows):
    """Two numbers y and x: the middles and halves of their bounds, and how far scaled values are rounded."""

    middles: tuple[Fraction, Fraction]
    halves: tuple[Fraction, Fraction]
    rounding: Fraction = Fraction(0)

    def bounds(self) -> tuple[Floats, Floats]:
        """None are known."""
        return np.array([-np.inf]), np.array([np.inf])

    def _slope(self, released: Released) -> tuple[Floats, PairSums]:
        sums = PairSums.of(released, 0.05)
        square = sums.centred(X, X)
        return np.where(square > 0, sums.centred(Y, X) / positive(square), 0.0), sums

    def _scale(self) -> float:
        return float(self.halves[Y] / self.halves[X])

    def _ends(self, released: Released, low: Floats, high: Floats) -> tuple[Floats, Floats]:
        value = self.value(released)
        return np.minimum(low[:, None], value), np.maximum(high[:, None], value)

    def value(self, released: Released) -> Floats:
        """The statistic."""
        raise NotImplementedError

    def residual(self, released: Released) -> Floats:
        """The variance of y about the line."""
        slope, sums = self._slope(released)
        rest = sums.centred(Y, Y) - slope * sums.centred(Y, X)
        found: Floats = np.maximum(rest, 0.0) / np.maximum(sums.n - 2, 1.0) * float(self.halves[Y]) ** 2
        return found


@dataclass(frozen=True, slots=True)
class Slope(LinePair):
    """REGR_SLOPE; zero where x does not vary."""

    def value(self, released: Released) -> Floats:
        """The quotient of two sums of products."""
        return (self._slope(released)[0] * self._scale())[:, None]

    def interval(self, released: Released, beta: float) -> tuple[Floats, Floats]:
        """Every slope that the sums allow."""
        low, high = slopes(released, beta, self.rounding)
        return self._ends(released, low * self._scale(), high * self._scale())

    def deviation(self, released: Released, at: Floats) -> Floats:
        """Of a linear model whose errors have one variance."""
        del at
        square = np.maximum(self._slope(released)[1].centred(X, X), 1e-300) * float(self.halves[X]) ** 2
        return np.sqrt(self.residual(released) / square)[:, None]


@dataclass(frozen=True, slots=True)
class Intercept(LinePair):
    """REGR_INTERCEPT: the line's y at x = 0."""

    def _shift(self) -> float:
        return float(self.middles[X] / self.halves[X])

    def value(self, released: Released) -> Floats:
        """The mean of y less the slope times the mean of x."""
        slope, sums = self._slope(released)
        mean = np.clip(sums.sums / positive(sums.n)[:, None], -1.0, 1.0)
        found = mean[:, Y] - slope * (mean[:, X] + self._shift())
        return (float(self.middles[Y]) + float(self.halves[Y]) * found)[:, None]

    def interval(self, released: Released, beta: float) -> tuple[Floats, Floats]:
        """From the ranges of the slope and of both means, which hold together."""
        slope = slopes(released, beta / 2, self.rounding)
        mean_y, (low, high) = PairSums.of(released, beta / 4).means
        x = low - float(self.rounding) + self._shift(), high + float(self.rounding) + self._shift()
        with np.errstate(all="ignore"):
            ends = less((mean_y[0] - float(self.rounding), mean_y[1] + float(self.rounding)), times(slope, x))
        known = np.isfinite(ends[0]) & np.isfinite(ends[1])
        found = (float(self.middles[Y]) + float(self.halves[Y]) * end for end in ends)
        low, high = (np.where(known, end, far) for end, far in zip(found, (-np.inf, np.inf), strict=True))
        return self._ends(released, low, high)

    def deviation(self, released: Released, at: Floats) -> Floats:
        """Of a linear model whose errors have one variance."""
        del at
        sums = self._slope(released)[1]
        n, square = np.maximum(sums.n, 1.0), np.maximum(sums.centred(X, X), 1e-300)
        mean = sums.sums[:, X] / n + self._shift()
        return np.sqrt(self.residual(released) * (1 / n + mean**2 / square))[:, None]


@dataclass(frozen=True, slots=True)
class PairProduct(LinePair):
    """REGR_SXX, REGR_SYY or REGR_SXY: a sum of products of distances from the means."""

    places: tuple[int, int] = (X, X)

    def _unit(self) -> float:
        return float(self.halves[self.places[0]] * self.halves[self.places[1]])

    def value(self, released: Released) -> Floats:
        """As it is released; a sum of squares is not negative."""
        found = PairSums.of(released, 0.05).centred(*self.places) * self._unit()
        return (np.maximum(found, 0.0) if self.places[0] == self.places[1] else found)[:, None]

    def interval(self, released: Released, beta: float) -> tuple[Floats, Floats]:
        """Every sum of products that the sums allow, whatever the means are that they allow."""
        sums = PairSums.of(released, NUISANCE * beta)
        slips = _slips(sums, self.rounding, NUISANCE * beta)
        low, high = (end * self._unit() for end in sums.product(*self.places, (1 - 3 * NUISANCE) * beta, slips))
        return self._ends(released, np.maximum(low, 0.0) if self.places[0] == self.places[1] else low, high)


@dataclass(frozen=True, slots=True)
class Determination(LinePair):
    """REGR_R2: the squared correlation."""

    def correlation(self) -> Correlation:
        """Of the two numbers."""
        return Correlation(self.halves, self.rounding)

    def bounds(self) -> tuple[Floats, Floats]:
        """From 0 to 1."""
        return np.array([0.0]), np.array([1.0])

    def value(self, released: Released) -> Floats:
        """The square."""
        found: Floats = self.correlation().value(released) ** 2
        return found

    def interval(self, released: Released, beta: float) -> tuple[Floats, Floats]:
        """The squares of the correlations that the sums allow."""
        return squared(*self.correlation().interval(released, beta))


@dataclass(frozen=True, slots=True)
class PairMean(LinePair):
    """REGR_AVGY or REGR_AVGX: the mean of one number over the rows where both are there."""

    place: int = X

    def _shown(self, part: Floats) -> Floats:
        found: Floats = float(self.middles[self.place]) + float(self.halves[self.place]) * np.clip(part, -1.0, 1.0)
        return found

    def bounds(self) -> tuple[Floats, Floats]:
        """The declared ones."""
        return self._shown(np.array([-1.0])), self._shown(np.array([1.0]))

    def value(self, released: Released) -> Floats:
        """The clipped quotient; the middle where the noisy count is not positive."""
        values = released.values()
        return self._shown(np.where(values[:, 0] > 0, values[:, 1 + self.place] / positive(values[:, 0]), 0.0))[:, None]

    def interval(self, released: Released, beta: float) -> tuple[Floats, Floats]:
        """Every mean that a count and a sum allow."""
        low, high = PairSums.of(released, beta).means[self.place]
        away = float(self.rounding)
        return self._ends(released, self._shown(low - away), self._shown(high + away))

    def deviation(self, released: Released, at: Floats) -> Floats:
        """By the released variance."""
        del at
        sums, half = PairSums.of(released, 0.05), float(self.halves[self.place])
        square = np.maximum(sums.centred(self.place, self.place), 0.0)
        found: Floats = (half * np.sqrt(square) / np.maximum(sums.n, 1.0))[:, None]
        return found


LineReading = Slope | Intercept | PairProduct | Determination | PairMean
