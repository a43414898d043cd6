"""Whole numbers too large for 64 bits, in columns of 31-bit digits: the same work whatever the numbers are.

Scores are weighted totals of exact sums. Were they reckoned in 64 bits where that is enough and in
larger numbers where it is not, the time of an ask, or its running out of time, would tell which: a test of
the rows without noise (T34). So every total takes the same steps, decided by public shapes alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Self

import numpy as np

from sulq.kernel.arrays import Floats, Integers

DIGIT: Final = 31
MASK: Final = (1 << DIGIT) - 1
PLACES: Final = 5  # 155 bits and a sign: 2^20 products of a sum of 2^62 and a weight of 2^31, times a target of 2^40
MOST_TERMS: Final = 2**21  # so many products of two numbers of 16 bits are exact in a double


@dataclass(frozen=True, slots=True, eq=False)
class Wide:
    """Numbers as sums of digit * 2^(31 place), along the first axis; a digit may be out of range, or negative.

    Privacy: no step depends on a number, so neither does the time; clamping moves no two numbers apart.
    Accuracy: exact below 2^155; of `clamped` below its limit.
    Source: docs/theory/choose.md.
    """

    digits: Integers

    @classmethod
    def of(cls, numbers: Integers) -> Self:
        """Whole numbers of 63 bits."""
        digits = np.zeros((PLACES, *numbers.shape), dtype=np.int64)
        digits[0], digits[1] = numbers & MASK, numbers >> DIGIT
        return cls(digits)

    @classmethod
    def dot(cls, weights: Integers, numbers: Integers) -> Self:
        """The matrix product of public weights, of at most 32 bits, and numbers; exact, by 8 products of doubles."""
        if weights.shape[-1] > MOST_TERMS:
            raise AssertionError("more terms than a double adds exactly")
        found = cls(np.zeros((PLACES, len(weights), numbers.shape[1]), dtype=np.int64))
        parts = _halves(weights)
        for base, limb in ((0, numbers & MASK), (DIGIT, numbers >> DIGIT)):
            for at, half in _halves(limb):
                for up, part in parts:
                    found.put((part @ half).astype(np.int64), base + at + up)
        return found

    def put(self, numbers: Integers, bit: int) -> None:
        """Add numbers of 53 bits, times 2^bit, in place."""
        place, shift = divmod(bit, DIGIT)
        self.digits[place] += (numbers & (MASK >> shift)) << shift
        self.digits[place + 1] += numbers >> (DIGIT - shift)

    def total(self) -> Self:
        """The totals along the last axis."""
        return type(self)(self.digits.sum(axis=-1))

    def totals(self) -> Self:
        """Running totals along the last axis."""
        return type(self)(np.cumsum(self.digits, axis=-1))

    def times(self, factor: int | Integers) -> Self:
        """Times a whole number of at most 62 bits, or one for each."""
        own, numbers = self.carried().digits, np.asarray(factor, dtype=np.int64)
        found = Wide(own * (numbers & MASK)).carried().digits
        found[1:] += own[:-1] * (numbers >> DIGIT)
        found[-1] += (own[-1] * (numbers >> DIGIT)) << DIGIT  # the sign, in the last digit, which has no next
        return type(self)(found)

    def __add__(self, other: Wide) -> Wide:
        return Wide(self.carried().digits + other.carried().digits)

    def __sub__(self, other: Wide) -> Wide:
        return Wide(self.carried().digits - other.carried().digits)

    def __getitem__(self, place: tuple[slice | int | None, ...]) -> Wide:
        return Wide(self.digits[(slice(None), *place)])

    def carried(self) -> Self:
        """The same numbers, every digit but the last from 0 to 2^31 - 1."""
        digits = self.digits.copy()
        for place in range(PLACES - 1):
            digits[place + 1] += digits[place] >> DIGIT
            digits[place] &= MASK
        return type(self)(digits)

    def clamped(self, limit: int) -> Integers:
        """As numbers of 64 bits, none farther from zero than the limit (at most 2^62): a 1-Lipschitz step."""
        digits = self.carried().digits
        low = digits[0] | digits[1] << DIGIT  # 62 bits; what lies above them is nothing, a minus, or too much
        small, minus = digits[-1] == 0, digits[-1] == -1
        for digit in digits[2:-1]:
            small &= digit == 0
            minus &= digit == MASK
        far = np.where(digits[-1] < 0, -limit, limit)
        near = np.clip(np.where(minus, low - 2 ** (2 * DIGIT), low), -limit, limit)
        found: Integers = np.where(small | minus, near, far)
        return found


def _halves(numbers: Integers) -> tuple[tuple[int, Floats], ...]:
    """Numbers of 32 bits as two of 16, the upper with the sign, and the bit where each begins."""
    return (0, (numbers & 0xFFFF).astype(np.float64)), (16, (numbers >> 16).astype(np.float64))
