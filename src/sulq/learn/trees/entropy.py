"""Divisions by information: noisy tables of every attribute by the label, level by level or query by query."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from sulq.answers.oracle import queries
from sulq.language.privacy import Queries
from sulq.language.question import Sums, Together
from sulq.language.rowfn import lit
from sulq.learn.trees.growth import Informed


class EntropyGrowth(Informed):
    """Every attribute's table by label, for all nodes of a level in one question.

    A row is in one cell of each table, so a level costs its number of attributes in L1 and the root of that in
    L2, whatever its number of nodes; the counts of nodes, labels and branches are sums of the
    finest ones [S0.18; SPEC section 6].
    """

    def deviation(self) -> float:
        """The noise of one cell at the first level, were it asked like this; free.

        It depends on the number of tables and not on what divides them, so the labels alone stand for each.
        """
        if not self.free(0):
            return math.inf
        table = Sums((lit(1),), by=(self.labels.row,))
        plan = self.spending.foresee(Together((table,) * len(self.free(0))), self.parts[0])
        return math.sqrt(float(plan.parts[0].laws[0].variance()))

    def run(self) -> None:
        """Grow all levels."""
        places = [0]
        for level in range(self.depth):
            places = self.largest(places, max(self.sizes) * self.labels.size)
            free = {place: set(self.free(place)) for place in places}
            if not any(free.values()):
                break
            places = self._level(places, free, self.parts[level])
        self.finish()

    def _question(self, places: list[int], asked: list[int]) -> Together:
        """The tables of some attributes at some nodes."""
        leaf, one = self.tree.route(places), (lit(1),)
        return Together(tuple(Sums(one, by=(leaf, self.tree.attributes[i].row, self.labels.row)) for i in asked))

    def _level(self, places: list[int], free: dict[int, set[int]], part: Fraction) -> list[int]:
        """Ask the tables of a level and divide its nodes; gives the next level."""
        asked = sorted(set().union(*free.values()))
        answers = self.spending.several(self._question(places, asked), part)
        self.left -= part
        variance = float(answers[0].released.deviations()[0]) ** 2
        tables = {
            i: answer.released.values().reshape(len(places), self.sizes[i], self.labels.size)
            for i, answer in zip(asked, answers, strict=True)
        }
        # A table's column sums tell a node's labels with the variance of as many cells as it has codes.
        precision = np.array([1 / self.sizes[i] for i in asked])
        totals = np.tensordot(precision, [table.sum(axis=1) for table in tables.values()], axes=1) / precision.sum()
        for place, counts in zip(places, totals, strict=True):
            self.tree.learn(place, counts, variance / precision.sum())
        known = np.array([self.tree.nodes[place].counts for place in places])
        sizes = known.sum(axis=1)
        scores = {}
        for i, table in tables.items():
            # Its own totals are noisier than all tables' mean: what it is off by is taken from its cells evenly.
            agreed = table + (known - table.sum(axis=1))[:, None, :] / self.sizes[i]
            scores[i] = self.scores(i, agreed, None, sizes, variance)
        found: list[int] = []
        for n, place in enumerate(places):
            if self.enough(float(sizes[n]), self.tree.nodes[place].variance * self.labels.size):
                found += self.divide(place, {i: scores[i][n] for i in free[place]})
        return found


class SublinearGrowth(Informed):
    """The paper's queries, each a count of its own under a SubLinear budget [S0.18].

    A node costs 1 + t queries for its size and labels and, with a attributes left, a(t + t^2) more to divide it; one
    for which the queries left do not suffice is a leaf.
    """

    def first(self) -> Together:
        """What the root costs at least."""
        return self._labels([0])

    def run(self) -> None:
        """Grow all levels."""
        places = [0]
        for level in range(self.depth + 1):
            places = places[: self._left // (1 + self.labels.size)]
            if not places:
                break
            sizes, variance = self._count(places)
            if level < self.depth:
                wide = [place for place in places if self.enough(sizes[place], variance) and self.free(place)]
                places = [child for place in wide for child in self._divide(place, sizes[place], variance)]
        self.tree.settle()

    @property
    def _left(self) -> int:
        """The queries that are left of those there were when the fit began."""
        left, spent = self.spending.facts.remaining, self.spending.spent
        return left.queries - spent.queries if isinstance(left, Queries) and isinstance(spent, Queries) else 0

    def _labels(self, places: Sequence[int]) -> Together:
        leaf = self.tree.route(places)
        return Together((Sums((lit(1),), by=(leaf,)), Sums((lit(1),), by=(leaf, self.labels.row))))

    def _count(self, places: Sequence[int]) -> tuple[dict[int, float], float]:
        """N_T and N_j of each node, and the variance of a query."""
        sizes, labels = self.spending.several(self._labels(places))
        variance = float(labels.released.deviations()[0]) ** 2
        for place, counts in zip(places, labels.released.values().reshape(len(places), -1), strict=True):
            self.tree.learn(place, counts, variance)
        return dict(zip(places, sizes.released.values()[:, 0].tolist(), strict=True)), variance

    def _divide(self, place: int, size: float, variance: float) -> tuple[int, ...]:
        """Ask N^A_j and N^A_jk of every attribute left, if the queries last."""
        leaf, one, free = self.tree.route([place]), (lit(1),), self.free(place)
        rows = [self.tree.attributes[i].row for i in free]
        question = Together(
            tuple(Sums(one, by=(leaf, row, *more)) for row in rows for more in ((), (self.labels.row,)))
        )
        if queries(self.spending.oracle, question) > self._left:
            return ()
        found = [answer.released.values() for answer in self.spending.several(question)]
        tables = {i: (found[2 * n][:, 0], found[2 * n + 1].reshape(self.sizes[i], -1)) for n, i in enumerate(free)}
        sizes = np.array([size])
        scores = {i: self.scores(i, t[None], n[None], sizes, variance)[0] for i, (n, t) in tables.items()}
        return self.divide(place, scores)
