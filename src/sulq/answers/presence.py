"""Whether a group has rows at all, judged from its released count: without rows a mean or a quantile is unknown.

Source: SR18, docs/theory/means.md.
"""

from __future__ import annotations

from typing import Final, Protocol, runtime_checkable

import numpy as np

from sulq.answers.noise_sums import added
from sulq.answers.released import Released
from sulq.language.kinds import Floats, Truths

LEVEL: Final = 0.95  # the fixed level: no group without rows is taken for one with rows, over all groups of an answer
UNKNOWN: Final = (
    "unknown: the group may have no rows, as the interval of its count reaches 0 (at 95% for all groups at once)"
)


@runtime_checkable
class Counted(Protocol):
    """A statistic that a group without rows does not have: a mean, spread, covariance, quantile or extreme."""

    def least(self, released: Released, beta: float) -> Floats:
        """The lower end of the interval of each cell's number of values, except with probability beta a cell."""
        ...

    def bounds(self) -> tuple[Floats, Floats]:
        """The whole range of each column by public facts."""
        ...


def least_total(released: Released, columns: slice, beta: float, row: float = 1.0) -> Floats:
    """The lower end of the interval of a sum of columns whose noise is of one law, to which a row adds `row`.

    Rows are whole: an interval narrower than half a row on either side is taken as that,
    so that a sum nearer to no row than to one reaches 0 however little noise it has.
    """
    units, noise = released.units[:, columns], released.noise[0]
    away = 0.0 if released.exact else float(added(noise.law, units.shape[1]).accuracy(beta) * noise.step)
    found: Floats = units.sum(axis=1) * float(noise.step) - max(away, row / 2)
    return found


def beta_of(groups: int) -> float:
    """The error probability of one group's count, so that all counts of an answer hold at the fixed level."""
    return (1 - LEVEL) / max(groups, 1)


def unknown(reading: object, released: Released) -> Truths:
    """Which groups may have no rows, so that a statistic they may not have is not claimed; released numbers alone."""
    if not isinstance(reading, Counted):
        return np.zeros(released.cells, dtype=bool)
    found: Truths = reading.least(released, beta_of(released.cells)) <= 0
    return found
