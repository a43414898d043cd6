"""Bitwise randomised response: every bit of the record is flipped on its own [S4.16, S4.19]."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Self

import numpy as np

from sulq.language.kinds import Integers
from sulq.local import coins


@dataclass(frozen=True, slots=True)
class BitwiseResponse:
    """The record is written in d bits, each field in binary, and each bit is kept with probability kept/2^64.

    Privacy: two records differ in d bits at most, and a bit loses ln(p/(1 - p)) with p rounded down
    from 1/(1 + e^(-epsilon/d)): so d bits lose epsilon. That is the metric mechanism of the
    Hamming cube [S4.16]; a flip with probability 1/2 - epsilon/(2d), as printed, would lose about 2 epsilon (E43).
    Source: docs/theory/local.md; DMNS06, section 3.3.
    """

    sizes: tuple[int, ...]
    kept: int

    @classmethod
    def of(cls, sizes: tuple[int, ...], epsilon: Fraction) -> Self:
        """For a record of fields of these sizes: epsilon divided over all bits."""
        return cls(sizes, coins.keep(1, epsilon / sum(map(width, sizes))))

    @property
    def bits(self) -> int:
        """How many bits the record has."""
        return sum(map(width, self.sizes))

    @property
    def shape(self) -> tuple[int, ...]:
        """A report is one whole number below `outcomes`: its bits."""
        return ()

    @property
    def outcomes(self) -> int:
        """How many reports there are."""
        return int(2**self.bits)

    @property
    def probabilities(self) -> tuple[Fraction, Fraction]:
        """That a bit is kept, and that it is flipped."""
        kept = Fraction(self.kept, coins.WHOLE)
        return kept, 1 - kept

    def written(self, cells: Integers) -> Integers:
        """Cells, which count the fields' values the last one fastest, as bits."""
        found, place = np.zeros_like(cells), 0
        for size in reversed(self.sizes):
            found |= (cells % size) << place
            cells, place = cells // size, place + width(size)
        return found

    def randomise(self, cells: Integers) -> Integers:
        """A report for each cell; every draw is made whatever the cells are."""
        found = self.written(cells)
        for place in range(self.bits):
            found ^= (~coins.heads(cells.size, self.kept)).astype(np.int64) << place
        return found

    def pmf(self, cell: int) -> Iterator[tuple[int, Fraction]]:
        """Every report and its exact probability."""
        kept, flipped = self.probabilities
        code = int(self.written(np.array([cell]))[0])
        for report in range(self.outcomes):
            changed = (code ^ report).bit_count()
            yield report, kept ** (self.bits - changed) * flipped**changed


def width(size: int) -> int:
    """Bits that a field of so many values is written in."""
    return max(1, math.ceil(math.log2(size)))
