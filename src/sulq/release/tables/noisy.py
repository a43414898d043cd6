"""The noise in a method's marginals: known from the plan, before any row is read."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from sulq.language.kinds import Floats
from sulq.release.tables.coefficients import own_sizes
from sulq.release.tables.interactions import Places, cells


class Noisy(Protocol):
    """How noisy each cell of a marginal is."""

    @property
    def law(self) -> str:
        """Of each draw: `laplace`, or else one near the normal."""
        ...

    @property
    def sizes(self) -> tuple[int, ...]:
        """The number of values of each attribute."""
        ...

    def variance(self, places: Places) -> Floats:
        """The variance of each cell."""
        ...

    def fourth(self, places: Places) -> Floats:
        """The sum of the squares of the variances of the draws in each cell."""
        ...

    def moments(self, alike: Sequence[Places]) -> tuple[Floats, Floats]:
        """Both, of marginals of the same sizes, one after the other."""
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

    def moments(self, alike: Sequence[Places]) -> tuple[Floats, Floats]:
        """Both, of marginals of the same sizes."""
        several = (len(alike), *own_sizes(alike[0], self.sizes))
        found = (self.variance(alike[0]), self.fourth(alike[0]))
        return np.broadcast_to(found[0], several), np.broadcast_to(found[1], several)

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
        if places in self.deviations and min(own_sizes(places, self.sizes), default=0) > 1:
            return places  # it has fewer cells than any other that holds it; most are asked for as they were measured
        held = (whole for whole in self.deviations if set(places) <= set(whole))
        return min(held, key=lambda whole: (cells(whole, self.sizes), whole))

    def variance(self, places: Places) -> Floats:
        """The variance of each cell."""
        return self._summed(places, 2)

    def fourth(self, places: Places) -> Floats:
        """The sum of the squares of the variances of the draws in each cell."""
        return self._summed(places, 4)

    def moments(self, alike: Sequence[Places]) -> tuple[Floats, Floats]:
        """Both, of marginals of the same sizes."""
        return np.stack([self.variance(own) for own in alike]), np.stack([self.fourth(own) for own in alike])

    def _summed(self, places: Places, power: int) -> Floats:
        whole = self.holder(places)
        draws = cells(whole, self.sizes) / cells(places, self.sizes)
        return np.full(own_sizes(places, self.sizes), draws * self.deviations[whole] ** power)
