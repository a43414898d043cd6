"""Exact coins: heads with probability exp(-gap/scale), from fresh bits and whole numbers.

Every coin is a uniform real number U given bit by bit: heads if U < exp(-gap/scale).
Sixty-four bits decide nearly always, against double bounds of the exponential wide
enough for all that rounding can do; the few that fall between the bounds are
decided by more bits and decimal bounds that tighten until they part. So the bias is
exp(-gap/scale) itself: no float decides, it only postpones.

Source: docs/theory/choose.md.
"""

from __future__ import annotations

from decimal import MAX_EMAX, MIN_EMIN, ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from typing import Final

import numpy as np
import numpy.typing as npt

from sulq.mechanisms import entropy
from sulq.terms.kinds import Integers, Truths

Words = npt.NDArray[np.uint64]

_WORD: Final = 64
_WHOLE: Final = 2.0**64
# gap and scale to doubles, their quotient (below 45, or heads have probability below
# 2^-64) and its exponential: less than 2^-45 relatively, were numpy's exp off by 16 ulp.
_LOOSE: Final = 2.0**-40
_LEAST: Final = -5000  # powers of ten below this one are not written out


def words(count: int) -> Words:
    """Fresh 64-bit numbers, each value equally likely."""
    return np.frombuffer(entropy.random_bytes(8 * count), dtype=np.uint64)


def below(bounds: Integers) -> Integers:
    """A uniform whole number below each bound, exactly: a word past the last whole multiple is drawn again."""
    sizes = bounds.astype(np.uint64)
    top = np.uint64(2**64 - 1)
    spare = (top - sizes + np.uint64(1)) % sizes  # 2^64 modulo the bound
    drawn = words(sizes.size)
    again = drawn > top - spare
    while again.any():
        drawn = drawn.copy()
        drawn[again] = words(int(again.sum()))
        again = drawn > top - spare
    return (drawn % sizes).astype(np.int64)


def heads(gaps: Integers, scale: Fraction) -> Truths:
    """A coin for each gap of 0 or more: heads with probability exp(-gap/scale), exactly."""
    drawn = words(gaps.size)
    bits = drawn.astype(np.float64)
    with np.errstate(under="ignore"):
        edge = np.exp(-(gaps.astype(np.float64) / float(scale))) * _WHOLE
    # `bits` is within 2^-53 of the word, which is the floor of 2^64 U; 2 covers the floor and a vanished edge.
    found: Truths = bits * (1.0 + 2.0**-50) + 2.0 <= edge * (1.0 - _LOOSE)
    tails = bits * (1.0 - 2.0**-50) - 2.0 >= edge * (1.0 + _LOOSE)
    found |= gaps == 0  # exp(0) is 1
    for i in np.flatnonzero(~(found | tails)):
        found[i] = exactly(int(drawn[i]), int(gaps[i]) / scale)
    return found


def exactly(start: int, exponent: Fraction) -> bool:
    """Whether U < exp(-exponent), U beginning with these 64 bits and going on with fresh ones."""
    known, bits = start, _WORD
    while True:
        low, high = bounds(exponent, bits // 3 + 10)
        if Fraction(known + 1, 2**bits) <= low:
            return True
        if Fraction(known, 2**bits) >= high:
            return False
        known, bits = known << _WORD | int(words(1)[0]), bits + _WORD


def bounds(exponent: Fraction, digits: int) -> tuple[Fraction, Fraction]:
    """Rigorous bounds of exp(-exponent), to about so many digits.

    Decimal's exp is correctly rounded, so the number next to it on either side is a bound.
    """
    down = Context(prec=digits, rounding=ROUND_FLOOR, Emin=MIN_EMIN, Emax=MAX_EMAX, traps=[])
    up = Context(prec=digits, rounding=ROUND_CEILING, Emin=MIN_EMIN, Emax=MAX_EMAX, traps=[])
    top, bottom = Decimal(-exponent.numerator), Decimal(exponent.denominator)
    low = down.next_minus(down.exp(down.divide(top, bottom)))
    high = up.next_plus(up.exp(up.divide(top, bottom)))
    least = Fraction(0) if low <= 0 or low.adjusted() < _LEAST else Fraction(low)
    most = Fraction(1, 10**-_LEAST) if high.adjusted() < _LEAST else Fraction(high)
    return least, min(most, Fraction(1))
