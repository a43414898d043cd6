"""A model that is the whole table: a weight for each cell of the declared domain."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np

from sulq.language.kinds import Floats, Integers
from sulq.release.synthetic.drawing import drawn
from sulq.release.synthetic.measurement import MeasuredMarginal
from sulq.release.tables.interactions import Places
from sulq.release.tables.summing import gathered

GROWTH: Final = 1.5  # of the rate after a step that helped; one that did not halves it


class TableModel:
    """Counts of every cell of the declared domain, none negative."""

    def __init__(self, table: Floats) -> None:
        self.table = table

    def marginal(self, places: Places) -> Floats:
        """The counts that it expects by some columns, ascending."""
        return _summed(self.table, places)

    def marginals(self, wanted: Iterable[Places]) -> dict[Places, Floats]:
        """The counts that it expects by several lists of columns, each ascending."""
        return gathered(self.table, wanted)

    def draw(self, rows: int, rng: np.random.Generator) -> Integers:
        """Rows of cells, a column for each of the space's."""
        cells = drawn(self.table.ravel(), rows, rng)
        return np.stack(np.unravel_index(cells, self.table.shape), axis=1).astype(np.int64)


class WeightedTable(TableModel):
    """Shares of the rows, one a cell, at first even; they learn from measurements by multiplicative weights.

    One step multiplies each cell's weight by e^(rate * what the measurements say is short there), each
    measurement weighed by the inverse of its variance. Steps go over all measurements so far
    and are repeated; the rate halves where the fit would get worse. (The paper's rate, 1/(2n) and one pass
    a measurement, is the same step, safe and far slower.) A measurement that is new is met half-way first: each
    cell of it is multiplied by what it has over what was expected, as far as the noise lets that be told.
    """

    def __init__(self, sizes: tuple[int, ...]) -> None:
        self._logs: Floats = np.zeros(sizes)
        self._rate = 0.0
        self._seen = 0  # measurements
        super().__init__(_normal(self._logs))

    def fit(self, measured: Sequence[MeasuredMarginal], total: float, steps: int) -> None:
        """Learn from all measurements."""
        total = max(total, 1.0)
        for each in measured[self._seen :]:
            expected = _summed(_normal(self._logs) * total, each.places)
            ratio = (np.maximum(each.values, 0.0) + each.error) / (expected + each.error)
            self._logs = self._logs + _spread(np.log(ratio), each.places, self._logs.shape)
        self._seen = len(measured)
        strength = sum(1.0 / each.error**2 for each in measured)
        rate = max(self._rate, 1.0 / (max(strength, 1e-9) * total))
        table = _normal(self._logs) * total
        loss, slope = _judged(table, measured)
        for _ in range(steps):
            if not float(np.ptp(slope)):
                break  # no cell would change against another, as where there is one alone: the rate would grow for ever
            logs = self._logs - rate * slope
            logs -= logs.max()
            tried = _normal(logs) * total
            new, ahead = _judged(tried, measured)
            if loss - new >= 0.25 * float(np.vdot(slope, table - tried)):
                self._logs, table, loss, slope = logs, tried, new, ahead
                rate *= GROWTH
            else:
                rate /= 2.0
        self._rate, self.table = rate, table


def _normal(logs: Floats) -> Floats:
    weights = np.exp(logs - logs.max())
    shares: Floats = weights / weights.sum()
    return shares


def _summed(table: Floats, places: Places) -> Floats:
    others = tuple(axis for axis in range(table.ndim) if axis not in places)
    found: Floats = table.sum(axis=others)
    return found


def _spread(values: Floats, places: Places, sizes: Sequence[int]) -> Floats:
    """A table by some columns as one by all of them, one long elsewhere."""
    return values.reshape([size if axis in places else 1 for axis, size in enumerate(sizes)])


def _judged(table: Floats, measured: Sequence[MeasuredMarginal]) -> tuple[float, Floats]:
    """Half the squared gaps in units of their noise, and how that changes with each cell's count."""
    loss = 0.0
    slope: Floats = np.zeros(table.shape)
    for each in measured:
        gaps = (_summed(table, each.places) - each.values) / each.error
        loss += 0.5 * float(np.vdot(gaps, gaps))
        slope += _spread(gaps / each.error, each.places, table.shape)
    return loss, slope
