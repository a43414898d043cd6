"""Optimised unary encoding: one bit a value, the own one reported by a fair coin [S4.19]."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, Self

import numpy as np

from sulq.language.kinds import Integers, Truths
from sulq.local import coins

_BATCH: Final = 2**23  # bits at a time
_HALF: Final = 2**63


@dataclass(frozen=True, slots=True)
class UnaryResponse:
    """A bit for each of K cells: that of the value is set by a fair coin, every other with probability q = lies/2^64.

    Privacy: two values differ in two bits. A report with the first set and the second not is the best
    evidence: ((1/2)/q) ((1 - q)/(1/2)) = (1 - q)/q, with q rounded up from 1/(1 + e^epsilon), where it is e^epsilon.
    Source: docs/theory/local.md; the unary encoding of least variance [WBLJ17].
    """

    cells: int
    lies: int

    @classmethod
    def of(cls, sizes: tuple[int, ...], epsilon: Fraction) -> Self:
        """For a record of fields of these sizes, taken as one value."""
        return cls(int(np.prod(sizes, dtype=np.int64)), coins.lie(epsilon))

    @property
    def shape(self) -> tuple[int, ...]:
        """A report is a row of K truth values."""
        return (self.cells,)

    @property
    def outcomes(self) -> int:
        """How many reports there are."""
        return int(2**self.cells)

    @property
    def probabilities(self) -> tuple[Fraction, Fraction]:
        """That the value's own bit is set, and that another one is."""
        return Fraction(1, 2), Fraction(self.lies, coins.WHOLE)

    def randomise(self, cells: Integers) -> Truths:
        """A report for each cell; every draw is made whatever the cells are."""
        found = np.empty((cells.size, self.cells), dtype=np.bool_)
        at_once = max(1, _BATCH // self.cells)
        for start in range(0, cells.size, at_once):
            part = found[start : start + at_once]
            part[:] = coins.heads(part.size, self.lies).reshape(part.shape)
        found[np.arange(cells.size), cells] = coins.heads(cells.size, _HALF)
        return found

    def pmf(self, cell: int) -> Iterator[tuple[tuple[bool, ...], Fraction]]:
        """Every report and its exact probability."""
        own, other = self.probabilities
        chances = [own if place == cell else other for place in range(self.cells)]
        for report in itertools.product((False, True), repeat=self.cells):
            chance = Fraction(1)
            for bit, heads in zip(report, chances, strict=True):
                chance *= heads if bit else 1 - heads
            yield report, chance
