"""Vectors added up by cell, where scipy is installed: one product in place of a pass for each coordinate.

All terms and their sums are whole and below 2^53, so neither the way nor the
order in which they are added changes a bit (SR16).
"""

from __future__ import annotations

import functools
import importlib
from typing import Any, cast

import numpy as np

from sulq.language.kinds import Floats, Integers
from sulq.sources.folds.keys import Chosen


@functools.cache
def installed() -> bool:
    """Whether there is a scipy that works: vectors that are added up by cell then lie side by side in memory.

    It takes a while to load, so it is asked where vectors are, and not before.
    """
    try:
        importlib.import_module("scipy.sparse")
    except Exception:  # noqa: BLE001 - one made for another NumPy raises what it likes, and is not needed
        return False
    return True


class Adder:
    """Adds up vectors by cell, batch after batch: a sparse matrix with an entry a row, kept as long as it fits."""

    def __init__(self) -> None:
        self._table: Any = None
        self._once = False  # whether every entry of the table is one

    def sums(self, chosen: Chosen, vectors: Floats, weights: Floats | None) -> Integers:
        """The sum of each cell's vectors, given one a row, of the rows that count, each times its weight or once."""
        cells = cast("Integers", chosen.cells)
        if not len(cells):  # there may be no cell to add to either, and the product looks at no bounds
            return np.zeros((chosen.count, vectors.shape[1]), dtype=np.int64)
        table = self._of(chosen.count, len(vectors))
        once, self._once = self._once, chosen.rows is None and weights is None
        if chosen.rows is None:
            table.indices[:] = cells
            if not (once and self._once):
                table.data[:] = 1.0 if weights is None else weights
        else:  # the others add nothing, to a cell that there is
            table.indices[:] = 0
            table.data[:] = 0.0
            table.indices[chosen.rows] = cells
            table.data[chosen.rows] = 1.0 if weights is None else weights[chosen.rows]
        return cast("Integers", (table @ vectors).astype(np.int64))

    def _of(self, cells: int, rows: int) -> Any:  # noqa: ANN401 - scipy has no types
        if self._table is None or self._table.shape != (cells, rows):
            from scipy.sparse import csc_array

            entries = (np.ones(rows), np.zeros(rows, dtype=np.int32), np.arange(rows + 1, dtype=np.int32))
            self._table, self._once = csc_array(entries, shape=(cells, rows)), True
        return self._table
