"""k-ary randomised response: the value itself, or any other one [S4.19]."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Self

import numpy as np

from sulq.language.kinds import Integers
from sulq.local import coins


@dataclass(frozen=True, slots=True)
class KaryResponse:
    """The cell is kept with probability p = kept/2^64, else one of the other K - 1 is drawn, each equally likely.

    Privacy: an outcome has probability p from its own cell and q = (1 - p)/(K - 1) from any other, so
    the loss is ln(p/q); p is rounded down from e^epsilon/(e^epsilon + K - 1), where it is epsilon. With
    two cells it is the randomised response of the textbooks [S4.19].
    Source: docs/theory/local.md; DMNS06, section 4.1.
    """

    cells: int
    kept: int

    @classmethod
    def of(cls, sizes: tuple[int, ...], epsilon: Fraction) -> Self:
        """For a record of fields of these sizes, taken as one value."""
        cells = int(np.prod(sizes, dtype=np.int64))
        return cls(cells, coins.keep(cells - 1, epsilon))

    @property
    def shape(self) -> tuple[int, ...]:
        """A report is one whole number below `outcomes`."""
        return ()

    @property
    def outcomes(self) -> int:
        """How many reports there are."""
        return self.cells

    @property
    def probabilities(self) -> tuple[Fraction, Fraction]:
        """Of the value itself, and of each other one."""
        kept = Fraction(self.kept, coins.WHOLE)
        return kept, (1 - kept) / (self.cells - 1)

    def randomise(self, cells: Integers) -> Integers:
        """A report for each cell; every draw is made whatever the cells are."""
        other = coins.uniform(cells.size, self.cells - 1)
        other += other >= cells  # the K - 1 cells that are not the value's own
        return np.where(coins.heads(cells.size, self.kept), cells, other)

    def pmf(self, cell: int) -> Iterator[tuple[int, Fraction]]:
        """Every report and its exact probability."""
        kept, other = self.probabilities
        return ((report, kept if report == cell else other) for report in range(self.cells))
