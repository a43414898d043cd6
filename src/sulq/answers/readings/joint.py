"""Further readings of released sums: sums of several columns, a mean beside a variance, covariances, correlations.

Post-processing, with intervals that hold the table's bounded statistic except
with probability beta. Proofs: docs/theory/means.md and docs/theory/intervals.md.
"""

from __future__ import annotations

import functools
import itertools
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from sulq.answers.readings.estimators import BoundedMean, Covariance
from sulq.answers.readings.noise_sums import OfCountedRows, added, least_total
from sulq.answers.readings.regions import bernstein_mean, combined_reach, correlations, covariances
from sulq.answers.released import Noise, Released
from sulq.language.kinds import Floats


def radius(released: Released, weights: Floats, beta: float) -> float:
    """How far a weighted sum of one cell's columns may be off, except with probability beta; exact for one column."""
    return _radius(released.noise, tuple(map(float, weights)), beta)


@functools.lru_cache(maxsize=4096)
def _radius(columns: tuple[Noise, ...], weights: tuple[float, ...], beta: float) -> float:
    noises = [noise for noise in columns for _ in range(noise.width)]
    used = [(noise, abs(w)) for noise, w in zip(noises, weights, strict=True) if w]
    alike = {(noise.law, float(noise.step) * weight) for noise, weight in used}
    if len(alike) == 1:  # equal draws of equal weight: the law of their sum
        ((law, weight),) = alike
        return float(added(law, len(used)).accuracy(beta)) * weight
    single = [Noise(noise.law, noise.step, 1) for noise, _ in used]
    return float(combined_reach(single, [np.array(weight) for _, weight in used], beta)) if used else 0.0


@dataclass(frozen=True, slots=True)
class WeightedSum:
    """A weighted sum of a cell's columns: a count or a sum from the parts a mean was asked in.

    `squares`: the weights of the sum of squares of what is summed, or of a bound on it; none where it is not known.
    """

    weights: tuple[Fraction, ...]
    squares: tuple[Fraction, ...] = ()

    def value(self, released: Released) -> Floats:
        """The weighted sum of the released columns."""
        return (released.values() @ self._weights())[:, None]

    def interval(self, released: Released, beta: float) -> tuple[Floats, Floats]:
        """The quantile of the weighted noise on either side."""
        value, away = self.value(released), radius(released, self._weights(), beta)
        return value - away, value + away

    def _weights(self) -> Floats:
        return np.array([float(weight) for weight in self.weights])


@dataclass(frozen=True, slots=True)
class PublicNumber(OfCountedRows):
    """A statistic that public bounds decide."""

    number: Fraction

    def value(self, released: Released) -> Floats:
        """The same number for each cell."""
        return np.full((released.cells, 1), float(self.number))

    def bounds(self) -> tuple[Floats, Floats]:
        """The number itself."""
        return np.array([float(self.number)]), np.array([float(self.number)])

    def interval(self, released: Released, beta: float) -> tuple[Floats, Floats]:
        """The number itself, at any level."""
        del beta
        return self.value(released), self.value(released)


@dataclass(frozen=True, slots=True)
class SpreadMean(BoundedMean):
    """A mean from the Bernstein sums p, q, r of degree 2: with n = p + q + r the mean of t is (p + q/2)/n.

    Accuracy: (1-t) p + (1/2-t) q - t r is zero at the truth and noise alone after
    release; the interval holds every t at which it stays within its quantile.
    """

    rounding: Fraction = Fraction(0)

    def value(self, released: Released) -> Floats:
        """The clipped quotient; the midpoint where the noisy mass is not positive."""
        p, q, r = released.values().T
        return self.shown(self.part(p + q / 2, p + q + r))

    def least(self, released: Released, beta: float) -> Floats:
        """The least sum of all terms, in units of the squared range, that the released ones do not contradict."""
        return least_total(released, slice(None), beta, float(self.hi - self.lo) ** 2)

    def interval(self, released: Released, beta: float) -> tuple[Floats, Floats]:
        """Every mean the released sums do not contradict."""
        unit = float(self.hi - self.lo) ** 2 or 1.0
        noise = replace(released.noise[0], step=released.noise[0].step / Fraction(unit))
        low, high = bernstein_mean(released.values() / unit, noise, beta)
        value = self.value(released)
        low, high = np.minimum(self.shown(low), value), np.maximum(self.shown(high), value)
        return self.widened(low, high, self.rounding)


@dataclass(frozen=True, slots=True)
class PairCovariance(OfCountedRows):
    """The covariance of two numbers, from a count, two sums and three products; `ddof` 1 divides by n - 1."""

    halves: tuple[Fraction, Fraction]
    ddof: int = 0
    rounding: Fraction = Fraction(0)

    def value(self, released: Released) -> Floats:
        """The entry off the diagonal; zero where the noisy count is not positive."""
        found = Covariance(self.halves, None, self.rounding).value(released)[:, 1:2]
        n = np.maximum(released.values()[:, :1], 2.0)
        return found * (n / (n - 1) if self.ddof else 1.0)

    def bounds(self) -> tuple[Floats, Floats]:
        """As far as the declared bounds allow; n/(n - 1) is at most 2, for two values."""
        most = np.array([float(self.halves[0] * self.halves[1]) * (2.0 if self.ddof else 1.0)])
        return -most, most

    def interval(self, released: Released, beta: float) -> tuple[Floats, Floats]:
        """Every covariance that the sums allow, whatever the means are that they allow."""
        n, sums, products, noises = _sums(released)
        low, high = covariances(n, sums, products[:, 1:2], noises, beta, pairs=((0,), (1,)), ddof=self.ddof)
        whole, (least, most) = float(self.halves[0] * self.halves[1]), self.bounds()
        away, value = float(self.rounding * (2 + self.rounding)) * (1 + self.ddof), self.value(released)
        low, high = (np.clip(end * whole, least, most) for end in (low - away, high + away))
        return np.minimum(low, value), np.maximum(high, value)


Sums = tuple[Floats, Floats, Floats, tuple[Noise, Noise, Noise]]


def _sums(released: Released) -> Sums:
    """The count, the two sums, the three products, and the noise of each kind."""
    values, each = released.values(), [noise for noise in released.noise for _ in range(noise.width)]
    return values[:, 0], values[:, 1:3], values[:, 3:], (each[0], each[1], each[3])


@dataclass(frozen=True, slots=True)
class Correlation(OfCountedRows):
    """The correlation of two numbers, from a count, two sums and three products of z in [-1, 1].

    Accuracy: C_xy = r (k C_yy + C_xx/k)/2 where k^2 = C_xx/C_yy, an equation that noise alone
    puts out; where a variance may be zero nothing is claimed but [-1, 1].
    """

    halves: tuple[Fraction, Fraction]
    rounding: Fraction = Fraction(0)

    def value(self, released: Released) -> Floats:
        """The clipped quotient; zero where a variance is not positive."""
        xx, xy, yy = Covariance(self.halves, None, self.rounding).value(released).T
        spread = np.maximum(xx, 0.0) * np.maximum(yy, 0.0)
        with np.errstate(all="ignore"):
            found = np.where(spread > 0, np.clip(xy / np.sqrt(spread), -1.0, 1.0), 0.0)
        return found[:, None]

    def bounds(self) -> tuple[Floats, Floats]:
        """From -1 to 1."""
        return np.array([-1.0]), np.array([1.0])

    def interval(self, released: Released, beta: float) -> tuple[Floats, Floats]:
        """Every correlation that the sums allow, whatever means and variances they allow."""
        low, high = correlations(*_sums(released), beta, slip=float(self.rounding * (2 + self.rounding)))
        value = self.value(released)
        return np.minimum(low[:, None], value), np.maximum(high[:, None], value)


def pair_sums(released: Released, width: int) -> Released:
    """Of the one cell of a covariance's sums a row for each pair of values: count, two sums and three products."""
    count, sums, products = released.noise
    places = {pair: 1 + width + i for i, pair in enumerate(itertools.combinations_with_replacement(range(width), 2))}
    rows = [
        [0, 1 + i, 1 + j, places[i, i], places[i, j], places[j, j]] for i, j in itertools.combinations(range(width), 2)
    ]
    noise = (count, replace(sums, width=2), replace(products, width=3))
    return replace(released, units=released.units[0][np.array(rows)], noise=noise)


JointReading = WeightedSum | PublicNumber | SpreadMean | PairCovariance | Correlation
