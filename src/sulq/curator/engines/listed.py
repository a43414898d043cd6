"""Rows as integers, one beside the other: what a statistic of the whole table is worked out from."""

from __future__ import annotations

import numpy as np

from sulq.curator.engines.batch import Batch
from sulq.terms.engine import BLANK, Tally
from sulq.terms.kinds import Cells, Integers
from sulq.terms.rowfn.scalar import Col, RowFn, evaluate, truths


def listed(tally: Tally, rows: Batch, *, blanks: bool = False) -> Integers:
    """The blocks of the rows whose condition is true and in which nothing is missing, clamped to their bounds.

    With `blanks` rows in which something is missing stay: how many rows there are then depends on no cell.
    """
    kept = np.ones(rows.size, dtype=np.bool_)
    if tally.where is not None:
        true, unknown = truths(tally.where, rows)
        kept &= true if unknown is None else true & ~unknown
    found = [_cells(block.fn, rows) for block in tally.blocks]
    for cells in found:
        if cells.missing is not None and not blanks:
            kept &= ~cells.missing
    table = np.empty((int(kept.sum()), len(found)), dtype=np.int64)
    for i, (block, cells) in enumerate(zip(tally.blocks, found, strict=True)):
        np.clip(cells.values[kept].astype(np.int64), block.low[0], block.high[0], out=table[:, i])
        if blanks and cells.missing is not None:
            table[cells.missing[kept], i] = BLANK
    return table


def _cells(fn: RowFn, rows: Batch) -> Cells:
    return rows.codes(fn.name) if isinstance(fn, Col) else evaluate(fn, rows)
