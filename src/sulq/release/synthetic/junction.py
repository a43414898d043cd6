"""A junction tree whose tables agree: marginals of any columns of a graphical model, by NumPy.

Where columns of a marginal lie in several cliques, it is the product along the tree's branches between
them of one clique's shares and of the others' given what they have in common, summed over all else.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np

from sulq.language.kinds import Floats
from sulq.release.tables.interactions import Places
from sulq.release.tables.summing import gathered, scattered


@dataclass(frozen=True, slots=True, eq=False)
class Junction:
    """Shares of the rows in each clique's cells. `above[i]` is the one nearer to its tree's root, or -1."""

    cliques: tuple[Places, ...]
    above: tuple[int, ...]
    shares: tuple[Floats, ...]

    @classmethod
    def of(
        cls, potentials: Mapping[Places, Floats], cliques: Sequence[Places], edges: Sequence[tuple[int, int]],
        sizes: Sequence[int],
    ) -> Junction:  # fmt: skip
        """The tree of these cliques, each potential in one of them; messages go up to the roots and down again."""
        above, order = _rooted(len(cliques), edges)
        parts: list[dict[Places, Floats]] = [{} for _ in cliques]
        for own, values in potentials.items():
            home = next(i for i, clique in enumerate(cliques) if {*own} <= {*clique})
            where = tuple(map(cliques[home].index, own))
            turned = values.transpose(sorted(range(len(own)), key=where.__getitem__))
            parts[home][tuple(sorted(where))] = turned + parts[home].get(tuple(sorted(where)), 0.0)
        tables = [
            scattered(each, [sizes[place] for place in clique]) for each, clique in zip(parts, cliques, strict=True)
        ]
        up: dict[int, Floats] = {}
        for i in reversed(order):
            if above[i] >= 0:
                shared = _shared(cliques[i], cliques[above[i]])
                up[i] = _logs(tables[i], cliques[i], shared)
                tables[above[i]] = tables[above[i]] + _spread(up[i], shared, cliques[above[i]])
        for i in order:
            if above[i] >= 0:
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
                common = _spread(_summed(shares, self.cliques[i], shared), shared, self.cliques[i])
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


def _rooted(count: int, edges: Sequence[tuple[int, int]]) -> tuple[list[int], list[int]]:
    """For each clique the one above it, and an order in which no clique comes before that."""
    near: list[list[int]] = [[] for _ in range(count)]
    for one, other in edges:
        near[one].append(other)
        near[other].append(one)
    above, order, seen = [-1] * count, [], set[int]()
    for root in range(count):
        front = [] if root in seen else [root]
        seen.add(root)
        while front:
            i = front.pop()
            order.append(i)
            for j in near[i]:
                if j not in seen:
                    seen.add(j)
                    above[j] = i
                    front.append(j)
    return above, order


def _shared(one: Places, other: Places) -> Places:
    return tuple(place for place in one if place in other)


def _spread(values: Floats, own: Places, clique: Places) -> Floats:
    """A table by some columns as one by more: its axes where they belong, one long elsewhere."""
    order = sorted(range(len(own)), key=lambda axis: clique.index(own[axis]))
    turned = values.transpose(order)
    lengths = {own[axis]: values.shape[axis] for axis in range(len(own))}
    return turned.reshape([lengths.get(place, 1) for place in clique])


def _others(clique: Places, kept: Places) -> tuple[int, ...]:
    return tuple(axis for axis, place in enumerate(clique) if place not in kept)


def _summed(shares: Floats, clique: Places, kept: Places) -> Floats:
    return cast("Floats", shares.sum(axis=_others(clique, kept)))


def _logs(table: Floats, clique: Places, kept: Places) -> Floats:
    """Logarithms of sums over the other columns."""
    axes = _others(clique, kept)
    top = table.max(axis=axes, keepdims=True)
    summed = np.log(np.exp(table - top).sum(axis=axes, keepdims=True)) + top
    return cast("Floats", summed.squeeze(axis=axes))


def _normal(table: Floats) -> Floats:
    shares = np.exp(table - table.max())
    return cast("Floats", shares / shares.sum())
