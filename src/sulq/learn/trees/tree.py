"""A decision tree over public cells: grown by a learner, routed by a question, read by people as text or as a picture.

A node knows noisy counts of the labels that reach it, each time they were asked with the variance of
their noise; nothing else about a row is in a tree.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, cast

import numpy as np

from sulq.answers.answer import extra
from sulq.language.attribute import Attribute
from sulq.language.kinds import Floats, Truths
from sulq.language.rowfn import OrMissing, Route
from sulq.learn.features import Array, Attributes, Codes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

APART: Final = 0.4  # how far a label's part at a node is from that at its parent, as a rule
MIN_VARIANCE: Final = 1e-18  # of a variance: a huge epsilon has hardly any noise
MAX_WIDTH_INCHES: Final = 60.0


@dataclass(slots=True)
class Node:
    """A place in the tree: how it divides its rows, if it does, and how many of each label are there."""

    depth: int
    counts: Floats  # of each label, noisy
    variance: float = float("inf")  # of each count; nothing is known before the first ask
    attribute: int = -1  # that divides the rows; -1 of a leaf
    branches: tuple[int, ...] = ()  # for each code of the attribute, which child
    children: tuple[int, ...] = ()  # their places in the tree
    parent: int = -1

    @property
    def leaf(self) -> bool:
        """Whether the rows are divided no further."""
        return not self.children


@dataclass
class Tree:
    """Nodes from the root at place 0 on; a child comes later than its parent."""

    attributes: Attributes
    classes: Array
    nodes: list[Node] = field(default_factory=list)

    def __post_init__(self) -> None:
        if not self.nodes:
            self.nodes.append(Node(0, np.zeros(len(self.classes))))

    def grow(self, place: int, attribute: int, branches: Sequence[int]) -> tuple[int, ...]:
        """Divide a leaf; gives the places of its children."""
        node = self.nodes[place]
        count = max(branches) + 1
        node.attribute, node.branches = attribute, tuple(int(branch) for branch in branches)
        node.children = tuple(range(len(self.nodes), len(self.nodes) + count))
        for _ in range(count):
            self.nodes.append(Node(node.depth + 1, np.zeros(len(self.classes)), parent=place))
        return node.children

    def learn(self, place: int, counts: Floats, variance: float) -> None:
        """Take in noisy counts of the labels at a node, averaged with what was known by their precision."""
        node = self.nodes[place]
        node.counts, node.variance = _average((node.counts, node.variance), (counts, max(variance, MIN_VARIANCE)))

    def path(self, place: int) -> list[int]:
        """The attributes asked on the way to a node, as often as they were."""
        found = []
        while (place := self.nodes[place].parent) >= 0:
            found.append(self.nodes[place].attribute)
        return found

    def possible(self, place: int, attribute: int) -> Truths:
        """Which codes of an attribute a row at a node may still have, by the divisions above it."""
        found: Truths | None = None
        while (parent := self.nodes[place].parent) >= 0:
            node = self.nodes[parent]
            if node.attribute == attribute:
                here = np.array(node.branches) == node.children.index(place)
                found = here if found is None else found & here
            place = parent
        return np.ones(self.attributes[attribute].size, dtype=np.bool_) if found is None else found

    @property
    def leaves(self) -> list[int]:
        """The places of the leaves."""
        return [place for place, node in enumerate(self.nodes) if node.leaf]

    @property
    def depth(self) -> int:
        """The longest way from the root, in divisions."""
        return max(node.depth for node in self.nodes)

    def route(self, places: Sequence[int]) -> Route:
        """Which of some leaves a row comes to, as a key of a question; rows of the others are in no cell."""
        inner = [place for place, node in enumerate(self.nodes) if not node.leaf]
        where: dict[int, int | None] = {place: i for i, place in enumerate(inner)}
        where |= {place: -1 - i for i, place in enumerate(places)}
        asked = {i: key for key, i in enumerate(sorted({self.nodes[place].attribute for place in inner}))}
        rows = []
        for place in inner:
            node = self.nodes[place]
            to = [where.get(child) for child in node.children]
            rows.append((asked[node.attribute], *(to[branch] for branch in node.branches)))
        return Route(tuple(self.attributes[i].row for i in asked), tuple(rows))

    def prediction_route(self) -> Route:
        """The leaf a row comes to, in the order of `leaves`; one that misses an attribute goes as `apply` has it."""
        inner = [place for place, node in enumerate(self.nodes) if not node.leaf]
        where = {place: i for i, place in enumerate(inner)} | {place: -1 - i for i, place in enumerate(self.leaves)}
        asked = {i: key for key, i in enumerate(sorted({self.nodes[place].attribute for place in inner}))}
        sizes = [float(node.counts.sum()) for node in self.nodes]
        rows = []
        for place in inner:
            node = self.nodes[place]
            to = [where[child] for child in node.children]
            most = int(np.argmax([sizes[child] for child in node.children]))
            rows.append((asked[node.attribute], *(to[branch] for branch in node.branches), to[most]))
        return Route(tuple(OrMissing(self.attributes[i].row) for i in asked), tuple(rows))

    def settle(self) -> None:
        """Let each node's counts and the sum of its children's agree as far as they help: from the leaves up.

        Both estimate the same numbers with independent noise; a mean weighed by precision is the best of both.
        """
        for node in reversed(self.nodes):
            if node.children:
                below = [self.nodes[child] for child in node.children]
                total = np.sum([child.counts for child in below], axis=0)
                node.counts, node.variance = _average(
                    (node.counts, node.variance), (total, sum(child.variance for child in below))
                )

    def shares(self) -> Floats:
        """The part of each label at each node.

        A node's counts N, clipped at zero, of noise variance v, tell its parts with an error of about sqrt(v)/N; by
        itself it differs from its parent by about APART. So its parent's parts are worth v/(APART^2 N) rows: a
        leaf with hardly any rows says what its parent says.
        """
        found = np.empty((len(self.nodes), len(self.classes)))
        for place, node in enumerate(self.nodes):
            prior = found[node.parent] if node.parent >= 0 else np.full(len(self.classes), 1 / len(self.classes))
            if np.isfinite(node.variance):
                counts = np.maximum(node.counts, 0)
                worth = node.variance / (APART**2 * max(float(counts.sum()), node.variance**0.5))
                prior = (counts + worth * prior) / (counts.sum() + worth)
            found[place] = prior
        return found

    def apply(self, codes: Codes) -> Codes:
        """The leaf each row comes to; one that misses an attribute goes where most rows went."""
        sizes = np.array([node.counts.sum() for node in self.nodes])
        place = np.zeros(len(codes), dtype=np.int64)
        for parent, node in enumerate(self.nodes):  # a child comes later, so one pass is enough
            if node.leaf:
                continue
            here = np.flatnonzero(place == parent)
            children = np.array(node.children)
            code = codes[here, node.attribute]
            to = children[np.array(node.branches)[code]]
            place[here] = np.where(code < 0, children[np.argmax(sizes[children])], to)
        return place

    def walk(self, place: int = 0) -> Iterator[int]:
        """The places from a node on, each before its children, in their order."""
        waiting = [place]
        while waiting:
            here = waiting.pop()
            yield here
            waiting.extend(reversed(self.nodes[here].children))


def _average(one: tuple[Floats, float], other: tuple[Floats, float]) -> tuple[Floats, float]:
    """The mean of two estimates weighed by their precision, and its variance."""
    (a, u), (b, v) = one, other
    if not np.isfinite(u) or not np.isfinite(v):
        return (b, v) if not np.isfinite(u) else (a, u)
    return (a * v + b * u) / (u + v), u * v / (u + v)


def condition(attribute: Attribute, node: Node, branch: int) -> str:
    """What the rows of a branch have in common: `age < 40`, `city = Lod`, `city != Lod`, `city in {A, B}`."""
    codes = [code for code, to in enumerate(node.branches) if to == branch]
    labels, edges, name = attribute.labels, attribute.edges, attribute.name
    if attribute.ordered and len(node.children) == 2:
        first = min(code for code, to in enumerate(node.branches) if to == 1)  # the codes of branch 0 come before
        if edges is None:
            return f"{name} <= {labels[first - 1]}" if branch == 0 else f"{name} > {labels[first - 1]}"
        edge = cast("tuple[object, object]", labels[first])[0]
        return f"{name} {'<' if branch == 0 else '>='} {said(edge)}"
    if len(codes) == 1:
        label = labels[codes[0]]
        if isinstance(label, tuple):
            closed = "]" if codes[0] == attribute.size - 1 else ")"
            return f"{name} in [{said(label[0])}, {said(label[1])}{closed}"
        return f"{name} = {label}"
    others = [code for code, to in enumerate(node.branches) if to != branch]
    if len(others) == 1:
        return f"{name} != {labels[others[0]]}"
    return f"{name} in {{{', '.join(str(labels[code]) for code in codes)}}}"


def said(value: object) -> str:
    """A number in as many figures as it needs, anything else as it is."""
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def export_text(tree: Tree, *, show_weights: bool = False) -> str:
    """The tree as indented lines; `show_weights` adds the noisy counts of the labels at each leaf."""
    best = np.argmax(tree.shares(), axis=1)
    lines = []
    for place in tree.walk():
        node = tree.nodes[place]
        if node.parent >= 0:
            parent = tree.nodes[node.parent]
            attribute = tree.attributes[parent.attribute]
            branch = parent.children.index(place)
            lines.append(f"{'|   ' * (node.depth - 1)}|--- {condition(attribute, parent, branch)}")
        if node.leaf:
            counts = ", ".join(f"{max(n, 0):.1f}" for n in node.counts)
            weights = f" weights: [{counts}]" if show_weights else ""
            lines.append(f"{'|   ' * node.depth}|--- class: {tree.classes[best[place]]}{weights}")
    return "\n".join(lines) + "\n"


def laid_out(tree: Tree, deepest: int) -> dict[int, tuple[float, float]]:
    """A place on the paper for every node down to a depth: the lowest side by side, a parent over its children."""
    spots: dict[int, tuple[float, float]] = {}
    column = 0.0
    shown = [place for place in tree.walk() if tree.nodes[place].depth <= deepest]
    for place in reversed(shown):  # children before their parents, the last child first
        node = tree.nodes[place]
        if node.leaf or node.depth == deepest:
            spots[place] = (column, -float(node.depth))
            column -= 1
        else:
            spots[place] = ((spots[node.children[0]][0] + spots[node.children[-1]][0]) / 2, -float(node.depth))
    return {place: (x - column - 1, y) for place, (x, y) in spots.items()}


def plot(tree: Tree, *, max_depth: int) -> Axes:
    """A picture (needs the extra `plot`): boxes coloured by the most frequent label, stronger the purer."""
    pyplot = extra("matplotlib.pyplot", "plot")
    spots, shares = laid_out(tree, max_depth), tree.shares()
    width = max(x for x, _ in spots.values()) + 1
    height = 1 - min(y for _, y in spots.values())
    size = (min(max(5.0, 1.5 * width), MAX_WIDTH_INCHES), max(2.0, 1.4 * height))
    axes = cast("Axes", pyplot.figure(figsize=size, layout="constrained").add_subplot())
    for place, (x, y) in spots.items():
        node = tree.nodes[place]
        for branch, child in enumerate(node.children):
            if child in spots:
                to = spots[child]
                axes.plot([x, to[0]], [y, to[1]], color="0.7", linewidth=1, zorder=1)
                words = condition(tree.attributes[node.attribute], node, branch)
                _write(axes, ((x + 2 * to[0]) / 3, (y + 2 * to[1]) / 3), words)
        best = int(np.argmax(shares[place]))
        rows = max(float(node.counts.sum()), 0.0)
        more = "" if node.leaf or node.children[0] in spots else "\n..."
        colour = (*pyplot.get_cmap("tab10")(best % 10)[:3], 0.15 + 0.5 * float(shares[place][best]))
        _write(axes, (x, y), f"{tree.classes[best]}\n{shares[place][best]:.0%} of {rows:,.0f}{more}", colour)
    axes.set_xlim(-0.6, width - 0.4)
    axes.set_ylim(-height + 0.4, 0.6)
    axes.axis("off")
    return axes


def _write(axes: Axes, spot: tuple[float, float], words: str, colour: object = None) -> None:
    """A text on white, so that no line runs through it; with a colour in a box."""
    for face in ("white",) if colour is None else ("white", colour):
        line = 0.0 if colour is None else 0.8
        box = {"boxstyle": "round,pad=0.3", "facecolor": face, "edgecolor": "0.5", "linewidth": line}
        axes.text(*spot, words, fontsize=7 if colour is None else 8, ha="center", va="center", zorder=3, bbox=box)
