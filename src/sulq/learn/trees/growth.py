"""A decision tree as it grows, level by level: what is asked about its nodes, and for which part of the spend."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np

from sulq.answers.spend_plan import Purse
from sulq.language.kinds import Floats
from sulq.language.question import Sums
from sulq.language.rowfn import lit
from sulq.learn.attributes import Labels
from sulq.learn.trees.branches import Splits, gain_of, gamma, magnitude, options, value_of
from sulq.learn.trees.tree import Tree

MOST_NODES: Final = 4096  # of one level
MOST_CELLS: Final = 2**22  # of one question of a level
FIRST: Final = Fraction(1, 20)  # of the spend, for the labels at the root where divisions are chosen
LEAVES: Final = Fraction(1, 4)  # of the spend, for the labels at the leaves

LABELS: Final = Fraction(1, 4)  # of a level's part, for the labels at its nodes
MORE: Final = Fraction(5, 4)  # of the spend, each level than the one above: its nodes have fewer rows


class Growth:
    """A tree of at most some depth, and the parts of the spend its levels and leaves have."""

    def __init__(self, tree: Tree, labels: Labels, purse: Purse, depth: int) -> None:
        self.tree, self.labels, self.purse, self.depth = tree, labels, purse, depth
        self.left = Fraction(1)
        self.share(depth)
        self.counted: set[int] = set()
        self.sizes = [item.size for item in tree.attributes.items]  # the number of codes of each attribute

    def share(self, levels: int) -> None:
        """Divide what is left over so many levels, but for the leaves' part."""
        weights = [MORE**level for level in range(levels)]
        self.parts = [(self.left - LEAVES) * weight / sum(weights) for weight in weights]

    def count(self, places: Sequence[int], part: Fraction) -> None:
        """Ask how many rows of each label are at some leaves: a partition, at the price of one count."""
        answer = self.purse.one(Sums((lit(1),), by=(self.tree.route(places), self.labels.row)), part)
        self.left -= part
        variance = float(answer.released.deviations()[0]) ** 2
        for place, counts in zip(places, answer.released.values().reshape(len(places), -1), strict=True):
            self.tree.learn(place, counts, variance)
        self.counted |= set(places)

    def largest(self, places: list[int], cells: int) -> list[int]:
        """The nodes of a level that are looked at, if each has so many cells: those of most rows."""
        most = max(1, min(MOST_NODES, MOST_CELLS // max(cells, 1)))
        return sorted(sorted(places, key=lambda place: -self.tree.nodes[place].counts.sum())[:most])

    def finish(self) -> None:
        """Spend what is left on the labels at the leaves."""
        self.count(self.tree.leaves, self.left)
        self.tree.settle()


@dataclass(frozen=True, slots=True)
class Rule:
    """What may divide a node, and from when on."""

    splits: Splits = "auto"
    beta: float = 0.05
    tolerance: float | None = None


class Informed(Growth):
    """Growth by information: the attribute whose branches say most about the label divides a node.

    With a tolerance the paper's rule: a node of fewer than gamma noise magnitudes is a leaf, terms of counts below
    N_T/gamma are left out [S0.18, S0.19]. Without one a node and a branch need one magnitude of their own noise.
    """

    def __init__(self, tree: Tree, labels: Labels, purse: Purse, depth: int, rule: Rule) -> None:
        super().__init__(tree, labels, purse, depth)
        self.ways = [options(item, rule.splits) for item in tree.attributes.items]
        self.once = [int(way.branches.max(initial=0)) + 1 == n for way, n in zip(self.ways, self.sizes, strict=True)]
        self.beta = rule.beta
        self.gamma = None if rule.tolerance is None else gamma(max([labels.size, *self.sizes]), rule.tolerance)

    def free(self, place: int) -> list[int]:
        """The attributes that may divide a node: one with a branch for every code divides once on a path.

        E16: one attribute left beside the label is enough.
        """
        used = set(self.tree.path(place))
        return [i for i, way in enumerate(self.ways) if way.several and not (i in used and self.once[i])]

    def enough(self, size: float, variance: float) -> bool:
        """Whether a node of so many rows, known with this variance, is divided."""
        return size >= magnitude(variance, self.beta) * (1 if self.gamma is None else self.gamma)

    def scores(self, attribute: int, tables: Floats, branch: Floats | None, sizes: Floats, variance: float) -> Floats:
        """How good each way to divide by an attribute is: nodes x ways, from tables of shape nodes x codes x labels.

        `branch` has the codes' counts where they were asked too.
        """
        way = self.ways[attribute]
        cells = way.gather(tables)
        if self.gamma is not None:
            held = cells.sum(axis=-1) if branch is None else way.gather(branch[..., None])[..., 0]
            return value_of(cells, held, sizes[:, None, None] / self.gamma)
        return gain_of(cells, magnitude(1, self.beta) * np.sqrt(variance * way.sizes * tables.shape[-1]))

    def divide(self, place: int, scores: dict[int, Floats]) -> tuple[int, ...]:
        """Divide a node by the best way of the best attribute, if there is one; gives its children."""
        best = max(scores, key=lambda i: float(scores[i].max()), default=-1)
        if best < 0 or not np.isfinite(scores[best].max()):
            return ()
        return self.tree.grow(place, best, self.ways[best].branches[int(np.argmax(scores[best]))])
