"""A model that is the whole table, raked: scaled to one marginal after the other until it has them all.

Of all tables with given marginals, raking (iterative proportional fitting) leads to the one of the most entropy: what
the marginals do not say is left even. Where they disagree a little, it stays near them all.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Final, cast

import numpy as np

from sulq.release.synthetic.drawing import drawn
from sulq.release.synthetic.space import Places, Space
from sulq.release.synthetic.summing import gathered
from sulq.terms.kinds import Floats, Integers

SWEEPS: Final = 25  # at most
CLOSE: Final = 0.1  # of the noise: gaps that are not worth another sweep
LEAST: Final = 1e-3  # of a row: what a count is taken to be at least, so that none is divided by nothing
STEEPEST: Final = 50.0  # the most that a cell is scaled by at once


class Raked:
    """Counts of every cell of the declared domain."""

    def __init__(self, space: Space, total: float) -> None:
        self._space = space
        self.total = max(total, 1.0)
        self._table: Floats = np.full(space.cells, self.total / space.cells)

    def fit(self, targets: Mapping[Places, Floats], noise: float) -> None:
        """Take on these marginals: until their mean gap in L1 is a tenth of `noise`, which is what they are off by."""
        for _ in range(SWEEPS):
            gaps = 0.0
            for places, target in targets.items():
                view, axes = self._seen(places)
                now = view.sum(axis=axes, keepdims=True)
                goal = target.reshape(now.shape)
                gaps += float(np.abs(goal - now).sum())
                view *= np.clip((goal + LEAST) / (now + LEAST), 1.0 / STEEPEST, STEEPEST)
            if gaps <= CLOSE * noise * len(targets):
                break
        self._table *= self.total / self._table.sum()

    def _seen(self, places: Places) -> tuple[Floats, tuple[int, ...]]:
        """The table with an axis for each of these columns and one for all between two of them, and which those are."""
        shape, start = [], 0
        for place in places:
            shape += [math.prod(self._space.sizes[start:place]), self._space.sizes[place]]
            start = place + 1
        shape.append(math.prod(self._space.sizes[start:]))
        return self._table.reshape(shape), tuple(range(0, len(shape), 2))

    def marginals(self, wanted: Iterable[Places]) -> dict[Places, Floats]:
        """The counts by several lists of columns, each ascending."""
        return gathered(self._table.reshape(self._space.sizes), wanted)

    def draw(self, rows: int, rng: np.random.Generator) -> Integers:
        """Rows of cells, a column for each of the space's."""
        cells = drawn(self._table, rows, rng)
        return cast("Integers", np.stack(np.unravel_index(cells, self._space.sizes), axis=1).astype(np.int64))
