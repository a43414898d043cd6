"""From a question's statistic to the annex's: the request that is certified and run, what it may be of, its unit.

All of it is proposed. Whatever is asked for here, the kernel works out how far one person moves it, and no unit or
limit of this file is believed (`sulq.kernel.whole`).
Source: docs/theory/holistic.md, docs/theory/graphs.md.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Final, NamedTuple

from sulq.answers.answer import extra
from sulq.answers.plan import Whole
from sulq.compile.statistics.estimators import OWN
from sulq.errors import QuestionError
from sulq.kernel.whole import asked as annex
from sulq.kernel.whole import functions, graphs, metric, rows
from sulq.kernel.whole.functions import Function
from sulq.language import statistic as terms
from sulq.language.domain import Text, grid_for
from sulq.language.estimator import Certificate
from sulq.language.facts import TableFacts
from sulq.language.rowfn.keys import mixing
from sulq.language.space import Cube, units
from sulq.language.statistic import OF_GRAPH, Aggregated, Certified, OfGraph, Statistic
from sulq.language.tally import Block

BITS: Final = 22  # an estimate has this many units between zero and its farther bound
NEEDS_LIBRARY: Final = (terms.MinCut, terms.SpanningTree, terms.ToConnected, terms.ToBoundedDegree)


class Limit(NamedTuple):
    """Of how many vertices, pairs or combinations a statistic is worked out in reasonable time and room."""

    most: int
    what: str
    remedy: str = ""


VERTICES: Final[Mapping[type, Limit]] = {
    terms.MinCut: Limit(5000, "A minimum cut of vertices"),
    terms.SpanningTree: Limit(2**20, "A spanning tree of vertices"),
    terms.Triangles: Limit(8192, "A number of triangles of vertices"),
    terms.Degrees: Limit(2**20, "A count of vertices by edges"),
    terms.ToConnected: Limit(2**20, "A distance from being connected, of vertices,"),
    terms.ToBoundedDegree: Limit(  # a matching among some 2,300 nodes at worst, which takes seconds
        40,
        "A distance from bounded degrees, of vertices,",
        "Ask for degrees: how many vertices have so many edges; or declare fewer vertices.",
    ),
}
PAIRS: Final = Limit(2**20, "A list of pairs")
COMBINATIONS: Final = Limit(2**20, "What occurs among combinations")


def limit(size: int, most: int, what: str, remedy: str = "") -> None:
    """Refuse what would take too long or too much room, by public numbers alone, before anything is paid."""
    if size > most:
        raise QuestionError("too-large", f"{what} is worked out for at most {most:,}; here there are {size:,}.", remedy)


def graph_of(blocks: tuple[Block, ...]) -> graphs.Graph:
    """The public part of a graph, from the blocks of its ends and, if there is one, of its weight."""
    ends = blocks[0]
    one = 1 / blocks[2].step if len(blocks) == 3 else None
    if one is not None and one.denominator != 1:
        raise QuestionError("wrong-kind", "The weight's grid is coarser than 1, the largest weight of an edge.")
    vertices = ends.high[0] - ends.low[0] + 1
    packed = vertices**2 * (int(one or 1) + 1)
    limit(packed, graphs.LARGEST, "A graph of pairs of vertices, times units of weight,")
    return graphs.Graph(vertices, ends.low[0], None if one is None else int(one))


def small(statistic: Statistic, blocks: tuple[Block, ...]) -> None:
    """Refuse a statistic of too large a graph or of too many combinations, or whose library is not installed."""
    if isinstance(statistic, OF_GRAPH):
        graph = graph_of(blocks)
        if type(statistic) in VERTICES:
            limit(graph.vertices, *VERTICES[type(statistic)])
        if isinstance(statistic, terms.Edges):
            limit(graph.pairs, *PAIRS)
        if isinstance(statistic, terms.MinCut):
            weight = graph.pairs * graph.units
            limit(weight, graphs.EXACT - 1, "A minimum cut of the weight's units, over all pairs,")
        if isinstance(statistic, terms.SpanningTree):
            limit(graph.units, graphs.EXACT, "A spanning tree of a weight's units")
        if isinstance(statistic, NEEDS_LIBRARY):
            extra("rustworkx", "graph")
    if isinstance(statistic, terms.Occurring):
        limit(math.prod(block.high[0] - block.low[0] + 1 for block in blocks), *COMBINATIONS)


def unit_of(statistic: Statistic, blocks: tuple[Block, ...], certificate: Certificate | None) -> Fraction:
    """One unit of a statistic in its own measure; of an average over blocks, a unit of an estimate over the blocks."""
    match statistic:
        case terms.MinCut() | terms.SpanningTree():
            return Fraction(1, graph_of(blocks).units)
        case terms.Triangles():
            return Fraction(1, statistic.degree or 1)
        case Aggregated():
            return _range(statistic.low, statistic.high).unit / statistic.blocks
        case Certified():
            ends = _word(certificate)
            return _range(ends.low, ends.high).unit
    return Fraction(1)


def requested(whole: Whole, blocks: tuple[Block, ...]) -> annex.Asked:
    """What is asked of the annex."""
    return annex.Asked(measured(whole.statistic, blocks, whole.certificate), _space(whole))


def measured(statistic: Statistic, blocks: tuple[Block, ...], certificate: Certificate | None) -> annex.Statistic:
    """A statistic as the annex has it."""
    match statistic:
        case Aggregated():
            ends, steps = _range(statistic.low, statistic.high), tuple(block.step for block in blocks[1:])
            return functions.Aggregated(statistic.estimator, steps, statistic.blocks, mixing(statistic.salt), ends)
        case Certified():
            word = declared(_word(certificate), tuple(block.step for block in blocks[1:]))
            return functions.Declared(statistic.name, word)
        case terms.HeavyPersons():
            return rows.HeavyPersons()
        case terms.ToUnique():
            return rows.ToUnique(len(blocks))
        case terms.ToSorted():
            return rows.ToSorted()
        case terms.Occurring():
            return rows.Occurring(tuple((block.low[0], block.high[0]) for block in blocks))
    return _of_graph(statistic, graph_of(blocks))


def _of_graph(statistic: OfGraph, graph: graphs.Graph) -> annex.Statistic:
    match statistic:
        case terms.SpanningTree():
            return graphs.SpanningTree(graph, statistic.complete)
        case terms.Triangles():
            return graphs.Triangles(graph, statistic.degree)
        case terms.Degrees():
            return graphs.Degrees(graph, statistic.most)
        case terms.ToBoundedDegree():
            return graphs.ToBoundedDegree(graph, statistic.degree)
        case terms.MinCut():
            return graphs.MinCut(graph)
        case terms.Edges():
            return graphs.Edges(graph)
        case terms.ToConnected():
            return graphs.ToConnected(graph)


def _space(whole: Whole) -> metric.Space | None:
    if isinstance(whole.space, Cube):
        return metric.Cube()
    space = whole.placed
    if space is None:
        return None
    points = tuple(map(tuple, units(space, whole.step).tolist()))
    return metric.Points(points, space.distance, space.size * whole.stride if space.distance == "circle" else 0)


def declared(certificate: Certificate, steps: tuple[Fraction, ...]) -> functions.Word:
    """An owner's certificate, in exact numbers, for columns of these units."""
    numbers = certificate.reads, certificate.within, certificate.probability
    return functions.Word(steps, _range(certificate.low, certificate.high), *map(Fraction, numbers))


def owned(table: TableFacts) -> dict[str, functions.Owned]:
    """What the owner of a table declares of functions, each by the names of its columns."""
    found = {}
    for item in table.estimators:
        names = () if item.certificate is None else item.certificate.columns
        columns = [table.schema.find(name) for name in names]
        steps = tuple(column.step for column in columns if column is not None and not isinstance(column, Text))
        if item.certificate is not None and len(steps) == len(names):
            word = declared(item.certificate, steps)
            found[item.name] = functions.Owned(word, (table.schema.table,), names)
    return found


def functions_of(own: Mapping[str, Function]) -> dict[str, Function]:
    """The functions of rows that may be asked for, by name: the owner's, and those of sulq."""
    return {**own, **{name: function for name, (_, function) in OWN.items()}}


def _word(certificate: Certificate | None) -> Certificate:
    if certificate is None:
        raise LookupError("a certified function has a certificate")
    return certificate


def _range(low: float, high: float) -> functions.Range:
    """One unit of an estimate, and its bounds in units, widened outwards."""
    ends = Fraction(low), Fraction(high)
    step = grid_for(max(map(abs, ends)), BITS)
    return functions.Range(step, math.floor(ends[0] / step), math.ceil(ends[1] / step))
