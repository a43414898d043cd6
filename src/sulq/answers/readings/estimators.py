"""How released sums are read as the statistic that was asked: free post-processing, with valid intervals.

Each reading gives a value and an interval that holds the table's bounded
statistic except with probability beta, whatever the rows are. Both are
functions of released numbers and public facts alone (T28). `rounding` is how far
a row's value may lie from the grid point that stands for it; sums are those of
the grid points themselves. Proofs: docs/theory/means.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from statistics import NormalDist
from typing import cast

import numpy as np

from sulq.answers.readings.noise_sums import SLACK, OfCountedRows, least_total
from sulq.answers.readings.quantiles import Picked, Quantile, Quantiles
from sulq.answers.readings.rank_choice import ChosenExtreme, ChosenQuantile, CountedFirst, SeveralQuantiles
from sulq.answers.readings.regions import bernstein_spread, covariances, variances
from sulq.answers.readings.sized import Average, SizedSpread
from sulq.answers.released import Noise, Released
from sulq.language.kinds import Floats, Truths
from sulq.language.law import AboveLaw, ExponentialLaw, FlipLaw, GaussianLaw, LaplaceLaw, MetricLaw
from sulq.language.space import Box, Points, values


@dataclass(frozen=True, slots=True)
class Plain:
    """The released sums themselves."""

    def value(self, released: Released) -> Floats:
        """The noisy sums."""
        return released.values()

    def interval(self, released: Released, beta: float) -> tuple[Floats, Floats]:
        """Exact: the noise law's own quantile on either side."""
        return released.interval(beta)


@dataclass(frozen=True, slots=True)
class Estimated:
    """Estimates from randomised reports: cells share reports, so their errors are not independent (SR19)."""

    def value(self, released: Released) -> Floats:
        """The estimates."""
        return released.values()

    def interval(self, released: Released, beta: float) -> tuple[Floats, Floats]:
        """Within the bounds of `ReportLaw`, for any people at all."""
        return released.interval(beta)


@dataclass(frozen=True, slots=True)
class Chosen:
    """The number of the candidate that was chosen; how good its score is, the law tells."""

    weights: tuple[int, ...] = field(default=(), metadata={"wire": "set"})  # how often each was drawn from

    def value(self, released: Released) -> Floats:
        """The number itself."""
        ends, found = np.cumsum(self.weights), released.values()
        return np.searchsorted(ends, found, side="right").astype(np.float64) if self.weights else found

    def interval(self, released: Released, beta: float) -> tuple[Floats, Floats]:
        """Every candidate: which one is the best is not claimed, only that the chosen one is nearly as good."""
        law = released.noise[0].law
        many = len(self.weights) or (law.candidates if isinstance(law, (FlipLaw, ExponentialLaw, MetricLaw)) else 1)
        return np.zeros_like(released.values()), np.full_like(released.values(), many - 1)


@dataclass(frozen=True, slots=True)
class FirstAbove:
    """The place of the first sum at or above its threshold; `step` is one unit of the sums."""

    step: Fraction

    def value(self, released: Released) -> Floats:
        """The place itself, counted from 0; the number of sums if none passed."""
        return released.values()

    def interval(self, released: Released, beta: float) -> tuple[Floats, Floats]:
        """Every place: that no earlier sum passes is not claimed, only that none does by more than `reach`."""
        return np.zeros_like(released.values()), np.full_like(released.values(), self.sums(released))

    def sums(self, released: Released) -> int:
        """How many sums were looked at, at most."""
        law = released.noise[0].law
        return law.sums if isinstance(law, AboveLaw) else 0

    def reach(self, released: Released, beta: float) -> float:
        """How far a sum may be on the wrong side, except with probability beta.

        Accuracy: every sum before the found one is below its threshold plus this, and the
        found one is at least its threshold minus this, all at once.
        """
        return float(released.noise[0].law.accuracy(beta) * self.step)


@dataclass(frozen=True, slots=True)
class Placed:
    """The point that was drawn from a space; how near it is, the law tells.

    `unit`: one unit of distance in the answer's measure; coordinates that differ are counted.
    """

    space: Points | Box
    unit: Fraction = Fraction(1)

    def value(self, released: Released) -> Floats:
        """The point's coordinates."""
        return values(self.space, released.units)

    def interval(self, released: Released, beta: float) -> tuple[Floats, Floats]:
        """The whole space: which point is the nearest is not claimed, only that the drawn one is nearly as near."""
        if isinstance(self.space, Points):
            ends = np.array(self.space.points, dtype=np.float64)
        else:
            ends = values(self.space, np.array([0, self.space.size - 1]))
        return ends.min(axis=0, keepdims=True), ends.max(axis=0, keepdims=True)

    def reach(self, released: Released, beta: float) -> float:
        """How much farther from the exact value than the nearest point it may be, except with probability beta."""
        return float(released.noise[0].law.accuracy(beta) * self.unit)


def _scale_of(noise: Noise) -> float:
    """The scale of a noise in the answer's own units."""
    scale = noise.law.scale if isinstance(noise.law, (LaplaceLaw, GaussianLaw)) else noise.law.variance() ** 0.5
    return float(scale) * float(noise.step)


def _two_laplace(first: Floats, second: Floats, beta: float) -> Floats:
    """The t that |first X + second Y| passes with probability beta, for X, Y Laplace of scale 1.

    P(|uX + vY| > t) = (u^2 e^(-t/u) - v^2 e^(-t/v))/(u^2 - v^2); for u = v it is
    (1 + t/(2u)) e^(-t/u). Solved by bisection, rounded up.
    """
    u, v = np.maximum(first, second), np.minimum(first, second)
    v = np.maximum(v, 1e-9 * u)
    near = v > u * (1 - 1e-4)

    def tail(t: Floats) -> Floats:
        with np.errstate(all="ignore"):
            apart = (u**2 * np.exp(-t / u) - v**2 * np.exp(-t / v)) / (u**2 - v**2)
        # Near u = v the quotient cancels; the equal-scale tail at the larger scale bounds it.
        return cast("Floats", np.where(near, (1 + t / (2 * u)) * np.exp(-t / u), apart))

    low, high = np.zeros_like(u), 2 * u * (1 + math.log(2 / beta))
    for _ in range(80):
        middle = (low + high) / 2
        passes = tail(middle) > beta
        low, high = np.where(passes, middle, low), np.where(passes, high, middle)
    return high


def _edges(accepted: Callable[[Floats], Truths], start: Floats, lo: float, hi: float) -> tuple[Floats, Floats]:
    """Walk from an accepted start to where acceptance ends on either side, by bisection."""

    def walk(end: float) -> Floats:
        inside, outside = start.copy(), np.full_like(start, end)
        whole = accepted(outside)
        for _ in range(60):
            middle = (inside + outside) / 2
            holds = accepted(middle)
            inside, outside = np.where(holds, middle, inside), np.where(holds, outside, middle)
        return cast("Floats", np.where(whole, end, outside))

    return walk(lo), walk(hi)


@dataclass(frozen=True, slots=True)
class BoundedMean:
    """A mean of values with declared bounds; clipped into them."""

    lo: Fraction
    hi: Fraction

    def bounds(self) -> tuple[Floats, Floats]:
        """The declared bounds."""
        return np.array([float(self.lo)]), np.array([float(self.hi)])

    def part(self, over: Floats, mass: Floats) -> Floats:
        """Where in the bounds the mean lies, from 0 to 1: the clipped quotient; 1/2 where the mass is not positive."""
        with np.errstate(all="ignore"):
            return np.where(mass > 0, np.clip(over / mass, 0.0, 1.0), 0.5)

    def shown(self, part: Floats) -> Floats:
        """The mean at a part of the way from the lower bound to the upper one."""
        found: Floats = float(self.lo) + float(self.hi - self.lo) * part
        return found[:, None]

    def widened(self, low: Floats, high: Floats, away: Fraction) -> tuple[Floats, Floats]:
        """An interval whose ends move apart by how far values were rounded, within the bounds."""
        (a,), (b,) = self.bounds()
        return np.clip(low - float(away), a, b), np.clip(high + float(away), a, b)


@dataclass(frozen=True, slots=True)
class Mean(BoundedMean):
    """A mean from the two one-sided sums A of x - a and B of b - x: a + (b - a) A/(A + B) (SR18).

    Accuracy: the true t = (mean - a)/(b - a) has (1 - t) A - t B = 0, so the
    released (1 - t) A' - t B' is noise alone; the interval holds every t at which
    that noise stays within its 1 - beta quantile (Fieller's argument).
    """

    rounding: Fraction = Fraction(0)

    def value(self, released: Released) -> Floats:
        """The clipped quotient; the midpoint where the noisy mass is not positive."""
        above, below = released.values().T
        return self.shown(self.part(above, above + below))

    def least(self, released: Released, beta: float) -> Floats:
        """The least mass A + B, in units of the range, that the released pair does not contradict."""
        return least_total(released, slice(None), beta, float(self.hi - self.lo))

    def interval(self, released: Released, beta: float) -> tuple[Floats, Floats]:
        """Every mean the released pair does not contradict; the whole range for too small a mass."""
        above, below = released.values().T
        noise = released.noise[0]
        mass = above + below
        scale, slack = _scale_of(noise), SLACK * float(noise.step)

        t = np.linspace(0.0, 1.0, 1025)
        if isinstance(noise.law, GaussianLaw):
            reach = -NormalDist().inv_cdf(beta / 2) * scale * np.hypot(1 - t, t) + slack
        elif isinstance(noise.law, LaplaceLaw):
            reach = _two_laplace(scale * (1 - t), scale * t, beta) + slack
        else:
            reach = np.full_like(t, released.radius(1 - math.sqrt(1 - beta))[0])

        def accepted(here: Floats) -> Truths:
            # Noise's quantile is convex in t: a chord between points of the table is never below it.
            return cast("Truths", np.abs((1 - here) * above - here * below) <= np.interp(here, t, reach))

        low, high = _edges(accepted, self.part(above, mass), 0.0, 1.0)
        weak = mass <= 2 * released.radius(beta / 2)[0]  # the mass may be noise alone: nothing is claimed
        low, high = np.where(weak, 0.0, low), np.where(weak, 1.0, high)
        return self.widened(self.shown(low), self.shown(high), self.rounding)


@dataclass(frozen=True, slots=True)
class CentredMean(OfCountedRows, BoundedMean):
    """A mean from a noisy count N and the noisy sum S of x - middle: middle + S/N (SR18, Gaussian)."""

    middle: Fraction
    rounding: Fraction = Fraction(0)

    def value(self, released: Released) -> Floats:
        """The clipped quotient; the midpoint where the noisy count is not positive."""
        count, total = released.values().T
        a, b, m = float(self.lo), float(self.hi), float(self.middle)
        with np.errstate(all="ignore"):
            mean = np.where(count > 0, np.clip(m + total / count, a, b), (a + b) / 2)
        return mean[:, None]

    def interval(self, released: Released, beta: float) -> tuple[Floats, Floats]:
        """Fieller's interval: every mean m + d with |S' - d N'| within the noise of S - d N."""
        count, total = released.values().T
        a, b, m = float(self.lo), float(self.hi), float(self.middle)
        z = -NormalDist().inv_cdf(beta / 2)
        count_scale, total_scale = map(_scale_of, released.noise)
        count_step, total_step = (SLACK * float(noise.step) for noise in released.noise)

        def accepted(d: Floats) -> Truths:
            reach = z * np.hypot(total_scale, d * count_scale) + total_step + np.abs(d) * count_step
            return cast("Truths", np.abs(total - d * count) <= reach)

        start = np.clip(self.value(released)[:, 0] - m, a - m, b - m)
        low, high = _edges(accepted, start, a - m, b - m)
        weak = count <= 2 * released.radius(beta / 2)[0]
        low, high = np.where(weak, a - m, low), np.where(weak, b - m, high)
        return self.widened((m + low)[:, None], (m + high)[:, None], self.rounding)


@dataclass(frozen=True, slots=True)
class Spread:
    """A variance (or standard deviation) from the Bernstein sums p, q, r of degree 2.

    With t in [0, 1]: p = sum t^2, q = sum 2t(1-t), r = sum (1-t)^2, n = p + q + r
    and the variance is (p r - q^2/4)/n^2.
    """

    width: Fraction  # b - a
    root: bool = False
    ddof: int = 0
    rounding: Fraction = Fraction(0)

    def _spread(self, p: Floats, q: Floats, r: Floats) -> Floats:
        n = p + q + r
        found = (p * r - q * q / 4) / np.where(n > 0, n * n, 1.0)
        return cast("Floats", np.clip(np.where(n > 0, found, 0.0), 0.0, 0.25))

    def _shown(self, spread: Floats, n: Floats) -> Floats:
        """A variance of values in [0, 1] as it was asked; n/(n - 1) is at most 2, for two values."""
        n = np.maximum(n, 2.0)
        scaled = spread * float(self.width) ** 2 * (n / (n - 1) if self.ddof else 1.0)
        return (np.sqrt(scaled) if self.root else scaled)[:, None]

    def _unit(self) -> float:
        return float(self.width) ** 2 or 1.0

    def value(self, released: Released) -> Floats:
        """The formula on the released sums, clipped into what a variance can be."""
        units = np.maximum(released.values() / self._unit(), 0.0)
        return self._shown(self._spread(*units.T), units.sum(axis=1))

    def least(self, released: Released, beta: float) -> Floats:
        """The least sum of all terms, in units of the squared range, that the released ones do not contradict."""
        return least_total(released, slice(None), beta, self._unit())

    def bounds(self) -> tuple[Floats, Floats]:
        """From 0 to the spread of two halves at either bound."""
        return np.zeros(1), self._shown(np.array([0.25]), np.array([0.0]))[0]

    def interval(self, released: Released, beta: float) -> tuple[Floats, Floats]:
        """Every variance that the three sums allow, whatever the mean is that they allow."""
        scale = self._unit()
        noise = replace(released.noise[0], step=released.noise[0].step / Fraction(scale))
        low, high = bernstein_spread(released.values() / scale, noise, self.ddof, beta)
        # Moving every value by at most `away` moves the standard deviation by at most that.
        away, value = float(self.rounding) / math.sqrt(scale) * math.sqrt(1 + self.ddof), self.value(released)
        low, high = np.maximum(np.sqrt(low) - away, 0.0) ** 2, (np.sqrt(high) + away) ** 2
        low, high = (end[:, None] * float(self.width) ** 2 for end in (low, high))
        low, high = (np.sqrt(low), np.sqrt(high)) if self.root else (low, high)
        return np.minimum(low, value), np.maximum(np.minimum(high, self.bounds()[1]), value)


@dataclass(frozen=True, slots=True)
class Covariance:
    """A covariance matrix from a count, d sums and d(d+1)/2 products of z = (x - middle)/half.

    C_ij = half_i half_j (P_ij/n - s_i s_j/n^2). `size` is the public n where there
    is one; then no count is among the released sums.
    """

    halves: tuple[Fraction, ...]
    size: int | None = None
    rounding: Fraction = Fraction(0)  # of z

    def _parts(self, values: Floats) -> tuple[Floats, Floats, Floats]:
        d = len(self.halves)
        if self.size is not None:
            return np.full(len(values), float(self.size)), values[:, :d], values[:, d:]
        return values[:, 0], values[:, 1 : 1 + d], values[:, 1 + d :]

    def _scaled(self, entries: Floats) -> Floats:
        half = np.array([float(h) for h in self.halves])
        rows, columns = np.triu_indices(len(half))
        scaled: Floats = entries * half[rows] * half[columns]
        return scaled

    def value(self, released: Released) -> Floats:
        """The upper triangle, row by row; zero where the noisy count is not positive."""
        n, sums, products = self._parts(released.values())
        rows, columns = np.triu_indices(len(self.halves))
        some = np.where(n > 0, n, 1.0)[:, None]
        means, squares = np.clip(sums / some, -1.0, 1.0), np.clip(products / some, -1.0, 1.0)
        found = np.clip(squares - means[:, rows] * means[:, columns], np.where(rows == columns, 0.0, -1.0), 1.0)
        return self._scaled(np.where((n > 0)[:, None], found, 0.0))

    def least(self, released: Released, beta: float) -> Floats:
        """The lower end of the count's interval."""
        if self.size is not None:
            return np.full(released.cells, float(self.size))
        return least_total(released, slice(1), beta)

    def bounds(self) -> tuple[Floats, Floats]:
        """As far as the declared bounds allow; a variance is never negative."""
        rows, columns = np.triu_indices(len(self.halves))
        most = self._scaled(np.ones((1, len(rows))))[0]
        return np.where(rows == columns, 0.0, -most), most

    def interval(self, released: Released, beta: float) -> tuple[Floats, Floats]:
        """Every entry that its sums allow, whatever the means are that they allow."""
        (n, sums, products), noises = self._parts(released.values()), self._noises(released)
        rows, columns = np.triu_indices(len(self.halves))
        same, other = np.flatnonzero(rows == columns), np.flatnonzero(rows != columns)
        low, high = np.empty_like(products), np.empty_like(products)
        low[:, same], high[:, same] = variances(n, sums, products[:, same], noises, beta)
        pairs = rows[other], columns[other]
        low[:, other], high[:, other] = covariances(n, sums, products[:, other], noises, beta, pairs=pairs, ddof=0)
        # Deviations of z are at most 1: moving z by r moves a covariance by at most 2r + r^2.
        away, (least, most) = float(self.rounding * (2 + self.rounding)), self.bounds()
        low, high = (np.clip(self._scaled(end), least, most) for end in (low - away, high + away))
        value = self.value(released)
        return np.minimum(low, value), np.maximum(high, value)

    def _noises(self, released: Released) -> tuple[Noise | None, Noise, Noise]:
        """The noise of the count, of the sums and of the products."""
        each = [noise for noise in released.noise for _ in range(noise.width)]
        return (None if self.size is not None else each.pop(0)), each[0], each[len(self.halves)]


Moments = Average | Mean | CentredMean | Spread | SizedSpread | Covariance
Ordered = Picked | Quantile | Quantiles | ChosenQuantile | ChosenExtreme | CountedFirst | SeveralQuantiles
Reading = Plain | Estimated | Chosen | FirstAbove | Placed | Moments | Ordered
