"""Rows as integers, one beside the other: what a statistic of the whole table is worked out from."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sulq.kernel.private import Stored
from sulq.language.kinds import Cells, Integers
from sulq.language.rowfn import Col, RowFn
from sulq.language.rowfn.base import evaluate
from sulq.language.rowfn.keys import Bucket
from sulq.language.tally import BLANK, Tally
from sulq.sources.folds.batch import RowBatch
from sulq.sources.folds.fold import holding


def listed(tally: Tally, rows: RowBatch, *, blanks: bool = False) -> Integers:
    """The blocks of the rows whose condition is true and in which nothing is missing, clamped to their bounds.

    Of a part of the people it is the person's hash, which tells the part.
    With `blanks` rows in which something is missing stay: how many rows there are then depends on no cell.
    """
    kept = holding(tally.where, rows)
    found = [_cells(block.fn, rows) for block in tally.blocks]
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


def _cells(fn: RowFn, rows: RowBatch) -> Cells:
    if isinstance(fn, Bucket):
        return Cells(rows.person(), None)
    return rows.codes(fn.name) if isinstance(fn, Col) else evaluate(fn, rows)
