"""Noisy numbers that tell a table's marginals: how noisy each marginal is, and the coefficients they give.

A plan foresees the same noise for zeros, so that what holds of an answer is known before any row is read.

A marginal of cells with noise of one deviation s has the coefficients of its subsets b, with noise of deviation s |f_b|
(on the marginal's cells), uncorrelated because the vectors are orthogonal. Several marginals that hold b tell its
coefficient independently, so their mean, weighted by 1/variance, is the least-squares estimate from all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from sulq.language.kinds import Floats
from sulq.release.tables.basis import lengths, product
from sulq.release.tables.coefficients import MIN_DEVIATION_ROWS, Coefficients, own_sizes
from sulq.release.tables.interactions import Places, cells, closure, inside, width


class NoisyTable(Protocol):
    """Noisy counts of a table in some form: `NoisyCells`, `NoisyMarginals` or `Coefficients`."""

    @property
    def law(self) -> str:
        """Of each draw: `laplace`, or else one near the normal."""
        ...

    @property
    def sizes(self) -> tuple[int, ...]:
        """The number of values of each attribute."""
        ...

    def marginal(self, places: Places) -> Floats:
        """Counts by some attributes, which are its axes."""
        ...

    def moments(self, alike: Sequence[Places]) -> tuple[Floats, Floats]:
        """Of marginals of the same sizes, each cell's variance, and the sum of its draws' squared variances."""
        ...

    def coefficients(self, asked: tuple[Places, ...]) -> Coefficients:
        """The coefficients that these marginals need, as far as they are told."""
        ...


def variance(noise: NoisyTable, places: Places) -> Floats:
    """The variance of each cell of a marginal."""
    return np.asarray(noise.moments((places,))[0][0])


@dataclass(frozen=True, slots=True, eq=False)
class NoisyCells:
    """A draw in each cell of the whole table: a marginal of M cells sums N/M of them.

    So its variance is N/M times a draw's: 2^(k-1) 2/epsilon^2 = 2^k/epsilon^2 for one yes or no [S3.13, E30].
    Cells are never clipped before summing: the noise of the many empty ones would then add up instead of cancelling.
    """

    values: Floats
    deviation: float
    law: str

    @property
    def sizes(self) -> tuple[int, ...]:
        """The number of values of each attribute."""
        return self.values.shape

    def marginal(self, places: Places) -> Floats:
        """Sums of cells."""
        return np.asarray(self.values.sum(axis=tuple(set(range(self.values.ndim)) - set(places))))

    def moments(self, alike: Sequence[Places]) -> tuple[Floats, Floats]:
        """Alike in all cells."""
        shape = (len(alike), *own_sizes(alike[0], self.sizes))
        draws = self.values.size / cells(alike[0], self.sizes)
        return np.full(shape, draws * self.deviation**2), np.full(shape, draws * self.deviation**4)

    def coefficients(self, asked: tuple[Places, ...]) -> Coefficients:
        """Each is told once."""
        whole = tuple(range(len(self.sizes)))
        found: dict[Places, tuple[Floats, Floats]] = {}
        for marginal in asked:
            own = self.marginal(marginal)
            for part in inside(marginal):
                if part not in found and width(part, self.sizes):
                    trust = _trust(self.deviation, whole, part, self.sizes)
                    found[part] = (_summed(own, marginal, part, self.sizes), trust)
        return _averaged(found, asked, self.sizes, self.law)


@dataclass(frozen=True, slots=True, eq=False)
class NoisyMarginals:
    """A draw in each cell of each marginal, as measured; a smaller marginal is summed from the smallest that holds it.

    Marginals disagree where they overlap.
    """

    sizes: tuple[int, ...]
    values: dict[Places, Floats]
    deviations: dict[Places, float]
    law: str

    def _holder(self, places: Places) -> Places:
        """The measured marginal that another is summed from."""
        if places in self.deviations and min(own_sizes(places, self.sizes), default=0) > 1:
            return places  # it has fewer cells than any other that holds it; most are asked for as they were measured
        held = (whole for whole in self.deviations if set(places) <= set(whole))
        return min(held, key=lambda whole: (cells(whole, self.sizes), whole))

    def marginal(self, places: Places) -> Floats:
        """The marginal itself, or sums of one that holds it."""
        whole = self._holder(places)
        return np.asarray(self.values[whole].sum(axis=_others(whole, places)))

    def moments(self, alike: Sequence[Places]) -> tuple[Floats, Floats]:
        """Alike in all cells of a marginal."""
        own = own_sizes(alike[0], self.sizes)
        holders = [self._holder(places) for places in alike]
        draws = np.array([cells(whole, self.sizes) for whole in holders]) / cells(alike[0], self.sizes)
        each = np.array([self.deviations[whole] for whole in holders])
        shape = (len(alike), *(1 for _ in own))
        second, fourth = (np.broadcast_to((draws * each**n).reshape(shape), (len(alike), *own)) for n in (2, 4))
        return second, fourth

    def coefficients(self, asked: tuple[Places, ...]) -> Coefficients:
        """Each from all marginals that hold it."""
        sums: dict[Places, Floats] = {}
        trusts: dict[Places, Floats] = {}
        for marginal, values in self.values.items():
            for part in inside(marginal):
                if width(part, self.sizes):
                    trust = _trust(self.deviations[marginal], marginal, part, self.sizes)
                    none = np.zeros(len(trust))
                    sums[part] = sums.get(part, none) + trust * _summed(values, marginal, part, self.sizes)
                    trusts[part] = trusts.get(part, none) + trust
        found = {part: (own / trusts[part], trusts[part]) for part, own in sums.items()}
        return _averaged(found, asked, self.sizes, self.law)


def _others(whole: Places, part: Places) -> tuple[int, ...]:
    """The axes of a marginal that a smaller one has not."""
    return tuple(axis for axis, place in enumerate(whole) if place not in part)


def _summed(values: Floats, whole: Places, part: Places, sizes: Sequence[int]) -> Floats:
    """An interaction's coefficients of a marginal that holds it."""
    return np.asarray(product(own_sizes(part, sizes)) @ values.sum(axis=_others(whole, part)).ravel())


def _trust(deviation: float, whole: Places, part: Places, sizes: Sequence[int]) -> Floats:
    """The inverse variance of an interaction's coefficients in a marginal whose cells have noise of this deviation."""
    longer = lengths(own_sizes(part, sizes)) * (cells(whole, sizes) / cells(part, sizes))
    return np.asarray(1.0 / (max(deviation, MIN_DEVIATION_ROWS) ** 2 * longer))


def _averaged(
    found: dict[Places, tuple[Floats, Floats]], asked: tuple[Places, ...], sizes: tuple[int, ...], law: str
) -> Coefficients:
    """Coefficients from values and inverse variances; the small interactions first, as they are on file."""
    parts = [part for part in closure(found) if part in found]
    values = {part: found[part][0] for part in parts}
    return Coefficients(sizes, asked, values, {part: found[part][1] ** -0.5 for part in parts}, law)
