"""The cliques that marginals need to be explained together, joined to trees.

Columns are eliminated one after the other, each time that whose neighbours make the smallest table; joining
its neighbours makes the graph chordal, and the cliques joined by their largest overlaps are a junction tree.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from sulq.release.tables.interactions import Places

BYTES: Final = 8  # of a number


@dataclass(frozen=True, slots=True)
class Forest:
    """Maximal cliques, the pairs of them that are joined, and the order in which columns were eliminated."""

    cliques: tuple[Places, ...]
    edges: tuple[tuple[int, int], ...]
    order: tuple[int, ...]

    @classmethod
    def of(cls, marginals: Iterable[Places], sizes: Sequence[int]) -> Forest:
        """The forest that has every marginal within a clique, and every column."""
        cliques, order = eliminated(marginals, sizes)
        pairs = sorted(
            itertools.combinations(range(len(cliques)), 2),
            key=lambda pair: -len({*cliques[pair[0]]} & {*cliques[pair[1]]}),
        )
        tree = list(range(len(cliques)))  # which one each clique is in so far
        edges = []
        for one, other in pairs:
            if tree[one] != tree[other] and {*cliques[one]} & {*cliques[other]}:
                edges.append((one, other))
                old, new = tree[other], tree[one]
                tree = [new if each == old else each for each in tree]
        return cls(tuple(cliques), tuple(edges), order)


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
    return BYTES * sum(math.prod(sizes[place] for place in clique) for clique in cliques) / 2**20
