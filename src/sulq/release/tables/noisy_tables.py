"""Noisy numbers that tell a table's marginals: as cells, as marginals, as coefficients; and how far off marginals are.

A plan foresees the same noise for zeros, so that what holds of an answer is known before any row is read.

Accuracy: a cell of marginal a is the sum over b within a of the coefficients, each divided by the squared length of
its vector on a's cells; noise adds up in squares.

A marginal of cells with noise of one deviation s has the coefficients of its subsets b, with noise of deviation s |f_b|
(on the marginal's cells), uncorrelated because the vectors are orthogonal. Several marginals that hold b tell its
coefficient independently, so their mean, weighted by 1/variance, is the least-squares estimate from all of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Final

import numpy as np

from sulq.language.kinds import Floats
from sulq.release.tables.interactions import (
    Places,
    absolutes,
    against,
    cells,
    closure,
    inside,
    lengths,
    onto,
    own_sizes,
    width,
)

MIN_DEVIATION_ROWS: Final = 1e-6  # as good as no noise
LAPLACE_EXCESS: Final = 3.0  # the fourth cumulant of Laplace noise over its squared variance
MAX_BATCH_CELLS: Final = 2**18  # of marginals that are looked at together


@dataclass(frozen=True, slots=True, eq=False)
class Coefficients:
    """Noisy coefficients by interaction, with the standard deviation of each one's noise."""

    sizes: tuple[int, ...]
    marginals: tuple[Places, ...]
    values: dict[Places, Floats]
    deviations: dict[Places, Floats]
    law: str

    def marginal(self, places: Places) -> Floats:
        """A marginal's cells, its own attributes as axes; linear in the coefficients, O(its cells) each."""
        found = np.zeros(cells(places, self.sizes))
        for part in inside(places):
            if part in self.values:
                found += onto((self.values[part] / self._lengths(part, places))[None], part, places, self.sizes)[0]
        return found.reshape(own_sizes(places, self.sizes))

    def moments(self, alike: Sequence[Places]) -> tuple[Floats, Floats]:
        """Of marginals of the same sizes, whose cells have the same vectors, each cell's variance and fourth moment.

        The second is the sum of the squared variances of its draws: it tells how far from normal its noise is.
        """
        first = alike[0]
        variance, fourth = np.zeros((2, len(alike), cells(first, self.sizes)))
        for part in inside(tuple(range(len(first)))):
            own = [tuple(places[i] for i in part) for places in alike]
            if not (many := width(own[0], self.sizes)):
                continue
            none = np.zeros(many)
            each = np.stack([self.deviations.get(one, none) for one in own]) / self._lengths(own[0], first)
            variance += onto(each**2, own[0], first, self.sizes, 2)
            fourth += onto(each**4, own[0], first, self.sizes, 4)
        shape = (len(alike), *own_sizes(first, self.sizes))
        return variance.reshape(shape), fourth.reshape(shape)

    def coefficients(self, asked: tuple[Places, ...]) -> Coefficients:
        """The same, for these marginals."""
        return replace(self, marginals=asked)

    def counted(self, rows: float, deviation: float) -> Coefficients:
        """The same with a noisy number of rows that was told apart: it is the coefficient of the vector of ones."""
        trust, more = (np.maximum(own, MIN_DEVIATION_ROWS) ** -2.0 for own in (self.deviations[()], deviation))
        mean = (self.values[()] * trust + rows * more) / (trust + more)
        known = {**self.deviations, (): (trust + more) ** -0.5}
        return replace(self, values={**self.values, (): mean}, deviations=known)

    def _lengths(self, part: Places, places: Places) -> Floats:
        """The squared length of each vector on a marginal's cells."""
        rest = cells(places, self.sizes) / cells(part, self.sizes)
        return np.asarray(lengths(own_sizes(part, self.sizes)) * rest, dtype=np.float64)


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
        return np.asarray(self.values[whole].sum(axis=others(whole, places)))

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


# Each tells its `law`, of each draw `laplace` or else one near the normal, and the `sizes` of the attributes; the
# `marginal` of some attributes; the `moments` of its cells' noise; and the `coefficients` that marginals need.
NoisyTable = NoisyCells | NoisyMarginals | Coefficients


def others(whole: Places, part: Places) -> tuple[int, ...]:
    """The axes of a marginal that a smaller one has not."""
    return tuple(axis for axis, place in enumerate(whole) if place not in part)


def _summed(values: Floats, whole: Places, part: Places, sizes: Sequence[int]) -> Floats:
    """An interaction's coefficients of a marginal that holds it."""
    return against(np.asarray(values.sum(axis=others(whole, part))), part, sizes)


def _trust(deviation: float, whole: Places, part: Places, sizes: Sequence[int]) -> Floats:
    """The inverse variance of an interaction's coefficients in a marginal whose cells have noise of this deviation."""
    longer = lengths(own_sizes(part, sizes)) * (cells(whole, sizes) / cells(part, sizes))
    return np.asarray(1.0 / (max(deviation, MIN_DEVIATION_ROWS) ** 2 * longer))


def _averaged(
    found: dict[Places, tuple[Floats, Floats]], asked: tuple[Places, ...], sizes: tuple[int, ...], law: str
) -> Coefficients:
    """Coefficients from values and inverse variances; the small interactions first, as they are on file."""
    parts = [part for part in closure(tuple(found)) if part in found]
    values = {part: found[part][0] for part in parts}
    return Coefficients(sizes, asked, values, {part: found[part][1] ** -0.5 for part in parts}, law)


def averaged(
    told: Iterable[tuple[Places, Floats, Floats]], asked: tuple[Places, ...], sizes: tuple[int, ...], law: str
) -> Coefficients:
    """Coefficients from what is told of each, values and deviations: their mean, weighted by 1/variance."""
    found: dict[Places, tuple[Floats, Floats]] = {}
    for part, values, deviations in told:
        trust = np.maximum(deviations, np.finfo(np.float64).tiny) ** -2.0
        before, known = found.get(part, (values, np.zeros(len(trust))))
        found[part] = (before * known + values * trust) / (known + trust), known + trust
    return _averaged(found, asked, sizes, law)


def mean_distances(variance: Floats, fourth: Floats, law: str) -> Floats:
    """Of several marginals, the mean of the L1 distance from the truth: the sum over the cells of E|noise|.

    E|Z| = sqrt(2 var/pi) (1 - excess/24 + ...) for a sum of many draws, the excess kurtosis being 3 sum v^2/(sum v)^2
    for Laplace noise; for a single draw this is .698 of the deviation, and .707 is true.
    """
    excess = LAPLACE_EXCESS * fourth / variance**2 if law == "laplace" else np.zeros_like(variance)
    each = np.sqrt(2.0 * variance / math.pi) * (1.0 - excess / 24.0)
    return np.asarray(each.reshape(len(each), -1).sum(axis=1))


def distance(noise: NoisyTable, marginals: Sequence[Places]) -> float:
    """The mean over some marginals of the expected L1 distance from the truth; of a fit, before it."""
    alike: dict[tuple[int, ...], list[int]] = {}
    for i, places in enumerate(marginals):
        alike.setdefault(own_sizes(places, noise.sizes), []).append(i)
    each = np.zeros(len(marginals))
    for sizes, own in alike.items():
        step = max(1, MAX_BATCH_CELLS // math.prod(sizes))
        for some in (own[i : i + step] for i in range(0, len(own), step)):
            each[some] = mean_distances(*noise.moments([marginals[i] for i in some]), noise.law)
    return sum(each.tolist()) / len(marginals)


def bound(coefficients: Coefficients, places: Places, beta: float) -> float:
    """A fitted marginal's L1 distance from the truth; of all asked ones together but for probability beta.

    Each coefficient's noise is within ln(|B|/beta) scales, and the fit at most doubles that; in a marginal it weighs
    the sum of its vector's entries over their squares; rounding moves at most |B| cells by less than one. For yes or
    no, even weights and epsilon: 2^|a| 2|B| ln(|B|/beta)/epsilon + |B| [S3.19, S3.20].
    """
    count = sum(len(values) for values in coefficients.values.values())
    if coefficients.law == "laplace":
        reach = math.log(count / beta) / math.sqrt(2.0)
    else:
        reach = -NormalDist().inv_cdf(beta / (2 * count))
    moved = 0.0
    for part in inside(places):
        if part in coefficients.values:
            own = own_sizes(part, coefficients.sizes)
            weighs = absolutes(own) / lengths(own)
            moved += float((coefficients.deviations[part] * weighs).sum())
    return 2.0 * reach * moved + count
