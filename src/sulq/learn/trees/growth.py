"""A decision tree as it grows, level by level: how an attribute may divide rows, what is asked, for which part.

Divisions by information come from noisy tables of every attribute by the label, level by level or query by query. With
N_jk the rows of branch j and label k, N_j those of branch j: sum_jk N_jk ln(N_jk/N_j) = -|T| H(L|A), the larger the
better (E15: the paper prints it as plus |T| H(L|A)).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, Literal

import numpy as np

from sulq.answers.oracle import SpendPlan, queries
from sulq.language.attribute import Attribute
from sulq.language.kinds import Floats, Integers
from sulq.language.privacy import Queries
from sulq.language.question import Sums, Together
from sulq.language.rowfn import lit
from sulq.learn.features import Labels
from sulq.learn.trees.tree import Tree

Splits = Literal["auto", "multiway", "binary"]
SPLITS: Final = ("auto", "multiway", "binary")
MAX_LEVEL_NODES: Final = 4096  # of one level
MAX_QUESTION_CELLS: Final = 2**22  # of one question of a level
FIRST: Final = Fraction(1, 20)  # of the spend, for the labels at the root where divisions are chosen
LEAVES: Final = Fraction(1, 4)  # of the spend, for the labels at the leaves
LABELS: Final = Fraction(1, 4)  # of a level's part, for the labels at its nodes
MORE: Final = Fraction(5, 4)  # of the spend, each level than the one above: its nodes have fewer rows


@dataclass(frozen=True, slots=True)
class Options:
    """The ways one attribute may divide rows: for each way the branch of every code."""

    branches: Integers  # ways x codes

    @property
    def several(self) -> bool:
        """Whether there is anything to choose from or at least to divide."""
        return len(self.branches) > 0

    def gather(self, table: Floats) -> Floats:
        """Tables (..., codes, labels) added up by branch: (..., ways, branches, labels)."""
        ends = np.arange(self.branches.max(initial=0) + 1)
        member = (self.branches[:, None, :] == ends[None, :, None]).astype(float)
        return np.asarray(np.einsum("wbc,...cl->...wbl", member, table))

    @property
    def sizes(self) -> Integers:
        """How many codes each branch of each way has."""
        ends = np.arange(self.branches.max(initial=0) + 1)
        return np.asarray((self.branches[:, None, :] == ends[None, :, None]).sum(axis=2))


def options(attribute: Attribute, splits: Splits) -> Options:
    """An attribute's ways: a branch for each code; a threshold between codes that have an order; one code or not.

    "multiway" is the textbook's: every code has its branch. "binary": numbers are cut at a threshold, a category
    is one value or not that one. "auto": numbers are cut, categories have a branch for each value.
    """
    size = attribute.size
    codes = np.arange(size)
    if size < 2:
        return Options(np.zeros((0, size), dtype=np.int64))
    if splits == "multiway" or (splits == "auto" and not attribute.ordered) or size == 2:
        return Options(codes[None, :])
    if attribute.ordered:
        return Options((codes[None, :] > codes[:-1, None]).astype(np.int64))
    return Options((codes[None, :] != codes[:, None]).astype(np.int64))


def magnitude(variance: float, beta: float) -> float:
    """How far normal noise of a variance goes, except with probability beta: sqrt(2 R ln(1/beta)).

    E17: the paper's sqrt(R ln(1/beta)) is passed with probability about sqrt(beta).
    """
    return math.sqrt(2 * variance * math.log(1 / beta))


def gamma(labels: int, tolerance: float) -> float:
    """How many noise magnitudes a node needs for Lemma 2's tolerance: x ln x with x = t^2/tolerance.

    E18: with the paper's x alone the skipped terms may add up to more than the tolerance.
    """
    x = labels**2 / tolerance
    return x * max(1.0, math.log(x))


def value_of(cells: Floats, sizes: Floats, floor: Floats | float) -> Floats:
    """sum_jk N_jk ln(N_jk/N_j) over the last two axes, without terms where either count is below the floor [S0.18].

    A floor is one number, or one for each branch.
    """
    least = np.asarray(floor)[..., None]
    counted = (cells >= least) & (sizes[..., None] >= least) & (cells > 0) & (sizes[..., None] > 0)
    with np.errstate(all="ignore"):
        terms = np.where(counted, cells * np.log(cells / sizes[..., None]), 0.0)
    return np.asarray(terms.sum(axis=(-2, -1)))


def gain_of(cells: Floats, floor: Floats) -> Floats:
    """How much more a division says than none, in rows times nats; branches below their floor say nothing.

    Two branches of which one is below its floor are no division: minus infinity.
    """
    held = np.maximum(cells, 0)
    sizes = held.sum(axis=-1)
    seen = sizes > floor
    together = held.sum(axis=-2)
    whole = together.sum(axis=-1, keepdims=True)
    with np.errstate(all="ignore"):
        parts = np.where(together > 0, together * np.log(together / whole), 0.0).sum(axis=-1)  # -|T| H(L)
        per_row = np.where(whole[..., 0] > 0, parts / whole[..., 0], 0.0)
    kept = value_of(np.where(seen[..., None], held, 0.0), sizes, 0.0)
    gain = kept + np.where(seen, 0.0, sizes).sum(axis=-1) * per_row - parts
    enough = seen.all(axis=-1) if cells.shape[-2] == 2 else seen.sum(axis=-1) > 1
    return np.where(enough, gain, -np.inf)


class Growth:
    """A tree of at most some depth, and the parts of the spend its levels and leaves have."""

    def __init__(self, tree: Tree, labels: Labels, spending: SpendPlan, depth: int) -> None:
        self.tree, self.labels, self.spending, self.depth = tree, labels, spending, depth
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
        answer = self.spending.one(Sums((lit(1),), by=(self.tree.route(places), self.labels.row)), part)
        self.left -= part
        variance = float(answer.released.deviations()[0]) ** 2
        for place, counts in zip(places, answer.released.values().reshape(len(places), -1), strict=True):
            self.tree.learn(place, counts, variance)
        self.counted |= set(places)

    def largest(self, places: list[int], cells: int) -> list[int]:
        """The nodes of a level that are looked at, if each has so many cells: those of most rows."""
        most = max(1, min(MAX_LEVEL_NODES, MAX_QUESTION_CELLS // max(cells, 1)))
        return sorted(sorted(places, key=lambda place: -self.tree.nodes[place].counts.sum())[:most])

    def finish(self) -> None:
        """Spend what is left on the labels at the leaves."""
        self.count(self.tree.leaves, self.left)
        self.tree.settle()


@dataclass(frozen=True, slots=True)
class SplitRule:
    """What may divide a node, and from when on."""

    splits: Splits = "auto"
    beta: float = 0.05
    tolerance: float | None = None


class Informed(Growth):
    """Growth by information: the attribute whose branches say most about the label divides a node.

    With a tolerance the paper's rule: a node of fewer than gamma noise magnitudes is a leaf, terms of counts below
    N_T/gamma are left out [S0.18, S0.19]. Without one a node and a branch need one magnitude of their own noise.
    """

    def __init__(self, tree: Tree, labels: Labels, spending: SpendPlan, depth: int, rule: SplitRule) -> None:
        super().__init__(tree, labels, spending, depth)
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

    def _level(self, places: list[int], free: dict[int, set[int]], part: Fraction) -> list[int]:
        """Ask the tables of a level and divide its nodes; gives the next level."""
        asked = sorted(set().union(*free.values()))
        leaf, attributes = self.tree.route(places), self.tree.attributes
        tables_of = (Sums((lit(1),), by=(leaf, attributes[i].row, self.labels.row)) for i in asked)
        answers = self.spending.several(Together(tuple(tables_of)), part)
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
        """The queries that are left of those there were when the fit began, or of the spend if that is less."""
        spent = self.spending.spent
        return self.spending.queries - spent.queries if isinstance(spent, Queries) else 0

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
