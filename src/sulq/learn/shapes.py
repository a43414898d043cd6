"""Shape functions: what one column adds to a score, cell by cell."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, cast

import numpy as np

from sulq.answers.answer import extra
from sulq.language.attribute import Attribute
from sulq.language.kinds import Floats
from sulq.language.rowfn import OrMissing, Route, RowFn, lit, lookup
from sulq.learn.features import Codes
from sulq.learn.trees.tree import said

if TYPE_CHECKING:
    from matplotlib.axes import Axes

GRID: Final = 2**10  # a shape's scores are whole multiples of 1/GRID, so that questions and predictions agree


@dataclass(slots=True)
class Shape:
    """One column's part of an additive model: cells in groups, and for each group what it adds to each score.

    The last code is for rows that miss the column; it is a group of its own.
    """

    attribute: Attribute
    groups: tuple[int, ...]  # of each code, the missing last
    scores: Floats  # groups x scores of a row
    counts: Floats  # of each group, noisy
    # What the shape is read at, the missing last: intervals joined as the groups are, else cells. One object for all
    # questions, so that it is evaluated once.
    key: RowFn = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        joined = self.attribute.joined(self.groups[:-1])
        self.key = OrMissing(self.attribute.row if joined is None else joined)

    @classmethod
    def of(cls, attribute: Attribute, counts: Floats, least: float, width: int) -> Shape:
        """The groups in which noisy counts of the cells, missing last, are at least `least` where they can be.

        Neighbours are joined where cells have an order, else all cells that are too small.
        """
        present = np.maximum(counts[:-1], 0)
        places = _neighbours(present, least) if attribute.ordered else _pooled(present, least)
        groups = (*places, max(places) + 1)
        totals = np.zeros(max(groups) + 1)
        np.add.at(totals, list(groups), np.maximum(counts, 0))
        return cls(attribute, groups, np.zeros((len(totals), width)), totals)

    @property
    def name(self) -> str:
        """The column."""
        return self.attribute.name

    @property
    def group(self) -> RowFn:
        """The group of a row's cell, as a key."""
        if self.attribute.edges is not None:
            return self.key
        return Route((self.key,), ((0, *(-1 - place for place in self.groups)),))

    def rows(self) -> list[RowFn]:
        """What the column adds to each of a row's scores, as row functions; a constant where all groups agree."""
        cells = self.scores if self.attribute.edges is not None else self.scores[list(self.groups)]
        return [
            lit(float(values[0])) if (values == values[0]).all() else lookup(self.key, values.tolist())
            for values in cells.T
        ]

    def of_codes(self, codes: Codes) -> Floats:
        """What the column adds to the scores of ordinary rows; code -1 is missing."""
        return np.asarray(self.scores[np.array(self.groups)[codes]])

    def alike(self, reach: float, rough: float) -> Floats:
        """How much groups are taken to have in common: neighbours much where there is an order, else nothing.

        A correlation that falls by a factor of e over a part `reach` of the groups; a part `rough` of the variance is
        each group's own. The missing have nothing in common with anybody.
        """
        size = len(self.counts)
        if not self.attribute.ordered:
            return np.eye(size)
        place = np.arange(size) / max(size - 2, 1)
        found = (1 - rough) * np.exp(-np.abs(place[:, None] - place) / reach)
        found[-1, :] = found[:, -1] = 0.0
        np.fill_diagonal(found, 1.0)
        return found

    def add(self, change: Floats) -> None:
        """Move the scores, on their grid."""
        self.scores = np.rint((self.scores + change) * GRID) / GRID

    def centre(self) -> Floats:
        """Take the mean over the rows off the scores and give it, for the intercept."""
        mean: Floats = self.counts @ self.scores / max(float(self.counts.sum()), 1.0)
        mean = np.rint(mean * GRID) / GRID
        self.scores = self.scores - mean
        return mean

    @property
    def importance(self) -> Floats:
        """The mean absolute value over the rows, of each score."""
        return self.counts @ np.abs(self.scores) / max(float(self.counts.sum()), 1.0)

    def lines(self) -> list[str]:
        """Each group with what it adds and how many rows it has, in letters; neighbours are told as one."""
        found = []
        for group, values in enumerate(self.scores):
            codes = [code for code, place in enumerate(self.groups) if place == group]
            found.append((self._said(codes), " ".join(f"{v:+.3f}" for v in values), f"{self.counts[group]:,.0f}"))
        wide = [max(len(row[i]) for row in found) for i in range(3)]
        return [f"  {a.ljust(wide[0])}  {b.rjust(wide[1])}  {c.rjust(wide[2])} rows" for a, b, c in found]

    def _said(self, codes: list[int]) -> str:
        """What the rows of some codes have in common."""
        labels, edges = self.attribute.labels, self.attribute.edges
        if codes == [len(labels)]:
            return "missing"
        if edges is not None:
            ends = cast("list[tuple[object, object]]", [labels[codes[0]], labels[codes[-1]]])
            closed = "]" if codes[-1] == len(labels) - 1 else ")"
            return f"[{said(ends[0][0])}, {said(ends[1][1])}{closed}"
        if self.attribute.ordered and len(codes) > 1:
            return f"{labels[codes[0]]} to {labels[codes[-1]]}"
        names = ", ".join(str(labels[code]) for code in codes[:4])
        return names if len(codes) <= 4 else f"{names} and {len(codes) - 4} more"

    def plot(self, score: int, label: str) -> Axes:
        """A picture (needs the extra `plot`): the value at every cell, over how many rows have it."""
        pyplot = extra("matplotlib.pyplot", "plot")
        axes = cast(
            "Axes", pyplot.figure(figsize=(6, 3.2 if self.attribute.edges else 4.2), layout="constrained").add_subplot()
        )
        edges, labels = self.attribute.edges, self.attribute.labels
        values = self.scores[list(self.groups[:-1]), score]
        sizes = np.bincount(self.groups[:-1])
        rows = (self.counts[: len(sizes)] / sizes)[list(self.groups[:-1])]
        other = axes.twinx()
        if edges is not None:
            other.stairs(rows, edges, fill=True, color="0.9")
            axes.stairs(values, edges, baseline=None, color="#4a7fb5", linewidth=2)
        else:
            names = [str(name) for name in labels]
            other.bar(names, rows, color="0.9")
            axes.bar(names, values, color="#4a7fb5", width=0.5)
            axes.tick_params(axis="x", labelrotation=60 if len(names) > 4 else 0)
        axes.axhline(0, color="0.5", linewidth=0.8)
        axes.set_zorder(other.get_zorder() + 1)
        axes.patch.set_visible(False)
        axes.set_xlabel(self.name)
        axes.set_ylabel(label)
        other.set_ylabel("rows", color="0.6")
        return axes


def _neighbours(counts: Floats, least: float) -> list[int]:
    """Groups of neighbouring cells, each of at least so many rows; what is left at the end joins the last."""
    groups, place, held = [], 0, 0.0
    for count in counts.tolist():
        groups.append(place)
        held += count
        if held >= least:
            place, held = place + 1, 0.0
    last = max(place - 1, 0)
    return [min(group, last) for group in groups]


def _pooled(counts: Floats, least: float) -> list[int]:
    """Every cell of enough rows is a group; all others are one."""
    large = [i for i, count in enumerate(counts.tolist()) if count >= least]
    return [large.index(i) if i in large else len(large) for i in range(len(counts))]
