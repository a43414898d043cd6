"""Exact statistics of counts, without a statistics library: intervals of a chance, and whether draws follow a law.

Intervals are Clopper's and Pearson's. A fit is Pearson's chi-square with exact probabilities, at a level that never
cries wolf.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from sulq.errors import QuestionError
from sulq.language.kinds import Integers

MIN_EXPECTED_DRAWS: Final = 10.0  # expected draws of a cell; what is rarer is put together
MAX_FIT_DEVIATIONS: Final = 6.0  # all laws of a run together pass this less than once in ten million runs


def binomial_interval(hits: int, trials: int, alpha: float) -> tuple[float, float]:
    """Between what ends a chance lies, each of them wrong with probability at most alpha.

    Accuracy: the lower end is the p at which so many hits or more have probability alpha, the upper one
    that of so few or fewer; exact whatever the chance is [CP34].
    """
    if not (0 <= hits <= trials and trials > 0 and 0 < alpha < 1):
        raise QuestionError("bad-parameter", "Give counts of 0 to all trials, and an alpha between 0 and 1.")
    low = 0.0 if hits == 0 else _quantile(alpha, hits, trials - hits + 1)
    high = 1.0 if hits == trials else 1.0 - _quantile(alpha, trials - hits, hits + 1)
    return low, high


def binomial_tail(hits: int, trials: int, chance: float) -> float:
    """P(so many hits or more)."""
    if hits <= 0:
        return 1.0
    return beta_cdf(chance, hits, trials - hits + 1) if hits <= trials else 0.0


def beta_cdf(x: float, a: float, b: float) -> float:
    """The regularised incomplete beta function, by its continued fraction."""
    if x <= 0.0 or x >= 1.0:
        return float(x >= 1.0)
    if x > (a + 1.0) / (a + b + 2.0):
        return 1.0 - beta_cdf(1.0 - x, b, a)
    front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    return math.exp(front) * _fraction(x, a, b) / a


def _fraction(x: float, a: float, b: float) -> float:
    """Lentz's evaluation; the terms alternate around the limit and close in on it geometrically."""
    tiny = 1e-300
    c, d = 1.0, 1.0 - (a + b) * x / (a + 1.0)
    d = 1.0 / (d if abs(d) > tiny else tiny)
    found = d
    for m in range(1, 100_000):
        for top in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1.0 + top * d
            c = 1.0 + top / c
            d, c = 1.0 / (d if abs(d) > tiny else tiny), c if abs(c) > tiny else tiny
            found *= c * d
        if abs(c * d - 1.0) < 1e-15:
            break
    return found


def _quantile(chance: float, a: float, b: float) -> float:
    """The x at which the beta distribution reaches a chance, by bisection, rounded down."""
    low, high = 0.0, 1.0
    for _ in range(200):
        middle = (low + high) / 2.0
        if middle in (low, high):
            break
        low, high = (middle, high) if beta_cdf(middle, a, b) <= chance else (low, middle)
    return low


@dataclass(frozen=True, slots=True)
class Fit:
    """How far the counts of draws are from what their law expects, in standard deviations."""

    deviation: float
    cells: int
    draws: int

    @property
    def follows(self) -> bool:
        """Whether the draws may be of that law."""
        return self.deviation < MAX_FIT_DEVIATIONS


def fit(draws: Integers | Sequence[int], pmf: Callable[[int], float]) -> Fit:
    """Compare whole draws with the probabilities of a law.

    Accuracy: the cube root of chi-square over its degrees of freedom is nearly normal (Wilson and Hilferty): 6 of its
    deviations are 6 true ones for many cells and up to 6.7 for two, so no false alarm is likelier than said.
    """
    found = np.asarray(draws, dtype=np.int64).ravel()
    if found.size < 100:
        raise QuestionError("too-few-rows", "A fit needs a hundred draws or more.")
    counts: list[float] = []
    expected: list[float] = []
    low, high = int(found.min()), int(found.max())
    seen = np.bincount(found - low, minlength=high - low + 1)
    mass = np.array([pmf(z) for z in range(low, high + 1)]) * found.size
    count, wanted = 0.0, 0.0
    for here, likely in zip(seen, mass, strict=True):
        count, wanted = count + float(here), wanted + float(likely)
        if wanted >= MIN_EXPECTED_DRAWS:
            counts.append(count)
            expected.append(wanted)
            count, wanted = 0.0, 0.0
    rest = max(found.size - math.fsum(expected), 1e-9)  # both ends and what lies beyond them
    if rest >= MIN_EXPECTED_DRAWS or not expected:
        counts.append(count)
        expected.append(rest)
    else:
        counts[-1] += count
        expected[-1] += rest
    if len(counts) < 2:
        return Fit(0.0 if abs(counts[0] - found.size) < 0.5 else math.inf, 1, int(found.size))
    square = math.fsum((c - e) ** 2 / e for c, e in zip(counts, expected, strict=True))
    free = len(counts) - 1
    deviation = ((square / free) ** (1.0 / 3.0) - (1.0 - 2.0 / (9.0 * free))) / math.sqrt(2.0 / (9.0 * free))
    return Fit(deviation, len(counts), int(found.size))
