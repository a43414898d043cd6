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
            scale = each.name == "scale" or (each.name == "threshold_scale" and value != 0)
            if scale and type(value) is not Fraction:  # one that tells other numbers each time
                raise TypeError("a scale is an exact Fraction")
            if scale and not SMALLEST_SCALE <= value <= LARGEST_SCALE:
                ends = f"{float(SMALLEST_SCALE):g} and {float(LARGEST_SCALE):g}"
                raise QuestionError("too-little-noise", f"The noise scale must lie between {ends} grid units.")
            if not scale and each.name != "threshold_scale" and (type(value) is not int or not 1 <= value <= 2**61):
                raise QuestionError("too-large", f"The number of {each.name} must be whole, and one or more.")
        if isinstance(self, (PassedGaussianLaw, PassedLaplaceLaw)) and self.threshold < self.scale:
            raise QuestionError("too-little-noise", "The threshold must be at least the scale of its noise.")

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
    asks, and exactly that for integer D [DMNS06, Proposition 1; S4.7] (docs/theory/discrete-laplace.md).
    """

    kind: ClassVar[str] = "laplace"


@dataclass(frozen=True, slots=True)
class GaussianLaw(_Scaled):
    """Independent integer noise with P(z) proportional to exp(-z^2/(2 scale^2)) on every cell.

    Privacy: if one person moves the integer sums by a vector of squared L2 norm at most D2, rho = D2/(2 scale^2)
    [CKS20]; no pure epsilon holds (docs/theory/discrete-gaussian.md).
    """

    kind: ClassVar[str] = "gaussian"
    norm: ClassVar[str] = "l2"
    weight: ClassVar[int] = 2


@dataclass(frozen=True, slots=True)
class BinomialLaw:
    """On every cell the number of heads among `coins` fair coins, less coins/2.

    Privacy: neither epsilon nor rho is finite, since the outermost outcome is possible from one neighbour only; T
    answers hold the posterior or dp target that the coins were searched for [S1.5, SR8]. On sums that are not whole
    numbers of units the fraction would show (docs/theory/centred-binomial.md).
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
    """Candidates in random order, each flipping a coin of bias exp(-(best score - own)/scale); first heads is chosen.

    Privacy: let one person move the scores of each choice with a span, the largest rise plus the largest fall, and
    let D be the sum of the spans: epsilon = D/scale, rho = epsilon^2/2, not epsilon^2/8 (SR4) [MS20].
    """

    candidates: int
    kind: ClassVar[str] = "permute_and_flip"


@dataclass(frozen=True, slots=True)
class ExponentialLaw(_Scaled):
    """A candidate with probability proportional to exp(+score/scale): likelier the higher its score (E29).

    Privacy: the log-odds of a choice whose scores move with a span of D change within an interval of length D/scale,
    so rho = D2/(8 scale^2), D2 the sum of the squares over all choices [CR21, DR19, S3.9]; D2 tells no pure loss.
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
    (a circle all of whose places are points) [DMNS06, Theorem 2 and Remark 1; S4.15] (docs/theory/metric.md).
    """

    candidates: int
    kind: ClassVar[str] = "metric"


@dataclass(frozen=True, slots=True)
class BitLaw(_Scaled):
    """Every bit is flipped by itself with probability 1/(1 + e^(1/scale)), whatever it is [S4.16, E43].

    Privacy: a flip is e^(1/scale) times as likely to be missed as to be made, so if one person moves S bits epsilon =
    S/scale, and exactly that; by independence rho = S/(2 scale^2) [BS16, 1.4 and 1.7] (docs/theory/metric.md).
    """

    kind: ClassVar[str] = "bits"
    weight: ClassVar[int] = 2


@dataclass(frozen=True, slots=True)
class PassedLaw(_Scaled):
    """Of ledgers of earlier versions: discrete Gaussian noise on numbers of people; what is not above becomes 0.

    Privacy: where one person moves the numbers by a squared L2 norm of D2 and holds m groups alone, delta-approximate
    rho-zCDP: rho = D2/(2 scale^2), delta = m P(noise >= threshold), rounded up (T24, T25) [BS16, Definition 8.1].
    """

    threshold: int
    kind: ClassVar[str] = "passed"
    norm: ClassVar[str] = "l2"
    weight: ClassVar[int] = 2

    def alone(self) -> float:
        """Probability, rounded up, that a group of one person passes: that the noise is `threshold` or more."""
        return gaussian_tail(self.scale, self.threshold - 1) / 2.0


@dataclass(frozen=True, slots=True)
class PassedGaussianLaw(_Scaled):
    """Discrete Gaussian noise, given that it is within the threshold, on the number of people of each group.

    What is not above the threshold becomes 0; a group of nobody always does.
    Privacy: if one person moves m numbers by one each, rho = m/(2 scale^2) but for a chance of delta = m P(noise =
    threshold), rounded up, of what only one side can give (docs/theory/open-keys.md).
    """

    threshold: int
    kind: ClassVar[str] = "passed_gaussian"
    norm: ClassVar[str] = "l2"
    weight: ClassVar[int] = 2

    def alone(self) -> float:
        """Probability, rounded up, that a group of one person passes; all weights add up to the normal law's or 1."""
        width, kept = float(self.scale), 1.0 - gaussian_tail(self.scale, self.threshold)
        return up(math.exp(-0.5 * (self.threshold / width) ** 2) / max(1.0, math.sqrt(2.0 * math.pi) * width) / kept)


@dataclass(frozen=True, slots=True)
class PassedLaplaceLaw(_Scaled):
    """Discrete Laplace noise, likewise.

    Privacy: epsilon = m/scale but for a chance of delta = m P(noise = threshold), rounded up [DVGM22].
    """

    threshold: int
    kind: ClassVar[str] = "passed_laplace"

    def alone(self) -> float:
        """Probability, rounded up, that a group of one person passes: that the noise is the threshold itself."""
        rate = 1.0 / float(self.scale)
        at, ratio = math.exp(-self.threshold * rate), math.exp(-rate)
        return up(math.tanh(rate / 2.0) * at / (1.0 - 2.0 * at * ratio / (1.0 + ratio)))


@dataclass(frozen=True, slots=True)
class AboveLaw(_Scaled):
    """Discrete Laplace noise on each of `sums` sums and, of a scale of its own, on the threshold they share.

    A `threshold_scale` of 0 leaves the threshold as it is. The place of the first sum whose noisy value is at or above
    its noisy threshold is told, and nothing else.
    Privacy: let one person move the sums, none by more than R, with a span of S, the largest rise plus the largest
    fall, and by L altogether. The sensitivity is S + R scale/threshold_scale where the threshold is noisy [LSL17],
    else L; how many sums there are does not count (docs/theory/above.md).
    """

    threshold_scale: Fraction
    sums: int
    kind: ClassVar[str] = "above"


def gaussian_holds(rho: Fraction, draws: Sequence[Draw], epsilon: Fraction | int, delta: Fraction) -> bool:
    """Whether draws that cost rho are discrete Gaussian noise that is known to be (epsilon, delta)-private.

    Privacy: functions of normal noise of variance scale^2 - 4, but for a factor next to 1 (docs/theory/filter.md); cut
    off, delta is divided by the chance that none of a person's noise would be (docs/theory/open-keys.md).
    """
    least = min((x.scale if BESIDE.get(x.mechanism, x.mechanism) == "gaussian" else 0 for x in draws), default=0) ** 2
    if not SMALLEST <= rho <= LARGEST or least <= 5 or not 0 < epsilon <= 500 or not SMALLEST_DELTA <= delta <= 1:
        return False
    mu, most = math.sqrt(2.0 * float(rho * least / (least - 4))) * (1.0 + 1e-12), float(epsilon) - 1e-12
    near, far = (math.erfc((most / mu + side * mu / 2.0) / math.sqrt(2.0)) / 2.0 for side in (-1, 1))
    hidden = [each for each in draws if each.mechanism == "passed_gaussian"]
    cut = sum(each.alone * gaussian_tail(each.scale, max(each.threshold or 0, 0)) for each in hidden)
    return near * (1.0 + 1e-9) - math.exp(most) * far * (1.0 - 1e-9) <= delta * (1 - Fraction(cut))


Passed = PassedLaw | PassedGaussianLaw | PassedLaplaceLaw
Law = LaplaceLaw | GaussianLaw | BinomialLaw | FlipLaw | ExponentialLaw | MetricLaw | BitLaw | Passed | AboveLaw
BESIDE: Final = {"passed": "gaussian", "passed_gaussian": "gaussian", "passed_laplace": "laplace"}  # of sums
MECHANISMS: Final[dict[str, type[Law]]] = {law.kind: law for law in get_args(Law)}


def own(law: Law) -> Law:
    """The same law as a class of this module: what a subclass says of its price or its scale is not believed."""
    kind = MECHANISMS[law.kind]
    return kind(*(getattr(law, each.name) for each in fields(kind)))


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
    u = (t + 0.5) / width
    f = math.exp(-0.5 * u * u)
    rest = (7.0 / 5760.0) * (u**3 - 3.0 * u) * f if u >= 3.33 else 3.6 / 384.0
    return up(math.erfc(u / math.sqrt(2.0)) + math.sqrt(2.0 / math.pi) * ((rest / width**2 - u * f / 24.0) / width**2))


def up(probability: float) -> float:
    """A probability that was worked out in doubles, rounded up."""
    return min(1.0, probability * (1.0 + _MARGIN) + _UNDERFLOW)
