"""Which rows of a batch count, and for which cell of a partition."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np

from sulq.language.kinds import Integers, Truths
from sulq.language.rowfn import RowFn
from sulq.language.rowfn.base import evaluate, truths
from sulq.language.tally import Key, Tally
from sulq.sources.folds.batch import Batch


@dataclass(frozen=True, slots=True)
class Chosen:
    """The rows of a batch that count (None: all), and the cell of each (None: there is one cell)."""

    rows: Integers | None
    cells: Integers | None
    ids: Integers | None  # where many cells are empty: the cells that occur, which `cells` then numbers
    count: int  # how many cells `cells` runs over


class Keys:
    """The codes of keys on one batch, each worked out once for all tallies that have it."""

    def __init__(self, batch: Batch) -> None:
        self._batch = batch
        self._known: dict[int, tuple[Key, Integers, Truths | None]] = {}
        self._places: dict[int, Integers] = {}
        self._steps: dict[tuple[int, int], Integers] = {}

    def codes(self, key: Key) -> tuple[Integers, Truths | None]:
        """A key's code for each row, and the rows that have one (None: all)."""
        known = self._known.get(id(key.fn))
        if known is None or len(known[0].labels) != len(key.labels):
            cells = evaluate(key.fn, self._batch)
            codes = cast("Integers", cells.values)
            here = codes.view(np.uint64) < len(key.labels)  # without a sign: what is below 0 is far above
            here = here if cells.missing is None else here & ~cells.missing
            known = self._known[id(key.fn)] = (key, codes, None if here.all() else here)
        return known[1], known[2]

    def places(self, key: Key) -> Integers:
        """A key's code for each row; of a row that has none, the one after the last."""
        known = self._places.get(id(key.fn))
        if known is None:
            cells = evaluate(key.fn, self._batch)
            codes = cast("Integers", cells.values).view(np.uint64)  # without a sign: what is below 0 is far above
            known = self._places[id(key.fn)] = np.minimum(codes, len(key.labels)).view(np.int64)
            if cells.missing is not None:
                known[cells.missing] = len(key.labels)
        return known

    def steps(self, key: Key, stride: int) -> Integers:
        """A key's part of each row's cell: its code times how many cells lie between one label and the next."""
        if stride == 1:
            return self.codes(key)[0]
        known = self._steps.get((id(key.fn), stride))
        if known is None:
            known = self._steps[id(key.fn), stride] = self.codes(key)[0] * stride
        return known


def choose(tally: Tally, batch: Batch, keys: Keys) -> Chosen:
    """Which rows count, and for which cell: the condition is true and every key is there."""
    counted = holding(tally.where, batch)
    if not tally.by:
        return Chosen(None if counted is None else np.flatnonzero(counted), None, None, 1)
    for key in tally.by:
        _, here = keys.codes(key)
        if here is not None:
            counted = here if counted is None else counted & here
    cells = cells_of(tally.by, keys)
    rows = None if counted is None or counted.all() else np.flatnonzero(counted)
    cells = cells if rows is None else cells[rows]
    if tally.cells <= 4 * len(cells):
        return Chosen(rows, cells, None, tally.cells)
    ids, places = np.unique(cells, return_inverse=True)
    return Chosen(rows, places.reshape(-1), ids, len(ids))


def holding(where: RowFn | None, batch: Batch) -> Truths | None:
    """The rows of which a condition is true; None: there is no condition."""
    if where is None:
        return None
    holds, unknown = truths(where, batch)
    return holds if unknown is None else holds & ~unknown


def cells_of(by: Sequence[Key], keys: Keys) -> Integers:
    """Each row's cell, the last key fastest; of a row that misses a key it says nothing."""
    steps: list[Integers] = []
    stride = 1
    for key in reversed(by):
        steps.append(keys.steps(key, stride))
        stride *= len(key.labels)
    cells = steps[0] if len(steps) == 1 else steps[0] + steps[1]
    for more in steps[2:]:
        cells += more
    return cells
