"""The weight of a minimum spanning tree, or of one tree for each part of a graph that is not connected.

Privacy: a pair whose weight moves by t moves a tree that has it by t and no other, so the least tree of a complete
graph moves by t at most [DMNS06, section 3.2; S4.12]. A new edge of weight w joins two trees of a forest, +w, or
takes the place of the heaviest edge of the circle it closes, which is at most 1: between -1 and 0. So a
row moves either by one at most, k rows by k. Rows move it both ways (a second row of a pair makes it heavier),
so an exchange of k rows moves it by 2k, which is reached.
Accuracy: exact. The library compares doubles, here whole numbers below 2^53, and the chosen ones are added here.
Source: docs/theory/graphs.md.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from sulq.curator.statistics.figure import EXACT, Figure, either_way, limit
from sulq.curator.statistics.graphs import Edges, edges, frame, library
from sulq.terms.engine import Block
from sulq.terms.kinds import Integers
from sulq.terms.statistic import SpanningTree

MOST_VERTICES: Final = 2**20
LIGHT: Final = 2  # edges for each vertex that are looked at first


def figure(_asked: SpanningTree, blocks: tuple[Block, ...], rows: int) -> Figure:
    """How far one person moves a spanning tree's weight."""
    public = frame(blocks)
    limit(public.vertices, MOST_VERTICES, "A spanning tree of vertices")
    limit(public.one, EXACT, "A spanning tree of a weight's units")
    library()
    return either_way(public.step, rows * public.one)


def exact(asked: SpanningTree, blocks: tuple[Block, ...], rows: Integers) -> Integers:
    """The weight of a minimum spanning forest, in units; with 1 for each tree but one where absent pairs weigh 1.

    No edge weighs more than 1, so of a complete graph whose absent pairs weigh 1 a least tree
    is a least forest of the edges there are, joined by absent pairs.
    """
    graph = edges(blocks, rows)
    tree = library().minimum_spanning_edges(_needed(graph).drawn(), weight_fn=float)
    weight = sum(int(edge[2]) for edge in tree)
    if asked.complete:
        weight += (graph.frame.vertices - 1 - len(tree)) * graph.frame.one
    return np.array([weight], dtype=np.int64)


def _needed(graph: Edges) -> Edges:
    """The graph without edges that a least forest can do without: heavy ones whose ends light ones connect already.

    Such an edge is as heavy as any of the circle it closes. Most of many edges are such, and to find so is quicker than
    to hand them all to the library.
    """
    light = LIGHT * graph.frame.vertices
    if graph.size <= 2 * light:
        return graph
    order = np.argpartition(graph.weight, light)
    part = np.empty(graph.frame.vertices, dtype=np.int64)
    for i, vertices in enumerate(library().connected_components(graph.some(order[:light]).drawn())):
        part[list(vertices)] = i
    apart = part[graph.low] != part[graph.high]
    apart[order[:light]] = True
    return graph.some(np.flatnonzero(apart))
