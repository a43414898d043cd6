"""The noise in a method's marginals: known from the plan, before any row is read."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from sulq.release.tables.coefficients import own_sizes
from sulq.release.tables.interactions import Places, cells
from sulq.terms.kinds import Floats


class Noisy(Protocol):
    """How noisy each cell of a marginal is."""

    @property
    def law(self) -> str:
        """Of each draw: `laplace`, or else one near the normal."""
        ...

    def variance(self, places: Places) -> Floats:
        """The variance of each cell."""
        ...

    def fourth(self, places: Places) -> Floats:
        """The sum of the squares of the variances of the draws in each cell."""
        ...


@dataclass(frozen=True, slots=True)
class CellNoise:
    """A draw in each cell of the whole table: a marginal of M cells sums N/M of them.

    So its variance is N/M times a draw's: 2^(k-1) 2/epsilon^2 = 2^k/epsilon^2 for one yes or no [S3.13, E30].
    """

    sizes: tuple[int, ...]
    deviation: float
    law: str

    def variance(self, places: Places) -> Floats:
        """The variance of each cell."""
        return self._summed(places, self.deviation**2)

    def fourth(self, places: Places) -> Floats:
        """The sum of the squares of the variances of the draws in each cell."""
        return self._summed(places, self.deviation**4)

    def _summed(self, places: Places, each: float) -> Floats:
        own = own_sizes(places, self.sizes)
        return np.full(own, math.prod(self.sizes) / math.prod(own) * each)


@dataclass(frozen=True, slots=True)
class OwnNoise:
    """A draw in each cell of each marginal; a smaller marginal is summed from the smallest one that holds it."""

    sizes: tuple[int, ...]
    deviations: dict[Places, float]
    law: str

    def holder(self, places: Places) -> Places:
        """The measured marginal that another is summed from."""
        held = (whole for whole in self.deviations if set(places) <= set(whole))
        return min(held, key=lambda whole: (cells(whole, self.sizes), whole))

    def variance(self, places: Places) -> Floats:
        """The variance of each cell."""
        return self._summed(places, 2)

    def fourth(self, places: Places) -> Floats:
        """The sum of the squares of the variances of the draws in each cell."""
        return self._summed(places, 4)

    def _summed(self, places: Places, power: int) -> Floats:
        whole = self.holder(places)
        draws = cells(whole, self.sizes) / cells(places, self.sizes)
        return np.full(own_sizes(places, self.sizes), draws * self.deviations[whole] ** power)
