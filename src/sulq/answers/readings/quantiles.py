"""Quantiles and extremes from a tree of noisy counts over public bins, with intervals that hold them.

The values lie in bins of equal width, the bins in the leaves of a tree of one
branching; each level's counts are released with noise. Free post-processing.
Proofs: docs/theory/quantiles.md.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from fractions import Fraction
from statistics import NormalDist
from typing import Final

import numpy as np

from sulq.answers.readings.noise_sums import AddedLaw, least_total, reach
from sulq.answers.released import Released
from sulq.language.domain import TERM_BITS, grid_for
from sulq.language.kinds import Floats, Integers, Truths

NEAR: Final = 1e-6  # counts worked out in doubles are this near to what they are
MOST_BINS: Final = 2**17
HOW: Final = ("disc", "cont", "min", "max")


@dataclass(frozen=True, slots=True)
class Bed:
    """Public bins of a number: bin i holds the values from start + i*width to start + i*width + inner, up to `end`."""

    start: Fraction
    width: Fraction
    inner: Fraction
    end: Fraction
    bins: int

    def middle(self, index: Integers) -> Floats:
        """The middle of a bin: of a single value that value."""
        at = np.minimum(index, self.bins - 1)
        low, high = self.low(at), self.high(at)
        grain = float(self.width - self.inner or self.width / 2)
        return low + np.floor((high - low) / 2 / grain) * grain

    def low(self, index: Integers) -> Floats:
        """The least value of a bin."""
        return float(self.start) + index.astype(np.float64) * float(self.width)

    def high(self, index: Integers) -> Floats:
        """The largest value of a bin."""
        return np.minimum(self.low(index) + float(self.inner), float(self.end))

    def bounds(self) -> tuple[Floats, Floats]:
        """From the first bin to the last."""
        return np.array([float(self.start)]), np.array([float(self.end)])


def bed(lo: Fraction, hi: Fraction, step: Fraction | None, most: int) -> Bed:
    """At most `most` bins over [lo, hi]: one for each value of the lattice where that suffices."""
    grain = grid_for(max(abs(lo), abs(hi)), TERM_BITS) if step is None else step
    # Without a lattice a bin holds every number between its ends, the last one its upper end too.
    first = math.floor(lo / grain) if step is None else math.ceil(lo / grain)
    values = max(math.floor(hi / grain) - first + 1, 1)
    each = 1
    while -(-values // each) > most:
        each *= 2
    inner = each * grain if step is None else (each - 1) * grain
    end = max(hi, first * grain) if step is None else (first + values - 1) * grain
    return Bed(first * grain, each * grain, inner, end, -(-values // each))


def branching(bins: int, *, pure: bool) -> tuple[int, int]:
    """The number of levels and the branching of the tree whose prefix counts are foreseen to be least noisy.

    A prefix is a sum of (b-1)/2 counts a level in the mean; with l levels each has a
    variance of l^2 units (Laplace) or l units (Gaussian).
    """
    best = (math.inf, 1, bins)
    for levels in range(1, 18):
        b = max(2, math.ceil(bins ** (1 / levels) - 1e-9))
        while b**levels < bins:
            b += 1
        noise = levels ** (3 if pure else 2) * max(b - 1, 1)
        best = min(best, (noise, levels, b))
    return best[1], best[2]


def nodes(bins: int, levels: int, branch: int) -> tuple[int, ...]:
    """How many nodes each level has, the coarsest first."""
    return tuple(-(-bins // branch ** (levels - 1 - level)) for level in range(levels))


def consistent(counts: list[Floats], branch: int) -> Floats:
    """The leaves' counts that fit all levels best: weighted least squares, up the tree and down again.

    Source: the two passes of Hay et al. 2010, for trees with missing branches.
    """
    best, spread = [counts[-1]], [np.ones(counts[-1].shape[1])]
    for own in reversed(counts[:-1]):
        below, uncertain = _families(best[0], branch).sum(axis=2), _families(spread[0][None], branch)[0].sum(axis=1)
        best.insert(0, (own * uncertain + below) / (1 + uncertain))
        spread.insert(0, uncertain / (1 + uncertain))
    fitted = best[0]
    for level in range(1, len(counts)):
        size = counts[level].shape[1]
        lack = fitted - _families(best[level], branch).sum(axis=2)
        share = _families(spread[level][None], branch)[0]
        part = share / share.sum(axis=1, keepdims=True)
        moved = (lack[:, :, None] * part[None]).reshape(len(lack), -1)[:, :size]
        fitted = best[level] + moved
    return fitted


def _families(values: Floats, branch: int) -> Floats:
    """The nodes of a level by their parents, absent children as zeros."""
    cells, size = values.shape
    parents = -(-size // branch)
    padded = np.zeros((cells, parents * branch))
    padded[:, :size] = values
    return padded.reshape(cells, parents, branch)


@dataclass(frozen=True, slots=True)
class Quantile:
    """One quantile of each cell's values, from the tree's levels side by side, the coarsest first.

    Accuracy: with N(c) the number of values in bins up to c, the quantile's bin is
    the first with D(c) = (1-q) N(c) - q (N - N(c)) >= 0. The noise of D'(c) is a sum of
    draws of known weights, and only the quantile's own bin and the one before it must
    pass: the interval reaches from the first bin not contradicted to the last (T28).
    """

    bed: Bed
    branch: int
    sizes: tuple[int, ...]
    how: str  # one of HOW
    q: Fraction  # 0 for min and 1 for max

    def _levels(self, released: Released) -> list[Floats]:
        ends = np.cumsum(self.sizes)
        values = released.values()
        return [values[:, end - size : end] for end, size in zip(ends, self.sizes, strict=True)]

    def value(self, released: Released) -> Floats:
        """The quantile of the counts that fit all levels best; the middle of the range where they come to nothing."""
        upto = self._upto(released)
        total = upto[:, -1]
        middle = float((self.bed.start + self.bed.end) / 2)
        return np.where(total > 0.5, self._found(upto, total), middle)[:, None]

    def _found(self, upto: Floats, total: Floats) -> Floats:
        """The bin that the counts up to each bin point at. Whole counts are met exactly: half a row decides."""
        q = float(self.q)
        if self.how == "min":
            return self.bed.middle(_after_last(upto < 0.5))
        if self.how == "max":
            return self.bed.middle(_first(total[:, None] - upto < 0.5))
        if self.how == "disc":
            rank = np.maximum(np.ceil(q * total - NEAR), 1.0)
            return self.bed.middle((upto < rank[:, None] - 0.5).sum(axis=1))
        low, high, part = self._neighbours(upto, total)
        one, two = self.bed.middle(low), self.bed.middle(high)
        return one + part * (two - one)

    def bracket(self, released: Released) -> tuple[Integers, Integers, Floats]:
        """The bins of the two neighbouring values a quantile lies between, and the quantile."""
        upto = self._upto(released)
        low, high, _ = self._neighbours(upto, upto[:, -1])
        return low, high, self.value(released)[:, 0]

    def _upto(self, released: Released) -> Floats:
        """How many values lie up to each bin, by the counts that fit all levels best."""
        return np.cumsum(consistent(self._levels(released), self.branch), axis=1)

    def _neighbours(self, upto: Floats, total: Floats) -> tuple[Integers, Integers, Floats]:
        """The bins of the two values PERCENTILE_CONT lies between, and how far it is from the first to the second."""
        place = np.maximum(float(self.q) * (total - 1), 0.0)
        rank = np.floor(place + NEAR)
        low, high = ((upto < rank[:, None] + more).sum(axis=1).astype(np.int64) for more in (0.5, 1.5))
        return low, high, np.where(place - rank > NEAR, place - rank, 0.0)

    def least(self, released: Released, beta: float) -> Floats:
        """The lower end of the interval of all counts of the coarsest level together."""
        return least_total(released, slice(self.sizes[0]), beta)

    def bounds(self) -> tuple[Floats, Floats]:
        """From the first bin to the last."""
        return self.bed.bounds()

    def interval(self, released: Released, beta: float, *, sampling: float = 0.0) -> tuple[Floats, Floats]:
        """From the first bin that could hold it to the last; the whole range where the counts come to nothing.

        `sampling`: of a larger population of which the values are a sample, times this deviation: D(c) at the
        population's quantile is a sum of n independent terms, each of variance q(1 - q) at most.
        """
        contrast, q = self._contrast(released), float(self.q)
        law, number = released.noise[0].law, 1
        if isinstance(law, AddedLaw):
            law, number = law.law, law.number
        pairs, place = draws_of(self.sizes, self.branch)
        reaches = [reach(law, a * number, b * number, q, beta / 2) for a, b in pairs]
        far = np.array(reaches)[place] * float(released.noise[0].step) + NEAR
        if sampling:
            total = np.maximum(released.values()[:, : self.sizes[0]].sum(axis=1, keepdims=True), 1.0)
            far = np.hypot(far, sampling * -NormalDist().inv_cdf(beta / 2) * np.sqrt(total * q * (1 - q)))
        least, most = {"disc": (0.0, 0.0), "cont": (-q, 2 - q), "min": (1.0, 0.0), "max": (0.0, -1.0)}[self.how]
        before = np.pad(contrast <= most + far, ((0, 0), (1, 0)), constant_values=True)
        low = self.bed.low(_first(contrast >= least - far))
        high = self.bed.high(np.minimum(_after_last(before) - 1, self.bed.bins - 1))
        value = self.value(released)[:, 0]
        return np.minimum(low, value)[:, None], np.maximum(high, value)[:, None]

    def _contrast(self, released: Released) -> Floats:
        """D'(c) for each bin c: of each level the siblings off the path."""
        q = float(self.q)
        levels = self._levels(released)
        leaf = np.arange(self.sizes[-1])
        contrast = np.zeros((released.cells, self.sizes[-1]))
        for depth, (values, size) in enumerate(zip(levels, self.sizes, strict=True)):
            path = leaf // self.branch ** (len(levels) - 1 - depth)
            upto = np.cumsum(_families(values, self.branch if depth else size), axis=2)
            after = (upto[:, :, -1:] - upto).reshape(len(values), -1)[:, path]
            before = (upto.reshape(len(values), -1)[:, :size] - (0 if depth == len(levels) - 1 else values))[:, path]
            contrast += (1 - q) * before - q * after
        return contrast


@functools.lru_cache(maxsize=8)
def draws_of(sizes: tuple[int, ...], branch: int) -> tuple[tuple[tuple[int, int], ...], Integers]:
    """Of how many draws a bin's contrast is made on either side: the different pairs, and which is each bin's."""
    leaf = np.arange(sizes[-1])
    less, more = np.zeros_like(leaf), np.zeros_like(leaf)
    for depth, size in enumerate(sizes):
        wide = branch if depth else size
        path = leaf // branch ** (len(sizes) - 1 - depth)
        within = path % wide
        less += within + (depth == len(sizes) - 1)
        more += np.minimum(wide, size - (path - within)) - 1 - within
    most = int(more.max()) + 1
    pairs, place = np.unique(less * most + more, return_inverse=True)
    return tuple((int(pair) // most, int(pair) % most) for pair in pairs), place.astype(np.int64)


def _first(holds: Truths) -> Integers:
    """The first column that holds; the last one where none does."""
    found: Integers = np.where(holds.any(axis=1), np.argmax(holds, axis=1), holds.shape[1] - 1).astype(np.int64)
    return found


def _after_last(holds: Truths) -> Integers:
    """One past the last column that holds; zero where none does."""
    size = holds.shape[1]
    found: Integers = np.where(holds.any(axis=1), size - np.argmax(holds[:, ::-1], axis=1), 0).astype(np.int64)
    return found


@dataclass(frozen=True, slots=True)
class Picked:
    """One quantile whose bin was chosen by `Choose`, beside a tree of counts that gives its interval.

    The chosen bin is the last column. Where the tree's own two neighbouring values hold
    it, their interpolation is the value: without noise that is the table's quantile.
    """

    tree: Quantile

    def value(self, released: Released) -> Floats:
        """The chosen bin's value, or what the tree makes of it."""
        counts = Released(released.units[:, :-1], released.noise[:-1])
        picked = np.clip(released.units[:, -1], 0, self.tree.bed.bins - 1)
        low, high, between = self.tree.bracket(counts)
        inside = (low <= picked) & (picked <= high)
        return np.where(inside, between, self.tree.bed.middle(picked))[:, None]

    def least(self, released: Released, beta: float) -> Floats:
        """The tree's own."""
        return self.tree.least(released, beta)

    def bounds(self) -> tuple[Floats, Floats]:
        """The tree's own."""
        return self.tree.bounds()

    def interval(self, released: Released, beta: float) -> tuple[Floats, Floats]:
        """The tree's interval, which holds the quantile whatever was chosen, and the value."""
        low, high = self.tree.interval(Released(released.units[:, :-1], released.noise[:-1]), beta)
        value = self.value(released)
        return np.minimum(low, value), np.maximum(high, value)


@dataclass(frozen=True, slots=True)
class Quantiles:
    """Several quantiles of each cell's values, from one tree."""

    wanted: tuple[Quantile, ...]

    def value(self, released: Released) -> Floats:
        """One column for each."""
        return np.concatenate([one.value(released) for one in self.wanted], axis=1)

    def least(self, released: Released, beta: float) -> Floats:
        """That of the one tree."""
        return self.wanted[0].least(released, beta)

    def bounds(self) -> tuple[Floats, Floats]:
        """Each its own."""
        ends = [one.bounds() for one in self.wanted]
        return np.concatenate([low for low, _ in ends]), np.concatenate([high for _, high in ends])

    def interval(self, released: Released, beta: float) -> tuple[Floats, Floats]:
        """Each at its own 1 - beta."""
        ends = [one.interval(released, beta) for one in self.wanted]
        return np.concatenate([low for low, _ in ends], axis=1), np.concatenate([high for _, high in ends], axis=1)
