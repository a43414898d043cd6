"""Divisions chosen by the curator: where the labels on either side differ most, at one price a level."""

from __future__ import annotations

import itertools
import math
from typing import Final

import numpy as np

from sulq.answers.answer import Answer
from sulq.language.kinds import Floats, Integers
from sulq.language.law import ExponentialLaw, FlipLaw
from sulq.language.question import Choose, Sums
from sulq.language.rowfn import RowFn, lit, lookup
from sulq.language.score import Contrast
from sulq.learn.noisy_sums import Chance, deviations, public
from sulq.learn.trees.growth import FIRST, LABELS, MAX_QUESTION_CELLS, Growth, options

MIN_ERRORS_A_NODE: Final = 2  # times the error of a choice, in rows: what a node needs to be divided
EVEN_ROWS: Final = 1.5  # rows of a leaf for each of its labels' noise, where levels are divided without a look
MAX_EVEN_NODES: Final = 2**10  # nodes of a level that is divided evenly

UNIT: Final = 2**10  # weights of a contrast are whole numbers up to this


class SeparationGrowth(Growth):
    """Each node is divided where the labels on either side differ most, chosen by the curator at one price a level.

    With p the (noisy) parts of the labels at a node, G a group of labels and a division into left and right, the
    score is |sum over the node's rows of +-(1[label in G] - p_G)|, plus for left: Breiman's twoing
    criterion. A row moves it by at most 1, whatever the number of attributes and divisions, which enter
    the error by their logarithm alone. At the last level it is the number of rows that the two most frequent
    labels, one on each side, name rightly.
    """

    def run(self) -> None:
        """Grow all levels."""
        ways = [options(item, "binary") for item in self.tree.attributes.items]
        sides = tuple(
            lookup(item.row, (1 - 2 * way.branches.T).tolist())
            for item, way in zip(self.tree.attributes.items, ways, strict=True)
            if way.several
        )
        divisions = [(i, branches) for i, way in enumerate(ways) for branches in way.branches]
        divisions = divisions if self.labels.size > 1 else []
        if not self.counted:
            self.count([0], FIRST)
        places = [0]
        levels = self._worth(sides, len(divisions)) if divisions else 0
        self.share(levels)
        for level, part in enumerate(self.parts):
            new = [place for place in places if place not in self.counted]
            if new:
                self.count(new, part * LABELS)
            places = self.largest(places, len(divisions) * self.labels.size)
            chosen = self._choose(places, sides, len(divisions), level)
            if not chosen:
                break
            places = [new for place, number in chosen for new in self._divide(place, *divisions[number])]
        if divisions and levels == 0:
            self._divide_evenly(places, self._even_levels())
        self.finish()

    def _worth(self, sides: tuple[RowFn, ...], width: int) -> int:
        """How many levels are chosen: as many as have rows enough, each node reckoned half of the one above.

        Fewer levels have a larger part of the spend each, and their choices a smaller error; but fewer leaves than
        labels could not name them all.
        """
        rows = float(self.tree.nodes[0].counts.sum())
        fewest = min(self.depth, math.ceil(math.log2(self.labels.size)))
        for levels in range(self.depth, fewest - 1, -1):
            self.share(levels)
            if all(rows / 2**n >= self._floor([0], sides, width, n) for n in range(levels)):
                return levels
        return 0

    def _even_levels(self) -> int:
        """How many levels are divided without a look: as many as leave a leaf EVEN_ROWS times its labels' noise.

        Deeper leaves would name a label by chance; fewer leaves than labels could not name them all.
        """
        leaf = Sums((lit(1),), by=(self.labels.row,))
        noise = float(deviations(self.spending.foresee(leaf, self.left))[0].max())
        rows = max(float(self.tree.nodes[0].counts.sum()), 1.0)
        fewest = min(self.depth, math.ceil(math.log2(self.labels.size)))
        return int(np.clip(math.floor(math.log2(max(rows / (EVEN_ROWS * max(noise, 1e-9)), 1.0))), fewest, self.depth))

    def _divide_evenly(self, places: list[int], levels: int) -> None:
        """Divide nodes without a look at the data: an attribute least used on the way, its codes in two halves.

        Where rows are too few for any choice, all that is left is better spent on the labels at such leaves.
        """
        # Public, and new in every fit: no table has bad luck with one order for ever.
        order = public(abs(round(float(self.tree.nodes[0].counts @ np.arange(1, self.labels.size + 1)))))
        for _ in range(levels):
            if len(places) > MAX_EVEN_NODES:
                break
            places = [new for place in places for new in self._halve(place, order)]

    def _halve(self, place: int, order: Chance) -> tuple[int, ...]:
        tree = self.tree
        path = tree.path(place)
        codes = {i: np.flatnonzero(tree.possible(place, i)) for i in range(len(self.sizes))}
        free = [i for i in order.permutation(len(self.sizes)).tolist() if len(codes[i]) > 1]
        if not free:
            return ()
        best = min(free, key=path.count)
        half = codes[best] if tree.attributes[best].ordered else order.permutation(codes[best])
        branches = np.ones(self.sizes[best], dtype=np.int64)
        branches[half[: len(half) // 2]] = 0
        if tree.attributes[best].ordered:
            branches[: half[0]] = 0  # a threshold, as others are
        return tree.grow(place, best, branches.tolist())

    def _divide(self, place: int, attribute: int, branches: Integers) -> tuple[int, ...]:
        """Divide a node; where its rows are known to be all on one side it is left for the next level."""
        here = branches[self.tree.possible(place, attribute)]
        return (place,) if len(set(here.tolist())) < 2 else self.tree.grow(place, attribute, branches.tolist())

    def _question(self, places: list[int], sides: tuple[RowFn, ...], width: int, level: int) -> Choose:
        """The choice of a division for each of some nodes."""
        shares, groups = self.tree.shares(), self._groups(len(places), width)
        weights = tuple(tuple(_contrasts(shares[place], groups, level == len(self.parts) - 1)) for place in places)
        return Choose(Sums(sides, by=(self.tree.route(places), self.labels.row)), Contrast(weights))

    def _floor(self, places: list[int], sides: tuple[RowFn, ...], width: int, level: int) -> float:
        """The rows a node needs to be divided by a choice at a level."""
        part = self.parts[level] * (1 - LABELS)
        law = self.spending.foresee(self._question(places, sides, width, level), part).parts[0].laws[0]
        assert isinstance(law, (FlipLaw, ExponentialLaw))  # noqa: S101 - the law of a choice
        # A choice is off by scale * ln m at most, mostly; a node of few more rows than that cannot be divided by it.
        error = float(law.scale) / (2 * UNIT) * math.log(max(law.candidates, 2))
        node = self.tree.nodes[0]
        return max(MIN_ERRORS_A_NODE * error, 2 * math.sqrt(node.variance * self.labels.size) if level == 0 else 0.0)

    def _choose(self, places: list[int], sides: tuple[RowFn, ...], width: int, level: int) -> list[tuple[int, int]]:
        """The nodes large enough to be divided, each with the number of its division."""
        floor = self._floor(places, sides, width, level)
        enough = [place for place in places if float(self.tree.nodes[place].counts.sum()) >= floor]
        if not enough:
            return []
        part = self.parts[level] * (1 - LABELS)
        answer = self.spending.ask(self._question(enough, sides, width, level), part)
        assert isinstance(answer, Answer)  # noqa: S101 - for the type checker
        self.left -= part
        return [(place, int(n) % width) for place, n in zip(enough, answer.released.units[:, 0], strict=True)]

    def _groups(self, nodes: int, width: int) -> Floats:
        """Groups of one label, and of two where the question stays small; not both a group and its complement."""
        size = self.labels.size
        one = np.eye(size)
        if size <= 3:
            return one[: 1 if size == 2 else size]
        pairs = [one[i] + one[j] for i, j in itertools.combinations(range(size), 2) if size > 4 or i == 0]
        many = size + len(pairs)
        return one if nodes * many * max(width, size) > MAX_QUESTION_CELLS // 4 else np.array([*one, *pairs])


def _contrasts(shares: Floats, groups: Floats, last: bool) -> list[tuple[int, ...]]:  # noqa: FBT001 - which of two
    """Weights of the labels, whole numbers up to UNIT."""
    weights = groups - (groups @ shares)[:, None]
    if last:
        first, second = np.argsort(-shares, kind="stable")[:2]
        weights = np.zeros((1, len(shares)))
        weights[0, first], weights[0, second] = 1, -1
    weights = np.rint(weights * (UNIT / np.abs(weights).max()))
    return [tuple(int(n) for n in row) for row in weights]
