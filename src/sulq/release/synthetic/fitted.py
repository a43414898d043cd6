"""A model that is the whole table, fitted to what answers say of it at once (release/tables/fitting.py)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

import numpy as np

from sulq.language.kinds import Floats, Integers
from sulq.release.synthetic.drawing import drawn
from sulq.release.synthetic.evidence import Evidence
from sulq.release.synthetic.space import Places, Space
from sulq.release.synthetic.summing import gathered
from sulq.release.tables.fitting import fitted


class Fitted:
    """Counts of every cell of the declared domain: none negative, and of the number of rows that the evidence has."""

    def __init__(self, space: Space, evidence: Evidence) -> None:
        self._space = space
        heard = {part: (values, evidence.deviations[part]) for part, values in evidence.values.items()}
        _, self._table = fitted(heard, space.sizes)

    def marginals(self, wanted: Iterable[Places]) -> dict[Places, Floats]:
        """The counts by several lists of columns, each ascending."""
        return gathered(self._table.reshape(self._space.sizes), wanted)

    def draw(self, rows: int, rng: np.random.Generator) -> Integers:
        """Rows of cells, a column for each of the space's."""
        cells = drawn(self._table, rows, rng)
        return cast("Integers", np.stack(np.unravel_index(cells, self._space.sizes), axis=1).astype(np.int64))
