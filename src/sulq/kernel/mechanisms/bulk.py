"""Exact noise and choices, for one cell or a million.

A geometric number G with P(g) proportional to exp(-g/scale) is U + m V of two independent ones: U below m with P(u)
proportional to exp(-u/scale), a uniform number kept by an exact coin; V with P(V >= v) = exp(-v m/scale), the number of
powers of exp(-m/scale) above one uniform real. With a random sign it is discrete Laplace, -0 thrown away; kept by one
more coin it is discrete Gaussian [CKS20, Algorithms 2 and 3]. Noise is drawn before it meets a sum: no sum alters it.
Source: docs/theory/bulk-noise.md; of flips, docs/theory/metric.md; of choices, docs/theory/choose.md and above.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Final

import numpy as np

from sulq.kernel import coins, entropy
from sulq.kernel.laws import AboveLaw
from sulq.kernel.private import SATURATED, Integers, Truths

_AT_ONCE: Final = 2**15  # so many numbers stay near the core from one step to the next
_WORDS: Final = 2**19  # of coins: 4 MiB at a time
_COINS: Final = 2**20  # of choices, at a time
_LOGARITHM: Final = 32 * math.log(2.0)
_LOOSE: Final = 2.0**-36  # more than a logarithm up to 23, or its quotient, is off were numpy's off by 2^10 ulp
_MOST: Final = 2**10  # powers: e^-1024 is the chance of more; times the widest scale, 2^50, they fit 64 bits


def laplace(count: int, scale: Fraction, most: int = SATURATED) -> Integers:
    """So many independent integers, none farther than `most` from zero, with P(z) proportional to exp(-|z|/scale)."""

    def propose(many: int) -> tuple[Integers, Truths]:
        numbers = geometric(many, scale)
        negative = _bits(many)
        kept = (~negative | (numbers > 0)) & (numbers <= most)  # else 0 would come twice
        return np.where(negative, -numbers, numbers), kept

    return _kept(count, 1.02 + 0.5 / (0.5 + float(scale)), propose)


def gaussian(count: int, scale: Fraction, most: int = SATURATED) -> Integers:
    """So many independent integers, none farther than `most`, with P(z) proportional to exp(-z^2/(2 scale^2)).

    A discrete Laplace y of scale t is kept with probability exp(-(|y| - c)^2/(2 scale^2)), c = scale^2/t:
    times exp(-|y|/t) that is exp(-y^2/(2 scale^2)) times a constant.
    """
    t = math.floor(scale) + 1
    centre = scale**2 / t
    middle, spread = float(centre), float(scale)

    def propose(many: int) -> tuple[Integers, Truths]:
        numbers = laplace(many, Fraction(t))
        # Where the exponent is below 45 the quotient is below 10 and within 2^-47, its square's half within 2^-43.
        away = (np.abs(numbers) - middle) / spread
        kept = coins.tossed(away * away / 2, lambda i: (abs(int(numbers[i])) - centre) ** 2 / (2 * scale**2))
        return numbers, kept & (np.abs(numbers) <= most)

    return _kept(count, 1.35 + 0.5 / (0.5 + spread), propose)


def flips(count: int, scale: Fraction) -> Integers:
    """So many independent bits, each 1 with probability q/(1 + q), q = e^(-1/scale), exactly.

    Of fair bits a 0 is kept as it is, a 1 if a coin of bias q shows heads: so 0 and 1 are as likely as 1 to q.
    """

    def propose(many: int) -> tuple[Integers, Truths]:
        ones = _bits(many)
        return ones.astype(np.int64), ~ones | coins.heads(np.ones(many, dtype=np.int64), scale)

    return _kept(count, 2.04 / (1.0 + math.exp(-1.0 / float(scale))), propose)


def heads(count: int, coins_each: int) -> Integers:
    """So many independent numbers of heads among fresh fair coins, every bit used at most once."""
    words = math.ceil(coins_each / 64)
    at_once = max(1, _WORDS // words)
    found = np.empty(count, dtype=np.int64)
    for first in range(0, count, at_once):
        batch = min(at_once, count - first)
        bits = coins.words(words * batch).reshape(batch, words).copy()
        bits[:, -1] >>= np.uint64(64 * words - coins_each)
        found[first : first + batch] = np.bitwise_count(bits).sum(axis=1, dtype=np.int64)
    return found


def flipped(scores: Integers, scale: Fraction) -> Integers:
    """Of each row the first candidate, in a random order, whose coin of bias exp(-gap/scale) shows heads.

    That is a uniform one of all heads; the best candidate's coin has no tails.
    """
    found = np.empty(len(scores), dtype=np.int64)
    rows = max(1, _COINS // scores.shape[1])
    for i in range(0, len(scores), rows):
        gaps = scores[i : i + rows].max(axis=1, keepdims=True) - scores[i : i + rows]
        count = np.cumsum(coins.heads(gaps.ravel(), scale).reshape(gaps.shape), axis=1, dtype=np.int64)
        found[i : i + rows] = np.argmax(count > coins.below(count[:, -1])[:, None], axis=1)
    return found


def proposed(scores: Integers, scale: Fraction) -> Integers:
    """Of each row a candidate with probability proportional to exp(score/scale), exactly.

    Uniform candidates are proposed until a coin of bias exp(-gap/scale) is heads: m times or fewer, on average.
    """
    gaps = scores.max(axis=1, keepdims=True) - scores
    found = np.full(len(scores), -1, dtype=np.int64)
    while (rows := np.flatnonzero(found < 0)[:_COINS]).size:
        tries = max(1, min(2 * scores.shape[1], _COINS // len(rows)))
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
    noisy = above + laplace(above.size, law.scale).reshape(above.shape)
    level = laplace(rows, law.threshold_scale) if law.threshold_scale else np.zeros(rows, dtype=np.int64)
    first: Integers = np.where(noisy >= level[:, None], np.arange(sums), sums).min(axis=1, initial=sums)
    return first


def geometric(count: int, scale: Fraction) -> Integers:
    """So many independent integers from 0 on with P(g) proportional to exp(-g/scale)."""
    width = math.ceil(scale)
    high = powers(count, width / scale)
    if width == 1:
        return high

    def propose(many: int) -> tuple[Integers, Truths]:
        numbers = coins.uniform(many, width)
        return numbers, coins.heads(numbers, scale)

    high *= width
    high += _kept(count, 1.6, propose)
    return high


def powers(count: int, exponent: Fraction) -> Integers:
    """So many independent integers from 0 on with P(V >= v) = exp(-v exponent): how many powers lie above a real U.

    That is the floor of -ln(U)/exponent. Thirty-two bits of U decide it, but where a power has the same bits or is so
    near that rounding might count it, and where all bits are zeros; then more do.
    """
    drawn = coins.short_words(count)
    bits, each = drawn.astype(np.float64), float(exponent)
    low = np.floor((_LOGARITHM - _LOOSE - np.log(bits + 1.0)) / each)
    high = np.floor((_LOGARITHM + _LOOSE - np.log(np.maximum(bits, 1.0))) / each)
    found = low.astype(np.int64)
    for i in np.flatnonzero((low != high) | (drawn == 0)).tolist():
        found[i] = coins.powers_above(int(drawn[i]), exponent, bits=32)
        if found[i] >= _MOST:
            raise OverflowError("a number beyond 64 bits, though no one will ever see it")
    return found


def _bits(count: int) -> Truths:
    """Fair bits, each fresh."""
    drawn = np.frombuffer(entropy.random_bytes((count + 7) // 8), dtype=np.uint8)
    return np.unpackbits(drawn, count=count).view(np.bool_)


def _kept(count: int, tries: float, propose: Callable[[int], tuple[Integers, Truths]]) -> Integers:
    """The first so many numbers that were kept, of independent ones proposed; about `tries` for each."""
    found = np.empty(count, dtype=np.int64)
    have = 0
    while have < count:
        numbers, kept = propose(min(_AT_ONCE, math.ceil((count - have) * tries) + 16))
        numbers = numbers[kept][: count - have]
        found[have : have + len(numbers)] = numbers
        have += len(numbers)
    return found
