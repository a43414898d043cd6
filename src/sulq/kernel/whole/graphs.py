"""Graphs whose edges are rows, and their statistics: vertices from the declarations, weights as whole units (SR10).

Privacy: a row makes one pair of vertices an edge or not, and moves its weight, cut off at 0 and 1, by one at most.
Source: docs/theory/graphs.md; distances from a property: docs/theory/holistic.md.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from sulq.kernel.facts import Refused
from sulq.kernel.private import Integers
from sulq.kernel.whole.figure import Figure, Move, monotone, of_bits, whole

EXACT: Final = 2**53  # below this a library's doubles hold every whole number, and every sum of them
LARGEST: Final = 2**62  # pairs of vertices, times units of weight: packed into 64 bits
LIGHT: Final = 2  # edges for each vertex that a spanning tree looks at first
PIECE: Final = 2**20  # words looked at together


@dataclass(frozen=True, slots=True)
class Graph:
    """What of a graph is public: how many vertices, what the first is named, and how many units a weight of 1 has."""

    vertices: int
    first: int = 0
    one: int | None = None  # None where rows have no weight: every edge weighs one unit

    def __post_init__(self) -> None:
        whole(self.vertices, 1, LARGEST)
        whole(self.first, -LARGEST, LARGEST)
        whole(self.units, 1, LARGEST)
        if self.vertices**2 * (self.units + 1) > LARGEST:
            raise Refused("a graph of more vertices and weights than 64 bits tell apart")

    @property
    def units(self) -> int:
        """How many units the largest weight has."""
        return 1 if self.one is None else self.one

    @property
    def pairs(self) -> int:
        """How many edges there can be."""
        return self.vertices * (self.vertices - 1) // 2

    def edges(self, cells: Integers) -> Drawn:
        """The edges that rows name: ends either way round, weights of one pair added up, to one at most."""
        ends = cells[:, :2]
        cells = cells[((ends >= self.first) & (ends < self.first + self.vertices)).all(axis=1)]
        u, v = (cells[:, i] - self.first for i in (0, 1))
        weight = np.ones_like(u) if self.one is None else np.clip(cells[:, 2], 0, self.one)
        # Pair and weight in one whole number: sorted as such, rows of a pair stand together.
        packed = (np.minimum(u, v) * self.vertices + np.maximum(u, v)) * (self.units + 1) + weight
        code, weight = np.divmod(np.sort(packed[u != v]), self.units + 1)
        first = np.flatnonzero(np.diff(code, prepend=-1))
        total = np.add.reduceat(weight, first) if len(first) else weight[:0]
        nearly = np.add.reduceat(weight.astype(np.float64), first) if len(first) else total
        total = np.where(nearly > 2 * self.units, self.units, np.minimum(total, self.units))  # where 64 bits overflow
        return Drawn(self, *np.divmod(code[first], self.vertices), total)


@dataclass(frozen=True, slots=True)
class Drawn:
    """A graph: the two ends of each edge, numbered from 0, the lower one first; sorted, no edge twice."""

    graph: Graph
    low: Integers
    high: Integers
    weight: Integers  # in units, from 0 to one

    def some(self, places: Integers) -> Drawn:
        """Some of its edges, between the same vertices."""
        return Drawn(self.graph, self.low[places], self.high[places], self.weight[places])

    def degrees(self) -> Integers:
        """How many edges meet at each vertex."""
        ends = np.concatenate([self.low, self.high])
        return np.bincount(ends, minlength=self.graph.vertices).astype(np.int64)

    def held(self) -> Any:  # noqa: ANN401 - a library without types
        """The graph as the library holds it."""
        graph = library().PyGraph()
        graph.add_nodes_from(range(self.graph.vertices))
        ends = zip(self.low.tolist(), self.high.tolist(), self.weight.astype(np.float64).tolist(), strict=True)
        graph.add_edges_from(list(ends))
        return graph


def library() -> Any:  # noqa: ANN401 - likewise
    """The graph library, which may be absent; that its cuts, trees, parts and matchings are exact is assumed."""
    return importlib.import_module("rustworkx")


@dataclass(frozen=True, slots=True)
class OfGraph:
    """A statistic of a graph: of a row two ends are read, and a weight if it has one."""

    graph: Graph

    @property
    def columns(self) -> int:
        return 2 if self.graph.one is None else 3


@dataclass(frozen=True, slots=True)
class MinCut(OfGraph):
    """The least weight of edges whose removal disconnects the graph, in units.

    Privacy: a pair whose weight moves by one moves every cut, and the least of them, by one at most, and never down as
    it grows: monotone, k in every relation [DMNS06, section 3.2; S4.12]. A graph that is not connected, or of one
    vertex, has 0, so that no neighbour is an error.
    """

    def figure(self, rows: int) -> Figure:
        if self.graph.pairs * self.graph.units >= EXACT:
            raise Refused("a cut of more weight than is added exactly")
        return monotone(rows * self.graph.units)

    def exact(self, cells: Integers) -> Integers:
        found = library().stoer_wagner_min_cut(self.graph.edges(cells).held(), weight_fn=float)
        return np.array([0 if found is None else int(found[0])], dtype=np.int64)


@dataclass(frozen=True, slots=True)
class SpanningTree(OfGraph):
    """The weight of a minimum spanning tree, in units, or of one tree for each part of a graph of several.

    `complete`: a pair that is no edge weighs 1: then a least tree is a least forest of the edges, joined by such pairs.

    Privacy: a pair whose weight moves by t moves the least tree of a complete graph by t at most [DMNS06, section 3.2;
    S4.12]. A new edge of weight w joins two trees of a forest, +w, or takes the place of the heaviest edge of the
    circle it closes: between -1 and 0. So k rows move either by k; both ways, so an exchange by 2k, which is reached.
    """

    complete: bool = False

    def figure(self, rows: int) -> Figure:
        if self.graph.units > EXACT:
            raise Refused("weights that are not compared exactly")
        return Figure(1, Move.of(rows * self.graph.units), Move.of(2 * rows * self.graph.units))

    def exact(self, cells: Integers) -> Integers:
        tree = library().minimum_spanning_edges(_needed(self.graph.edges(cells)).held(), weight_fn=float)
        weight = sum(int(edge[2]) for edge in tree)
        if self.complete:
            weight += (self.graph.vertices - 1 - len(tree)) * self.graph.units
        return np.array([weight], dtype=np.int64)


def _needed(drawn: Drawn) -> Drawn:
    """The graph without edges that a least forest can do without: heavy ones whose ends light ones connect already."""
    light = LIGHT * drawn.graph.vertices
    if len(drawn.low) <= 2 * light:
        return drawn
    order = np.argpartition(drawn.weight, light)
    part = np.empty(drawn.graph.vertices, dtype=np.int64)
    for i, vertices in enumerate(library().connected_components(drawn.some(order[:light]).held())):
        part[list(vertices)] = i
    apart = part[drawn.low] != part[drawn.high]
    apart[order[:light]] = True
    return drawn.some(np.flatnonzero(apart))


@dataclass(frozen=True, slots=True)
class Triangles(OfGraph):
    """The number of triangles, or with a bound D on degrees their weight in units of 1/D.

    Privacy: an edge is in at most m - 2 triangles of m vertices, and adding edges takes none away: monotone, so k rows
    move the count by k(m - 2) in every relation [S4.12, SR10]. With a bound D each triangle counts min(D, max(0, 2D -
    d)) units, d the largest degree of its vertices. An edge more makes new triangles, a gain, and raises the degrees of
    its ends, a loss to others: a row moves it by the larger of both, an exchange by one of each.
    Source: docs/theory/graphs.md; no edge is dropped, so none depends on another (SR10: no greedy projection).
    """

    degree: int | None = None

    def __post_init__(self) -> None:
        if self.degree is not None:
            whole(self.degree, 1, 2**20)
        if self.graph.vertices**3 * (self.degree or 1) > LARGEST:
            raise Refused("more triangles than are counted exactly")

    def figure(self, rows: int) -> Figure:
        free = max(self.graph.vertices - 2, 0)  # vertices beside an edge's ends
        if self.degree is None:
            return monotone(rows * free)
        gain = self.degree * min(self.degree - 1, free)  # of c*min(D, 2D - 1 - c), c whole: largest at c = D - 1
        most = min(2 * self.degree - 1, free)
        loss = most * (most - 1) if most >= self.degree else 0
        return Figure(1, Move.of(rows * max(gain, loss)), Move.of(rows * (gain + loss)))

    def exact(self, cells: Integers) -> Integers:
        drawn = self.graph.edges(cells)
        degrees = drawn.degrees()
        weights = np.ones_like(degrees)
        if self.degree is not None:
            weights = np.clip(2 * self.degree - degrees, 0, self.degree)
        return np.array([int(by_last(drawn, degrees) @ weights)], dtype=np.int64)


def by_last(drawn: Drawn, degrees: Integers) -> Integers:
    """For each vertex the triangles in which it comes last, by degree and then by number: those it decides about.

    With N(u) the neighbours of u and P(v) those before v: half the sum of |N(u) and P(v)| over u in P(v).
    """
    size = drawn.graph.vertices
    rank = np.empty(size, dtype=np.int64)
    rank[np.lexsort((np.arange(size), degrees))] = np.arange(size)
    earlier = np.where(rank[drawn.low] < rank[drawn.high], drawn.low, drawn.high)
    later = drawn.low + drawn.high - earlier
    before, around = _bits(size, later, earlier), _bits(size, np.r_[later, earlier], np.r_[earlier, later])
    found = np.zeros(size, dtype=np.int64)
    step = max(1, PIECE // before.shape[1])
    for i in range(0, len(drawn.low), step):
        u, v = earlier[i : i + step], later[i : i + step]
        np.add.at(found, v, np.bitwise_count(around[u] & before[v]).sum(axis=1, dtype=np.int64))
    return found // 2


def _bits(size: int, rows: Integers, columns: Integers) -> npt.NDArray[np.uint64]:
    """Sets of vertices as rows of bits."""
    table = np.zeros((size, (size + 63) // 64), dtype=np.uint64)
    np.bitwise_or.at(table, (rows, columns // 64), np.uint64(1) << (columns % 64).astype(np.uint64))
    return table


@dataclass(frozen=True, slots=True)
class Degrees(OfGraph):
    """How many vertices have at least 1, 2, ... `most` edges.

    Privacy: an edge more takes each of its two ends past one number of edges. So two counts rise by one, or one by two:
    2 in L1, 4 squared in L2; k rows k times as far, an exchange twice as far in L1. In L2 what comes and what goes are
    of opposite sign in every count: at most 8 squared for an exchanged row, which is reached.
    """

    most: int

    def __post_init__(self) -> None:
        whole(self.most, 1, 2**16)

    def figure(self, rows: int) -> Figure:
        alone = Move(2 * rows, 4 * rows**2, 2 * rows, min(2 * rows, self.most))
        swapped = Move(4 * rows, 8 * rows**2, 2 * rows, min(4 * rows, self.most))
        return Figure(self.most, alone, swapped)

    def exact(self, cells: Integers) -> Integers:
        found = np.minimum(self.graph.edges(cells).degrees(), self.most)
        counts = np.bincount(found, minlength=self.most + 1)
        return np.cumsum(counts[:0:-1])[::-1].astype(np.int64)


@dataclass(frozen=True, slots=True)
class Edges(OfGraph):
    """A bit for each pair, (0, 1) first, then (0, 2), which one row moves; of a graph of one vertex a single 0."""

    def figure(self, rows: int) -> Figure:
        return of_bits(self.graph.pairs, rows)

    def exact(self, cells: Integers) -> Integers:
        drawn, size = self.graph.edges(cells), self.graph.vertices
        found = np.zeros(max(self.graph.pairs, 1), dtype=np.int64)
        found[drawn.low * (2 * size - drawn.low - 1) // 2 + drawn.high - drawn.low - 1] = 1
        return found


@dataclass(frozen=True, slots=True)
class ToConnected(OfGraph):
    """How many edges the graph lacks to be connected: one less than its parts, of which an edge joins two or none."""

    def figure(self, rows: int) -> Figure:
        return monotone(rows)

    def exact(self, cells: Integers) -> Integers:
        parts = library().number_connected_components(self.graph.edges(cells).held())
        return np.array([parts - 1], dtype=np.int64)


@dataclass(frozen=True, slots=True)
class ToBoundedDegree(OfGraph):
    """How many edges must go so that no more than D, the `degree`, meet at any vertex [S4.11].

    All less a largest set of edges of which no more than D meet at a vertex. Or, where vertices have D + x edges, the
    sum of all x less a largest set of edges between such vertices of which no more than x meet at each: whichever is
    quicker to find (docs/theory/holistic.md).

    Privacy: what makes room for an edge more is that edge's going: a distance of one more at most, and never less.
    """

    degree: int

    def __post_init__(self) -> None:
        whole(self.degree, 0, 2**20)

    def figure(self, rows: int) -> Figure:
        return monotone(rows)

    def exact(self, cells: Integers) -> Integers:
        drawn = self.graph.edges(cells)
        excess = np.maximum(drawn.degrees() - self.degree, 0)
        both = (excess[drawn.low] > 0) & (excess[drawn.high] > 0)
        total, capacity = int(excess.sum()), excess
        if self.degree < excess.max(initial=0):
            total, both, capacity = len(drawn.low), both | True, np.full_like(excess, self.degree)
        pairs = list(zip(drawn.low[both].tolist(), drawn.high[both].tolist(), strict=True))
        return np.array([total - _matched(capacity.tolist(), pairs)], dtype=np.int64)


def _matched(capacity: list[int], pairs: list[tuple[int, int]]) -> int:
    """The size of a largest set of pairs of which no more than its capacity meet at any vertex.

    Each vertex becomes as many nodes as its capacity, each pair two nodes joined to each other and to all nodes of
    their own vertex. A largest matching has a line for each pair, and one more for each pair in the set.
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
