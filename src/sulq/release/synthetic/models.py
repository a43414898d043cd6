"""Models of measured marginals: a graph of them, joined by few common columns [MSM19], and a whole table.

Columns are eliminated one after the other, each time that whose neighbours make the smallest table; joining its
neighbours makes the graph chordal, and the cliques joined by their largest overlaps are a junction tree. Where columns
of a marginal lie in several cliques, it is the product along the tree's branches between them of one clique's shares
and of the others' given what they have in common, summed over all else.

A fit begins where the last one ended, so a round's is quick: hardly anything is new. docs/decisions/0040 compares it
with mbi, the library of the paper's authors: the same fit, in a thirtieth of the time.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, cast

import numpy as np

from sulq.answers.answer import Answer
from sulq.language.kinds import Floats, Integers
from sulq.release.space import CellSpace, Marginal
from sulq.release.synthetic.rows import drawn, given
from sulq.release.tables.interactions import Places, cells, gathered, own_sizes, scattered
from sulq.release.tables.noisy_tables import others

BYTES_A_NUMBER: Final = 8  # of a number
MAX_DIRECT_CELLS: Final = 2**14  # of a clique, up to which sums over it one by one are quicker than one walk for all
MAX_REMEMBERED_AXES: Final = 2**14  # pairs of lists of columns; rounds look at the same ones again and again
GROWTH: Final = 1.5  # of the rate after a step that helped; one that did not halves it
MIN_GAIN_PART: Final = 1e-4  # part of the loss that a step must gain
MAX_STALLED_STEPS: Final = 5  # steps in a row that gain less, until a fit ends
MIN_ERROR_ROWS: Final = 0.01  # of a measured count: whole counts are not told more exactly by hardly any noise


@dataclass(frozen=True, slots=True, eq=False)
class MeasuredMarginal:
    """Noisy counts by some columns, an axis each, and the standard deviation of the noise in each of them."""

    places: Places
    values: Floats
    deviation: float

    @classmethod
    def of(cls, answer: Answer, places: Places, space: CellSpace) -> MeasuredMarginal:
        """What was answered to the marginal's question."""
        return cls(places, answer.released.values().reshape(space.shape(places)), answer.released.noise[0].deviation)

    @property
    def error(self) -> float:
        """The deviation as fits take it: whole counts are not told more exactly than this by hardly any noise."""
        return max(self.deviation, MIN_ERROR_ROWS)

    def marginal(self, space: CellSpace) -> Marginal:
        """As it is published, with its error bars."""
        labels = tuple(space.attributes[place].labels for place in self.places)
        names = tuple(space.names[place] for place in self.places)
        return Marginal(names, labels, self.values, np.full(self.values.shape, self.deviation))


def total(measured: Sequence[MeasuredMarginal]) -> float:
    """How many rows there are, as all measurements together say: each weighs as the inverse of its variance (SR6)."""
    weights = [1.0 / (each.values.size * each.error**2) for each in measured]
    return float(np.average([each.values.sum() for each in measured], weights=weights))


@dataclass(frozen=True, slots=True)
class Forest:
    """Maximal cliques, the one that each is joined to (`above`; -1 for a root), the order columns were eliminated in.

    A clique stands after the one above it.
    """

    cliques: tuple[Places, ...]
    above: tuple[int, ...]
    order: tuple[int, ...]

    @classmethod
    def of(cls, marginals: Iterable[Places], sizes: Sequence[int]) -> Forest:
        """The forest that has every marginal within a clique, and every column."""
        left, order = eliminated(marginals, sizes)
        near = dict.fromkeys(left, (0, -1))  # how many columns a clique shares with one of the forest, and which
        cliques: list[Places] = []
        above: list[int] = []
        while near:
            clique = max(near, key=lambda each: near[each][0])
            above.append(near.pop(clique)[1])
            for other, (most, _) in near.items():
                if (common := len({*clique} & {*other})) > most:
                    near[other] = common, len(cliques)
            cliques.append(clique)
        return cls(tuple(cliques), tuple(above), order)


def eliminated(marginals: Iterable[Places], sizes: Sequence[int]) -> tuple[list[Places], Places]:
    """The maximal cliques, and the order that found them."""
    near: dict[int, set[int]] = {place: set() for place in range(len(sizes))}
    for places in marginals:
        for one, other in itertools.permutations(places, 2):
            near[one].add(other)
    table = {place: cells((place, *around), sizes) for place, around in near.items()}  # cells, were it the next
    cliques: list[set[int]] = []
    order: list[int] = []
    while near:
        place = min(near, key=lambda each: (table[each], each))
        around = near.pop(place)
        clique = {place, *around}
        if not any(clique <= known for known in cliques):
            cliques.append(clique)
        for other in around:
            near[other] |= around - {other}
            near[other].discard(place)
            table[other] = cells((other, *near[other]), sizes)
        order.append(place)
    return [tuple(sorted(clique)) for clique in cliques], tuple(order)


def megabytes(marginals: Iterable[Places], sizes: Sequence[int]) -> float:
    """The size of the cliques' tables."""
    cliques, _ = eliminated(marginals, sizes)
    return BYTES_A_NUMBER * sum(cells(clique, sizes) for clique in cliques) / 2**20


@dataclass(frozen=True, slots=True, eq=False)
class Junction:
    """Shares of the rows in each clique's cells. `above[i]` is the one nearer to its tree's root, or -1."""

    cliques: tuple[Places, ...]
    above: tuple[int, ...]
    shares: tuple[Floats, ...]

    @classmethod
    def of(
        cls, potentials: Mapping[Places, Floats], cliques: Sequence[Places], above: Sequence[int], sizes: Sequence[int]
    ) -> Junction:
        """The tree of these cliques, each potential in one of them; messages go up to the roots and shares down again.

        A table is exponentiated once: on the way up as shares within each cell that it has in common with the one above
        it, on the way down times that one's share of the cell.
        """
        cliques, above = tuple(cliques), tuple(above)
        parts: list[dict[Places, Floats]] = [{} for _ in cliques]
        for own, values in potentials.items():
            parts[_home(cliques, own) or 0][own] = values
        tables = [_joined(each, clique, sizes) for each, clique in zip(parts, cliques, strict=True)]
        sums = list(tables)
        for i in range(len(cliques) - 1, -1, -1):  # each after the one above it
            shared = () if above[i] < 0 else _shared(cliques[i], cliques[above[i]])
            axes = _others(cliques[i], shared)
            top = tables[i].max(axis=axes, keepdims=True)
            tables[i] = np.exp(tables[i] - top)
            sums[i] = tables[i].sum(axis=axes, keepdims=True)
            if above[i] >= 0:
                message = (np.log(sums[i]) + top).squeeze(axis=axes)
                tables[above[i]] += _spread(message, shared, cliques[above[i]])
        for i, clique in enumerate(cliques):
            if above[i] < 0:
                tables[i] /= sums[i]
                continue
            shared = _shared(cliques[above[i]], clique)
            common = tables[above[i]].sum(axis=_others(cliques[above[i]], shared))
            tables[i] *= _spread(common, shared, clique) / sums[i]
        return cls(cliques, above, tuple(tables))

    def marginals(self, wanted: Iterable[Places]) -> dict[Places, Floats]:
        """Shares of the rows by several lists of columns, each in its order; within a large clique all at once."""
        homes: dict[int, list[Places]] = {}
        found: dict[Places, Floats] = {}
        for places in wanted:
            home = _home(self.cliques, places)
            if home is None:
                found[places] = self._across(places)
            elif self.shares[home].size > MAX_DIRECT_CELLS:
                homes.setdefault(home, []).append(places)
            else:
                clique = self.cliques[home]
                summed = self.shares[home].sum(axis=_others(clique, places))
                found[places] = summed.transpose(_order(places, clique))
        for i, several in homes.items():
            where = {places: tuple(map(self.cliques[i].index, places)) for places in several}
            inner = gathered(self.shares[i], [tuple(sorted(own)) for own in where.values()])
            for places, own in where.items():
                found[places] = inner[tuple(sorted(own))].transpose(_order(places, self.cliques[i]))
        return found

    def marginal(self, places: Places) -> Floats:
        """Shares of the rows by some columns, in this order."""
        return self.marginals([places])[places]

    def _across(self, places: Places) -> Floats:
        """A marginal whose columns lie in several cliques."""
        wanted = {*places}
        kept = self._kept(wanted)
        letters = {place: i for i, place in enumerate(sorted({p for i in kept for p in self.cliques[i]}))}
        parts: list[object] = []
        for i in kept:
            shares = self.shares[i]
            if self.above[i] in kept:  # else it is the first of its branch
                shared = _shared(self.cliques[i], self.cliques[self.above[i]])
                common = _spread(shares.sum(axis=_others(self.cliques[i], shared)), shared, self.cliques[i])
                shares = np.divide(shares, common, out=np.zeros_like(shares), where=common > 0)
            parts += [shares, [letters[place] for place in self.cliques[i]]]
        # The stubs know operands as arrays alone; lists of numbers for letters are NumPy's own other form.
        found = np.einsum(*parts, [letters[place] for place in places], optimize="greedy")  # type: ignore[call-overload]
        return cast("Floats", found)

    def _kept(self, wanted: set[int]) -> list[int]:
        """The cliques that a marginal needs: a leaf whose neighbour has all that is wanted of it is cut off."""
        kept = set(range(len(self.cliques)))
        near = {i: {j for j in kept if self.above[j] == i or self.above[i] == j} for i in kept}
        cut = True
        while cut:
            cut = False
            for i in sorted(kept):
                others = near[i] & kept
                rest = wanted & {*self.cliques[i]}
                if (not others and not rest) or (len(others) == 1 and rest <= {*self.cliques[min(others)]}):
                    kept.remove(i)
                    cut = True
        return sorted(kept)


@functools.lru_cache(maxsize=MAX_REMEMBERED_AXES)
def _home(cliques: tuple[Places, ...], places: Places) -> int | None:
    """Of the cliques that have all these columns, that of the fewest."""
    homes = [i for i, clique in enumerate(cliques) if {*places} <= {*clique}]
    return min(homes, key=lambda i: len(cliques[i]), default=None)


@functools.lru_cache(maxsize=MAX_REMEMBERED_AXES)
def _shared(one: Places, other: Places) -> Places:
    return tuple(place for place in one if place in other)


_others = functools.lru_cache(maxsize=MAX_REMEMBERED_AXES)(others)


@functools.lru_cache(maxsize=MAX_REMEMBERED_AXES)
def _order(own: Places, clique: Places) -> tuple[int, ...]:
    """The axes of a table by these columns, as they follow each other in a clique, in the columns' own order."""
    known = sorted(own, key=clique.index)
    return tuple(map(known.index, own))


@functools.lru_cache(maxsize=MAX_REMEMBERED_AXES)
def _lift(own: Places, clique: Places) -> tuple[tuple[int, ...], tuple[slice | None, ...]]:
    """How a table by some columns is turned, and where it has an axis more, to be one by a clique's."""
    order = sorted(range(len(own)), key=lambda axis: clique.index(own[axis]))
    return tuple(order), tuple(slice(None) if place in own else None for place in clique)


def _spread(values: Floats, own: Places, clique: Places) -> Floats:
    """A table by some columns as one by more: its axes where they belong, one long elsewhere."""
    order, index = _lift(own, clique)
    return values.transpose(order)[index]


def _joined(parts: Mapping[Places, Floats], clique: Places, sizes: Sequence[int]) -> Floats:
    """The sum of potentials on a clique's cells; of a large one those of the first columns are added up first."""
    shape = own_sizes(clique, sizes)
    if math.prod(shape) > MAX_DIRECT_CELLS:
        inner: dict[Places, Floats] = {}
        for own, values in parts.items():
            order, _ = _lift(own, clique)
            where = tuple(sorted(map(clique.index, own)))
            inner[where] = values.transpose(order) + inner.get(where, 0.0)
        return scattered(inner, shape)
    found = np.zeros(shape)
    for own, values in parts.items():
        found += _spread(values, own, clique)
    return found


class GraphModel:
    """A Markov random field over the declared columns that explains the measured marginals.

    Its potentials are on the measured marginals: one step of mirror descent takes from each what the model has
    too much of there, in units of its noise; the rate halves where the fit would get worse.
    """

    def __init__(self, sizes: tuple[int, ...]) -> None:
        self._sizes = sizes
        self._potentials: dict[Places, Floats] = {}
        self._rate = 0.0
        self._forest = Forest.of((), sizes)
        self._tree = self._grown({})
        self.total = 1.0

    @property
    def cliques(self) -> tuple[Places, ...]:
        """The marginals that it explains."""
        return tuple(self._potentials)

    def megabytes(self, more: Iterable[Places] = ()) -> float:
        """The size of the junction tree's tables, with some marginals more."""
        return megabytes((*self.cliques, *more), self._sizes)

    def fit(self, measured: Sequence[MeasuredMarginal], total: float, steps: int) -> None:
        """Learn from all measurements, from where the last fit ended."""
        merged = self._prepare(measured, total)
        strength = sum(each.error**-2 for each in merged)
        rate = max(self._rate, 1.0 / (strength * self.total))
        tree = self._grown(self._potentials)
        loss, found, slopes = self._judged(tree, merged)
        stalled = 0
        for _ in range(steps):
            potentials = {own: values - rate * slopes[own] for own, values in self._potentials.items()}
            ahead = self._grown(potentials)
            new, then, turned = self._judged(ahead, merged)
            gain = sum(float(np.vdot(slopes[own], found[own] - then[own])) for own in slopes)
            if loss - new < 0.25 * gain:
                rate /= 2.0
                continue
            stalled = 0 if loss - new > MIN_GAIN_PART * max(new, 1.0) else stalled + 1
            self._potentials, tree, loss, found, slopes = potentials, ahead, new, then, turned
            rate *= GROWTH
            if stalled >= MAX_STALLED_STEPS:
                break
        self._tree, self._rate = tree, rate

    def _prepare(self, measured: Sequence[MeasuredMarginal], total: float) -> list[MeasuredMarginal]:
        """Make room for what is new; all measurements, those of one marginal as one."""
        self.total = max(total, 1.0)
        merged = _merged(measured)
        self._potentials = {
            each.places: self._potentials.get(each.places, np.zeros(each.values.shape)) for each in merged
        }
        self._forest = Forest.of(self.cliques, self._sizes)
        return merged

    def _grown(self, potentials: dict[Places, Floats]) -> Junction:
        return Junction.of(potentials, self._forest.cliques, self._forest.above, self._sizes)

    def _judged(
        self, tree: Junction, merged: Sequence[MeasuredMarginal]
    ) -> tuple[float, dict[Places, Floats], dict[Places, Floats]]:
        """Half the squared gaps in units of their noise, the marginals, and how the first changes with the second."""
        found = {own: values * self.total for own, values in tree.marginals(each.places for each in merged).items()}
        gaps = {each.places: (found[each.places] - each.values) / each.error for each in merged}
        loss = 0.5 * sum(float(np.vdot(gap, gap)) for gap in gaps.values())
        return loss, found, {each.places: gaps[each.places] / each.error for each in merged}

    def marginal(self, places: Places) -> Floats:
        """The counts that it expects by some columns."""
        return self._tree.marginal(places) * self.total

    def marginals(self, wanted: Iterable[Places]) -> dict[Places, Floats]:
        """The counts that it expects by several lists of columns, each ascending."""
        return {places: values * self.total for places, values in self._tree.marginals(wanted).items()}

    def draw(self, rows: int, rng: np.random.Generator) -> Integers:
        """Rows of cells, a column for each of the space's.

        Columns are drawn one after the other, each given those before it that share a clique: that is the
        model's own law, as the order of elimination is turned round.
        """
        found = np.zeros((rows, len(self._sizes)), dtype=np.int64)
        known: set[int] = set()
        for column in reversed(self._forest.order):
            near = {place for clique in self._forest.cliques if column in clique for place in clique}
            before = tuple(sorted(near & known))
            weights = self._tree.marginal((*before, column)).reshape(-1, self._sizes[column])
            groups = np.zeros(rows, dtype=np.int64)
            for place in before:
                groups = groups * self._sizes[place] + found[:, place]
            found[:, column] = given(weights, groups, rng)
            known.add(column)
        return found


def _merged(measured: Sequence[MeasuredMarginal]) -> list[MeasuredMarginal]:
    """Measurements of one marginal as one, each weighed by the inverse of its variance."""
    found: list[MeasuredMarginal] = []
    for places in dict.fromkeys(each.places for each in measured):
        same = [each for each in measured if each.places == places]
        trust = [each.error**-2 for each in same]
        values = np.average([each.values for each in same], axis=0, weights=trust)
        found.append(MeasuredMarginal(places, values, sum(trust) ** -0.5))
    return found


@dataclass(frozen=True, slots=True, eq=False)
class TableModel:
    """Counts of every cell of the declared domain, none negative."""

    table: Floats

    def marginals(self, wanted: Iterable[Places]) -> dict[Places, Floats]:
        """The counts that it expects by several lists of columns, each ascending."""
        return gathered(self.table, wanted)

    def draw(self, rows: int, rng: np.random.Generator) -> Integers:
        """Rows of cells, a column for each of the space's."""
        cells = drawn(self.table.ravel(), rows, rng)
        return np.stack(np.unravel_index(cells, self.table.shape), axis=1).astype(np.int64)
