"""Noise laws: what noise is drawn, within which limits, and its exact price.

All noise is an integer number of grid units. `epsilon` and `rho` of a law are what it costs to hide a sensitivity,
in grid units: of `norm` l1 as it is, of l2 squared; None where no such loss holds at any price. How far off an answer
may be is told outside, by `sulq.terms.law`, whose laws are these with their accuracy.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import ClassVar, Final, get_args

import numpy as np

from sulq.errors import QuestionError
from sulq.kernel.arrays import Floats

SMALLEST_SCALE: Final = Fraction(1, 1024)  # a sensitivity of one unit at the largest epsilon there is (1000)
LARGEST_SCALE: Final = Fraction(2**50)  # noise stays 2^12 scales away from the ends of 64 bits (T5)
LARGEST_COINS: Final = 2**24  # 2 MiB of fresh bits per answer

# Every tail below is a few hundred float operations of relative error 2^-52 on
# arguments below 800, or a running sum of fewer than 10^5 positive terms.
_MARGIN: Final = 1e-10
_UNDERFLOW: Final = 1e-305
_TABLE_SCALE: Final = 64.0
_REACH: Final = 40.0  # exp(-40^2/2) is below the smallest double


@dataclass(frozen=True, slots=True)
class _Scaled:
    """A law with one scale: a pure loss unless it says otherwise."""

    scale: Fraction
    norm: ClassVar[str] = "l1"

    def __post_init__(self) -> None:
        check_scale(self.scale)

    def epsilon(self, sensitivity: Fraction) -> Fraction | None:
        """Exact pure loss."""
        return sensitivity / self.scale

    def rho(self, sensitivity: Fraction) -> Fraction:
        """Zero-concentrated loss: epsilon^2/2 follows from a pure one [BS16, Proposition 1.4]."""
        return (sensitivity / self.scale) ** 2 / 2


@dataclass(frozen=True, slots=True)
class _Concentrated(_Scaled):
    """A law without a pure loss."""

    norm: ClassVar[str] = "l2"
    weight: ClassVar[int] = 2

    def epsilon(self, sensitivity: Fraction) -> None:
        """None holds."""

    def rho(self, sensitivity: Fraction) -> Fraction:
        """Exact zero-concentrated loss for a squared sensitivity."""
        return sensitivity / (self.weight * self.scale**2)


@dataclass(frozen=True, slots=True)
class LaplaceLaw(_Scaled):
    """Independent integer noise with P(z) proportional to exp(-|z|/scale) on every cell.

    Privacy: if one person moves the integer sums by at most D in L1, the loss is
    epsilon = D/scale, whatever the order of the asks, and exactly that for
    integer D [DMNS06, Proposition 1; S4.7].
    Source: docs/theory/discrete-laplace.md.
    """

    kind: ClassVar[str] = "laplace"


@dataclass(frozen=True, slots=True)
class GaussianLaw(_Concentrated):
    """Independent integer noise with P(z) proportional to exp(-z^2/(2 scale^2)) on every cell.

    Privacy: if one person moves the integer sums by a vector of squared L2 norm
    at most D2, the Renyi divergence of order a is at most a D2/(2 scale^2), so
    rho = D2/(2 scale^2) [CKS20]; no pure epsilon holds.
    Source: docs/theory/discrete-gaussian.md.
    """

    kind: ClassVar[str] = "gaussian"


@dataclass(frozen=True, slots=True)
class BinomialLaw:
    """On every cell the number of heads among `coins` fair coins, less coins/2; coins is even.

    Privacy: neither epsilon nor rho is finite, since the outermost outcome is
    possible from one neighbour only (mass 2^-coins); T answers hold the posterior
    or dp target that `sulq.terms.sublinear.coins_exact` searched the coins for [S1.5, SR8].
    On sums that are not whole numbers of units the fraction would show (trap 8).
    Source: the noise of the SuLQ survey; docs/theory/centred-binomial.md.
    """

    coins: int
    kind: ClassVar[str] = "binomial"
    norm: ClassVar[str] = "l1"

    def __post_init__(self) -> None:
        if isinstance(self.coins, bool) or not isinstance(self.coins, int) or self.coins % 2:
            raise QuestionError("too-little-noise", "The number of coins must be even: odd ones give half units.")
        if not 2 <= self.coins <= LARGEST_COINS:
            raise QuestionError("too-little-noise", f"The number of coins must lie between 2 and {LARGEST_COINS}.")

    def epsilon(self, sensitivity: Fraction) -> None:
        """None holds."""

    def rho(self, sensitivity: Fraction) -> None:
        """None holds: it is priced in queries."""


@dataclass(frozen=True, slots=True)
class _Choice(_Scaled):
    """A law of choices among so many candidates."""

    candidates: int

    def __post_init__(self) -> None:
        check_scale(self.scale)
        if type(self.candidates) is not int or self.candidates < 1:
            raise QuestionError("too-large", "A choice has one candidate or more.")


@dataclass(frozen=True, slots=True)
class FlipLaw(_Choice):
    """Candidates in random order, each flipping a coin of bias exp(-gap/scale); the first heads is chosen.

    The gap is that between the candidate's score and the best.
    Privacy: let one person's rows move the scores of choice g by a span of D_g, the
    largest rise plus the largest fall. The odds of any outcome of choice g change by
    at most e^(D_g/scale), those of all by e^(D/scale), D the sum of the D_g: epsilon =
    D/scale [MS20; docs/theory/choose.md], rho = epsilon^2/2 and no better:
    not epsilon^2/8 (SR4).
    Source: permute-and-flip [MS20]; docs/theory/choose.md.
    """

    kind: ClassVar[str] = "permute_and_flip"


@dataclass(frozen=True, slots=True)
class ExponentialLaw(_Choice, _Concentrated):
    """A candidate with probability proportional to exp(+score/scale): likelier the higher its score (E29).

    Privacy: let one person's rows move the scores of choice g by a span of D_g. The
    log-odds of the outcomes of choice g change within an interval of length
    D_g/scale, so it loses rho = (D_g/scale)^2/8 [CR21, DR19]; all choices together D2/(8 scale^2),
    D2 the sum of the squares [S3.9]. A pure loss holds, but D2 does not tell it; it is not claimed.
    Source: the exponential mechanism [S3.9]; docs/theory/choose.md.
    """

    kind: ClassVar[str] = "exponential"
    weight: ClassVar[int] = 8


@dataclass(frozen=True, slots=True)
class MetricLaw(_Choice):
    """A point of a finite metric space, drawn with probability proportional to exp(-distance/scale).

    The distance is that from the exact value, so near points are likely: the sign is a minus (E42).
    Privacy: one person moves the exact value, and so its distance from any point, by S at most. Each weight
    changes by a factor of e^(S/scale), and so does their total: epsilon = D/scale with D = 2S. Where the
    total is the same whatever the exact value is (a circle all of whose places are points), it does not
    change at all and D = S [DMNS06, Theorem 2 and Remark 1; S4.15].
    Source: docs/theory/metric.md.
    """

    kind: ClassVar[str] = "metric"


@dataclass(frozen=True, slots=True)
class BitLaw(_Scaled):
    """Every bit is flipped by itself with probability 1/(1 + e^(1/scale)), whatever it is [S4.16, E43].

    Privacy: a flip is e^(1/scale) times as likely to be missed as to be made, so each of the S bits
    that one person moves loses 1/scale: epsilon = S/scale, and exactly that; by independence
    rho = S/(2 scale^2) [BS16, Propositions 1.4 and 1.7]. This is the density of E42 with
    scale S/epsilon: its total is the same for every value, so the factor 2 of `MetricLaw` falls away.
    Source: docs/theory/metric.md.
    """

    kind: ClassVar[str] = "bits"

    def rho(self, sensitivity: Fraction) -> Fraction:
        """Zero-concentrated loss where one person moves so many bits."""
        return sensitivity / (2 * self.scale**2)


@dataclass(frozen=True, slots=True)
class PassedLaw(_Concentrated):
    """Discrete Gaussian noise on the number of people of each group; what is not above the threshold becomes 0.

    Privacy: if one person moves the numbers by a vector of squared L2 norm at most D2
    and holds at most m groups alone, the release is delta-approximate rho-zCDP with
    rho = D2/(2 scale^2) and delta = m P(noise >= threshold), the exact tail rounded
    up (T24, T25); no pure epsilon holds [BS16, Definition 8.1].
    Source: docs/theory/open-keys.md.
    """

    threshold: int
    kind: ClassVar[str] = "passed"

    def __post_init__(self) -> None:
        check_scale(self.scale)
        if type(self.threshold) is not int or not 1 <= self.threshold <= 2**61:
            raise QuestionError("too-little-noise", "A threshold is a whole number of people, one or more.")

    def alone(self) -> float:
        """Probability, rounded up, that a group of one person passes: that the noise is `threshold` or more."""
        return gaussian_tail(self.scale, self.threshold - 1) / 2.0


@dataclass(frozen=True, slots=True)
class AboveLaw(_Scaled):
    """Discrete Laplace noise on each of `sums` sums and, of a scale of its own, on the threshold they share.

    A `threshold_scale` of 0 leaves the threshold as it is. The place of the first sum whose noisy
    value is at or above its noisy threshold is told, and nothing else.
    Privacy: let one person move the sums, none by more than R, with a span of S, the largest
    rise plus the largest fall, and by L altogether. Where the threshold is noisy, the odds of
    any place change by at most e^(R/threshold_scale + S/scale) [LSL17]; where it is not, by
    e^(L/scale). So the sensitivity is S + R scale/threshold_scale, or L. How many sums there
    are does not count; S is R where all sums move the same way, else at most 2R.
    Source: docs/theory/above.md.
    """

    threshold_scale: Fraction
    sums: int
    kind: ClassVar[str] = "above"

    def __post_init__(self) -> None:
        check_scale(self.scale)
        if self.threshold_scale != 0:
            check_scale(self.threshold_scale)
        if type(self.sums) is not int or self.sums < 1:
            raise QuestionError("too-large", "A threshold is for one sum or more.")


Law = LaplaceLaw | GaussianLaw | BinomialLaw | FlipLaw | ExponentialLaw | MetricLaw | BitLaw | PassedLaw | AboveLaw


def own(law: Law) -> Law:
    """The same law as a class of this module: what a subclass says of its price or its scale is not believed."""
    kind = next(kind for kind in get_args(Law) if kind.kind == law.kind)
    made: Law = kind(*(getattr(law, each.name) for each in fields(kind)))
    return made


def check_scale(scale: Fraction) -> None:
    """Refuse a scale that noise is not drawn at."""
    if not isinstance(scale, Fraction):
        raise TypeError("a scale is an exact Fraction")
    if not SMALLEST_SCALE <= scale <= LARGEST_SCALE:
        raise QuestionError(
            "too-little-noise",
            f"The noise scale must lie between {float(SMALLEST_SCALE):g} and {float(LARGEST_SCALE):g} grid units.",
        )


def gaussian_tail(scale: Fraction, t: int) -> float:
    """P(|Z| > t) of discrete Gaussian noise, rounded up, for t of 0 or more.

    Privacy: what groups of one person cost is this tail (SR14). It is the exact sum where the scale is small; above,
    the normal tail from t + 1/2 with its Euler-Maclaurin correction (docs/theory/discrete-gaussian.md).
    """
    width = float(scale)
    if width <= _TABLE_SCALE:
        table = gaussian_tails(width)
        return float(table[t]) if t < len(table) else up(0.0)
    # With f(x) = exp(-x^2/(2 scale^2)) and a = t + 1/2 the sum of f beyond t is
    # at most  int_a f + f'(a)/24 + (1/384) int_a |f''''|,  and where the sixth
    # derivative is positive (u >= 3.3243) at most  int_a f + f'(a)/24 - (7/5760) f'''(a).
    u = (t + 0.5) / width
    f = math.exp(-0.5 * u * u)
    rest = (7.0 / 5760.0) * (u**3 - 3.0 * u) * f if u >= 3.33 else 3.6 / 384.0
    square = width * width
    correction = (rest / square - u * f / 24.0) / square
    return up(math.erfc(u / math.sqrt(2.0)) + math.sqrt(2.0 / math.pi) * correction)


@functools.lru_cache(maxsize=256)
def gaussian_tails(scale: float) -> Floats:
    """P(|Z| > t) for t = 0, 1, ... as far as doubles reach, summed from the far end, rounded up."""
    z = np.arange(1, math.ceil(_REACH * scale) + 2, dtype=np.float64)
    beyond = np.cumsum(np.exp(-0.5 * (z / scale) ** 2)[::-1])[::-1]
    tails = np.minimum(1.0, 2.0 * beyond / gaussian_mass(scale) * (1.0 + _MARGIN) + _UNDERFLOW)
    tails.flags.writeable = False
    return tails


def gaussian_mass(scale: float) -> float:
    """Sum of exp(-z^2/(2 scale^2)) over the integers, by whichever series is short."""
    if scale < 1.0:
        return 1.0 + 2.0 * math.fsum(math.exp(-0.5 * (z / scale) ** 2) for z in range(1, 12))
    # Poisson summation: the mass is that of the normal, times 1 + 2 sum exp(-2 pi^2 scale^2 k^2).
    ripple = math.fsum(math.exp(-2.0 * (math.pi * scale * k) ** 2) for k in range(1, 4))
    return scale * math.sqrt(2.0 * math.pi) * (1.0 + 2.0 * ripple)


def up(probability: float) -> float:
    """A probability that was worked out in doubles, rounded up."""
    return min(1.0, probability * (1.0 + _MARGIN) + _UNDERFLOW)
