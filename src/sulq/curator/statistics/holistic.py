"""The table of statistics of the whole table: each kind with its exact function and its proved sensitivity.

Privacy: what stands here is what may be asked; no question brings a function or a sensitivity of its own (SR5).
Source: docs/theory/holistic.md, docs/theory/graphs.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

import numpy as np

from sulq.curator.statistics import (
    aggregate,
    degrees,
    distance,
    metric,
    min_cut,
    occurring,
    spanning_tree,
    triangles,
)
from sulq.curator.statistics.figure import Figure
from sulq.curator.statistics.owned import Function
from sulq.terms.engine import Block
from sulq.terms.kinds import Integers
from sulq.terms.plan import Whole
from sulq.terms.space import Box, Cube, units
from sulq.terms.statistic import (
    Aggregated,
    Certified,
    Degrees,
    Edges,
    HeavyPersons,
    MinCut,
    Occurring,
    SpanningTree,
    ToBoundedDegree,
    ToConnected,
    ToSorted,
    ToUnique,
    Triangles,
)


class Entry(NamedTuple):
    """How far one person with so many rows moves a statistic, and its exact value."""

    figure: Callable[[Any, tuple[Block, ...], int], Figure]
    exact: Callable[[Any, tuple[Block, ...], Integers], Integers]


STATISTICS: Final[Mapping[type, Entry]] = {
    MinCut: Entry(min_cut.figure, min_cut.exact),
    SpanningTree: Entry(spanning_tree.figure, spanning_tree.exact),
    Triangles: Entry(triangles.figure, triangles.exact),
    Degrees: Entry(degrees.degrees_figure, degrees.degrees),
    Edges: Entry(degrees.edges_figure, degrees.edge_bits),
    ToConnected: Entry(distance.connected_figure, distance.connected),
    ToBoundedDegree: Entry(distance.bounded_figure, distance.bounded),
    ToUnique: Entry(distance.unique_figure, distance.unique),
    ToSorted: Entry(distance.sorted_figure, distance.in_order),
    Occurring: Entry(occurring.figure, occurring.exact),
}
"""Those that need nothing but rows; `Aggregated` and `Certified` also need functions, which the owner names.

`HeavyPersons` needs no row: engines count the persons (`heavy`)."""


def exact(whole: Whole, blocks: tuple[Block, ...], rows: Integers, own: Mapping[str, Function]) -> Integers:
    """What the mechanism is given, a row of whole numbers: the statistic, or minus each point's distance from it."""
    asked = whole.statistic
    if isinstance(asked, Aggregated):
        found = aggregate.exact(asked, blocks, rows, own)
    elif isinstance(asked, Certified):
        if whole.certificate is None:
            raise LookupError("a certified function has a certificate")
        found = aggregate.certified(whole.certificate, blocks, rows, own[asked.name])
    elif isinstance(asked, HeavyPersons):
        found = rows
    else:
        found = STATISTICS[type(asked)].exact(asked, blocks, rows)
    if found.shape != (whole.width,) or found.dtype != np.int64:
        raise TypeError
    space = whole.space
    if space is None or isinstance(space, Cube) or (isinstance(space, Box) and not space.bounded):
        return found[None]
    return -metric.distances(space, units(space, whole.step), found, whole.stride)[None]
