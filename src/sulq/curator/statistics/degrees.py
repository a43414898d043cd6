"""How many edges meet at how many vertices, and which pairs are edges at all.

Privacy: of `Degrees`, an edge more takes each of its two ends past one number of edges. So two counts rise by one, or
one by two: 2 in L1, 4 squared in L2; k rows k times as far, and an exchange of rows twice as far in L1. In L2 what
comes and what goes are of opposite sign in every count, so that an exchange is at most 8 squared for a row,
which is reached.
Of `Edges`, a row makes one pair an edge or not; an exchange moves two.
Source: docs/theory/graphs.md.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Final

import numpy as np

from sulq.curator.statistics.figure import Figure, Move, limit
from sulq.curator.statistics.graphs import edges, frame
from sulq.terms.engine import Block
from sulq.terms.kinds import Integers
from sulq.terms.statistic import Degrees, Edges

MOST_VERTICES: Final = 2**20
MOST_PAIRS: Final = 2**20


def degrees_figure(asked: Degrees, blocks: tuple[Block, ...], rows: int) -> Figure:
    """How far one person moves the counts of vertices."""
    limit(frame(blocks).vertices, MOST_VERTICES, "A count of vertices by edges")
    alone = Move(2 * rows, 4 * rows**2, 2 * rows, min(2 * rows, asked.most))
    swapped = Move(4 * rows, 8 * rows**2, 2 * rows, min(4 * rows, asked.most))
    return Figure(Fraction(1), asked.most, alone, swapped)


def degrees(asked: Degrees, blocks: tuple[Block, ...], rows: Integers) -> Integers:
    """How many vertices have at least 1, 2, ... edges."""
    found = np.minimum(edges(blocks, rows).degrees(), asked.most)
    counts = np.bincount(found, minlength=asked.most + 1)
    return np.cumsum(counts[:0:-1])[::-1].astype(np.int64)


def edges_figure(_asked: Edges, blocks: tuple[Block, ...], rows: int) -> Figure:
    """How many pairs one person makes edges or not."""
    pairs = frame(blocks).pairs
    limit(pairs, MOST_PAIRS, "A list of pairs")
    one, two = min(rows, pairs), min(2 * rows, pairs)
    return Figure(Fraction(1), max(pairs, 1), Move(one, one, 1, one), Move(two, two, 1, two))


def edge_bits(_asked: Edges, blocks: tuple[Block, ...], rows: Integers) -> Integers:
    """A bit for each pair, (0, 1) first, then (0, 2); of a graph of one vertex a single 0."""
    graph = edges(blocks, rows)
    size = graph.frame.vertices
    found = np.zeros(max(graph.frame.pairs, 1), dtype=np.int64)
    found[graph.low * (2 * size - graph.low - 1) // 2 + graph.high - graph.low - 1] = 1
    return found
