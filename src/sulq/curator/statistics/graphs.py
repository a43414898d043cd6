"""Graphs whose edges are rows: vertices from the declarations, weights as whole units (SR10).

Privacy: a row concerns one pair of vertices. It makes that pair an edge or not, and moves its
weight, cut off at 0 and 1 before and after rows of one pair are added, by one at most.
Source: docs/theory/graphs.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from types import ModuleType
from typing import Any, Final

import numpy as np

from sulq.curator.statistics.figure import limit
from sulq.errors import QuestionError
from sulq.terms.answer import extra
from sulq.terms.engine import Block
from sulq.terms.kinds import Integers

LARGEST: Final = 2**62


def library() -> ModuleType:
    """The graph library, rustworkx, or an error that names what to install."""
    return extra("rustworkx", "graph")


@dataclass(frozen=True, slots=True)
class Frame:
    """What of a graph is public: its number of vertices, and how many units a weight of 1 has."""

    vertices: int
    one: int

    @property
    def step(self) -> Fraction:
        """One unit of weight."""
        return Fraction(1, self.one)

    @property
    def pairs(self) -> int:
        """How many edges there can be."""
        return self.vertices * (self.vertices - 1) // 2


def frame(blocks: tuple[Block, ...]) -> Frame:
    """The public part of a graph, from the blocks of its ends and, if there is one, of its weight."""
    ends = blocks[0]
    one = 1 / blocks[2].step if len(blocks) == 3 else Fraction(1)
    if one.denominator != 1:
        raise QuestionError("wrong-kind", "The weight's grid is coarser than 1, the largest weight of an edge.")
    found = Frame(ends.high[0] - ends.low[0] + 1, int(one))
    limit(found.vertices**2 * (found.one + 1), LARGEST, "A graph of pairs of vertices, times units of weight,")
    return found


@dataclass(frozen=True, slots=True)
class Edges:
    """A graph: the two ends of each edge, numbered from 0, the lower one first; sorted, no edge twice."""

    frame: Frame
    low: Integers
    high: Integers
    weight: Integers  # in units, from 0 to one

    @property
    def size(self) -> int:
        """How many edges there are."""
        return len(self.low)

    def some(self, places: Integers) -> Edges:
        """Some of its edges, between the same vertices."""
        return Edges(self.frame, self.low[places], self.high[places], self.weight[places])

    def degrees(self) -> Integers:
        """How many edges meet at each vertex."""
        ends = np.concatenate([self.low, self.high])
        return np.bincount(ends, minlength=self.frame.vertices).astype(np.int64)

    def drawn(self) -> Any:  # noqa: ANN401 - a library without types
        """The graph as the library holds it."""
        graph = library().PyGraph()
        graph.add_nodes_from(range(self.frame.vertices))
        ends = zip(self.low.tolist(), self.high.tolist(), self.weight.astype(np.float64).tolist(), strict=True)
        graph.add_edges_from(list(ends))
        return graph


def edges(blocks: tuple[Block, ...], rows: Integers) -> Edges:
    """The edges that rows name: ends either way round, weights of one pair added up, to one at most."""
    public = frame(blocks)
    u, v = (rows[:, i] - blocks[0].low[0] for i in (0, 1))
    weight = np.clip(rows[:, 2], 0, public.one) if rows.shape[1] == 3 else np.ones(len(rows), dtype=np.int64)
    # Pair and weight in one whole number: sorted as such, rows of a pair stand together.
    packed = (np.minimum(u, v) * public.vertices + np.maximum(u, v)) * (public.one + 1) + weight
    packed = np.sort(packed[u != v])
    code, weight = np.divmod(packed, public.one + 1)
    first = np.flatnonzero(np.diff(code, prepend=-1))
    total = np.add.reduceat(weight, first) if len(first) else weight[:0]
    return Edges(public, *np.divmod(code[first], public.vertices), np.minimum(total, public.one))
