"""Decision trees from noisy counts: ID3."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

import numpy as np

from sulq.answers.oracle import ColumnChoice, SpendPlan
from sulq.forms.parameters import checked, number, whole
from sulq.language.domain import Column
from sulq.language.kinds import Floats
from sulq.learn.base import Classifier
from sulq.learn.evaluation.prediction import ClassPrediction
from sulq.learn.features import Array, Attributes, Labels
from sulq.learn.trees.growth import FIRST, SPLITS, EntropyGrowth, SplitRule, Splits, SublinearGrowth
from sulq.learn.trees.separation import SeparationGrowth
from sulq.learn.trees.tree import Node, Tree, export_text, plot

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MAX_DEPTH: Final = 16
TABLES_FROM: Final = 2500  # rows for each row of a cell's noise, from which on tables are no worse than choices
CRITERIA: Final = ("auto", "entropy", "separation")


@dataclass(eq=False, repr=False, kw_only=True)
class ID3(Classifier):
    """A decision tree: each node is divided by the attribute that says most about the label.

    It grows level by level, from noisy tables or by choices of the curator, and is a rule that anybody can read.

    criterion="entropy" is ID3: one question a level asks, for every attribute left, the noisy table of node,
    attribute and label; the attribute of the highest information gain divides. A level of a attributes costs a times
    the noise of one table under an Epsilon and sqrt(a) under a Rho, whatever its number of nodes. With no
    noise it is the textbook's tree [S0.17, S0.18].
    criterion="separation" lets the curator choose a division of each node by how far the labels on either side differ:
    the twoing of [BFOS84]; at the last level, the rows named rightly. One row moves a score by at most 1 whatever the
    number of attributes, so a level costs one choice and an error of ln(candidates)/epsilon rows. As many levels are
    chosen as have twice that many rows in a node; where they would have fewer leaves than labels, levels are divided
    without a look at the data, as many as leave a leaf 1.5 times its noise, and what is left goes to its labels.
    criterion="auto" asks the number of rows first, and takes tables where their noise is at most 1/2500 of it.
    From 1/2500 on tables are level with choices, or ahead. Measured: docs/benchmarks-learn.md.

    The spend: a twentieth for the first labels where divisions may be chosen; a quarter, and whatever is not used, for
    those at the leaves; the rest for the levels, each a quarter more than the one above, a quarter of it for the labels
    at its nodes where divisions are chosen. Little depends on the shares: .15 to .3, 1 to 1.4, .2 to .33 were level.

    Privacy: the spend's; the tree is made of noisy answers alone.
    Accuracy: with a `tolerance` the gain of each chosen attribute is within it of the best, with probability
    1 - O(d t^2 beta), under the criterion "entropy" [S0.19, with E15 to E18 corrected].
    Under a SubLinear budget the queries are the paper's: 1 + t for a node and a(t + t^2) to divide it.

    max_depth: How many divisions lead to a leaf at most.
    n_bins: Into how many intervals of equal width a number is divided between its declared bounds.
    criterion: "entropy", "separation", or "auto".
    splits: What divides a node, under "entropy": "multiway" a branch for each value (the textbook), "binary" a
        threshold for numbers and one value or not for categories, "auto" thresholds for numbers and a branch for each
        value of a category. Choices are always binary; the paper's queries multiway unless told otherwise.
    tolerance: Lemma 2's Delta, for the paper's rule when a node is too small and which terms are too small; left
        out, a node or branch must only be larger than its own noise.
    beta: The probability with which one count's noise passes the magnitude those rules reckon with.

    Learned: `tree_`, `classes_`, `criterion_`, `feature_importances_`.
    """

    parts = (Tree, Node)

    max_depth: int = 5
    n_bins: int = 16
    criterion: Literal["auto", "entropy", "separation"] = "auto"
    splits: Splits = "auto"
    tolerance: float | None = None
    beta: float = 0.05

    def _fit(self, X: ColumnChoice, y: ColumnChoice, spending: SpendPlan) -> None:
        depth = self._check(spending)
        tree = Tree(Attributes.of(X, self.n_bins), (labels := Labels(y)).classes)
        splits: Splits = "multiway" if self.splits == "auto" and spending.sublinear else self.splits
        rule = SplitRule(splits, self.beta, self.tolerance)
        if spending.sublinear:
            literal = SublinearGrowth(tree, labels, spending, depth, rule)
            spending.plan(2 * depth + 1, literal.first())
            self.criterion_ = "entropy"
            literal.run()
        else:
            spending.plan(2 * depth + 1)
            chosen = SeparationGrowth(tree, labels, spending, depth)
            tables = EntropyGrowth(tree, labels, spending, depth, rule)
            self.criterion_ = self._decide(chosen, tables)
            (tables if self.criterion_ == "entropy" else chosen).run()
        self.tree_, self.classes_ = tree, labels.classes
        self.feature_importances_ = _importances(tree)

    def _check(self, spending: SpendPlan) -> int:
        depth = whole(self.max_depth, "max_depth", 1, MAX_DEPTH)
        whole(self.n_bins, "n_bins", 2, 256)
        checked(self.criterion in CRITERIA, f"criterion is one of {', '.join(CRITERIA)}.")
        checked(self.splits in SPLITS, f"splits is one of {', '.join(SPLITS)}.")
        checked(0 < number(self.beta) < 1, "beta lies between 0 and 1.")
        checked(
            self.tolerance is None or 0 < number(self.tolerance) < 10, "tolerance lies between 0 and 10, or is None."
        )
        checked(
            self.criterion != "separation" or (not spending.sublinear and self.tolerance is None),
            "Choices need no tolerance, and a SubLinear budget answers sums alone.",
        )
        checked(self.criterion != "separation" or self.splits != "multiway", "Choices are of binary splits.")
        return depth

    def _decide(self, chosen: SeparationGrowth, tables: EntropyGrowth) -> str:
        """Which criterion; where it depends on the number of rows, that is asked, as the first level's labels."""
        if self.criterion != "auto":
            return self.criterion
        if self.tolerance is not None or self.splits == "multiway":
            return "entropy"
        chosen.count([0], FIRST)
        rows = float(chosen.tree.nodes[0].counts.sum())
        if rows < TABLES_FROM * tables.deviation():
            return "separation"
        tables.left -= FIRST
        tables.share(tables.depth)
        return "entropy"

    def apply(self, X: object) -> Array:
        """The leaf each row of an ordinary array or frame comes to, by its place in `tree_.nodes`."""
        self._ready()
        return self.tree_.apply(self.tree_.attributes.codes(X))

    def predict_proba(self, X: object) -> Floats:
        """The part of each class at the leaf a row comes to: noisy counts, clipped at zero.

        Its parent's parts count for as many rows as one deviation of the noise. A row that misses an attribute goes
        where most rows went.
        """
        self._ready()
        return self.tree_.shares()[self.apply(X)]

    def _prediction(self) -> ClassPrediction:
        shares = self.tree_.shares()[self.tree_.leaves]
        likely = tuple(shares[:, 1].tolist()) if len(self.classes_) == 2 else ()
        return ClassPrediction(self.tree_.prediction_route(), tuple(shares.argmax(axis=1).tolist()), shares=likely)

    def _learned_columns(self) -> tuple[tuple[str, Column], ...]:
        return self.tree_.attributes.learned

    def get_depth(self) -> int:
        """The longest way from the root to a leaf."""
        self._ready()
        return self.tree_.depth

    def get_n_leaves(self) -> int:
        """The number of leaves."""
        self._ready()
        return len(self.tree_.leaves)

    def export_text(self, *, show_weights: bool = False) -> str:
        """The tree as indented lines, as scikit-learn's; `show_weights` adds the noisy counts at each leaf."""
        self._ready()
        return export_text(self.tree_, show_weights=show_weights)

    def plot(self, *, max_depth: int = 4) -> Axes:
        """A picture of the tree down to a depth (needs the extra `plot`)."""
        self._ready()
        return plot(self.tree_, max_depth=whole(max_depth, "max_depth", 0, MAX_DEPTH))


def _importances(tree: Tree) -> Floats:
    """How much of the label's entropy each attribute's divisions take away, by the noisy counts; they sum to one."""
    shares = tree.shares()
    sizes = np.array([max(float(node.counts.sum()), 0.0) for node in tree.nodes])
    entropy = -np.sum(shares * np.log(np.maximum(shares, 1e-300)), axis=1)
    found = np.zeros(len(tree.attributes))
    for place, node in enumerate(tree.nodes):
        if not node.leaf:
            below = list(node.children)
            held = max(float(sizes[below].sum()), 1e-9)
            gain = entropy[place] - float(sizes[below] @ entropy[below]) / held
            found[node.attribute] += sizes[place] * max(gain, 0.0)
    return found / found.sum() if found.sum() > 0 else found
