"""Hadamard response: a place in the value's own row of a Hadamard matrix where there is a one [S4.19]."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Self

import numpy as np

from sulq.language.kinds import Integers, Truths
from sulq.local import coins


@dataclass(frozen=True, slots=True)
class HadamardResponse:
    """One of 2^m places, m the bits of K: with probability p = kept/2^64 one that is even for the value.

    Values are numbered u from 1, since number 0 would have no odd places; a place is even for u if it has an even
    number of bits in common with it. A report is m bits, however large the domain.

    Privacy: half of the places are even for each u, so a place has probability 2p/2^m or 2(1 - p)/2^m: the loss is
    ln(p/(1 - p)), with p rounded down from 1/(1 + e^(-epsilon)), where it is epsilon.
    Source: docs/theory/local.md; [ASZ19].
    """

    cells: int
    kept: int

    @classmethod
    def of(cls, sizes: tuple[int, ...], epsilon: Fraction) -> Self:
        """For a record of fields of these sizes, taken as one value."""
        return cls(int(np.prod(sizes, dtype=np.int64)), coins.keep(1, epsilon))

    @property
    def shape(self) -> tuple[int, ...]:
        """A report is one whole number below `outcomes`."""
        return ()

    @property
    def outcomes(self) -> int:
        """How many reports there are: the least power of two above K."""
        return int(2 ** self.cells.bit_length())

    @property
    def probabilities(self) -> tuple[Fraction, Fraction]:
        """That the place is even for the value, and that it is odd."""
        kept = Fraction(self.kept, coins.WHOLE)
        return kept, 1 - kept

    def randomise(self, cells: Integers) -> Integers:
        """A report for each cell; every draw is made whatever the cells are."""
        numbers = cells + 1
        places = coins.uniform(cells.size, self.outcomes)
        wrong = odd(places & numbers) == coins.heads(cells.size, self.kept)
        # The lowest bit of the number maps the even places one to one onto the odd ones: the draw stays uniform.
        return places ^ np.where(wrong, numbers & -numbers, 0)

    def pmf(self, cell: int) -> Iterator[tuple[int, Fraction]]:
        """Every report and its exact probability."""
        even, other = self.probabilities
        for place in range(self.outcomes):
            yield place, (other if (place & (cell + 1)).bit_count() % 2 else even) * 2 / self.outcomes


def odd(numbers: Integers) -> Truths:
    """Whether each number has an odd number of bits set."""
    found: Truths = (np.bitwise_count(numbers) & 1).astype(np.bool_)
    return found
