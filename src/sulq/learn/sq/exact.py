"""Statistics of a known distribution, exactly: what the learners' theorems speak of."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from sulq.errors import QuestionError
from sulq.language.rowfn import RowFn
from sulq.language.rowfn.scalar import numbers
from sulq.learn.sq.oracle import Backend, checked_query
from sulq.learn.sq.table import Table


class Exact(Backend):
    """The mean over a public table, or over a distribution on its rows; no noise, no privacy.

    columns: The declared columns, as for `sulq.connect`.
    data: A frame, or arrays by name.
    weights: How likely each row is; evenly where left out.
    """

    def __init__(self, columns: Mapping[str, object], data: object, weights: npt.ArrayLike | None = None) -> None:
        self.table = Table(columns, data)
        mass = np.ones(self.table.size) if weights is None else np.asarray(weights, dtype=np.float64)
        if mass.shape != (self.table.size,) or not np.all(mass >= 0) or not 0 < mass.sum() < np.inf:
            raise QuestionError("bad-table", "Give a weight of zero or more for each row, not all zero.")
        self._mass = mass / mass.sum()

    def stat(self, phi: RowFn, tau: float) -> float:
        """The mean of phi."""
        query = checked_query(phi, tau, self.table.schema)
        return float(self._mass @ numbers(query, self.table)[0])
