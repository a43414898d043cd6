"""Probabilities and tails of a number of fair coins: exact coefficients up to 2048 coins, Stirling's series above."""

from __future__ import annotations

import functools
import math
from typing import Final

import numpy as np

from sulq.kernel.private import Floats

MARGIN: Final = 1e-10  # by which tails are rounded up
UNDERFLOW: Final = 1e-305
REACH: Final = 40.0  # exp(-40^2/2) is below the smallest double


@functools.lru_cache(maxsize=32)
def coin_table(coins: int) -> tuple[Floats, Floats]:
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
    pmf = _coin_pmf(coins, np.arange(math.ceil(REACH * math.sqrt(coins) / 2.0) + 1, dtype=np.float64))
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
    tails = np.minimum(1.0, tails * (1.0 + MARGIN) + UNDERFLOW)
    tails.flags.writeable = False
    return tails
