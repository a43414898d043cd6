"""Functions of rows that need not be sums: an estimate of each block of people, averaged; and the owner's own.

Privacy: what an owner's function raises, prints, warns of or logs nobody hears (T31). What it gives is cut off at the
bounds; an error, or what is no number, counts as the middle (SR5). The owner's word: that it is a function of its
argument alone (SR11), how far one person moves it, and what it does on purpose or past Python's own streams.
Source: docs/theory/holistic.md.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
import math
import os
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from sulq.kernel.facts import Refused
from sulq.kernel.private import Floats, Integers
from sulq.kernel.whole.figure import Figure, Move, whole

BLANK: Final = -(2**63)  # a missing cell among listed rows: no whole unit of any column
FARTHEST: Final = 2**40  # an estimate has no more units: half a unit is far more than a double's rounding
PRIME: Final = 2**31 - 1
HALF: Final = 2**30
Function = Callable[[Floats], object]
_ALONE: Final = threading.RLock()  # what is hushed is the whole process


@contextlib.contextmanager
def hushed() -> Iterator[None]:
    """Nobody hears what the process prints, warns of or logs: it may tell of a row (T31); one function at a time."""
    with _ALONE, Path(os.devnull).open("w", encoding="utf-8") as nowhere:
        before = logging.root.manager.disable
        logging.disable(sys.maxsize)
        try:
            with (
                contextlib.redirect_stdout(nowhere),
                contextlib.redirect_stderr(nowhere),
                warnings.catch_warnings(action="ignore"),
                np.errstate(all="ignore"),
            ):
                yield
        finally:
            logging.disable(before)


def given(function: Function, values: Floats, width: int = 1) -> list[float]:
    """The numbers a function gives of some rows: NaN where it gives none, others than so many, or raises anything.

    Leaving the interpreter too (SR5, T31). An interrupt alone is raised, anew: its text and frames may tell of a row.
    """
    try:
        found: list[float] | None = np.asarray(function(values.copy()), dtype=np.float64).ravel().tolist()
    except KeyboardInterrupt:
        found = None
    except BaseException:  # noqa: BLE001 - see above
        found = []
    if found is None:
        raise KeyboardInterrupt
    return found if len(found) == width else [math.nan] * width


@dataclass(frozen=True, slots=True)
class Range:
    """Between which numbers an estimate lies, in whole units."""

    unit: Fraction
    low: int
    high: int

    def __post_init__(self) -> None:
        whole(self.low, -FARTHEST, FARTHEST)
        whole(self.high, self.low, FARTHEST)
        if not 0 < float(self.unit) < math.inf:
            raise Refused("a unit that is none")

    def nearest(self, number: float) -> int:
        """A number in units, within the bounds; the middle of them for what is none.

        Privacy: rounded exactly, so two numbers that are at most m units apart, m whole, stay so.
        """
        if math.isnan(number):
            return (self.low + self.high) // 2
        number = min(max(number, -sys.float_info.max), sys.float_info.max)
        return min(max(math.floor(Fraction(number) / self.unit + Fraction(1, 2)), self.low), self.high)


@dataclass(frozen=True, slots=True)
class Aggregated:
    """The sum of an estimate of each of `blocks` parts of the people.

    Of a row its person's public hash is read, then columns whose units are `steps`. With h = 2^30 u + v the hash, the
    block is ((a u + b v + c) mod p) mod blocks, a, b and c being `mixing`. Rows of a block are sorted.

    Privacy: a person's rows, however many, are in one block, so one estimate moves, within its bounds: high - low.
    Under replace_one another block takes the person who comes: twice that (SR11).
    """

    function: str
    steps: tuple[Fraction, ...]
    blocks: int
    mixing: tuple[int, int, int]
    range: Range

    def __post_init__(self) -> None:
        whole(self.blocks, 1, 2**20)
        for number in self.mixing:
            whole(number, 0, PRIME)

    @property
    def columns(self) -> int:
        return 1 + len(self.steps)

    def figure(self, rows: int) -> Figure:
        wide = self.range.high - self.range.low
        return Figure(1, Move.of(wide), Move.of(2 * wide))

    def exact(self, cells: Integers, function: Function) -> Integers:
        a, b, c = self.mixing
        block = (a * (cells[:, 0] // HALF) + b * (cells[:, 0] % HALF) + c) % PRIME % self.blocks
        cells = np.column_stack([block, cells[:, 1:]])
        cells = cells[np.lexsort(cells.T[::-1])]  # by block, then by the columns
        values = _values(self.steps, cells[:, 1:])
        edges = np.searchsorted(cells[:, 0], np.arange(self.blocks + 1))
        with hushed():
            found = [self.range.nearest(*given(function, values[i:j])) for i, j in itertools.pairwise(edges)]
        return np.array([sum(found)], dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Word:
    """What an owner says of a function: it gives `width` numbers within `range`, of columns whose units are `steps`.

    One person, under the unit's relation, moves the numbers by `sensitivity` together; with `each`, every one of them
    by so much. `placed`: it is told of all rows in their public places, else of rows in no order.
    """

    steps: tuple[Fraction, ...]
    range: Range
    sensitivity: Fraction
    width: int = 1
    each: bool = False
    placed: bool = False

    def __post_init__(self) -> None:
        whole(self.width, 1, 2**20)
        if type(self.sensitivity) is not Fraction or self.sensitivity <= 0:
            raise Refused("a sensitivity that is none")


class Owned(NamedTuple):
    """An owner's word of a function, and the kept table and columns that it is about."""

    word: Word
    table: tuple[str, ...]
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Declared:
    """A function of all rows that the owner has named; of a row its place is read, if it has one, then the columns.

    Privacy: the owner's word about a person, however many rows they have [DMNS06, Proposition 1; S4.27]. A missing cell
    is NaN, and no row is left out; rows without places are sorted. A double may be off by half a unit, and rounding
    takes numbers that move by d units less than d + 1 units apart.
    """

    function: str
    word: Word

    @property
    def columns(self) -> int:
        return self.word.placed + len(self.word.steps)

    def figure(self, rows: int) -> Figure:
        word, ends = self.word, self.word.range
        units = word.sensitivity / ends.unit
        most = min(math.floor(units + Fraction(1, 2)) + 1, ends.high - ends.low)
        together = math.floor(units + Fraction(word.width, 2)) + word.width
        together = word.width * most if word.each else min(together, word.width * most)
        moved = Move(together, together * most, most, min(together, word.width))
        return Figure(word.width, moved, moved)

    def exact(self, cells: Integers, function: Function) -> Integers:
        cells = cells[np.lexsort(cells.T[::-1])]  # by the place, or by the columns
        with hushed():
            found = given(function, _values(self.word.steps, cells[:, self.word.placed :]), self.word.width)
        return np.array(list(map(self.word.range.nearest, found)), dtype=np.int64)


def _values(steps: tuple[Fraction, ...], cells: Integers) -> Floats:
    """Cells in their own measure: exact doubles."""
    found: Floats = cells * np.array([float(step) for step in steps])
    found[cells == BLANK] = math.nan
    return found


def declared(statistic: Declared, owners: Mapping[str, Owned]) -> Owned:
    """What its owner declares of a function; Refused where it is asked for with other words."""
    owned = owners.get(statistic.function)
    if owned is None or owned.word != statistic.word:
        raise Refused("a function of which its owner has not declared that")
    return owned
