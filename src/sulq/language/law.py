"""Noise laws with their accuracy: exact mathematics of integer noise, without any sampling.

Each is the kernel's law of the same name. It knows its probabilities, its variance and how far off
it can be, so that both ends of a wire tell the same accuracy. An answer is units times the step of its grid.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from fractions import Fraction
from statistics import NormalDist
from typing import Final, get_args

import numpy as np

from sulq.kernel import laws
from sulq.kernel.laws import (
    LARGEST_COINS,
    LARGEST_SCALE,
    SMALLEST_SCALE,
    gaussian_tail,
    up,
)
from sulq.kernel.private import Floats
from sulq.language.coin_table import MARGIN, REACH, UNDERFLOW, coin_table
from sulq.language.tails import (
    LOOSE,
    MIN_BETA,
    PassedNumber,
    check_beta,
    first_within,
    gaussian_mass,
    gaussian_tails,
    smallest,
    tail_at,
)

__all__ = [
    "LARGEST_COINS", "LARGEST_SCALE", "MIN_BETA", "SMALLEST_SCALE", "AboveLaw", "BinomialLaw", "BitLaw",
    "ExponentialLaw", "FlipLaw", "GaussianLaw", "LaplaceLaw", "Law", "MetricLaw", "Passed", "PassedGaussianLaw",
    "PassedLaplaceLaw", "PassedLaw", "accurate", "round_up",
]  # fmt: skip

_NORMAL: Final = NormalDist()
_TABLE_SCALE: Final = 64.0


def round_up(number: Fraction) -> Fraction:
    """Smallest double at or above a positive number: a scale that is short to write, and priced as it is."""
    nearest = float(number)
    return Fraction(nearest if Fraction(nearest) >= number else math.nextafter(nearest, math.inf))


@dataclass(frozen=True, slots=True)
class LaplaceLaw(laws.LaplaceLaw):
    """Integer noise with P(z) proportional to exp(-|z|/scale).

    Accuracy: P(|Z| > t) = 2 a^(t+1)/(1 + a), a = exp(-1/scale) [X2].
    Source: DMNS06, Proposition 1, on the integers; the variance is 2a/(1-a)^2,
    near 2 scale^2 and not scale^2 (E01). The other papers' Laplace mechanisms are
    this one, corrected [S2.4, S2.5, S3.5, S4.2; E25, E27, E28, E40].
    """

    def pmf(self, z: int) -> float:
        """Probability of noise z."""
        rate = 1.0 / float(self.scale)
        return math.tanh(rate / 2.0) * math.exp(-abs(z) * rate)

    def tail(self, t: int) -> float:
        """Probability that the noise is farther than t from zero, rounded up."""
        if t < 0:
            return 1.0
        scale = float(self.scale)
        return up(2.0 * math.exp(-(t + 1) / scale) / (1.0 + math.exp(-1.0 / scale)))

    def accuracy(self, beta: float) -> int:
        """Smallest t that the noise passes with probability at most beta."""
        check_beta(beta)
        scale = float(self.scale)
        reach = scale * (math.log(2.0 * (1.0 + MARGIN) / beta) - math.log1p(math.exp(-1.0 / scale)))
        return smallest(self.tail, math.ceil(reach) - 1, beta)

    def variance(self) -> float:
        """Variance in squared grid units."""
        rate = 1.0 / float(self.scale)
        return 2.0 * math.exp(-rate) / math.expm1(-rate) ** 2


class _GaussianNoise:
    """The accuracy of discrete Gaussian noise of a scale."""

    __slots__ = ()
    scale: Fraction

    def pmf(self, z: int) -> float:
        """Probability of noise z."""
        scale = float(self.scale)
        return math.exp(-0.5 * (z / scale) ** 2) / gaussian_mass(scale)

    def tail(self, t: int) -> float:
        """Probability that the noise is farther than t from zero, rounded up."""
        if t < 0:
            return 1.0
        scale = float(self.scale)
        return tail_at(gaussian_tails(scale), t) if scale <= _TABLE_SCALE else gaussian_tail(self.scale, t)

    def accuracy(self, beta: float) -> int:
        """Smallest t that the noise passes with probability at most beta."""
        check_beta(beta)
        scale = float(self.scale)
        if scale <= _TABLE_SCALE:
            return first_within(gaussian_tails(scale), beta)
        reach = -_NORMAL.inv_cdf(beta / (2.0 * (1.0 + MARGIN))) * scale
        return smallest(self.tail, math.ceil(reach - 0.5), beta)

    def variance(self) -> float:
        """Variance in squared grid units; never above scale^2 [CKS20]."""
        scale = float(self.scale)
        if scale >= 2.0:  # the difference from scale^2 is below exp(-70) of it
            return scale * scale
        z = np.arange(1, math.ceil(REACH * scale) + 2, dtype=np.float64)
        return float(2.0 * np.sum(z * z * np.exp(-0.5 * (z / scale) ** 2)) / gaussian_mass(scale))


@dataclass(frozen=True, slots=True)
class GaussianLaw(_GaussianNoise, laws.GaussianLaw):
    """Integer noise with P(z) proportional to exp(-z^2/(2 scale^2)).

    Accuracy: the exact sum where the scale is small; above, the normal tail
    from t + 1/2 with its Euler-Maclaurin correction, rounded up
    (docs/theory/discrete-gaussian.md).
    Source: CKS20, Definition 1.
    """


@dataclass(frozen=True, slots=True)
class BinomialLaw(laws.BinomialLaw):
    """The number of heads among `coins` fair coins, less coins/2; coins is even.

    Accuracy: the exact sum of binomial probabilities, rounded up; the first
    call for a number of coins builds a table (a few milliseconds at 2^24).
    Source: the noise of the SuLQ survey [S1.5]; variance coins/4 (E08).
    """

    def pmf(self, z: int) -> float:
        """Probability of noise z."""
        table = coin_table(self.coins)[0]
        return float(table[abs(z)]) if abs(z) < len(table) else 0.0

    def probabilities(self) -> Floats:
        """Probabilities of noise 0, 1, 2, ... to coins/2, or as far as doubles reach."""
        return coin_table(self.coins)[0]

    def tail(self, t: int) -> float:
        """Probability that the noise is farther than t from zero, rounded up."""
        if t < 0:
            return 1.0
        if t >= self.coins // 2:
            return 0.0  # the support ends at coins/2
        table = coin_table(self.coins)[1]
        return tail_at(table, t)

    def accuracy(self, beta: float) -> int:
        """Smallest t that the noise passes with probability at most beta."""
        check_beta(beta)
        return min(first_within(coin_table(self.coins)[1], beta), self.coins // 2)

    def variance(self) -> float:
        """Variance in squared grid units."""
        return self.coins / 4.0


class _Choice:
    """How far below the best score a chosen candidate's may be, in whole units of score."""

    __slots__ = ()
    scale: Fraction
    candidates: int

    def pmf(self, z: int) -> float:
        """Probability that of two candidates the one z below the other is drawn."""
        weight = math.exp(-abs(z) / float(self.scale))
        return (weight if z >= 0 else 1.0) / (1.0 + weight)

    def tail(self, t: int) -> float:
        """Probability that the chosen score is more than t below the best, rounded up, whatever the scores are.

        Accuracy: at most x/(1 + x), x = (candidates - 1) exp(-(t+1)/scale): what the bad ones
        weigh together beside the best, or how many of them show heads on average
        (docs/theory/choose.md) [S3.9].
        """
        if t < 0:
            return 1.0
        weight = (self.candidates - 1) * math.exp(-(t + 1) / float(self.scale))
        return up(weight / (1.0 + weight)) if self.candidates > 1 else 0.0

    def accuracy(self, beta: float) -> int:
        """Smallest t such that the chosen score is within t of the best except with probability beta."""
        check_beta(beta)
        if self.candidates == 1:
            return 0
        reach = float(self.scale) * (math.log(self.candidates - 1) + math.log1p(-beta) - math.log(beta))
        return smallest(self.tail, math.ceil(reach) - 1, beta)

    def variance(self) -> float:
        """Mean square of how far below the best, at most: P(more than t below) <= (candidates - 1) exp(-t/scale)."""
        if self.candidates == 1:
            return 0.0
        scale = float(self.scale)
        near = scale * math.log(self.candidates - 1)
        return near**2 + 2.0 * near * scale + 2.0 * scale**2


@dataclass(frozen=True, slots=True)
class FlipLaw(_Choice, laws.FlipLaw):
    """Each candidate flips a coin of bias exp(-gap/scale), gap its distance below the best; one of the heads is drawn.

    Accuracy: as the exponential choice of the same scale, or better.
    Source: permute-and-flip [MS20]; docs/theory/choose.md.
    """

    def pmf(self, z: int) -> float:
        """Probability that of two candidates the one z below the other is drawn."""
        weight = math.exp(-abs(z) / float(self.scale)) / 2.0
        return weight if z >= 0 else 1.0 - weight


@dataclass(frozen=True, slots=True)
class ExponentialLaw(_Choice, laws.ExponentialLaw):
    """A candidate is drawn with probability proportional to exp(+score/scale).

    Accuracy: `tail`. Source: the exponential mechanism [S3.9], with the sign of a
    utility (E29); docs/theory/choose.md.
    """


@dataclass(frozen=True, slots=True)
class MetricLaw(_Choice, laws.MetricLaw):
    """A point of a finite metric space is drawn with probability proportional to exp(-distance/scale).

    The distance is that from the exact value, so near points are likely: the sign is a minus (E42).
    Accuracy: `tail`, in whole units of distance past the nearest point. Source: DMNS06, section 3.3 [S4.15].
    """


@dataclass(frozen=True, slots=True)
class BitLaw(laws.BitLaw):
    """A bit is flipped with probability 1/(1 + e^(1/scale)), whatever it is [S4.16, E43].

    Accuracy: exact; noise is 0, or 1 where the bit was flipped.
    """

    @property
    def flipped(self) -> float:
        """Probability that a bit is flipped."""
        weight = math.exp(-1.0 / float(self.scale))
        return weight / (1.0 + weight)

    def pmf(self, z: int) -> float:
        """Probability that a bit is flipped (z = 1), or is not (0)."""
        return self.flipped if z == 1 else 1.0 - self.flipped if z == 0 else 0.0

    def tail(self, t: int) -> float:
        """Probability that a bit is more than t off, rounded up."""
        return 1.0 if t < 0 else up(self.flipped) if t == 0 else 0.0

    def accuracy(self, beta: float) -> int:
        """0 where flips are rarer than beta, else 1: how far off a bit may be."""
        check_beta(beta)
        return 0 if self.tail(0) <= beta else 1

    def variance(self) -> float:
        """Mean square of how far off a bit is."""
        return self.flipped


@dataclass(frozen=True, slots=True)
class PassedLaw(_GaussianNoise, PassedNumber, laws.PassedLaw):
    """Discrete Gaussian noise on a group's number of people, seen only where the sum is above the threshold.

    Accuracy: `tail`, `accuracy` and `variance` are those of the noise before the
    threshold looks at it; `ends` is an interval given that the group has passed (SR14).
    Source: docs/theory/open-keys.md.
    """


@dataclass(frozen=True, slots=True)
class PassedGaussianLaw(PassedNumber, laws.PassedGaussianLaw):
    """Discrete Gaussian noise, none of it past the threshold, on a number of people seen only above the threshold.

    Accuracy: the law of Gaussian noise Z given |Z| <= threshold; otherwise as `PassedLaw`. Its tail is a difference of
    two, each known to `LOOSE`.
    """

    @property
    def _whole(self) -> GaussianLaw:
        return GaussianLaw(self.scale)

    def pmf(self, z: int) -> float:
        """Probability of noise z."""
        return self._whole.pmf(z) / (1.0 - self._whole.tail(self.threshold)) if abs(z) <= self.threshold else 0.0

    def tail(self, t: int) -> float:
        """Probability that the noise is farther than t from zero, rounded up."""
        if t < 0 or t >= self.threshold:
            return 1.0 if t < 0 else 0.0
        cut = self._whole.tail(self.threshold)
        return up((self._whole.tail(t) - cut * (1.0 - LOOSE)) / (1.0 - cut))

    def at_least(self, z: int) -> tuple[float, float]:
        """Probability that the noise is z or more, rounded down and rounded up."""
        t = z - 1 if z > 0 else -z
        least = (self._whole.tail(t) * (1.0 - LOOSE) - self._whole.tail(self.threshold)) / 2.0
        within, beyond = max(least - UNDERFLOW, 0.0), self.tail(t) / 2.0
        return (within, beyond) if z > 0 else (1.0 - beyond, 1.0 - within)

    def accuracy(self, beta: float) -> int:
        """Smallest t that the noise passes with probability at most beta."""
        return smallest(self.tail, min(self._whole.accuracy(beta), self.threshold), beta)

    def variance(self) -> float:
        """Variance in squared grid units; of wide noise that of the normal law within the threshold."""
        scale = float(self.scale)
        if scale <= _TABLE_SCALE:
            z = np.arange(1, min(self.threshold, math.ceil(REACH * scale)) + 1, dtype=np.float64)
            weights = np.exp(-0.5 * (z / scale) ** 2)
            return float(2.0 * np.sum(z * z * weights) / (1.0 + 2.0 * np.sum(weights)))
        end = (self.threshold + 0.5) / scale
        return scale * scale * (1.0 - 2.0 * end * _NORMAL.pdf(end) / (1.0 - 2.0 * _NORMAL.cdf(-end)))


@dataclass(frozen=True, slots=True)
class PassedLaplaceLaw(PassedNumber, laws.PassedLaplaceLaw):
    """Discrete Laplace noise, none of it past the threshold, on a number of people seen only above the threshold.

    Accuracy: the law of Laplace noise Z given |Z| <= threshold; otherwise as `PassedLaw`.
    Source: truncated geometric noise [DVGM22]; docs/theory/open-keys.md.
    """

    def _kept(self) -> float:
        """Probability that Laplace noise is within the threshold."""
        rate = 1.0 / float(self.scale)
        return 1.0 - 2.0 * math.exp(-(self.threshold + 1) * rate) / (1.0 + math.exp(-rate))

    def pmf(self, z: int) -> float:
        """Probability of noise z."""
        rate = 1.0 / float(self.scale)
        return math.tanh(rate / 2.0) * math.exp(-abs(z) * rate) / self._kept() if abs(z) <= self.threshold else 0.0

    def tail(self, t: int) -> float:
        """Probability that the noise is farther than t from zero, rounded up."""
        if t < 0 or t >= self.threshold:
            return 1.0 if t < 0 else 0.0
        rate = 1.0 / float(self.scale)
        beyond = math.exp(-(t + 1) * rate) * -math.expm1((t - self.threshold) * rate)
        return up(2.0 * beyond / (1.0 + math.exp(-rate)) / self._kept())

    def accuracy(self, beta: float) -> int:
        """Smallest t that the noise passes with probability at most beta."""
        check_beta(beta)
        return smallest(self.tail, min(LaplaceLaw(self.scale).accuracy(beta), self.threshold), beta)

    def variance(self) -> float:
        """Variance in squared grid units: what is cut off lies past the threshold."""
        a = math.exp(-1.0 / float(self.scale))
        last = self.threshold + 1
        # sum of z^2 a^z from `last` on, over that of a^z from there: moments of last + a geometric number
        beyond = last**2 + 2.0 * last * a / (1.0 - a) + a * (1.0 + a) / (1.0 - a) ** 2
        kept = self._kept()
        return (LaplaceLaw(self.scale).variance() - (1.0 - kept) * beyond) / kept


@dataclass(frozen=True, slots=True)
class AboveLaw(laws.AboveLaw):
    """Discrete Laplace noise on each of `sums` sums and, of a scale of its own, on the threshold they share.

    A `threshold_scale` of 0 leaves the threshold as it is. The first sum whose noisy
    value is at or above its noisy threshold is told; noise enters as W, the sum's less
    the threshold's, symmetric about zero.
    Accuracy: `tail`. Source: docs/theory/above.md.
    """

    def pmf(self, z: int) -> float:
        """Probability that a sum z below its threshold passes it."""
        return self._beyond(z - 1) if z > 0 else 1.0 - self._beyond(-z)

    def tail(self, t: int) -> float:
        """Probability, at most, that the found sum or one before it is on the wrong side by more than t.

        Accuracy: of each sum only one of both can go wrong, and needs W beyond t on one
        side; so at most P(W > t) for each sum, the exact one, rounded up.
        """
        return 1.0 if t < 0 else up(self.sums * self._beyond(t))

    def accuracy(self, beta: float) -> int:
        """Smallest t such that nothing is on the wrong side by more than t except with probability beta."""
        check_beta(beta)
        widest = float(max(self.scale, self.threshold_scale))
        return smallest(self.tail, math.ceil(widest * math.log(self.sums / beta)), beta)

    def variance(self) -> float:
        """Variance of W in squared grid units."""
        noises = [scale for scale in (self.scale, self.threshold_scale) if scale]
        return math.fsum(LaplaceLaw(scale).variance() for scale in noises)

    def _beyond(self, t: int) -> float:
        """P(W > t) for t of 0 or more.

        With a and c the two ratios e^(-1/scale), P(W = n) is proportional to (a^n + c^n) ac/(1 - ac) +
        (a^(n+1) - c^(n+1))/(a - c) for n >= 0; summed over n > t. Scales nearly but not
        quite equal would cancel and are both taken as the larger one, which is never too small.
        """
        x = 1.0 / float(self.scale)
        if not self.threshold_scale:
            return math.exp(-(t + 1) * x) / (1.0 + math.exp(-x))
        x, y = sorted((x, 1.0 / float(self.threshold_scale)))
        y = x if y < x * 1.001 else y
        mass = math.tanh(x / 2.0) * math.tanh(y / 2.0)
        first, second = math.exp(-(t + 1) * x) / -math.expm1(-x), math.exp(-(t + 1) * y) / -math.expm1(-y)
        outside = (first + second) * math.exp(-(x + y)) / -math.expm1(-(x + y))
        if x == y:
            between = first * (1.0 - (t + 1) * math.expm1(-x)) / -math.expm1(-x)
        else:
            between = (first - math.exp(x - y) * second) / -math.expm1(x - y)
        return mass * (outside + between)


Passed = PassedLaw | PassedGaussianLaw | PassedLaplaceLaw
Law = LaplaceLaw | GaussianLaw | BinomialLaw | FlipLaw | ExponentialLaw | MetricLaw | BitLaw | Passed | AboveLaw
_LAWS: Final[dict[str, type[Law]]] = {law.kind: law for law in get_args(Law)}


def accurate(law: laws.Law) -> Law:
    """A law of the kernel's, with its accuracy."""
    return _LAWS[law.kind](**{field.name: getattr(law, field.name) for field in fields(law)})
