"""Small tables for tests: a batch as engines show it, and exact sums worked out from row functions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sulq.language.domain import Schema, Text
from sulq.language.kinds import Cells
from sulq.language.rowfn.base import evaluate, numbers
from sulq.language.rowfn.vectors import to_grid
from sulq.language.tally import Tally

Row = dict[str, object]  # a column's code (or text, or None) by its name; "person" and "position" beside them

# What stands in a missing cell means nothing, so tests put the worst there.
RUBBISH = -(2**62)


class Frame:
    """A batch of rows given as dictionaries."""

    def __init__(self, schema: Schema, rows: Sequence[Row]) -> None:
        self.schema = schema
        self.rows = list(rows)
        self.size = len(self.rows)
        self.seen: dict[int, Cells] = {}

    def codes(self, name: str) -> Cells:
        cells = [row[name] for row in self.rows]
        missing = np.array([cell is None for cell in cells], dtype=np.bool_)
        if isinstance(self.schema.find(name), Text):
            return Cells(np.array([*cells, None], dtype=object)[:-1], missing)
        return Cells(np.array([RUBBISH if cell is None else cell for cell in cells], dtype=np.int64), missing)

    def person(self) -> np.ndarray:
        return np.array([row["person"] for row in self.rows], dtype=np.int64)

    def position(self) -> np.ndarray:
        return np.array([row["position"] for row in self.rows], dtype=np.int64)


def terms(tally: Tally, frame: Frame) -> tuple[np.ndarray, np.ndarray]:
    """Each row's cell (-1: none) and the integers it adds there, as a plan asks an engine for them."""
    where = np.ones(frame.size, dtype=np.bool_)
    if tally.where is not None:
        found = evaluate(tally.where, frame)
        where = found.values.astype(bool) & ~_mask(found, frame.size)
    cell = np.zeros(frame.size, dtype=np.int64)
    for key in tally.by:
        found = evaluate(key.fn, frame)
        where &= ~_mask(found, frame.size)
        cell = cell * len(key.labels) + np.where(where, found.values, 0)
    blocks = []
    for block in tally.blocks:
        found = evaluate(block.fn, frame)
        if block.vector:
            units = found.values
        else:
            units = to_grid(numbers(block.fn, frame)[0], block.step, block.low[0], block.high[0])[:, None]
        blocks.append(np.where(_mask(found, frame.size)[:, None], 0, units))
    return np.where(where, cell, -1), np.concatenate(blocks, axis=1)


def sums(tally: Tally, frame: Frame) -> np.ndarray:
    """Exact sums of a tally over a batch: an int64 array of shape (cells, width)."""
    cell, units = terms(tally, frame)
    total = np.zeros((tally.cells, tally.width), dtype=np.int64)
    np.add.at(total, cell[cell >= 0], units[cell >= 0])
    return total


def _mask(cells: Cells, size: int) -> np.ndarray:
    return np.zeros(size, dtype=np.bool_) if cells.missing is None else cells.missing
