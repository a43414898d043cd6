"""Models of measured marginals: a graph of them, joined by few common columns [MSM19], and a whole table.

Columns are eliminated one after the other, each time that whose neighbours make the smallest table; joining its
neighbours makes the graph chordal, and the cliques joined by their largest overlaps are a junction tree. Where columns
of a marginal lie in several cliques, it is the product along the tree's branches between them of one clique's shares
and of the others' given what they have in common, summed over all else.

A fit begins where the last one ended, so a round's is quick: hardly anything is new. docs/decisions/0040 compares it
with mbi, the library of the paper's authors: the same fit, in a thirtieth of the time.
"""

from __future__ import annotations

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
    cliques: list[Places] = []
    order: list[int] = []
    while near:
        place = min(near, key=lambda each: (sizes[each] * math.prod(sizes[other] for other in near[each]), each))
        around = near.pop(place)
        clique = {place, *around}
        if not any(clique <= {*known} for known in cliques):
            cliques.append(tuple(sorted(clique)))
        for other in around:
            near[other] |= around - {other}
            near[other].discard(place)
        order.append(place)
    return cliques, tuple(order)


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
        """The tree of these cliques, each potential in one of them; messages go up to the roots and down again."""
        parts: list[dict[Places, Floats]] = [{} for _ in cliques]
        for own, values in potentials.items():
            home = next(i for i, clique in enumerate(cliques) if {*own} <= {*clique})
            where = tuple(map(cliques[home].index, own))
            turned = values.transpose(sorted(range(len(own)), key=where.__getitem__))
            parts[home][tuple(sorted(where))] = turned + parts[home].get(tuple(sorted(where)), 0.0)
        tables = [scattered(each, own_sizes(clique, sizes)) for each, clique in zip(parts, cliques, strict=True)]
        up: dict[int, Floats] = {}
        joined = [i for i in range(len(cliques)) if above[i] >= 0]  # each after the one above it
        for i in reversed(joined):
            shared = _shared(cliques[i], cliques[above[i]])
            up[i] = _logs(tables[i], cliques[i], shared)
            tables[above[i]] = tables[above[i]] + _spread(up[i], shared, cliques[above[i]])
        for i in joined:
            shared = _shared(cliques[i], cliques[above[i]])
            down = _logs(tables[above[i]], cliques[above[i]], shared) - up[i]
            tables[i] = tables[i] + _spread(down, shared, cliques[i])
        return cls(tuple(cliques), tuple(above), tuple(map(_normal, tables)))

    def marginals(self, wanted: Iterable[Places]) -> dict[Places, Floats]:
        """Shares of the rows by several lists of columns, each in its order: those within a clique all at once."""
        homes: dict[int, list[Places]] = {}
        found: dict[Places, Floats] = {}
        for places in wanted:
            home = next((i for i, clique in enumerate(self.cliques) if {*places} <= {*clique}), None)
            if home is None:
                found[places] = self._across(places)
            else:
                homes.setdefault(home, []).append(places)
        for i, several in homes.items():
            where = {places: tuple(map(self.cliques[i].index, places)) for places in several}
            inner = gathered(self.shares[i], [tuple(sorted(own)) for own in where.values()])
            for places, own in where.items():
                found[places] = inner[tuple(sorted(own))].transpose([sorted(own).index(place) for place in own])
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
                common = _spread(shares.sum(axis=others(self.cliques[i], shared)), shared, self.cliques[i])
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


def _shared(one: Places, other: Places) -> Places:
    return tuple(place for place in one if place in other)


def _spread(values: Floats, own: Places, clique: Places) -> Floats:
    """A table by some columns as one by more: its axes where they belong, one long elsewhere."""
    order = sorted(range(len(own)), key=lambda axis: clique.index(own[axis]))
    turned = values.transpose(order)
    lengths = {own[axis]: values.shape[axis] for axis in range(len(own))}
    return turned.reshape([lengths.get(place, 1) for place in clique])


def _logs(table: Floats, clique: Places, kept: Places) -> Floats:
    """Logarithms of sums over the other columns."""
    axes = others(clique, kept)
    top = table.max(axis=axes, keepdims=True)
    summed = np.log(np.exp(table - top).sum(axis=axes, keepdims=True)) + top
    return cast("Floats", summed.squeeze(axis=axes))


def _normal(table: Floats) -> Floats:
    shares = np.exp(table - table.max())
    return cast("Floats", shares / shares.sum())


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
