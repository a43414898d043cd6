"""Biased coins of exact rational bias, for the respondent's side: whole numbers and fresh bits, no float.

A coin of bias t/2^64 is heads if a uniform 64-bit number is below t. Its first byte
decides 255 times in 256; where it is that of t itself the other 56 bits are drawn. That
is the comparison of all 64 bits, for an eighth of the entropy.

Privacy: biases are rounded towards less information (`keep` down, `lie` up), from
rigorous bounds of exp(-epsilon), so that the promised epsilon holds for the very
numbers that are compared.
Source: docs/theory/local.md.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Final

import numpy as np

from sulq.kernel import coins, entropy
from sulq.language.kinds import Integers, Truths

WHOLE: Final = 2**64
_REST: Final = 56
_DIGITS: Final = 60  # of exp(-epsilon): far past the 20 that 64 bits hold


def heads(count: int, threshold: int) -> Truths:
    """Independent coins, each heads with probability threshold/2^64 exactly."""
    if not 0 <= threshold < WHOLE:
        raise ValueError("a bias lies from 0 up to, not including, 1")
    first, rest = divmod(threshold, 2**_REST)
    bytes_ = np.frombuffer(entropy.random_bytes(count), dtype=np.uint8)
    found: Truths = bytes_ < first
    close = np.flatnonzero(bytes_ == first)
    found[close] = coins.words(close.size) >> np.uint64(64 - _REST) < np.uint64(rest)
    return found


def uniform(count: int, size: int) -> Integers:
    """Independent whole numbers below `size`, each equally likely."""
    return coins.below(np.full(count, size, dtype=np.int64))


def keep(others: int, epsilon: Fraction) -> int:
    """The largest t with t/2^64 <= 1/(1 + others exp(-epsilon)): how often a value with so many others is kept.

    Privacy: the odds t/(2^64 - t) are then at most exp(epsilon)/others.
    """
    least = 1 / (1 + others * coins.bounds(epsilon, _DIGITS)[1])
    return min(math.floor(least * WHOLE), WHOLE - 1)


def lie(epsilon: Fraction) -> int:
    """The smallest t with t/2^64 >= 1/(1 + exp(epsilon)): how often a bit that is not set is reported as set.

    Privacy: the odds (2^64 - t)/t are then at most exp(epsilon).
    """
    return WHOLE - keep(1, epsilon)
