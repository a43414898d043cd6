"""Centred binomial noise: the survey's own, for Boolean sums under a SubLinear budget."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np

from sulq.kernel import entropy
from sulq.kernel.arrays import Integers
from sulq.kernel.laws import BinomialLaw
from sulq.kernel.mechanisms._release import released
from sulq.kernel.private import Private

_WORD: Final = 64
_BATCH_WORDS: Final = 2**19  # 4 MiB of bits at a time


@dataclass(frozen=True, slots=True)
class CentredBinomial:
    """Independent noise on every cell: heads among an even number of fair coins, less half the coins.

    Privacy: neither epsilon nor rho is finite, since the outermost outcome is
    possible from one neighbour only (mass 2^-coins); T answers hold the posterior
    or dp target that `sulq.terms.sublinear.coins_exact` searched the coins for [S1.5, SR8].
    On sums that are not whole numbers of units the fraction would show (trap 8).
    Accuracy: the exact binomial tail; variance coins/4 (E08).
    Source: docs/theory/centred-binomial.md.
    """

    law: BinomialLaw

    def epsilon(self, sensitivity: Fraction) -> Fraction | None:
        """No pure loss holds, unless nobody moves the sums."""
        return None if sensitivity else Fraction(0)

    def rho(self, sensitivity: Fraction) -> Fraction | None:
        """No zero-concentrated loss holds, unless nobody moves the sums."""
        return None if sensitivity else Fraction(0)

    def release(self, exact: Private[Integers]) -> Integers:
        """Add fresh noise to every exact integer."""
        return released(exact, lambda values: values + heads(self.law.coins, values.size) - self.law.coins // 2)


def heads(coins: int, cells: int) -> Integers:
    """Count the heads of `coins` fresh fair coins for each of `cells` cells, every bit used at most once."""
    words = math.ceil(coins / _WORD)
    spare = words * _WORD - coins
    at_once = max(1, _BATCH_WORDS // words)
    counts = np.empty(cells, dtype=np.int64)
    for first in range(0, cells, at_once):
        batch = min(at_once, cells - first)
        bits = np.frombuffer(entropy.random_bytes(8 * words * batch), dtype=np.uint64).reshape(batch, words).copy()
        bits[:, -1] >>= np.uint64(spare)
        counts[first : first + batch] = np.bitwise_count(bits).sum(axis=1, dtype=np.int64)
    return counts
