"""How much noise each interaction gets, and how it is asked: by itself, or in each cell of its largest attributes.

Units: vectors have the constant's length, so a cell of marginal a has the variance of the sum over b within a of
D_b s_b^2 / M_a^2: s_b the deviation of b's coefficients, D_b their number, M_a the cells of a. What is lessened is the
sum over marginals of y_a times that sum without M_a: y = 1 for the squared distances of the marginals (`best`), 1/M_a
for the variances of all cells (`variance`), and for the largest variance of a cell (`worst`) those y_a = l_a/M_a^2, l_a
of sum one, whose least sum is the largest: by duality it is then the largest variance itself.

Gaussian noise costs the sum of D_b/(2 s_b^2): least error at s_b^2 in proportion to d_b^(-1/2), d_b the sum of y_a over
the marginals that hold b. Laplace noise costs the sum of L_b/s_b, L_b the L1 norm of a row's coefficients of b: least
at s_b in proportion to (L_b/(D_b d_b))^(1/3). `even`: the paper's own, all s_b alike [S3.17].

A lookup table of b has M_b D_b numbers: too many where attributes are large. Then the vectors of some attributes L are
asked in each cell of the others, K. A person is in one cell of K, so that costs M_K D_L/(2 s^2), and it tells the
interactions of L with every subset of K, each with the deviation s: little more than b alone, for the largest
attributes go to K and M_K is then near D_K. Precisions 1/s^2 of what is told several times add up.

Of an attribute that is read by ranges each vector weighs by its sums over all ranges: a Haar vector of many cells more
than one of few, so it gets less noise. An interaction's vectors have the products of their attributes' steps.

Source: XHZK23, section 4 (the residuals of marginals, and the closed form); docs/theory/contingency.md.
"""

from __future__ import annotations

import functools
import heapq
import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from sulq.language.kinds import Floats, Integers
from sulq.release.tables.interactions import Places, basis, cells, closure, inside, norms, width

Weights = Literal["best", "even", "variance", "worst"]
Objective = Weights | tuple[float, ...]  # or how much the deviation of each marginal's cells weighs
MAX_LOOKUP_NUMBERS: Final = 2**22  # of all lookup tables of a question that may be sent: a body of 16 MiB holds them
MAX_HELD_NUMBERS: Final = 2**26  # the same, where that brings a table nearer and the question stays in the process
MAX_MORE_TOLD: Final = 0.02  # of the numbers that are needed: so many more cost no larger tables
MAX_OWN_NUMBERS: Final = 2**16  # of one interaction's
WORST_GAP: Final = 1e-4  # of the largest variance: how near to the least one it is brought
MAX_WORST_STEPS: Final = 2000
DEVIATION_STEPS: Final = 20
MAX_SHARING_STEPS: Final = 200  # steps; each brings precisions nearer to the best
MIN_PART: Final = 1e-6  # of the price: what is told by others as well still gets so much


@dataclass(frozen=True, slots=True)
class Ask:
    """An interaction's vectors, asked in each cell of some attributes `by`; of none where it is asked by itself."""

    by: Places
    part: Places

    def told(self) -> list[Places]:
        """The interactions that it tells: its own with every subset of the attributes it is asked by."""
        return [tuple(sorted((*own, *self.part))) for own in inside(self.by)]


@functools.cache
def steps(size: int, *, ranged: bool) -> Floats:
    """How noisy each vector of an attribute is to be, beside the others: all alike, or best for sums over ranges.

    For all ranges of cells alike: the sum of squares of a vector's sums over them, by its running sums.
    """
    return np.asarray(_sums(size, ranged=ranged)[1:] ** -0.25)


@functools.cache
def _sums(size: int, *, ranged: bool) -> Floats:
    """How much a squared deviation of each vector weighs, the constant's first: one for cells, more for ranges."""
    if not ranged:
        return np.ones(size)
    running = np.concatenate([np.zeros((size, 1)), np.cumsum(basis(size), axis=1)], axis=1)
    squares = (size + 1) * (running**2).sum(axis=1) - running.sum(axis=1) ** 2
    return np.asarray(squares / norms(size) * 2 / (size + 1))


@functools.cache
def _measures(size: int, *, ranged: bool) -> tuple[float, float, float, float]:
    """Of an attribute's vectors together: weight in the error, price in L2, in L1, and the constant's weight."""
    sums, noise = _sums(size, ranged=ranged), steps(size, ranged=ranged)
    entries = np.abs(basis(size)[1:]) * np.sqrt(size / norms(size)[1:])[:, None] / noise[:, None]
    second, first = ((entries**power).sum(axis=0).max(initial=0.0) for power in (2, 1))
    return float((sums[1:] * noise**2).sum()), float(second), float(first), float(sums[0])


def asks_within(
    parts: Sequence[Places], sizes: Sequence[int], most: int, ranged: Collection[int] = ()
) -> tuple[Ask, ...]:
    """How each interaction is asked, with larger tables, up to `most`, while much more is told than needed."""
    needed = sum(width(part, sizes) for part in parts)
    room = min(most, MAX_LOOKUP_NUMBERS)
    found = asks(parts, sizes, room, ranged)
    while room < most and sum(told_numbers(ask, sizes) for ask in found) > (1 + MAX_MORE_TOLD) * needed:
        room = min(2 * room, most)
        found = asks(parts, sizes, room, ranged)
    return found


def asks(
    parts: Sequence[Places], sizes: Sequence[int], most: int = MAX_LOOKUP_NUMBERS, ranged: Collection[int] = ()
) -> tuple[Ask, ...]:
    """How each interaction is asked, so that all lookup tables together have no more numbers than `most`.

    An interaction gives its largest attribute to `by` where that saves most numbers for what it costs, and all do whose
    own table is too large; one that is read by ranges last.
    """
    found = [Ask((), part) for part in parts]
    whole = sum(_numbers(part, sizes) for part in parts)
    heap = [(_price(ask, sizes, ranged), i) for i, ask in enumerate(found) if ask.part]
    heapq.heapify(heap)
    while heap:
        price, i = heapq.heappop(heap)
        own = _numbers(found[i].part, sizes)
        if own <= MAX_OWN_NUMBERS and whole <= most:
            continue
        whole -= own
        found[i] = _moved(found[i], sizes, ranged)
        whole += _numbers(found[i].part, sizes)
        if found[i].part:
            heapq.heappush(heap, (max(price, _price(found[i], sizes, ranged)), i))
    return tuple(found)


def _numbers(part: Places, sizes: Sequence[int]) -> int:
    return cells(part, sizes) * width(part, sizes)


def _moved(ask: Ask, sizes: Sequence[int], ranged: Collection[int]) -> Ask:
    """The same with the largest attribute among those it is asked by."""
    place = max(ask.part, key=lambda place: (place not in ranged, sizes[place], -place))
    return Ask(tuple(sorted((*ask.by, place))), tuple(each for each in ask.part if each != place))


def _price(ask: Ask, sizes: Sequence[int], ranged: Collection[int]) -> float:
    """What it costs more to give the largest attribute to `by`, for each number that it saves."""
    moved = _moved(ask, sizes, ranged)
    saved = _numbers(ask.part, sizes) - _numbers(moved.part, sizes)
    more = told_numbers(moved, sizes) - told_numbers(ask, sizes)
    return more / saved if saved > 0 else math.inf


def told_numbers(ask: Ask, sizes: Sequence[int]) -> int:
    """How many numbers are released for it."""
    return cells(ask.by, sizes) * width(ask.part, sizes)


@dataclass(frozen=True, slots=True, eq=False)
class Demand:
    """What some marginals want of their interactions: the pairs of marginal and interaction within, and their sizes.

    `scale`: of each pair, how much more the sums over ranges of the other attributes weigh. `widths`, `prices` and
    `reaches`: of each interaction, its weight in the error, and what it costs in L2 and in L1.
    """

    parts: tuple[Places, ...]
    marginal: Integers
    part: Integers
    scale: Floats
    cells: Floats
    widths: Floats
    prices: Floats
    reaches: Floats

    @classmethod
    def of(cls, marginals: tuple[Places, ...], sizes: Sequence[int], ranged: Collection[int] = ()) -> Demand:
        """Interactions without a coefficient are left out: attributes of one value have none."""
        parts = tuple(part for part in closure(marginals) if width(part, sizes))
        place_of = {part: i for i, part in enumerate(parts)}
        pairs = [(i, place_of[b]) for i, a in enumerate(marginals) for b in inside(a) if b in place_of]
        marginal, part = np.array(pairs, dtype=np.int64).T
        each = [_measures(size, ranged=place in ranged) for place, size in enumerate(sizes)]
        whole = [math.prod(each[place][3] for place in a) for a in marginals]
        own = [math.prod(each[place][3] for place in b) for b in parts]
        widths, prices, reaches = (
            np.array([math.prod(each[place][i] for place in b) for b in parts], dtype=np.float64) for i in range(3)
        )
        return cls(
            parts,
            marginal,
            part,
            np.array(whole)[marginal] / np.array(own)[part],
            np.array([cells(a, sizes) for a in marginals], dtype=np.float64),
            widths,
            prices,
            reaches,
        )

    def wanted(self, marginals: Floats) -> Floats:
        """How much each interaction's squared deviation weighs, d_b, where the marginals' squared errors weigh y_a."""
        return np.asarray(
            np.bincount(self.part, marginals[self.marginal] * self.scale, len(self.parts)), dtype=np.float64
        )

    def variances(self, squares: Floats) -> Floats:
        """Of each marginal the variance of its cells, where coefficients have these squared deviations.

        Where attributes are read by ranges, the mean over all ranges of them, times their cells.
        """
        each = (self.widths * squares)[self.part] * self.scale
        return np.bincount(self.marginal, each, len(self.cells)) / self.cells**2

    def squares(self, wanted: Floats, *, pure: bool) -> Floats:
        """The squared deviations of the least error, up to a common factor."""
        if not pure:
            return np.asarray((self.prices / (self.widths * wanted)) ** 0.5)
        return np.asarray((self.reaches / (self.widths * wanted)) ** (2 / 3))

    def errors(self, weights: Objective, *, pure: bool) -> Floats:
        """How much each marginal's squared error weighs, y_a."""
        if isinstance(weights, tuple):
            return self._by_deviation(np.array(weights), pure=pure)
        if weights == "worst":
            return np.asarray(self._worst(pure=pure) / self.cells**2)
        return 1.0 / self.cells if weights == "variance" else np.ones(len(self.cells))

    def _by_deviation(self, weights: Floats, *, pure: bool) -> Floats:
        """Those y_a by which weight times deviation is least: a root's slope is inverse to it."""
        errors = weights / self.cells**2
        for _ in range(DEVIATION_STEPS):
            variance = self.variances(self.squares(self.wanted(errors), pure=pure))
            errors = weights / np.sqrt(variance) / self.cells**2
        return errors

    def _worst(self, *, pure: bool) -> Floats:
        """The weights l_a of the marginals whose least sum is the largest.

        The least sum is, up to a power, a sum of powers (1/2, for Laplace noise 1/3) of the d_b, concave in l; the step
        l_a v_a^2 (or v_a^(3/2)) is the largest point of a bound below it that touches it, so every step raises it.
        """
        weights = np.full(len(self.cells), 1.0 / len(self.cells))
        for _ in range(MAX_WORST_STEPS):
            variance = self.variances(self.squares(self.wanted(weights / self.cells**2), pure=pure))
            if variance.max() <= (1 + WORST_GAP) * float(weights @ variance):
                break
            weights = weights * (variance / variance.max()) ** (1.5 if pure else 2.0)
            weights /= weights.sum()
        return weights


def deviations(
    asked: Sequence[Ask], demand: Demand, sizes: Sequence[int], weights: Objective, *, pure: bool
) -> dict[Ask, float]:
    """How noisy the coefficients of each ask should be, up to a common factor."""
    if weights == "even":
        return dict.fromkeys(asked, 1.0)
    errors = demand.errors(weights, pure=pure)
    square = dict(zip(demand.parts, demand.squares(demand.wanted(errors), pure=pure).tolist(), strict=True))
    own = np.array([square[tuple(sorted((*ask.by, *ask.part)))] for ask in asked])
    if not pure and any(ask.by for ask in asked):
        own = 1.0 / _shared(asked, demand, sizes, 1.0 / own, errors, worst=weights == "worst")
    return dict(zip(asked, np.sqrt(own).tolist(), strict=True))


def _shared(
    asked: Sequence[Ask], demand: Demand, sizes: Sequence[int], precision: Floats, errors: Floats, *, worst: bool
) -> Floats:
    """The precisions of the least error where several asks tell an interaction; the best of all steps.

    At each step an ask gets more where what its precision lessens, the sum of D_b d_b/T_b^2 over what it tells, is more
    than its share of the price; for the worst marginal, the marginals of the largest variances weigh more.
    """
    place_of = {part: i for i, part in enumerate(demand.parts)}
    pairs = [(i, place_of[b]) for i, ask in enumerate(asked) for b in ask.told() if b in place_of]
    ask, part = np.array(pairs, dtype=np.int64).T
    prices = dict(zip(demand.parts, demand.prices.tolist(), strict=True))
    price = np.array([cells(ask.by, sizes) * prices[ask.part] for ask in asked])
    least, best = math.inf, precision
    for _ in range(MAX_SHARING_STEPS):
        precision = np.maximum(precision / float(price @ precision), MIN_PART / price / len(price))
        told = np.bincount(part, precision[ask], len(place_of))
        variance = demand.variances(1.0 / told)
        error = float(variance.max() if worst else errors @ (variance * demand.cells**2)) * float(price @ precision)
        if error < least:
            least, best = error, precision
        if worst:
            errors = errors * np.sqrt(variance / variance.max())
        gain = np.bincount(ask, (demand.widths * demand.wanted(errors) / told**2)[part], len(asked)) / price
        precision = precision * np.sqrt(gain)
    return best
