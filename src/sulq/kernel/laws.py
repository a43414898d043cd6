"""Noise laws: what noise is drawn, within which limits, and its exact price.

All noise is an integer number of grid units. `epsilon` and `rho` of a law are what it costs to hide a sensitivity,
in grid units: of `norm` l1 as it is, of l2 squared; None where no such loss holds at any price. How far off an answer
may be is told outside, by `sulq.language.law`, whose laws are these with their accuracy.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import ClassVar, Final, get_args

import numpy as np

from sulq.errors import QuestionError
from sulq.kernel.facts import LARGEST, SMALLEST, SMALLEST_DELTA, Draw

SMALLEST_SCALE: Final = Fraction(1, 1024)  # a sensitivity of one unit at the largest epsilon there is (1000)
LARGEST_SCALE: Final = Fraction(2**50)  # noise stays 2^12 scales away from the ends of 64 bits (T5)
LARGEST_COINS: Final = 2**24  # 2 MiB of fresh bits per answer

_MARGIN: Final = 1e-10  # more than a tail is off: it is a few hundred float operations, or fewer than 10^5 terms
_UNDERFLOW: Final = 1e-305
_TABLE_SCALE: Final = 64.0
_REACH: Final = 40.0  # exp(-40^2/2) is below the smallest double


@dataclass(frozen=True, slots=True)
class _Scaled:
    """A law with a scale, and its price for a sensitivity: a pure loss, where the norm is l1.

    Privacy: a pure loss costs rho = epsilon^2/2 [BS16, Proposition 1.4], unless a law has a `weight`, by its own proof:
    then rho is the sensitivity over so many squared scales.
    """

    scale: Fraction
    norm: ClassVar[str] = "l1"
    weight: ClassVar[int] = 0

    def __post_init__(self) -> None:
        for each in fields(self):
            value = getattr(self, each.name)
            if each.name == "scale" or (each.name == "threshold_scale" and value != 0):
                check_scale(value)
            elif each.name != "threshold_scale" and (type(value) is not int or not 1 <= value <= 2**61):
                raise QuestionError("too-large", f"The number of {each.name} must be whole, and one or more.")

    def epsilon(self, sensitivity: Fraction) -> Fraction | None:
        """Exact pure loss."""
        return None if self.norm == "l2" else sensitivity / self.scale

    def rho(self, sensitivity: Fraction) -> Fraction:
        """Exact zero-concentrated loss."""
        return sensitivity / (self.weight * self.scale**2) if self.weight else (sensitivity / self.scale) ** 2 / 2


@dataclass(frozen=True, slots=True)
class LaplaceLaw(_Scaled):
    """Independent integer noise with P(z) proportional to exp(-|z|/scale) on every cell.

    Privacy: if one person moves the integer sums by at most D in L1, epsilon = D/scale, whatever the order of the
    asks, and exactly that for integer D [DMNS06, Proposition 1; S4.7].
    Source: docs/theory/discrete-laplace.md.
    """

    kind: ClassVar[str] = "laplace"


@dataclass(frozen=True, slots=True)
class GaussianLaw(_Scaled):
    """Independent integer noise with P(z) proportional to exp(-z^2/(2 scale^2)) on every cell.

    Privacy: if one person moves the integer sums by a vector of squared L2 norm at most D2, rho = D2/(2 scale^2)
    [CKS20]; no pure epsilon holds.
    Source: docs/theory/discrete-gaussian.md.
    """

    kind: ClassVar[str] = "gaussian"
    norm: ClassVar[str] = "l2"
    weight: ClassVar[int] = 2


@dataclass(frozen=True, slots=True)
class BinomialLaw:
    """On every cell the number of heads among `coins` fair coins, less coins/2.

    Privacy: neither epsilon nor rho is finite, since the outermost outcome is possible from one neighbour only; T
    answers hold the posterior or dp target that the coins were searched for [S1.5, SR8]. On sums that are not whole
    numbers of units the fraction would show.
    Source: the noise of the SuLQ survey; docs/theory/centred-binomial.md.
    """

    coins: int
    kind: ClassVar[str] = "binomial"
    norm: ClassVar[str] = "l1"

    def __post_init__(self) -> None:
        if type(self.coins) is not int or self.coins % 2 or not 2 <= self.coins <= LARGEST_COINS:
            why = f"The number of coins must be even, since odd ones give half units, and from 2 to {LARGEST_COINS}."
            raise QuestionError("too-little-noise", why)

    def epsilon(self, sensitivity: Fraction) -> None:
        """None holds, and no rho: it is priced in queries."""

    rho = epsilon


@dataclass(frozen=True, slots=True)
class FlipLaw(_Scaled):
    """Candidates in random order, each flipping a coin of bias exp(-gap/scale); the first heads is chosen.

    The gap is that between the candidate's score and the best.
    Privacy: let one person move the scores of each choice with a span, the largest rise plus the largest fall, and
    let D be the sum of the spans: epsilon = D/scale, rho = epsilon^2/2 and not epsilon^2/8 (SR4).
    Source: permute-and-flip [MS20]; docs/theory/choose.md.
    """

    candidates: int
    kind: ClassVar[str] = "permute_and_flip"


@dataclass(frozen=True, slots=True)
class ExponentialLaw(_Scaled):
    """A candidate with probability proportional to exp(+score/scale): likelier the higher its score (E29).

    Privacy: the log-odds of a choice whose scores move with a span of D change within an interval of length D/scale,
    so rho = D2/(8 scale^2), D2 the sum of the squares over all choices [CR21, DR19, S3.9]. A pure loss holds, but D2
    does not tell it; it is not claimed.
    Source: the exponential mechanism [S3.9]; docs/theory/choose.md.
    """

    candidates: int
    kind: ClassVar[str] = "exponential"
    norm: ClassVar[str] = "l2"
    weight: ClassVar[int] = 8


@dataclass(frozen=True, slots=True)
class MetricLaw(_Scaled):
    """A point of a finite metric space, drawn with probability proportional to exp(-distance/scale).

    The distance is that from the exact value, so near points are likely: the sign is a minus (E42).
    Privacy: let one person move each distance by S at most. A weight and the total of the weights change by factors
    of at most e^(S/scale): epsilon = D/scale with D = 2S; D = S where the total is the same whatever the exact value is
    (a circle all of whose places are points) [DMNS06, Theorem 2 and Remark 1; S4.15].
    Source: docs/theory/metric.md.
    """

    candidates: int
    kind: ClassVar[str] = "metric"


@dataclass(frozen=True, slots=True)
class BitLaw(_Scaled):
    """Every bit is flipped by itself with probability 1/(1 + e^(1/scale)), whatever it is [S4.16, E43].

    Privacy: a flip is e^(1/scale) times as likely to be missed as to be made, so if one person moves S bits epsilon =
    S/scale, and exactly that; by independence rho = S/(2 scale^2) [BS16, Propositions 1.4 and 1.7].
    Source: docs/theory/metric.md.
    """

    kind: ClassVar[str] = "bits"
    weight: ClassVar[int] = 2


@dataclass(frozen=True, slots=True)
class PassedLaw(_Scaled):
    """Discrete Gaussian noise on the number of people of each group; what is not above the threshold becomes 0.

    Privacy: if one person moves the numbers by a vector of squared L2 norm at most D2 and holds at most m groups
    alone, the release is delta-approximate rho-zCDP with rho = D2/(2 scale^2) and delta = m P(noise >= threshold), the
    exact tail rounded up (T24, T25); no pure epsilon holds [BS16, Definition 8.1].
    Source: docs/theory/open-keys.md.
    """

    threshold: int
    kind: ClassVar[str] = "passed"
    norm: ClassVar[str] = "l2"
    weight: ClassVar[int] = 2

    def alone(self) -> float:
        """Probability, rounded up, that a group of one person passes: that the noise is `threshold` or more."""
        return gaussian_tail(self.scale, self.threshold - 1) / 2.0


@dataclass(frozen=True, slots=True)
class AboveLaw(_Scaled):
    """Discrete Laplace noise on each of `sums` sums and, of a scale of its own, on the threshold they share.

    A `threshold_scale` of 0 leaves the threshold as it is. The place of the first sum whose noisy value is at or above
    its noisy threshold is told, and nothing else.
    Privacy: let one person move the sums, none by more than R, with a span of S, the largest rise plus the largest
    fall, and by L altogether. The sensitivity is S + R scale/threshold_scale where the threshold is noisy [LSL17],
    else L; how many sums there are does not count.
    Source: docs/theory/above.md.
    """

    threshold_scale: Fraction
    sums: int
    kind: ClassVar[str] = "above"


def gaussian_holds(rho: Fraction, draws: Sequence[Draw], epsilon: Fraction | int, delta: Fraction) -> bool:
    """Whether draws that cost rho are discrete Gaussian noise that is known to be (epsilon, delta)-private.

    Privacy: functions of normal noise of variance scale^2 - 4, but for a factor next to 1 (docs/theory/filter.md).
    """
    least = min((each.scale if each.mechanism in ("gaussian", "passed") else 0 for each in draws), default=0) ** 2
    if not SMALLEST <= rho <= LARGEST or least <= 5 or not 0 < epsilon <= 500 or not SMALLEST_DELTA <= delta <= 1:
        return False
    mu, most = math.sqrt(2.0 * float(rho * least / (least - 4))) * (1.0 + 1e-12), float(epsilon) - 1e-12
    near, far = (math.erfc((most / mu + side * mu / 2.0) / math.sqrt(2.0)) / 2.0 for side in (-1, 1))
    return near * (1.0 + 1e-9) - math.exp(most) * far * (1.0 - 1e-9) <= delta


Law = LaplaceLaw | GaussianLaw | BinomialLaw | FlipLaw | ExponentialLaw | MetricLaw | BitLaw | PassedLaw | AboveLaw
MECHANISMS: Final[dict[str, type[Law]]] = {law.kind: law for law in get_args(Law)}


def own(law: Law) -> Law:
    """The same law as a class of this module: what a subclass says of its price or its scale is not believed."""
    kind = MECHANISMS[law.kind]
    made: Law = kind(*(getattr(law, each.name) for each in fields(kind)))
    return made


def check_scale(scale: Fraction) -> None:
    """Refuse a scale that noise is not drawn at."""
    if type(scale) is not Fraction:  # one that tells other numbers each time
        raise TypeError("a scale is an exact Fraction")
    if not SMALLEST_SCALE <= scale <= LARGEST_SCALE:
        ends = f"{float(SMALLEST_SCALE):g} and {float(LARGEST_SCALE):g}"
        raise QuestionError("too-little-noise", f"The noise scale must lie between {ends} grid units.")


def gaussian_tail(scale: Fraction, t: int) -> float:
    """P(|Z| > t) of discrete Gaussian noise, rounded up, for t of 0 or more.

    Privacy: what groups of one person cost is this tail (SR14). It is the exact sum where the scale is small; above,
    the normal tail from t + 1/2 with its Euler-Maclaurin correction (docs/theory/discrete-gaussian.md).
    """
    width = float(scale)
    if width <= _TABLE_SCALE:
        z = np.arange(1, math.ceil(_REACH * width) + 2)
        beyond = np.cumsum(np.exp(-0.5 * (z / width) ** 2)[::-1])[::-1]
        return up(float(2.0 * beyond[t] / (1.0 + 2.0 * beyond[0])) if t < len(beyond) else 0.0)
    # With f(x) = exp(-x^2/(2 scale^2)) and a = t + 1/2 the sum of f beyond t is
    # at most  int_a f + f'(a)/24 + (1/384) int_a |f''''|,  and where the sixth
    # derivative is positive (u >= 3.3243) at most  int_a f + f'(a)/24 - (7/5760) f'''(a).
    u = (t + 0.5) / width
    f = math.exp(-0.5 * u * u)
    rest = (7.0 / 5760.0) * (u**3 - 3.0 * u) * f if u >= 3.33 else 3.6 / 384.0
    square = width * width
    return up(math.erfc(u / math.sqrt(2.0)) + math.sqrt(2.0 / math.pi) * ((rest / square - u * f / 24.0) / square))


def up(probability: float) -> float:
    """A probability that was worked out in doubles, rounded up."""
    return min(1.0, probability * (1.0 + _MARGIN) + _UNDERFLOW)
