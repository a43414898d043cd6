"""The reference meaning of a tally: row functions' own cells, summed and listed over rows in memory.

It is total: whatever a row holds, nothing raises. Engines fall back on it for what SQL does not say.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, cast

import numpy as np

from sulq.kernel.private import SATURATED, Stored, saturate
from sulq.language.domain import Schema
from sulq.language.kinds import Cells, Floats, Integers, Objects, Truths
from sulq.language.rowfn import Col, RowFn
from sulq.language.rowfn.base import evaluate, numbers, truths
from sulq.language.rowfn.keys import Bucket
from sulq.language.rowfn.vectors import to_grid, vector_cells
from sulq.language.tally import BLANK, Block, Tally


class RowBatch:
    """Columns of one batch by name: whole numbers of any width (or objects for Text), and where they are missing."""

    __slots__ = ("_columns", "_person", "_position", "owner", "schema", "seen", "size")

    def __init__(
        self,
        schema: Schema,
        size: int,
        columns: Mapping[str, Stored],
        *,
        person: Integers | None = None,
        position: Integers | None = None,
        owner: np.ndarray | None = None,
    ) -> None:
        self.schema = schema
        self.size = size
        self.seen: dict[int, Cells] = {}
        self.owner = owner  # whose each row is: numbers or texts to be compared for equality, never shown
        self._columns = columns
        self._person = person
        self._position = position

    def stored(self, name: str) -> Stored:
        """A column as it is stored, in its own width."""
        return self._columns[name]

    def codes(self, name: str) -> Cells:
        """A column's cells: int64 grid units, or objects for Text."""
        values, missing = self._columns[name]
        return Cells(values if values.dtype == object else values.astype(np.int64, copy=False), missing)

    def person(self) -> Integers:
        """A 60-bit public hash of each row's person."""
        if self._person is None:
            raise LookupError("no persons")
        return self._person

    def position(self) -> Integers:
        """Each row's place in the source, from 0."""
        if self._position is None:
            raise LookupError("no positions")
        return self._position

    def part(self, start: int, stop: int) -> RowBatch:
        """Some consecutive rows."""
        return self._chosen(slice(start, stop), min(stop, self.size) - start)

    def placed(self, size: int) -> RowBatch:
        """All `size` rows of the source, each in its place: those that are not among these lack every cell.

        Privacy: only where places and `size` are public, which no neighbour changes; so no row moves another (SR6).
        """
        places = self.position()
        columns: dict[str, Stored] = {}
        for name, (values, missing) in self._columns.items():
            cells, none = np.zeros(size, dtype=values.dtype), np.ones(size, dtype=np.bool_)
            cells[places], none[places] = values, False if missing is None else missing
            columns[name] = cells, none
        return RowBatch(self.schema, size, columns, position=np.arange(size))

    def take(self, rows: Integers) -> RowBatch:
        """Rows by their places."""
        return self._chosen(rows, len(rows))

    def _chosen(self, rows: slice | Integers, size: int) -> RowBatch:
        columns = {
            name: (values[rows], None if missing is None else missing[rows])
            for name, (values, missing) in self._columns.items()
        }
        person = None if self._person is None else self._person[rows]
        position = None if self._position is None else self._position[rows]
        owner = None if self.owner is None else self.owner[rows]
        return RowBatch(self.schema, size, columns, person=person, position=position, owner=owner)


class RunningTotals:
    """Exact running sums of one block, by cell: int64 as long as nothing can wrap, else Python integers."""

    __slots__ = ("large", "small", "used")

    def __init__(self, cells: int, width: int) -> None:
        self.small: Integers = np.zeros((cells, width), dtype=np.int64)
        self.large: Objects | None = None
        self.used = 0

    def reserve(self, most: int) -> None:
        """Make sure that sums of at most this size can be added."""
        if self.used + most >= SATURATED:
            self.large = self.small.astype(object) if self.large is None else self.large + self.small
            self.small[:] = 0
            self.used = 0
        self.used += most

    def saturated(self) -> Integers:
        """The sums as int64, clamped to +-2^62: a 1-Lipschitz step (T5)."""
        return saturate(self.small if self.large is None else self.large + self.small)


EXACT: Final = 2**53
MAX_PART_ROWS: Final = 65_536
MAX_PART_TERMS: Final = 2**22  # doubles that the terms of one part take, however wide a block is


def reach(block: Block) -> int:
    """The largest term of a block."""
    return max(max(abs(a), abs(b)) for a, b in zip(block.low, block.high, strict=True))


def units_of(block: Block, rows: RowBatch) -> tuple[Floats, Truths | None]:
    """A block's terms, one row of the matrix a coordinate, and where they are missing."""
    if block.vector:
        cells, missing = vector_cells(block.fn, rows)
        return np.ascontiguousarray(cells.T, dtype=np.float64), missing
    values, missing = numbers(block.fn, rows)
    return to_grid(values, block.step, block.low[0], block.high[0]).astype(np.float64)[None, :], missing


def fold(tally: Tally, rows: RowBatch, *, part_rows: int = MAX_PART_ROWS) -> Integers:
    """Exact sums of a tally over rows, shape (cells, width), saturated at +-2^62.

    Raises:
        OverflowError: a single term leaves the exact integers.
    """
    exact = EXACT // max([1, *map(reach, tally.blocks)])
    if exact == 0:
        raise OverflowError("a term leaves the exact integers")
    widest = max((block.width for block in tally.blocks), default=1)
    size = min(part_rows, exact, max(MAX_PART_TERMS // widest, 1))
    totals = [RunningTotals(tally.cells, block.width) for block in tally.blocks]
    with np.errstate(all="ignore"):  # a missing cell may hold anything; warnings must not tell of it
        for start in range(0, rows.size, size):
            _add(tally, rows.part(start, min(start + size, rows.size)), totals)
    return np.concatenate([total.saturated() for total in totals], axis=1)


def _add(tally: Tally, rows: RowBatch, totals: list[RunningTotals]) -> None:
    """Add the terms of each row that counts to its cell; the others add zeros."""
    counted, cells = _cells(tally, rows)
    for block, total in zip(tally.blocks, totals, strict=True):
        units, missing = units_of(block, rows)
        units[:, ~counted if missing is None else ~counted | missing] = 0.0
        total.reserve(rows.size * reach(block))
        if not tally.by:
            total.small[0] += units.sum(axis=1).astype(np.int64)
            continue
        for i, terms in enumerate(units):
            total.small[:, i] += np.bincount(cells, weights=terms, minlength=tally.cells).astype(np.int64)


def _cells(tally: Tally, rows: RowBatch) -> tuple[Truths, Integers]:
    """Which rows count (the condition is true, every key is there), and each one's cell, the last key fastest."""
    counted = holding(tally.where, rows)
    cells = np.zeros(rows.size, dtype=np.int64)
    for key in tally.by:
        found = evaluate(key.fn, rows)
        codes = cast("Integers", found.values)
        counted = counted & (codes >= 0) & (codes < len(key.labels))
        counted = counted if found.missing is None else counted & ~found.missing
        cells = cells * len(key.labels) + codes
    return counted, np.where(counted, cells, 0)


def holding(where: RowFn | None, rows: RowBatch) -> Truths:
    """The rows of which a condition is true."""
    if where is None:
        return np.ones(rows.size, dtype=np.bool_)
    holds, unknown = truths(where, rows)
    return holds if unknown is None else holds & ~unknown


def listed(tally: Tally, rows: RowBatch, *, blanks: bool = False) -> Integers:
    """The blocks of the rows whose condition is true and in which nothing is missing, clamped to their bounds.

    Of a part of the people it is the person's hash, which tells the part.
    With `blanks` rows in which something is missing stay: how many rows there are then depends on no cell.
    """
    kept = holding(tally.where, rows)
    found = [_blocks(block.fn, rows) for block in tally.blocks]
    for cells in found:
        if cells.missing is not None and not blanks:
            kept = kept & ~cells.missing
    table = np.empty((int(kept.sum()), len(found)), dtype=np.int64)
    for i, (block, cells) in enumerate(zip(tally.blocks, found, strict=True)):
        table[:, i] = cells.values[kept].astype(np.int64)
        if not isinstance(block.fn, Bucket):
            np.clip(table[:, i], block.low[0], block.high[0], out=table[:, i])
        if blanks and cells.missing is not None:
            table[cells.missing[kept], i] = BLANK
    return table


def of_columns(columns: Sequence[Stored], size: int, *, blanks: bool, places: int | None) -> Integers:
    """The same of the columns that a certified statement gives: rows in which nothing is missing, or all with `blanks`.

    `places`: how many rows the source has, where that is public: each then stands in its place, the first column.
    """
    table = np.empty((size, len(columns)), dtype=np.int64)
    for i, (values, missing) in enumerate(columns):
        table[:, i] = values
        if missing is not None:
            table[missing, i] = BLANK
    if blanks:
        return table if places is None else placed(table, places)
    there: Integers = table[(table != BLANK).all(axis=1)]
    return there


def placed(table: Integers, places: int) -> Integers:
    """All `places` rows of the source, each in its place, which the first column says: what is not there is blank.

    Privacy: only where places and their number are public, which no neighbour changes; so no row moves another (SR6).
    """
    found = np.full((places, table.shape[1]), BLANK, dtype=np.int64)
    found[:, 0] = np.arange(places)
    found[table[:, 0]] = table
    return found


def _blocks(fn: RowFn, rows: RowBatch) -> Cells:
    if isinstance(fn, Bucket):
        return Cells(rows.person(), None)
    return rows.codes(fn.name) if isinstance(fn, Col) else evaluate(fn, rows)
