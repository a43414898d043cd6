"""The minimum cut: the least weight of edges whose removal disconnects the graph.

Privacy: each cut's weight is a sum over pairs, so a pair whose weight moves by one moves every cut, and the
least of them, by one at most; k rows by k. More weight never makes a cut lighter: monotone. So k in every
relation [DMNS06, section 3.2; S4.12]. A graph that is not connected has a cut of weight 0, and one vertex none
to speak of: 0 too, so that no neighbour is an error.
Accuracy: exact. The library adds doubles; here they are whole numbers whose sum over all pairs is below 2^53.
Source: docs/theory/graphs.md; the algorithm is Stoer and Wagner's.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from sulq.curator.statistics.figure import EXACT, Figure, limit, monotone
from sulq.curator.statistics.graphs import edges, frame, library
from sulq.terms.engine import Block
from sulq.terms.kinds import Integers
from sulq.terms.statistic import MinCut

MOST_VERTICES: Final = 5000


def figure(_asked: MinCut, blocks: tuple[Block, ...], rows: int) -> Figure:
    """How far one person moves a minimum cut."""
    public = frame(blocks)
    limit(public.vertices, MOST_VERTICES, "A minimum cut of vertices")
    limit(public.pairs * public.one, EXACT - 1, "A minimum cut of the weight's units, over all pairs,")
    library()
    return monotone(public.step, rows * public.one)


def exact(_asked: MinCut, blocks: tuple[Block, ...], rows: Integers) -> Integers:
    """The weight of a minimum cut, in units."""
    graph = edges(blocks, rows)
    found = library().stoer_wagner_min_cut(graph.drawn(), weight_fn=float)
    return np.array([0 if found is None else int(found[0])], dtype=np.int64)
