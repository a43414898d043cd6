"""Exact confidence intervals of a chance from counts (Clopper and Pearson), without a statistics library."""

from __future__ import annotations

import math

from sulq.errors import QuestionError


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
