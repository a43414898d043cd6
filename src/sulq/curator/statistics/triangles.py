"""Triangles: in graphs of any kind, or nearly exact and far less noisy where few edges meet at a vertex.

Privacy: an edge is in at most m - 2 triangles of m vertices, one for each other vertex, and adding edges takes none
away: monotone, so k rows move the count by k(m - 2) in every relation [S4.12, SR10].

With a bound D on degrees each triangle counts h = min(D, max(0, 2D - d)) units of 1/D, d the largest degree
of its vertices: 1 where the bound holds, so then the count is exact. Add an edge between vertices of a and b edges,
c of them to common neighbours. The c new triangles count c*h(c+1) at most, since a, b >= c. Of the others only
those at its two ends can lose, a unit each, if D <= a < 2D: of at most a(a-1)/2, so (2D-1)(2D-2) together. The first
is a gain, the second a loss: a row moves it by the larger of both, either way; of an exchange one row's gain and the
other's loss may come together, never two of either. Proof: docs/theory/graphs.md.
Accuracy: exact, in whole numbers.
Source: docs/theory/graphs.md; no edge is dropped, so none depends on another (SR10: no greedy projection).
"""

from __future__ import annotations

from fractions import Fraction
from typing import Final

import numpy as np
import numpy.typing as npt

from sulq.curator.statistics.figure import Figure, Move, limit, monotone
from sulq.curator.statistics.graphs import Edges, edges, frame
from sulq.terms.engine import Block
from sulq.terms.kinds import Integers
from sulq.terms.statistic import Triangles

MOST_VERTICES: Final = 8192
PIECE: Final = 2**20  # words looked at together


def figure(asked: Triangles, blocks: tuple[Block, ...], rows: int) -> Figure:
    """How far one person moves the number of triangles."""
    vertices = frame(blocks).vertices
    limit(vertices, MOST_VERTICES, "A number of triangles of vertices")
    free = max(vertices - 2, 0)
    if asked.degree is None:
        return monotone(Fraction(1), rows * free)
    gain, loss = _moved(asked.degree, free)
    alone, swapped = Move.of(rows * max(gain, loss)), Move.of(rows * (gain + loss))
    return Figure(Fraction(1, asked.degree), 1, alone, swapped)


def _moved(degree: int, free: int) -> tuple[int, int]:
    """How many units of 1/D an edge more adds to a count with a bound D on degrees, and takes away, at most.

    `free`: vertices beside its ends.
    """
    gain = degree * min(degree - 1, free)  # of c*min(D, 2D - 1 - c), c whole: largest at c = D - 1
    most = min(2 * degree - 1, free)
    return gain, most * (most - 1) if most >= degree else 0


def exact(asked: Triangles, blocks: tuple[Block, ...], rows: Integers) -> Integers:
    """The number of triangles, or their weight in units of 1/D."""
    graph = edges(blocks, rows)
    degrees = graph.degrees()
    weights = np.ones_like(degrees)
    if asked.degree is not None:
        weights = np.clip(2 * asked.degree - degrees, 0, asked.degree)
    return np.array([int(by_last(graph, degrees) @ weights)], dtype=np.int64)


def by_last(graph: Edges, degrees: Integers) -> Integers:
    """For each vertex the triangles in which it comes last, by degree and then by number: those it decides about.

    With N(u) the neighbours of u and P(v) those that come before v, the triangles in which v is last are half the
    sum of |N(u) and P(v)| over u in P(v); sets are rows of bits.
    """
    size = graph.frame.vertices
    rank = np.empty(size, dtype=np.int64)
    rank[np.lexsort((np.arange(size), degrees))] = np.arange(size)
    earlier = np.where(rank[graph.low] < rank[graph.high], graph.low, graph.high)
    later = graph.low + graph.high - earlier
    before, around = _bits(size, later, earlier), _bits(size, np.r_[later, earlier], np.r_[earlier, later])
    found = np.zeros(size, dtype=np.int64)
    step = max(1, PIECE // before.shape[1])
    for i in range(0, graph.size, step):
        u, v = earlier[i : i + step], later[i : i + step]
        np.add.at(found, v, np.bitwise_count(around[u] & before[v]).sum(axis=1, dtype=np.int64))
    return found // 2


def _bits(size: int, rows: Integers, columns: Integers) -> npt.NDArray[np.uint64]:
    """Sets of vertices as rows of bits."""
    table = np.zeros((size, (size + 63) // 64), dtype=np.uint64)
    np.bitwise_or.at(table, (rows, columns // 64), np.uint64(1) << (columns % 64).astype(np.uint64))
    return table
