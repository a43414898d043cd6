"""How far one row moves a block of sums, and how far one row that becomes another does.

A block's coordinates are whole combinations of a statement's sums, so one row adds to each coordinate a polynomial in
the row's atoms. For each pattern of missing atoms its norms are bounded; the largest holds for every row.
Source: docs/theory/kernel.md; SR1, SR13.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt

from sulq.kernel.facts import Refused, require
from sulq.kernel.relations import Certificate, Summand
from sulq.kernel.values import Interval, Polynomial, add, reach

Ends = tuple[int, ...]  # of each coordinate


@dataclass(frozen=True, slots=True)
class Norms:
    """Norms of a vector, in whole units; the L2 norm squared."""

    l1: int
    l2_squared: int
    coordinate: int

    @classmethod
    def of(cls, far: Sequence[int]) -> Norms:
        """Of a vector whose coordinates are so far from zero."""
        return cls(sum(far), sum(x * x for x in far), max(far, default=0))

    def __iter__(self) -> Iterator[int]:
        """One by one."""
        return iter((self.l1, self.l2_squared, self.coordinate))

    def times(self, rows: int) -> Norms:
        """The norms of so many equal vectors together."""
        return Norms(self.l1 * rows, self.l2_squared * rows**2, self.coordinate * rows)


@dataclass(frozen=True, slots=True)
class Moves:
    """The largest norms of what one row adds to a block (`single`), and changes it by (`pair`), times a person's rows.

    A row that comes or goes alone is no pair: whoever prices a person with fewer rows takes `single` too.
    `low`, `high`: what one row adds to each coordinate. `vectors`: where it adds a row of a public table, the table.
    """

    single: Norms
    pair: Norms
    low: tuple[int, ...] = ()
    high: tuple[int, ...] = ()
    vectors: npt.NDArray[np.int64] | None = field(default=None, compare=False)

    @classmethod
    def of(cls, single: Norms, low: Ends, high: Ends, rows: int, *, zero: bool = False, right: bool = False) -> Moves:
        """Of rows that add vectors of these norms between these ends; `right`: two are at most a right angle apart."""
        ends = list(zip(low, high, strict=True))
        angle = 2 if right or all(a >= 0 or b <= 0 for a, b in ends) else 4  # so are vectors whose signs agree
        twice = Norms(2 * single.l1, angle * single.l2_squared, 2 * single.coordinate)
        pair = Norms(*map(min, twice, Norms.of([b - a for a, b in ends])))
        return cls(single.times(rows), (Norms(*map(max, pair, single)) if zero else pair).times(rows), low, high)


@dataclass(frozen=True, slots=True)
class Certified:
    """One block of sums: what a person moves it by, over how many rows, and whether a row is always in some cell.

    `source`: what tells the rows and cells that it is summed over; blocks of one source are moved by the same rows.
    """

    moves: Moves
    rows: int
    present: bool
    source: object = field(default=None, compare=False)


MAX_PATTERNS: Final = 256
MAX_DIFFERENCES: Final = 2**27  # of entries of a table, looked at one by one
MAX_ENTRY: Final = 2**40  # of a table


def moves(found: Certificate, weights: Sequence[Mapping[int, int]]) -> Moves:
    """Of a block whose coordinates are these combinations of the outputs; for all of a person's rows together."""
    read: dict[int, Summand] = {}
    for place in {place for weighted in weights for place in weighted}:
        output = found.outputs[place]
        if not isinstance(output, Summand) or output.people:
            raise Refused("a coordinate of what is no sum of rows")
        read[place] = output
    # For each set of atoms that can be missing together, of those a sum needs.
    atoms = sorted(frozenset().union(*(summand.needs for summand in read.values())))
    require(2 ** len(atoms) <= MAX_PATTERNS, "a block of too many values that may be missing")
    rows = []
    for gone in itertools.chain(*(itertools.combinations(atoms, size) for size in range(len(atoms) + 1))):
        there = {place: {} if each.needs & set(gone) else each.polynomial for place, each in read.items()}
        rows.append(_of_row([_combined(weighted, there) for weighted in weights], found.intervals))
    norms, lows, highs = zip(*rows, strict=True)
    low, high = tuple(map(min, zip(*lows, strict=True))), tuple(map(max, zip(*highs, strict=True)))
    return Moves.of(_largest(norms), low, high, found.rows)


def _largest(norms: Iterable[Norms]) -> Norms:
    return Norms(*map(max, zip(*norms, strict=True)))


def _combined(weights: Mapping[int, int], polynomials: Mapping[int, Polynomial]) -> Polynomial:
    found: Polynomial = {}
    for place, weight in weights.items():
        found = add(found, polynomials[place], weight)
    return found


def _of_row(coordinates: Sequence[Polynomial], atoms: Mapping[int, Interval]) -> tuple[Norms, Ends, Ends]:
    """What a row can add: norms, and the least and the greatest of each coordinate."""
    ends = [reach(coordinate, atoms) for coordinate in coordinates]
    far = [max(-low, high) for low, high in ends]
    l1 = sum(far)
    if all(low >= 0 or high <= 0 for low, high in ends):  # then the sum of absolute values is a polynomial too
        signs = {i: 1 if low >= 0 else -1 for i, (low, _) in enumerate(ends)}
        l1 = min(l1, reach(_combined(signs, dict(enumerate(coordinates))), atoms)[1])
    lows, highs = zip(*ends, strict=True)
    return Norms(l1, min(sum(side * side for side in far), l1 * l1), max(far)), lows, highs


def table(rows: int, units: npt.NDArray[np.int64]) -> Moves:
    """Of a block that adds, for each of a person's rows, one row of a public table that its keys name, or nothing.

    Nothing else can be added, so the norms of the table's rows are taken one by one, and of their differences where
    these are not too many. Where squares of differences might not fit 64 bits Python's integers are taken.
    """
    require(units.min(initial=0) >= -MAX_ENTRY and units.max(initial=0) <= MAX_ENTRY, "a table of too large numbers")
    distinct = np.unique(np.concatenate([units, np.zeros_like(units[:1])]), axis=0)
    if (2 * int(np.abs(units).max(initial=0))) ** 2 * units.shape[1] >= 2**63:
        distinct = distinct.astype(object)
    single = _of_vectors(distinct)
    pair = Norms(2 * single.l1, 4 * single.l2_squared, 2 * single.coordinate)
    if distinct.size * len(distinct) <= MAX_DIFFERENCES:
        pair = _largest(_of_vectors(distinct - row) for row in distinct)
    low, high = (tuple(int(end) for end in ends) for ends in (units.min(axis=0), units.max(axis=0)))
    return Moves(single.times(rows), pair.times(rows), low, high, units)


def _of_vectors(vectors: npt.NDArray[np.int64]) -> Norms:
    far = np.abs(vectors)
    return Norms(int(far.sum(axis=1).max()), int((far * far).sum(axis=1).max()), int(far.max()))
