"""Statistics of rows as they are: how far they are from being different or in order, what occurs, and heavy persons.

Privacy: of two tables that differ in one row, whatever leads the one to a property leads the other there with one row
more at most [DMNS06, section 3.2; S4.11]. So an exact distance moves by k for k rows; an approximate one by anything.
Source: docs/theory/holistic.md.
"""

from __future__ import annotations

import bisect
import math
from dataclasses import dataclass

import numpy as np

from sulq.kernel.private import Integers
from sulq.kernel.whole.figure import Figure, Move, monotone, of_bits, whole


@dataclass(frozen=True, slots=True)
class ToUnique:
    """How many rows must go so that no two agree in so many columns: one more is one of them, or first of its value."""

    columns: int

    def __post_init__(self) -> None:
        whole(self.columns, 1, 2**10)

    def figure(self, rows: int) -> Figure:
        return monotone(rows)

    def exact(self, cells: Integers) -> Integers:
        return np.array([len(cells) - len(np.unique(cells, axis=0))], dtype=np.int64)


@dataclass(frozen=True, slots=True)
class ToSorted:
    """How many rows must go so that the second number never falls, in the order of the first.

    Privacy: whatever the first number is, a row less takes one from all rows, and one or none from those that stay.
    Rows of one place stand in the order of the second, so that no order but the rows' own counts.
    """

    columns = 2

    def figure(self, rows: int) -> Figure:
        return monotone(rows)

    def exact(self, cells: Integers) -> Integers:
        ends: list[int] = []  # of the parts of each length that never fall so far, the least last value
        for value in cells[np.lexsort((cells[:, 1], cells[:, 0])), 1].tolist():
            place = bisect.bisect_right(ends, value)
            ends[place : place + 1] = [value]
        return np.array([len(cells) - len(ends)], dtype=np.int64)


@dataclass(frozen=True, slots=True)
class CellCounts:
    """How many rows have each combination of columns' numbers, the last column's fastest; `bounds`: least and greatest.

    Privacy: a row has one combination, or none where it is out of bounds: it moves one count, an exchange two.
    """

    bounds: tuple[tuple[int, int], ...]

    def __post_init__(self) -> None:
        whole(len(self.bounds), 1, 2**10)
        for low, high in self.bounds:
            whole(low, -(2**62), 2**62)
            whole(high, low, 2**62)
        whole(self.size, 1, 2**40)

    @property
    def columns(self) -> int:
        return len(self.bounds)

    @property
    def size(self) -> int:
        """How many combinations there are."""
        return math.prod(high - low + 1 for low, high in self.bounds)

    def figure(self, rows: int) -> Figure:
        alone = Move(rows, rows**2, rows, min(rows, self.size))
        return Figure(self.size, alone, Move(2 * rows, 2 * rows**2, rows, min(2 * rows, self.size)))

    def exact(self, cells: Integers) -> Integers:
        low, high = np.array(self.bounds, dtype=np.int64).T
        cells = cells[((cells >= low) & (cells <= high)).all(axis=1)] - low
        found = np.zeros(self.size, dtype=np.int64)
        np.add.at(found, np.ravel_multi_index(tuple(cells.T), tuple(high - low + 1)), 1)
        return found


@dataclass(frozen=True, slots=True)
class Occurring(CellCounts):
    """A bit for each combination: whether any row has it. A row alone decides about no other than its own."""

    def figure(self, rows: int) -> Figure:
        return of_bits(self.size, rows)

    def exact(self, cells: Integers) -> Integers:
        return np.minimum(CellCounts.exact(self, cells), 1)


@dataclass(frozen=True, slots=True)
class HeavyPersons:
    """How many persons have more rows in the source than are kept of them, and how many others have any.

    Privacy: a person with any row is in exactly one of the two counts, by their own rows alone: one count moves by 1,
    by an exchange two do. That the counts are these is trusted: they are made of the source when rows are prepared.
    """

    columns = 2

    def figure(self, rows: int) -> Figure:
        return Figure(2, Move.of_bits(1), Move.of_bits(2))

    def exact(self, cells: Integers) -> Integers:
        (counts,) = cells  # the one row there is
        return np.array(counts, dtype=np.int64)
