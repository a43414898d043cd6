"""Tails of noise, and the smallest numbers at which they are small enough: what the laws' accuracies are made of."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Final

import numpy as np

from sulq.errors import QuestionError
from sulq.kernel.laws import up
from sulq.kernel.private import Floats
from sulq.language.coin_table import MARGIN, REACH, UNDERFLOW

MIN_BETA: Final = 1e-300
LOOSE: Final = 3e-6  # how far above the true one a law's tail may be, relatively


def gaussian_mass(scale: float) -> float:
    """Sum of exp(-z^2/(2 scale^2)) over the integers, by whichever series is short."""
    if scale < 1.0:
        return 1.0 + 2.0 * math.fsum(math.exp(-0.5 * (z / scale) ** 2) for z in range(1, 12))
    # Poisson summation: the mass is that of the normal, times 1 + 2 sum exp(-2 pi^2 scale^2 k^2).
    ripple = math.fsum(math.exp(-2.0 * (math.pi * scale * k) ** 2) for k in range(1, 4))
    return scale * math.sqrt(2.0 * math.pi) * (1.0 + 2.0 * ripple)


@functools.lru_cache(maxsize=256)
def gaussian_tails(scale: float) -> Floats:
    """P(|Z| > t) for t = 0, 1, ... as far as doubles reach: what the kernel's `gaussian_tail` gives, to the bit."""
    z = np.arange(1, math.ceil(REACH * scale) + 2, dtype=np.float64)
    beyond = np.cumsum(np.exp(-0.5 * (z / scale) ** 2)[::-1])[::-1]
    tails: Floats = np.minimum(1.0, 2.0 * beyond / (1.0 + 2.0 * beyond[0]) * (1.0 + MARGIN) + UNDERFLOW)
    tails.flags.writeable = False
    return tails


def tail_at(tails: Floats, t: int) -> float:
    """The tail at t, of a table of tails."""
    return float(tails[t]) if t < len(tails) else up(0.0)


def check_beta(beta: float) -> None:
    """Refuse what is no probability that tails are told for."""
    if isinstance(beta, bool) or not isinstance(beta, (int, float)) or not MIN_BETA <= beta < 1:
        raise QuestionError("bad-question", "beta must be a probability of at least 1e-300 and below 1.")


def smallest(tail: Callable[[int], float], guess: int, beta: float) -> int:
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


def first(holds: Callable[[int], bool], low: int, high: int) -> int:
    """Smallest whole number from low to high at which a condition holds that stays true once it is; else high."""
    while low < high:
        middle = (low + high) // 2
        if holds(middle):
            high = middle
        else:
            low = middle + 1
    return low


def first_within(descending: Floats, beta: float) -> int:
    """The place of the first of descending tails that is at most beta."""
    return len(descending) - int(np.searchsorted(descending[::-1], beta, side="right"))


class PassedNumber:
    """Intervals of a number that was seen because it is above a threshold."""

    __slots__ = ()
    threshold: int
    tail: Callable[[int], float]
    accuracy: Callable[[float], int]

    def at_least(self, z: int) -> tuple[float, float]:
        """Probability that the noise is z or more, rounded down and rounded up."""
        beyond = self.tail(z - 1 if z > 0 else -z) / 2.0
        within = max(beyond * (1.0 - LOOSE) - UNDERFLOW, 0.0)
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

        low = first(large, 1, max(noisy, 1))
        high = first(not_small, 1, max(noisy, 1) + self.accuracy(beta / 4.0) + 1) - 1
        return low, max(low, high)
