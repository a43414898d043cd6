"""Functions of rows that need not be sums: an estimate of each block of people, averaged; and the owner's own.

Privacy: what an owner's function raises, prints, warns of or logs may tell of a row, so nobody hears it (T31). What it
gives is cut off at the bounds; an error, or what is no number, counts as the middle (SR5). That it is a function of its
argument alone, or one person would move more than one block (SR11), and that a certificate is true, is the owner's
word; so is what a library writes past Python's own streams, and what a function does on purpose.
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
CLEARLY: Final = Fraction(1, 10**12)  # an equality must not pass for more by the rounding of a decimal (E41)
Function = Callable[[Floats], object]
_ALONE: Final = threading.RLock()  # what is hushed is the whole process


@contextlib.contextmanager
def hushed() -> Iterator[None]:
    """Nobody hears what a function prints, warns of or logs: it may tell of a row (T31).

    Of the whole process, since a function may print from threads of its own, and so for one function at a time.
    """
    with _ALONE, Path(os.devnull).open("w", encoding="utf-8") as nowhere:
        before = logging.root.manager.disable
        logging.disable(sys.maxsize)
        try:
            with (
                contextlib.redirect_stdout(nowhere),
                contextlib.redirect_stderr(nowhere),
                warnings.catch_warnings(),
                np.errstate(all="ignore"),
            ):
                warnings.simplefilter("ignore")
                yield
        finally:
            logging.disable(before)


def given(function: Function, values: Floats) -> float | None:
    """The number a function gives of some rows; None where it gives none, or raises anything at all.

    Even what is no error, such as leaving the interpreter: its text, its kind and its being raised may depend on a row
    (SR5, T31). The operator's own interrupt alone is let through.
    """
    try:
        found = float(function(values.copy()))  # type: ignore[arg-type]  # what is no number ends below
    except KeyboardInterrupt:
        raise
    except BaseException:  # noqa: BLE001 - see above
        return None
    return None if math.isnan(found) else found


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

    def estimate(self, function: Function, values: Floats) -> int:
        """What a function gives of some rows, in units; within the bounds whatever it does."""
        found = given(function, values)
        if found is None:
            return (self.low + self.high) // 2
        return int(np.floor(np.clip(found / float(self.unit), self.low, self.high) + 0.5))


@dataclass(frozen=True, slots=True)
class Aggregated:
    """The sum of an estimate of each of `blocks` parts of the people.

    Of a row its person's public hash is read, then columns whose units are `steps`. With h = 2^30 u + v the hash, the
    block is ((a u + b v + c) mod p) mod blocks, a, b and c being `mixing`. Rows of a block are sorted: their order is
    no part of the data.

    Privacy: a person's rows are in one block, and whatever a function of one block's rows gives one estimate moves,
    within its bounds: high - low. Under replace_one another block takes the person who comes: twice that (SR11). How
    many rows a person has does not count. How many a block has is told to the estimator alone.
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
            found = [self.range.estimate(function, values[i:j]) for i, j in itertools.pairwise(edges)]
        return np.array([sum(found)], dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Word:
    """What an owner declares of a function: the certificate of a sampling algorithm that finds it [S4.13].

    The algorithm looks at each row with probability at most `reads` and, whatever the rows are, comes `within` of the
    function with probability at least `probability`. `steps`: the units of the columns it is certified for. `range`:
    values are cut off there.
    """

    steps: tuple[Fraction, ...]
    range: Range
    reads: Fraction
    within: Fraction
    probability: Fraction

    @property
    def sensitivity(self) -> Fraction:
        """How far one row moves the function; at exactly (1 + reads)/2 the lemma is false, and refused (E41)."""
        if not (0 <= self.reads < 1 and self.within > 0 and self.probability <= 1):
            raise Refused("a certificate that is none")
        if self.probability - (1 + self.reads) / 2 <= CLEARLY:
            raise Refused("a certificate whose algorithm succeeds too seldom")
        return 2 * self.within


class Owned(NamedTuple):
    """An owner's word of a function, and the kept table and columns that it is about."""

    word: Word
    table: tuple[str, ...]
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Declared:
    """A function of all rows that the owner has named and certified; of a row its place is read, then the columns.

    Privacy: what the owner's certificate says for a row [DMNS06, Lemma 1; S4.13, E41]; only where tables that differ
    have as many rows, each in its place: a missing cell is NaN there, and no row is left out.
    """

    function: str
    word: Word

    @property
    def columns(self) -> int:
        return 1 + len(self.word.steps)

    def figure(self, rows: int) -> Figure:
        ends = self.word.range
        one = math.ceil(self.word.sensitivity / ends.unit) + 1  # each of two values is rounded by half a unit
        moved = Move.of(min(rows * one, ends.high - ends.low))
        return Figure(1, moved, moved)

    def exact(self, cells: Integers, function: Function) -> Integers:
        cells = cells[np.argsort(cells[:, 0], kind="stable")]
        with hushed():
            found = self.word.range.estimate(function, _values(self.word.steps, cells[:, 1:]))
        return np.array([found], dtype=np.int64)


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
