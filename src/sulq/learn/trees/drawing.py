"""A decision tree for people: as text in scikit-learn's manner, and as a picture."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

import numpy as np

from sulq.answers.answer import extra
from sulq.language.attribute import Attribute
from sulq.learn.trees.tree import Node, Tree

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MAX_WIDTH_INCHES: Final = 60.0


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
