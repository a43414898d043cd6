"""A total divided over queries so that their mean relative error, as foreseen from public facts, is least.

A query's foreseen error is taken as a power of its spend, fitted to a few spends: noise is inverse to epsilon, or to
the root of rho, but the forecast of a quantile is a step, and that of a mean of few rows falls faster.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np

from sulq.errors import QuestionError
from sulq.language.privacy import Epsilon, EpsilonDelta, Rho

Off = Callable[[float], float]  # the foreseen relative error of a query at a part of the total

LEAST_PART: Final = 0.5  # of an even part, or of the part that weights ask for
SHARE_PARTS: Final = 10**9  # a total is divided in billionths of itself
STEEPEST: Final = 2.0  # how an error may fall with epsilon: twice as fast as noise does
HALVINGS: Final = 100


@dataclass(frozen=True, slots=True)
class Curve:
    """An error of `size` / part^`power`; a power of 0: no spend helps."""

    size: float
    power: float

    def at(self, part: float) -> float:
        """The error at a part of the total."""
        return self.size / math.pow(part, self.power)

    @classmethod
    def through(cls, points: Sequence[tuple[float, float]], usual: float) -> Curve:
        """The curve nearest to some parts and errors, by logarithms; `usual`: the power that one error alone has."""
        found = [(math.log(part), math.log(error)) for part, error in points if 0 < error < math.inf]
        if not found:
            return cls(0.0, 0.0)
        x, y = (math.fsum(axis) / len(found) for axis in zip(*found, strict=True))
        spread = math.fsum((part - x) ** 2 for part, _ in found)
        slope = math.fsum((part - x) * (error - y) for part, error in found) / spread if spread else -usual
        power = min(max(-slope, 0.0), STEEPEST * usual)
        return cls(math.exp(y + power * x), power)


def weights_of(weights: object, queries: int) -> list[float]:
    """What each query counts: a positive number for each, or all alike; they add up to 1."""
    if weights is None:
        return [1.0 / queries] * queries
    told = "weights are positive numbers, one for each query, none a million times another."
    listed = tuple(weights) if isinstance(weights, (list, tuple, np.ndarray)) else ()
    counted = [_weight(one) for one in listed] if len(listed) == queries else []
    if not 0 < max(counted, default=0.0) < math.inf or not all(weight * 1e6 >= max(counted) for weight in counted):
        raise QuestionError("bad-question", told)
    counted = [weight / max(counted) for weight in counted]  # first, as the sum of large ones is past any double
    return [weight / math.fsum(counted) for weight in counted]


def _weight(one: object) -> float:
    """A weight as a number; what is none is no weight."""
    try:
        return float(one) if isinstance(one, numbers.Real) and not isinstance(one, bool) else math.nan
    except OverflowError:
        return math.nan


def divided(offs: Sequence[Off], weights: Sequence[float], usual: float) -> list[Fraction]:
    """Parts of a total by which the weighted mean of the foreseen errors is least; together at most 1.

    A part is at least half of what the weights alone give. The even division is kept where it is foreseen to be better.
    """
    count = len(offs)
    even = [1.0 / count] * count
    tried = sorted({0.5 / count, 1.0 / count, math.sqrt(0.5 / count), 0.5})
    points = [[(part, off(part)) for part in tried] for off in offs]
    best = fitted([Curve.through(each, usual) for each in points], weights)
    if _mean(offs, weights, even) < _mean(offs, weights, best):
        best = even
    return [Fraction(max(math.floor(part * SHARE_PARTS), 1), SHARE_PARTS + count) for part in best]


def fitted(curves: Sequence[Curve], weights: Sequence[float], least_part: float = LEAST_PART) -> list[float]:
    """Parts that add up to 1 and minimise the weighted sum of the curves, none below this part of its weight.

    At the optimum all free parts have one marginal gain; it is found by halving an interval of its logarithm.
    """
    least = [least_part * weight for weight in weights]
    gains = [weight * curve.size * curve.power for weight, curve in zip(weights, curves, strict=True)]

    def at(level: float) -> list[float]:
        powers = (1.0 / (curve.power + 1.0) for curve in curves)
        free = (
            math.exp(min((math.log(gain) - level) * power, 1.0)) if gain else 0.0
            for gain, power in zip(gains, powers, strict=True)
        )
        return [max(part, low) for part, low in zip(free, least, strict=True)]

    if not any(gains):
        return list(weights)
    low, high = -1500.0, 1500.0
    for _ in range(HALVINGS):
        level = (low + high) / 2
        low, high = (level, high) if math.fsum(at(level)) > 1.0 else (low, level)
    parts = at(high)
    return [part / math.fsum(parts) for part in parts]


def _mean(offs: Sequence[Off], weights: Sequence[float], parts: Sequence[float]) -> tuple[int, float]:
    """What divisions are compared by: how many errors are endless, then the weighted mean of the others."""
    errors = [(weight, off(part)) for weight, off, part in zip(weights, offs, parts, strict=True)]
    finite = [weight * error for weight, error in errors if math.isfinite(error)]
    return len(errors) - len(finite), math.fsum(finite)


def amount(loss: Epsilon | Rho | EpsilonDelta) -> float:
    """What a spend is worth in the currency it is divided in: epsilon, or rho."""
    return float(loss.rho if isinstance(loss, EpsilonDelta) else loss.exact)
