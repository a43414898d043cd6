"""Noise laws with their accuracy: exact mathematics of integer noise, without any sampling.

Each is the kernel's law of the same name. It knows its probabilities, its variance and how far off
it can be, so that both ends of a wire tell the same accuracy. An answer is units times the step of its grid.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass, fields
from fractions import Fraction
from statistics import NormalDist
from typing import Final, get_args

import numpy as np

from sulq.errors import QuestionError
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

__all__ = [
    "LARGEST_COINS", "LARGEST_SCALE", "MIN_BETA", "SMALLEST_SCALE", "AboveLaw", "BinomialLaw", "BitLaw",
    "ExponentialLaw", "FlipLaw", "GaussianLaw", "LaplaceLaw", "Law", "MetricLaw", "PassedLaw", "accurate",
    "round_up",
]  # fmt: skip

MIN_BETA: Final = 1e-300

_LOOSE: Final = 3e-6  # how far above the true one a tail below may be, relatively
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
        _check_beta(beta)
        scale = float(self.scale)
        reach = scale * (math.log(2.0 * (1.0 + MARGIN) / beta) - math.log1p(math.exp(-1.0 / scale)))
        return _smallest(self.tail, math.ceil(reach) - 1, beta)

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
        return _at(_gaussian_tails(scale), t) if scale <= _TABLE_SCALE else gaussian_tail(self.scale, t)

    def accuracy(self, beta: float) -> int:
        """Smallest t that the noise passes with probability at most beta."""
        _check_beta(beta)
        scale = float(self.scale)
        if scale <= _TABLE_SCALE:
            return _first_within(_gaussian_tails(scale), beta)
        reach = -_NORMAL.inv_cdf(beta / (2.0 * (1.0 + MARGIN))) * scale
        return _smallest(self.tail, math.ceil(reach - 0.5), beta)

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
        return _at(table, t)

    def accuracy(self, beta: float) -> int:
        """Smallest t that the noise passes with probability at most beta."""
        _check_beta(beta)
        return min(_first_within(coin_table(self.coins)[1], beta), self.coins // 2)

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
        _check_beta(beta)
        if self.candidates == 1:
            return 0
        reach = float(self.scale) * (math.log(self.candidates - 1) + math.log1p(-beta) - math.log(beta))
        return _smallest(self.tail, math.ceil(reach) - 1, beta)

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
        _check_beta(beta)
        return 0 if self.tail(0) <= beta else 1

    def variance(self) -> float:
        """Mean square of how far off a bit is."""
        return self.flipped


@dataclass(frozen=True, slots=True)
class PassedLaw(_GaussianNoise, laws.PassedLaw):
    """Discrete Gaussian noise on a group's number of people, seen only where the sum is above the threshold.

    Accuracy: `tail`, `accuracy` and `variance` are those of the noise before the
    threshold looks at it; `ends` is an interval given that the group has passed (SR14).
    Source: docs/theory/open-keys.md.
    """

    def at_least(self, z: int) -> tuple[float, float]:
        """Probability that the noise is z or more, rounded down and rounded up."""
        beyond = self.tail(z - 1 if z > 0 else -z) / 2.0
        within = max(beyond * (1.0 - _LOOSE) - UNDERFLOW, 0.0)
        return (within, beyond) if z > 0 else (1.0 - beyond, 1.0 - within)

    def ends(self, noisy: int, beta: float) -> tuple[int, int]:
        """From how many people to how many, given that this number was released.

        Accuracy: n is kept unless, given n people and that they passed, a number as
        large as this one, or one as small, has probability below beta/2. Both
        probabilities are monotone in n, so the kept n are an interval; a released group
        has at least one person. All is rounded so that the interval is never too short.
        """
        radius, far = self.accuracy(beta * (1.0 - 1e-9)), self.accuracy(1e-12)
        if noisy - radius > self.threshold + far:  # such n pass but for 1e-12: the condition is no news
            return noisy - radius, noisy + radius

        def large(n: int) -> bool:
            return self.at_least(noisy - n)[1] >= beta / 2.0 * self.at_least(self.threshold + 1 - n)[0]

        def not_small(n: int) -> bool:
            return self.at_least(noisy + 1 - n)[0] > (1.0 - beta / 2.0) * self.at_least(self.threshold + 1 - n)[1]

        low = _first(large, 1, max(noisy, 1))
        high = _first(not_small, 1, max(noisy, 1) + self.accuracy(beta / 4.0) + 1) - 1
        return low, max(low, high)


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
        _check_beta(beta)
        widest = float(max(self.scale, self.threshold_scale))
        return _smallest(self.tail, math.ceil(widest * math.log(self.sums / beta)), beta)

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


Law = LaplaceLaw | GaussianLaw | BinomialLaw | FlipLaw | ExponentialLaw | MetricLaw | BitLaw | PassedLaw | AboveLaw
_LAWS: Final[dict[str, type[Law]]] = {law.kind: law for law in get_args(Law)}


def gaussian_mass(scale: float) -> float:
    """Sum of exp(-z^2/(2 scale^2)) over the integers, by whichever series is short."""
    if scale < 1.0:
        return 1.0 + 2.0 * math.fsum(math.exp(-0.5 * (z / scale) ** 2) for z in range(1, 12))
    # Poisson summation: the mass is that of the normal, times 1 + 2 sum exp(-2 pi^2 scale^2 k^2).
    ripple = math.fsum(math.exp(-2.0 * (math.pi * scale * k) ** 2) for k in range(1, 4))
    return scale * math.sqrt(2.0 * math.pi) * (1.0 + 2.0 * ripple)


@functools.lru_cache(maxsize=256)
def _gaussian_tails(scale: float) -> Floats:
    """P(|Z| > t) for t = 0, 1, ... as far as doubles reach: what the kernel's `gaussian_tail` gives, to the bit."""
    z = np.arange(1, math.ceil(REACH * scale) + 2, dtype=np.float64)
    beyond = np.cumsum(np.exp(-0.5 * (z / scale) ** 2)[::-1])[::-1]
    tails: Floats = np.minimum(1.0, 2.0 * beyond / (1.0 + 2.0 * beyond[0]) * (1.0 + MARGIN) + UNDERFLOW)
    tails.flags.writeable = False
    return tails


def _at(tails: Floats, t: int) -> float:
    return float(tails[t]) if t < len(tails) else up(0.0)


def accurate(law: laws.Law) -> Law:
    """A law of the kernel's, with its accuracy."""
    return _LAWS[law.kind](**{field.name: getattr(law, field.name) for field in fields(law)})


def _check_beta(beta: float) -> None:
    if isinstance(beta, bool) or not isinstance(beta, (int, float)) or not MIN_BETA <= beta < 1:
        raise QuestionError("bad-question", "beta must be a probability of at least 1e-300 and below 1.")


def _smallest(tail: Callable[[int], float], guess: int, beta: float) -> int:
    """Smallest t >= 0 with tail(t) <= beta, from a guess that is nearly right."""
    high, stride = max(guess, 0), 1
    while tail(high) > beta:
        high, stride = high + stride, 2 * stride
    low, stride = high - 1, 1
    while low >= 0 and tail(low) <= beta:
        low, high, stride = low - stride, low, 2 * stride
    low = max(low, -1)  # nothing below zero: tail(-1) is 1
    while high - low > 1:
        middle = (low + high) // 2
        if tail(middle) <= beta:
            high = middle
        else:
            low = middle
    return high


def _first(holds: Callable[[int], bool], low: int, high: int) -> int:
    """Smallest whole number from low to high at which a condition holds that stays true once it is; else high."""
    while low < high:
        middle = (low + high) // 2
        if holds(middle):
            high = middle
        else:
            low = middle + 1
    return low


def _first_within(descending: Floats, beta: float) -> int:
    return len(descending) - int(np.searchsorted(descending[::-1], beta, side="right"))
