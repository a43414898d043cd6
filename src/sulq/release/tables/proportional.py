"""Proportional fitting: a table is multiplied until its marginals are those wished for, one after the other.

For attributes of many values, where marginals are nearly empty in many cells: each is first moved to the nearest one
without negative counts, and a multiplication sets all its cells at once. Every factor is on a marginal's own cells,
so the logarithm of the table has no interactions but theirs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from sulq.release.tables.interactions import Places
from sulq.terms.kinds import Floats

SWEEPS: Final = 8
SLIGHT: Final = 1e-4  # the least factor of one step: what is zero would stay so


def nearest(values: Floats, total: float) -> Floats:
    """The nearest marginal in L2 that is not negative and has this total: all cells less a constant, cut at zero."""
    high = np.sort(values.ravel())[::-1]
    over = (np.cumsum(high) - total) / np.arange(1, high.size + 1)
    return np.asarray(np.maximum(values - over[np.flatnonzero(high > over)[-1]], 0.0))


def scaled(table: Floats, targets: Mapping[Places, Floats]) -> tuple[Floats, dict[Places, Floats]]:
    """The table, multiplied cell by cell of each marginal towards its target, over and over; and the factors' logs."""
    table = table.copy()
    logs = {part: np.zeros(target.shape) for part, target in targets.items()}
    for _ in range(SWEEPS):
        for part, target in targets.items():
            others = tuple(i for i in range(table.ndim) if i not in part)
            own = table.sum(axis=others, keepdims=True)
            factor = np.maximum(target.reshape(own.shape) / np.maximum(own, np.finfo(float).tiny), SLIGHT)
            factor = np.minimum(factor, 1.0 / SLIGHT)
            table *= factor
            logs[part] += np.log(factor).reshape(target.shape)
    return table, logs
