"""Exact coins: heads with probability exp(-exponent), from fresh bits and whole numbers.

Every coin is a uniform real number U given bit by bit: heads if U < exp(-exponent). Thirty-two bits decide nearly
always, against double bounds of the exponential wide enough for all that rounding can do; the few that fall between
are decided by more bits and decimal bounds that tighten until they part. So the bias is exp(-exponent) itself: no float
decides, it only postpones (docs/theory/choose.md).
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import MAX_EMAX, MIN_EMIN, ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from sulq.kernel import entropy
from sulq.kernel.private import Floats, Integers, Truths

Words = npt.NDArray[np.uint64]

_MORE: Final = 64  # bits at a time, once the first have not decided
_FIRST: Final = 32
# An exponent that is off by 2^-41 where it is below 45 (beyond that heads have probability
# below 2^-64), and its exponential: less than 2^-40 relatively, were numpy's exp off by 2^10 ulp.
LOOSE: Final = 2.0**-40
_LEAST: Final = -5000  # powers of ten below this one are not written out


def words(count: int) -> Words:
    """Fresh 64-bit numbers, each value equally likely."""
    return np.frombuffer(entropy.random_bytes(8 * count), dtype=np.uint64)


def short_words(count: int) -> npt.NDArray[np.uint32]:
    """Fresh 32-bit numbers, each value equally likely: half the bits, where these nearly always do."""
    return np.frombuffer(entropy.random_bytes(4 * count), dtype=np.uint32)


def below(bounds: Integers) -> Integers:
    """A uniform whole number below each bound, exactly: a word past the last whole multiple is drawn again."""
    sizes = bounds.astype(np.uint64)
    last = ~((np.uint64(0) - sizes) % sizes)  # 2^64 less its remainder by the bound, less 1
    return (_redrawn(words, sizes.size, last) % sizes).astype(np.int64)


def uniform(count: int, bound: int) -> Integers:
    """So many uniform whole numbers below one bound, exactly, from short words where these do."""
    if bound > 2**16:
        return below(np.full(count, bound))
    return (_redrawn(short_words, count, np.uint32(2**32 - 1 - 2**32 % bound)) % np.uint32(bound)).astype(np.int64)


def _redrawn(draw: Callable[[int], npt.NDArray[Any]], count: int, last: Any) -> npt.NDArray[Any]:  # noqa: ANN401
    """Fresh words, those past the last allowed drawn again."""
    drawn = draw(count)
    while (again := drawn > last).any():
        drawn = drawn.copy()
        drawn[again] = draw(int(again.sum()))
    return drawn


def heads(gaps: Integers, scale: Fraction) -> Truths:
    """A coin for each gap of 0 or more: heads with probability exp(-gap/scale), exactly."""
    return tossed(gaps.astype(np.float64) / float(scale), lambda i: int(gaps[i]) / scale)


def tossed(exponents: Floats, exact: Callable[[int], Fraction]) -> Truths:
    """A coin for each exponent of 0 or more: heads with probability exp(-exact(i)), exactly.

    Where exact(i) is below 45 the given exponent is within 2^-41 of it, beyond it is above 44.
    """
    drawn = short_words(exponents.size)
    bits = drawn.astype(np.float64)  # the floor of 2^32 U
    with np.errstate(under="ignore"):
        edge = np.exp(-exponents)
    edge *= 2.0**_FIRST
    found: Truths = bits + 1.0 <= edge * (1.0 - LOOSE)
    # 2^-20 is more than 2^32 e^-44 and all that is lost where an exponential vanishes.
    open_ = ~found & (bits < edge * (1.0 + LOOSE) + 2.0**-20)
    for i in np.flatnonzero(open_).tolist():
        found[i] = powers_above(int(drawn[i]), exact(i), most=1, bits=_FIRST) == 1
    return found


def powers_above(start: int, exponent: Fraction, *, most: int | None = None, bits: int = 64) -> int:
    """The largest v with U < exp(-v exponent), at most `most`; U begins with these bits and goes on with fresh ones."""
    known, v = start, 0
    while v != most:
        low, high = bounds((v + 1) * exponent, bits // 3 + 10)
        if Fraction(known + 1, 2**bits) <= low or exponent == 0:
            v += 1
        elif Fraction(known, 2**bits) >= high:
            break
        else:
            known, bits = known << _MORE | int(words(1)[0]), bits + _MORE
    return v


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
    return least, min(Fraction(1, 10**-_LEAST) if high.adjusted() < _LEAST else Fraction(high), Fraction(1))
