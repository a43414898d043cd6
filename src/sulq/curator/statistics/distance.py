"""Distances from a property: how many rows must come or go until a table has it [S4.11].

Privacy: of two tables that differ in one row, whatever leads the one to the property leads the other there with
one row more at most. So a distance that is worked out exactly moves by one, k rows move it by k; an approximate one
might move by anything. All four here are monotone but for `ToSorted`, whose rows keep their places: k in
every relation [DMNS06, section 3.2].
Accuracy: exact.
Source: docs/theory/holistic.md.
"""

from __future__ import annotations

import bisect
from fractions import Fraction
from typing import Final

import numpy as np

from sulq.curator.statistics.figure import Figure, limit, monotone
from sulq.curator.statistics.graphs import edges, frame, library
from sulq.terms.engine import Block
from sulq.terms.kinds import Integers
from sulq.terms.statistic import ToBoundedDegree, ToConnected, ToSorted, ToUnique

MOST_CONNECTED: Final = 2**20
MOST_BOUNDED: Final = 40  # vertices: a matching among some 2,300 nodes at worst, which takes seconds


def connected_figure(_asked: ToConnected, blocks: tuple[Block, ...], rows: int) -> Figure:
    """An edge joins two parts of a graph, or none: one part less, or as many."""
    limit(frame(blocks).vertices, MOST_CONNECTED, "A distance from being connected, of vertices,")
    library()
    return monotone(Fraction(1), rows)


def connected(_asked: ToConnected, blocks: tuple[Block, ...], rows: Integers) -> Integers:
    """One less than the parts of the graph, isolated vertices among them."""
    return np.array([library().number_connected_components(edges(blocks, rows).drawn()) - 1], dtype=np.int64)


def bounded_figure(_asked: ToBoundedDegree, blocks: tuple[Block, ...], rows: int) -> Figure:
    """What makes room for an edge more is that edge's going: a distance of one more at most, and never less."""
    remedy = "Ask for degrees: how many vertices have so many edges; or declare fewer vertices."
    limit(frame(blocks).vertices, MOST_BOUNDED, "A distance from bounded degrees, of vertices,", remedy)
    library()
    return monotone(Fraction(1), rows)


def bounded(asked: ToBoundedDegree, blocks: tuple[Block, ...], rows: Integers) -> Integers:
    """The least number of edges whose removal leaves at most D at each vertex.

    All less a largest set of edges of which no more than D meet at a vertex. Or: a vertex of D + x edges must lose x of
    them; an edge between two such vertices serves both, and of these as many as can be are a largest set of which no
    more than x meet at each: the sum of all x less its size (docs/theory/holistic.md). The one with fewer at a vertex
    is quicker to find.
    """
    graph = edges(blocks, rows)
    excess = np.maximum(graph.degrees() - asked.degree, 0)
    both = (excess[graph.low] > 0) & (excess[graph.high] > 0)
    total, capacity = int(excess.sum()), excess
    if asked.degree < excess.max(initial=0):
        total, both, capacity = graph.size, both | True, np.full_like(excess, asked.degree)
    pairs = list(zip(graph.low[both].tolist(), graph.high[both].tolist(), strict=True))
    return np.array([total - _matched(capacity.tolist(), pairs)], dtype=np.int64)


def _matched(capacity: list[int], pairs: list[tuple[int, int]]) -> int:
    """The size of a largest set of pairs of which no more than its capacity meet at any vertex.

    Each vertex becomes as many nodes as its capacity, each pair two nodes joined to each other and
    to all nodes of their own vertex. A matching of this graph has a line for each pair, and one more
    for each pair that is in the set: its two nodes are then matched to their vertices instead.
    """
    starts = np.cumsum([0, *capacity]).tolist()
    lines = []
    for i, ends in enumerate(pairs):
        nodes = starts[-1] + 2 * i, starts[-1] + 2 * i + 1
        lines.append((*nodes, 1))
        for node, end in zip(nodes, ends, strict=True):
            lines += [(node, copy, 1) for copy in range(starts[end], starts[end + 1])]
    graph = library().PyGraph()
    graph.add_nodes_from(range(starts[-1] + 2 * len(pairs)))
    graph.add_edges_from(lines)
    return len(library().max_weight_matching(graph, max_cardinality=True, weight_fn=int)) - len(pairs)


def unique_figure(_asked: ToUnique, _blocks: tuple[Block, ...], rows: int) -> Figure:
    """A row is one that must go or is the first of its value: one more, or as many."""
    return monotone(Fraction(1), rows)


def unique(_asked: ToUnique, _blocks: tuple[Block, ...], rows: Integers) -> Integers:
    """All rows less the different ones."""
    return np.array([len(rows) - len(np.unique(rows, axis=0))], dtype=np.int64)


def sorted_figure(_asked: ToSorted, _blocks: tuple[Block, ...], rows: int) -> Figure:
    """A row that is changed or blanked can be left out of what stays: one row less stays, or one more."""
    return monotone(Fraction(1), rows)


def in_order(_asked: ToSorted, _blocks: tuple[Block, ...], rows: Integers) -> Integers:
    """All rows less those of a longest part that never falls.

    `ends`: of the parts of each length that never fall so far, the least last value.
    """
    ends: list[int] = []
    for value in rows[np.argsort(rows[:, 0], kind="stable"), 1].tolist():
        place = bisect.bisect_right(ends, value)
        ends[place : place + 1] = [value]
    return np.array([len(rows) - len(ends)], dtype=np.int64)
