"""The Hamming cube, bit by bit: the noise of `BitLaw`. A point of a finite space is drawn as a choice is.

Source: docs/theory/metric.md; sampled from fair bits and exact coins.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from sulq.kernel import coins
from sulq.kernel.arrays import Integers


def flipped_bits(bits: Integers, scale: Fraction) -> Integers:
    """The bits, some of them flipped; what is no bit is an error like any other."""
    if not np.isin(bits, (0, 1)).all():
        raise ValueError
    return bits ^ flips(bits.size, scale)


def flips(count: int, scale: Fraction) -> Integers:
    """So many bits, each 1 with probability q/(1 + q), q = e^(-1/scale), exactly.

    A fair bit says which is tried; a 0 is taken as it is, a 1 if a coin of bias q shows heads; else all is tried
    anew. So 0 and 1 are as likely as 1 to q.
    """
    found = np.zeros(count, dtype=np.int64)
    left = np.arange(count)
    while left.size:
        one = coins.below(np.full(left.size, 2)) == 1
        up = coins.heads(np.ones(left.size, dtype=np.int64), scale)
        found[left[one & up]] = 1
        left = left[one & ~up]
    return found
