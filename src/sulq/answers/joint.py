"""Further readings of released sums: sums of several columns, a mean beside a variance, covariances, correlations.

Post-processing, with intervals that hold the table's bounded statistic except
with probability beta. Proofs: docs/theory/means.md and docs/theory/quantiles.md.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from fractions import Fraction
from statistics import NormalDist

import numpy as np

from sulq.answers.estimators import BoundedMean, Covariance
from sulq.answers.noise_sums import SLACK, OfCountedRows, added, least_total
from sulq.answers.released import Noise, Released
from sulq.language.kinds import Floats
from sulq.language.law import GaussianLaw, LaplaceLaw

APART = 1.002  # weights nearer than this are spread, upwards: more noise is never less


def several_laplace(weights: list[float], beta: float) -> float:
    """The t that |sum of w_i X_i| passes with probability at most beta, X_i Laplace of scale 1.

    P = sum of w_i^(2n-2) e^(-t/w_i) / prod over j of (w_i^2 - w_j^2), for different
    weights; equal ones are raised a little, which only spreads the sum (Birnbaum).
    """
    top = max(weights, default=0.0)
    rising: list[float] = []
    for weight in sorted(w for w in weights if w > 1e-9 * top):
        rising.append(max(weight, rising[-1] * APART) if rising else weight)
    if not rising:
        return 0.0
    squares = [w * w for w in rising]
    parts = [
        math.prod(squares[i] / (squares[i] - other) for j, other in enumerate(squares) if j != i)
        for i in range(len(rising))
    ]
    lost = sum(w for w in weights if w <= 1e-9 * top) * (30 + math.log(1 / beta))
    low, high = 0.0, len(rising) * rising[-1] * (2 + math.log(2 / beta))
    for _ in range(60):
        middle = (low + high) / 2
        tail = math.fsum(part * math.exp(-middle / w) for part, w in zip(parts, rising, strict=True))
        low, high = (middle, high) if tail > beta else (low, middle)
    return high + lost


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
    slack = SLACK * sum(float(noise.step) * weight for noise, weight in used)
    laws = [noise.law for noise, _ in used]
    scaled = [float(noise.step) * weight for noise, weight in used]
    if all(isinstance(law, GaussianLaw) for law in laws):
        deviation = math.hypot(*(s * float(_scale(law)) for s, law in zip(scaled, laws, strict=True)))
        return -NormalDist().inv_cdf(beta / 2) * deviation + slack
    if all(isinstance(law, LaplaceLaw) for law in laws):
        return several_laplace([s * float(_scale(law)) for s, law in zip(scaled, laws, strict=True)], beta) + slack
    return sum(s * law.accuracy(beta / len(laws)) for s, law in zip(scaled, laws, strict=True))


def _scale(law: object) -> Fraction:
    return law.scale if isinstance(law, (LaplaceLaw, GaussianLaw)) else Fraction(0)


@dataclass(frozen=True, slots=True)
class WeightedSum:
    """A weighted sum of a cell's columns: a count or a sum from the parts a mean was asked in."""

    weights: tuple[Fraction, ...]

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
        """Every mean the released sums do not contradict, by a table of the noise's quantile that chords bound."""
        p, q, r = released.values().T
        mass = p + q + r
        t = np.linspace(0.0, 1.0, 65)
        far = np.array([radius(released, np.array([1 - x, 0.5 - x, -x]), beta) for x in t])
        far = np.maximum(far, far[::-1])  # symmetric in t; the jumps of the exact tables are smoothed upwards
        high = np.maximum(far[:-1], far[1:])  # on a piece the quantile, convex in t, is below its larger end
        one, zero = p + q / 2, q / 2 + r

        # |one - t mass| <= most on [t_i, t_i+1]: from `left` to `right`, a row a piece
        with np.errstate(all="ignore"):
            a, b = (np.where(mass > 0, (one + side * high[:, None]) / mass, side * np.inf) for side in (-1, 1))
        left, right = np.maximum(a, t[:-1, None]), np.minimum(b, t[1:, None])
        some = left <= right
        low, top = np.where(some, left, 1.0).min(axis=0), np.where(some, right, 0.0).max(axis=0)
        value = (one / np.where(mass > 0, mass, 1.0)).clip(0.0, 1.0)
        low, top = np.minimum(low, value), np.maximum(top, value)
        weak = mass <= 2 * radius(released, np.array([1.0, 0.5, 0.0]), beta / 2)
        weak |= (one + zero) <= 0
        low, top = np.where(weak, 0.0, low), np.where(weak, 1.0, top)
        return self.widened(self.shown(low), self.shown(top), self.rounding)


def _centred(released: Released, rounding: Fraction, beta: float) -> tuple[Floats, Floats, Floats, Floats]:
    """Where the six sums put the count and the centred sums n C_xx, n C_xy, n C_yy, except with probability beta.

    n C_xy = P_xy - s_x s_y / n: the noise of the count enters by the small second term
    alone. Moving z by r moves a covariance by at most 2r + r^2, as deviations of z are at most 1.
    """
    away = released.radius(-math.expm1(math.log1p(-beta) / 6))
    low, high = (released.values() - away).T, (released.values() + away).T
    count = np.stack([np.maximum(low[0], 1e-300), np.maximum(high[0], 1e-300)])
    slip = float(rounding * (2 + rounding)) * count[1]
    ends = []
    for place, (i, j) in enumerate(((1, 1), (1, 2), (2, 2))):
        with np.errstate(all="ignore"):
            corners = np.stack([a * b / n for a in (low[i], high[i]) for b in (low[j], high[j]) for n in count])
        least = np.where((i == j) & (low[i] <= 0) & (high[i] >= 0), 0.0, corners.min(axis=0))
        ends.append((low[3 + place] - corners.max(axis=0) - slip, high[3 + place] - least + slip))
    return low[0], high[0], np.stack([a for a, _ in ends]), np.stack([b for _, b in ends])


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
        """The centred sum over the count, both within their ranges; the whole range where the count may be none."""
        least, most, low, high = _centred(released, self.rounding, beta)
        whole = float(self.halves[0] * self.halves[1])
        n = np.stack([np.maximum(least - self.ddof, 1e-300), np.maximum(most - self.ddof, 1e-300)])
        with np.errstate(all="ignore"):
            corners = np.concatenate([low[1] / n, high[1] / n])
        weak = least <= 1 + self.ddof
        top = whole * (2.0 if self.ddof else 1.0)  # n/(n - 1) is at most 2, for two values
        down = np.where(weak, -top, np.clip(corners.min(axis=0) * whole, -top, top))
        up = np.where(weak, top, np.clip(corners.max(axis=0) * whole, -top, top))
        return down[:, None], up[:, None]


@dataclass(frozen=True, slots=True)
class Correlation(OfCountedRows):
    """The correlation of two numbers, from a count, two sums and three products of z in [-1, 1].

    Accuracy: C_xy / sqrt(C_xx C_yy) from the centred sums, all six within their ranges;
    where a variance may be zero nothing is claimed but [-1, 1].
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
        """The quotient's extremes over the ranges of the three centred sums."""
        count, _, low, high = _centred(released, self.rounding, beta)
        least = np.sqrt(np.maximum(low[0], 0.0) * np.maximum(low[2], 0.0))
        most = np.sqrt(np.maximum(high[0], 0.0) * np.maximum(high[2], 0.0))
        with np.errstate(all="ignore"):
            down = np.where(low[1] < 0, low[1] / least, low[1] / most)
            up = np.where(high[1] > 0, high[1] / least, high[1] / most)
        weak = (least <= 0) | (count <= 0)
        down, up = np.where(weak, -1.0, np.clip(down, -1.0, 1.0)), np.where(weak, 1.0, np.clip(up, -1.0, 1.0))
        return down[:, None], up[:, None]


JointReading = WeightedSum | PublicNumber | SpreadMean | PairCovariance | Correlation
