"""Noise laws: exact mathematics of integer noise, without any sampling.

All noise is an integer number of grid units; an answer is units times the
step of its grid. A law knows its probabilities, its variance and how far off
it can be, so that both ends of a wire tell the same accuracy.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from statistics import NormalDist
from typing import ClassVar, Final

import numpy as np
import numpy.typing as npt

from sulq.errors import QuestionError

Floats = npt.NDArray[np.float64]

SMALLEST_SCALE: Final = Fraction(1, 1024)  # a sensitivity of one unit at the largest epsilon there is (1000)
LARGEST_SCALE: Final = Fraction(2**50)  # noise stays 2^12 scales away from the ends of 64 bits (T5)
LARGEST_COINS: Final = 2**24  # 2 MiB of fresh bits per answer
SMALLEST_BETA: Final = 1e-300

# Every tail below is a few hundred float operations of relative error 2^-52 on
# arguments below 800, or a running sum of fewer than 10^5 positive terms.
_MARGIN: Final = 1e-10
_UNDERFLOW: Final = 1e-305
_NORMAL: Final = NormalDist()
_TABLE_SCALE: Final = 64.0
_REACH: Final = 40.0  # exp(-40^2/2) is below the smallest double


def round_up(number: Fraction) -> Fraction:
    """Smallest double at or above a positive number: the sampler takes its scale as a double."""
    nearest = float(number)
    return Fraction(nearest if Fraction(nearest) >= number else math.nextafter(nearest, math.inf))


@dataclass(frozen=True, slots=True)
class LaplaceLaw:
    """Integer noise with P(z) proportional to exp(-|z|/scale).

    Accuracy: P(|Z| > t) = 2 a^(t+1)/(1 + a), a = exp(-1/scale) [X2].
    Source: DMNS06, Proposition 1, on the integers; the variance is 2a/(1-a)^2,
    near 2 scale^2 and not scale^2 (E01).
    """

    scale: Fraction
    kind: ClassVar[str] = "laplace"

    def __post_init__(self) -> None:
        _check_scale(self.scale)

    def pmf(self, z: int) -> float:
        """Probability of noise z."""
        rate = 1.0 / float(self.scale)
        return math.tanh(rate / 2.0) * math.exp(-abs(z) * rate)

    def tail(self, t: int) -> float:
        """Probability that the noise is farther than t from zero, rounded up."""
        if t < 0:
            return 1.0
        scale = float(self.scale)
        return _up(2.0 * math.exp(-(t + 1) / scale) / (1.0 + math.exp(-1.0 / scale)))

    def accuracy(self, beta: float) -> int:
        """Smallest t that the noise passes with probability at most beta."""
        _check_beta(beta)
        scale = float(self.scale)
        reach = scale * (math.log(2.0 * (1.0 + _MARGIN) / beta) - math.log1p(math.exp(-1.0 / scale)))
        return _smallest(self.tail, math.ceil(reach) - 1, beta)

    def variance(self) -> float:
        """Variance in squared grid units."""
        rate = 1.0 / float(self.scale)
        return 2.0 * math.exp(-rate) / math.expm1(-rate) ** 2


@dataclass(frozen=True, slots=True)
class GaussianLaw:
    """Integer noise with P(z) proportional to exp(-z^2/(2 scale^2)).

    Accuracy: the exact sum where the scale is small; above, the normal tail
    from t + 1/2 with its Euler-Maclaurin correction, rounded up
    (docs/theory/discrete-gaussian.md).
    Source: CKS20, Definition 1.
    """

    scale: Fraction
    kind: ClassVar[str] = "gaussian"

    def __post_init__(self) -> None:
        _check_scale(self.scale)

    def pmf(self, z: int) -> float:
        """Probability of noise z."""
        scale = float(self.scale)
        return math.exp(-0.5 * (z / scale) ** 2) / _gaussian_mass(scale)

    def tail(self, t: int) -> float:
        """Probability that the noise is farther than t from zero, rounded up."""
        if t < 0:
            return 1.0
        scale = float(self.scale)
        if scale <= _TABLE_SCALE:
            table = _gaussian_tails(scale)
            return float(table[t]) if t < len(table) else _up(0.0)
        return _gaussian_tail(scale, t)

    def accuracy(self, beta: float) -> int:
        """Smallest t that the noise passes with probability at most beta."""
        _check_beta(beta)
        scale = float(self.scale)
        if scale <= _TABLE_SCALE:
            return _first_within(_gaussian_tails(scale), beta)
        reach = -_NORMAL.inv_cdf(beta / (2.0 * (1.0 + _MARGIN))) * scale
        return _smallest(lambda t: _gaussian_tail(scale, t), math.ceil(reach - 0.5), beta)

    def variance(self) -> float:
        """Variance in squared grid units; never above scale^2 [CKS20]."""
        scale = float(self.scale)
        if scale >= 2.0:  # the difference from scale^2 is below exp(-70) of it
            return scale * scale
        z = np.arange(1, math.ceil(_REACH * scale) + 2, dtype=np.float64)
        return float(2.0 * np.sum(z * z * np.exp(-0.5 * (z / scale) ** 2)) / _gaussian_mass(scale))


@dataclass(frozen=True, slots=True)
class BinomialLaw:
    """The number of heads among `coins` fair coins, less coins/2; coins is even.

    Accuracy: the exact sum of binomial probabilities, rounded up; the first
    call for a number of coins builds a table (a few milliseconds at 2^24).
    Source: the noise of the SuLQ survey [S1.5]; variance coins/4 (E08).
    """

    coins: int
    kind: ClassVar[str] = "binomial"

    def __post_init__(self) -> None:
        if isinstance(self.coins, bool) or not isinstance(self.coins, int) or self.coins % 2:
            raise QuestionError("too-little-noise", "The number of coins must be even: odd ones give half units.")
        if not 2 <= self.coins <= LARGEST_COINS:
            raise QuestionError("too-little-noise", f"The number of coins must lie between 2 and {LARGEST_COINS}.")

    def pmf(self, z: int) -> float:
        """Probability of noise z."""
        table = _coin_table(self.coins)[0]
        return float(table[abs(z)]) if abs(z) < len(table) else 0.0

    def probabilities(self) -> Floats:
        """Probabilities of noise 0, 1, 2, ... to coins/2, or as far as doubles reach."""
        return _coin_table(self.coins)[0]

    def tail(self, t: int) -> float:
        """Probability that the noise is farther than t from zero, rounded up."""
        if t < 0:
            return 1.0
        if t >= self.coins // 2:
            return 0.0  # the support ends at coins/2
        table = _coin_table(self.coins)[1]
        return float(table[t]) if t < len(table) else _up(0.0)

    def accuracy(self, beta: float) -> int:
        """Smallest t that the noise passes with probability at most beta."""
        _check_beta(beta)
        return min(_first_within(_coin_table(self.coins)[1], beta), self.coins // 2)

    def variance(self) -> float:
        """Variance in squared grid units."""
        return self.coins / 4.0


Law = LaplaceLaw | GaussianLaw | BinomialLaw


def _check_scale(scale: Fraction) -> None:
    if not isinstance(scale, Fraction):
        raise TypeError("a scale is an exact Fraction")
    if not SMALLEST_SCALE <= scale <= LARGEST_SCALE:
        raise QuestionError(
            "too-little-noise",
            f"The noise scale must lie between {float(SMALLEST_SCALE):g} and {float(LARGEST_SCALE):g} grid units.",
        )


def _check_beta(beta: float) -> None:
    if isinstance(beta, bool) or not isinstance(beta, (int, float)) or not SMALLEST_BETA <= beta < 1:
        raise QuestionError("bad-question", "beta must be a probability of at least 1e-300 and below 1.")


def _up(probability: float) -> float:
    return min(1.0, probability * (1.0 + _MARGIN) + _UNDERFLOW)


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


def _first_within(descending: Floats, beta: float) -> int:
    return len(descending) - int(np.searchsorted(descending[::-1], beta, side="right"))


def _gaussian_mass(scale: float) -> float:
    """Sum of exp(-z^2/(2 scale^2)) over the integers, by whichever series is short."""
    if scale < 1.0:
        return 1.0 + 2.0 * math.fsum(math.exp(-0.5 * (z / scale) ** 2) for z in range(1, 12))
    # Poisson summation: the mass is that of the normal, times 1 + 2 sum exp(-2 pi^2 scale^2 k^2).
    ripple = math.fsum(math.exp(-2.0 * (math.pi * scale * k) ** 2) for k in range(1, 4))
    return scale * math.sqrt(2.0 * math.pi) * (1.0 + 2.0 * ripple)


@functools.lru_cache(maxsize=256)
def _gaussian_tails(scale: float) -> Floats:
    """P(|Z| > t) for t = 0, 1, ... as far as doubles reach, summed from the far end."""
    z = np.arange(1, math.ceil(_REACH * scale) + 2, dtype=np.float64)
    beyond = np.cumsum(np.exp(-0.5 * (z / scale) ** 2)[::-1])[::-1]
    return _frozen_tails(2.0 * beyond / _gaussian_mass(scale))


def _gaussian_tail(scale: float, t: int) -> float:
    """Upper bound of P(|Z| > t) for scales above 64, tight to 2e-6 or better."""
    # With f(x) = exp(-x^2/(2 scale^2)) and a = t + 1/2 the sum of f beyond t is
    # at most  int_a f + f'(a)/24 + (1/384) int_a |f''''|,  and where the sixth
    # derivative is positive (u >= 3.3243) at most  int_a f + f'(a)/24 - (7/5760) f'''(a).
    u = (t + 0.5) / scale
    f = math.exp(-0.5 * u * u)
    rest = (7.0 / 5760.0) * (u**3 - 3.0 * u) * f if u >= 3.33 else 3.6 / 384.0
    square = scale * scale
    correction = (rest / square - u * f / 24.0) / square
    return _up(math.erfc(u / math.sqrt(2.0)) + math.sqrt(2.0 / math.pi) * correction)


@functools.lru_cache(maxsize=32)
def _coin_table(coins: int) -> tuple[Floats, Floats]:
    """Probabilities of 0, 1, 2, ... and tails P(|Z| > t), as far as doubles reach."""
    half = coins // 2
    if coins <= 2048:  # exact integers, one rounding each
        ways = [math.comb(coins, half)]
        for z in range(half):
            ways.append(ways[-1] * (half - z) // (half + z + 1))
        beyond = [0]
        for count in reversed(ways[1:]):
            beyond.append(beyond[-1] + count)
        total = 2**coins
        pmf = np.array([count / total for count in ways])
        pmf.flags.writeable = False
        return pmf, _frozen_tails(np.array([2 * count / total for count in reversed(beyond)]))
    # Beyond 40 standard deviations Hoeffding's bound is 2 exp(-800): no double holds it.
    pmf = _coin_pmf(coins, np.arange(math.ceil(_REACH * math.sqrt(coins) / 2.0) + 1, dtype=np.float64))
    beyond_float = np.cumsum(pmf[:0:-1])[::-1]
    pmf.flags.writeable = False
    return pmf, _frozen_tails(2.0 * beyond_float)


def _coin_pmf(coins: int, z: Floats) -> Floats:
    """C(coins, coins/2 + z)/2^coins for many coins, by Stirling's series and the exact entropy term.

    Accuracy: relative error below 1e-11 for 2048 < coins <= 2^24 and ascending 0 <= z <= 20 sqrt(coins) + 1.
    """
    half = coins / 2.0
    x = z / half
    square = x * x
    # (1+x)ln(1+x) + (1-x)ln(1-x) = sum of x^(2j)/(j(2j-1)); the logarithms cancel too much for small x.
    entropy = np.zeros_like(x)
    for j in range(14 if x[-1] > 0.02 else 4, 0, -1):
        entropy = (entropy + 1.0 / (j * (2 * j - 1))) * square
    far = int(np.searchsorted(x, 0.25))
    y = x[far:]
    entropy[far:] = (1.0 + y) * np.log1p(y) + (1.0 - y) * np.log1p(-y)
    exponent = -half * entropy
    correction = _stirling(np.float64(coins)) - _stirling(half + z) - _stirling(half - z)
    pmf: Floats = np.exp(exponent + correction) / np.sqrt(math.pi * half * (1.0 - square))
    return pmf


def _stirling(n: Floats | np.float64) -> Floats | np.float64:
    return 1.0 / (12.0 * n) - 1.0 / (360.0 * n**3) + 1.0 / (1260.0 * n**5)


def _frozen_tails(tails: Floats) -> Floats:
    tails = np.minimum(1.0, tails * (1.0 + _MARGIN) + _UNDERFLOW)
    tails.flags.writeable = False
    return tails
