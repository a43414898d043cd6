"""Vectors added up by cell, where scipy is installed: one product in place of a pass for each coordinate.

All terms and their sums are whole and below 2^53, so neither the way nor the
order in which they are added changes a bit (SR16).
"""

from __future__ import annotations

import functools
import importlib
from typing import cast

import numpy as np

from sulq.curator.engines.keys import Chosen
from sulq.terms.kinds import Floats, Integers


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


def summed(chosen: Chosen, vectors: Floats, weights: Floats | None) -> Integers:
    """The sum of each cell's vectors, given one a row, of the rows that count: a sparse matrix, an entry a row."""
    from scipy.sparse import csc_array

    cells, weights = cast("Integers", chosen.cells), np.ones(len(vectors)) if weights is None else weights
    if not len(cells):  # there may be no cell to add to either, and the product looks at no bounds
        return np.zeros((chosen.count, vectors.shape[1]), dtype=np.int64)
    if chosen.rows is not None:
        cells = _spread(cells, chosen.rows, len(vectors))
        weights = _spread(weights[chosen.rows], chosen.rows, len(vectors))
    starts = np.arange(len(vectors) + 1, dtype=np.int32)
    table = csc_array((weights, cells.astype(np.int32), starts), shape=(chosen.count, len(vectors)))
    return cast("Integers", (table @ vectors).astype(np.int64))


def _spread(values: np.ndarray, rows: Integers, count: int) -> np.ndarray:
    """Values of some rows among so many; the others have zero, which adds nothing."""
    found: np.ndarray = np.zeros(count, dtype=values.dtype)
    found[rows] = values
    return found
