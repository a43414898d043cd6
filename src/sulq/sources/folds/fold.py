"""Exact sums of row functions over rows in memory, by the row functions' own cells: the reference of every engine.

Within a part of the rows sums run in doubles, which are exact because a part is cut so that rows * |term| stays
below 2^53; between parts they run in 64-bit integers that move to Python's own before they could wrap. So neither
the order nor the size of parts changes a bit. Kernel programs (kernel/matrix.py) give the same sums, faster.

Source: SR16.
"""

from __future__ import annotations

from typing import Final, cast

import numpy as np

from sulq.language.kinds import Floats, Integers, Truths
from sulq.language.rowfn import RowFn
from sulq.language.rowfn.base import evaluate, numbers, truths
from sulq.language.rowfn.vectors import to_grid, vector_cells
from sulq.language.tally import Block, Tally
from sulq.sources.folds.batch import RowBatch
from sulq.sources.folds.totals import RunningTotals

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
