"""Choosing one of many by exact scores: permute-and-flip, the exponential choice, the first above a threshold.

Source: docs/theory/choose.md, docs/theory/above.md; what they cost is said by their laws (`sulq.kernel.laws`).
"""

from __future__ import annotations

from fractions import Fraction
from typing import Final

import numpy as np

from sulq.kernel import coins
from sulq.kernel.arrays import Integers
from sulq.kernel.laws import AboveLaw
from sulq.kernel.mechanisms import bulk

_AT_ONCE: Final = 2**20  # coins


def flipped(scores: Integers, scale: Fraction) -> Integers:
    """Of each row the first candidate, in a random order, whose coin of bias exp(-gap/scale) shows heads.

    That is a uniform one of all heads; the best candidate's coin has no tails.
    """
    found = np.empty(len(scores), dtype=np.int64)
    rows = max(1, _AT_ONCE // scores.shape[1])
    for i in range(0, len(scores), rows):
        gaps = scores[i : i + rows].max(axis=1, keepdims=True) - scores[i : i + rows]
        count = np.cumsum(coins.heads(gaps.ravel(), scale).reshape(gaps.shape), axis=1, dtype=np.int64)
        place = coins.below(count[:, -1])
        found[i : i + rows] = np.argmax(count > place[:, None], axis=1)
    return found


def proposed(scores: Integers, scale: Fraction) -> Integers:
    """Of each row a candidate with probability proportional to exp(score/scale), exactly.

    Uniform candidates are proposed until a coin of bias exp(-gap/scale) is heads: m times or fewer, on average.
    """
    gaps = scores.max(axis=1, keepdims=True) - scores
    found = np.full(len(scores), -1, dtype=np.int64)
    while (rows := np.flatnonzero(found < 0)[:_AT_ONCE]).size:
        tries = max(1, min(2 * scores.shape[1], _AT_ONCE // len(rows)))
        tried = coins.uniform(len(rows) * tries, scores.shape[1]).reshape(len(rows), tries)
        up = coins.heads(gaps[rows[:, None], tried].ravel(), scale).reshape(tried.shape)
        hit = up.any(axis=1)
        found[rows[hit]] = tried[hit, np.argmax(up[hit], axis=1)]
    return found


def first_above(above: Integers, law: AboveLaw) -> Integers:
    """The place of the first passing sum in each row of exact sums less their thresholds; past the last if none.

    All noise is drawn and every sum compared, wherever the first to pass is.
    """
    rows, sums = above.shape
    noisy = above + bulk.laplace(above.size, law.scale).reshape(above.shape)
    level = bulk.laplace(rows, law.threshold_scale) if law.threshold_scale else np.zeros(rows, dtype=np.int64)
    first: Integers = np.where(noisy >= level[:, None], np.arange(sums), sums).min(axis=1, initial=sums)
    return first
