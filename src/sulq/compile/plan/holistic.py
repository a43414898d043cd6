"""A statistic of the whole table: the request that is certified and run, how far one person moves it, and its law.

All of it is proposed. Whatever is asked for here, the kernel works out how far one person moves it, and no unit or
limit of this file is believed (`sulq.kernel.whole`).
Source: docs/theory/holistic.md, docs/theory/graphs.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, NamedTuple

from sulq.answers.answer import extra
from sulq.answers.plan import Part, Whole
from sulq.compile.plan.calibration import root_of, root_up, scale_of
from sulq.compile.plan.draft import allowed
from sulq.compile.plan.estimators import range_of, registered, word
from sulq.errors import QuestionError
from sulq.kernel.mechanisms import cost_of
from sulq.kernel.whole import asked as annex
from sulq.kernel.whole import functions, graphs, metric, rows
from sulq.kernel.whole.asked import Asked, sensitivity
from sulq.kernel.whole.figure import Move
from sulq.kernel.whole.metric import Candidates as Scored
from sulq.kernel.whole.metric import Cube as Bits
from sulq.kernel.whole.metric import Nearest
from sulq.kernel.whole.rows import CellCounts
from sulq.language import statistic as terms
from sulq.language.domain import Bool, Category, Column, Date, Int, Real, Schema, Text, Timestamp, iso_text
from sulq.language.estimator import Declaration, Property
from sulq.language.facts import Facts, TableFacts
from sulq.language.law import BitLaw, ExponentialLaw, FlipLaw, GaussianLaw, LaplaceLaw, MetricLaw
from sulq.language.privacy import Draw, Epsilon, EpsilonDelta, Loss, Rho
from sulq.language.question import Holistic
from sulq.language.rowfn import Col, Position, RowFn
from sulq.language.rowfn.base import condition, walk
from sulq.language.rowfn.keys import mixing
from sulq.language.shape import shape
from sulq.language.space import Box, Candidates, Cube, units
from sulq.language.statistic import OF_GRAPH, Aggregated, Certified, Statistic, ToProperty
from sulq.language.tally import Block, Key, Tally

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
GRAPHS: Final[Mapping[type, Callable[..., annex.Statistic]]] = {
    kind: getattr(graphs, kind.__name__) for kind in OF_GRAPH
}
"""Each statistic of a graph as the annex has it, under the same name and with the same fields."""
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


def unit_of(statistic: Statistic, blocks: tuple[Block, ...], certificate: Declaration | None) -> Fraction:
    """One unit of a statistic in its own measure; of an average over blocks, a unit of an estimate over the blocks."""
    match statistic:
        case terms.MinCut() | terms.SpanningTree():
            return Fraction(1, graph_of(blocks).units)
        case terms.Triangles():
            return Fraction(1, statistic.degree or 1)
        case Aggregated():
            return range_of(statistic.low, statistic.high).unit / statistic.blocks
        case Certified():
            return word(certificate, ()).range.unit
    return Fraction(1)


def requested(whole: Whole, blocks: tuple[Block, ...]) -> annex.Asked:
    """What is asked of the annex."""
    return annex.Asked(measured(whole.statistic, blocks, whole.certificate), _space(whole))


def measured(statistic: Statistic, blocks: tuple[Block, ...], certificate: Declaration | None) -> annex.Statistic:
    """A statistic as the annex has it."""
    match statistic:
        case Aggregated():
            ends, steps = range_of(statistic.low, statistic.high), tuple(block.step for block in blocks[1:])
            return functions.Aggregated(statistic.estimator, steps, statistic.blocks, mixing(statistic.salt), ends)
        case Certified():
            steps = tuple(block.step for block in blocks[int(statistic.placed) :])
            return functions.Declared(statistic.name, word(certificate, steps, placed=statistic.placed))
        case ToProperty() if isinstance(certificate, Property) and certificate.columns:
            return rows.CellCounts(tuple((block.low[0], block.high[0]) for block in blocks))
        case ToProperty():
            return graphs.Edges(graph_of(blocks))
        case terms.HeavyPersons():
            return rows.HeavyPersons()
        case terms.ToUnique():
            return rows.ToUnique(len(blocks))
        case terms.ToSorted():
            return rows.ToSorted()
        case terms.Occurring():
            return rows.Occurring(tuple((block.low[0], block.high[0]) for block in blocks))
    options = (getattr(statistic, name) for name in type(statistic).__match_args__[1:])  # its fields after the graph
    return GRAPHS[type(statistic)](graph_of(blocks), *options)


def _space(whole: Whole) -> metric.Space | None:
    if isinstance(whole.statistic, ToProperty):
        return Nearest(whole.statistic.name)
    if isinstance(whole.space, Cube):
        return metric.Cube()
    if isinstance(whole.space, Candidates):
        return Scored(whole.weights)
    space = whole.placed
    if space is None:
        return None
    points = tuple(map(tuple, units(space, whole.step).tolist()))
    return metric.Points(points, space.distance, space.size * whole.stride if space.distance == "circle" else 0)


MOST_NUMBERS: Final = 2**27  # of all rows listed: 1 GiB, and as much again for each copy that is sorted
MOST_EDGES: Final = 2**24  # that the graph library holds, some 200 bytes each
# Those whose edges all go to the library; those of a cut are few by its vertices.
DRAWN: Final = (terms.SpanningTree, terms.ToConnected)
Scaled = LaplaceLaw | GaussianLaw | MetricLaw | ExponentialLaw | FlipLaw | BitLaw


@dataclass(frozen=True, slots=True)
class HolisticDraw:
    """A part of a plan that is ready, and the draw that its noise is."""

    part: Part
    draws: tuple[Draw, ...]
    key_delta: Fraction = Fraction(0)


def plan_holistic(asked: Holistic, facts: Facts, spend: Loss) -> HolisticDraw:
    """Everything from public facts: blocks, sensitivity, space, law and price (SR5, SR10)."""
    table = facts.table_of(asked.over.name)
    over = shape(asked.over, facts)
    certificate = registered(asked, table, facts)
    _all_rows(asked, table, facts)
    for fn in walk(*asked.parts()):
        allowed(fn, asked.over, facts)
    if asked.where is not None:
        condition(asked.where, over.schema)
    if isinstance(asked.statistic, OF_GRAPH):
        unfit = asked.statistic.graph.unfit(table.schema, None if table.public else facts.person_of(table))
        if unfit is not None:
            raise QuestionError(*unfit)
    blocks = tuple(_block(fn, over.schema) for fn in asked.statistic.row)
    if isinstance(asked.statistic, (Aggregated, Certified)):
        _refuse_labels(asked.statistic, over.schema)
    _room(asked, table, facts, blocks)
    rows = max(over.rows, 1)  # public rows get noise like any other
    small(asked.statistic, blocks)
    statistic, step = measured(asked.statistic, blocks, certificate), unit_of(asked.statistic, blocks, certificate)
    move, width = sensitivity(statistic, rows, facts.unit), statistic.figure(rows).width
    if isinstance(asked.statistic, ToProperty):  # rows that are exchanged are one that goes and one that comes
        exchanged = isinstance(statistic, CellCounts) and facts.unit.neighbors == "replace_one"
        move, width, step = Move.of(move.l1), 1, Fraction(1, 2 if exchanged else 1)
    whole = Whole(asked.statistic, step, width, asked.space, _stride(asked, width, step), certificate)
    law, moved, norm = _law(requested(whole, blocks), move, spend)
    drawn = 1 if isinstance(law, (MetricLaw, FlipLaw)) else width
    draw = Draw(law.kind, facts.unit.neighbors, norm, moved, law.scale, whole.unit, drawn)
    _paid(draw, spend)
    keys = () if whole.told else _keys(asked.statistic, move, over.schema)
    tally = Tally(asked.over, blocks, asked.where, keys, width if keys else 1)
    shown = moved if norm == "l1" else root_up(moved)
    return HolisticDraw(Part(tally, (law,), (0,), (shown * whole.unit,), norm, whole=whole), (draw,))


def _block(fn: RowFn, schema: Schema) -> Block:
    """What is read of a row: a column's own units, a block's number, or a place."""
    if not isinstance(fn, Col):
        last = Position.LIMIT if isinstance(fn, Position) else getattr(fn, "count", 1) - 1
        return Block(fn, Fraction(1), (0,), (last,), vector=False)
    fn.kind(schema)  # refuses what is not declared, naming what is
    column = schema.find(fn.name)
    if column is None or isinstance(column, Text):
        raise QuestionError("wrong-kind", f"{fn.name[:80]!r} is free text; a statistic of the whole reads numbers.")
    return Block(fn, column.step, (column.low,), (column.high,), vector=False)


def _refuse_labels(statistic: Aggregated | Certified, schema: Schema) -> None:
    """Refuse labels where a function reckons with numbers: their codes are the order of a list, and measure nothing."""
    for name in statistic.columns:
        if isinstance(schema.find(name), Category):
            raise QuestionError(
                "wrong-kind",
                f"{name[:80]!r} is not a number: an estimator cannot reckon with its labels.",
                "Have the owner declare the column Int or Real, or ask for counts of its labels.",
            )


def _room(asked: Holistic, table: TableFacts, facts: Facts, blocks: tuple[Block, ...]) -> None:
    """Refuse a table that is too large to be listed, where its size is public: the declared one, or of public rows.

    Privacy: where no size is declared nothing is refused by it, as how many rows there are is private (SR6). What then
    takes more memory than there is ends as every failure does, charged (T32).
    """
    first = table.schema.table == facts.schema.table
    size = table.rows if table.public else facts.size if first else None
    if size is None:
        return
    limit(size * len(blocks), MOST_NUMBERS, "A statistic of the whole, of the declared rows times columns read,")
    if isinstance(asked.statistic, DRAWN):
        limit(min(size, graph_of(blocks).pairs), MOST_EDGES, "A graph of pairs, no more than the declared rows,")


def _keys(statistic: Statistic, move: Move, schema: Schema) -> tuple[Key, ...]:
    """What the bits of pairs and of combinations are about: an answer names them (a single vertex has no pair)."""
    if isinstance(statistic, terms.Edges) and move.bits:
        names: tuple[str, ...] = (statistic.graph.u, statistic.graph.v)
    else:
        names = statistic.columns if isinstance(statistic, terms.Occurring) else ()
    return tuple(Key(Col(name), _labels(schema.find(name))) for name in names)


def _labels(column: Column | None) -> tuple[object, ...]:
    """A column's values in the order of its codes, as an answer shows them."""
    match column:
        case Category():
            return column.values
        case Bool():
            return (False, True)
        case Date():
            return tuple(iso_text(day, "date") for day in range(column.low, column.high + 1))
        case Int() | Real() | Timestamp():
            units = range(column.low, column.high + 1)
            return tuple(units) if column.step == 1 else tuple(float(unit * column.step) for unit in units)
    raise QuestionError("wrong-kind", "Free text has no labels.")


def _all_rows(asked: Holistic, table: TableFacts, facts: Facts) -> None:
    """Refuse to count persons with more rows than are kept where every row is kept, under a condition or in a space.

    A condition is about kept rows; which of a person's other rows meet it is not known of a prepared copy.
    """
    if not isinstance(asked.statistic, terms.HeavyPersons):
        return
    if facts.kept_of(table) is None:
        raise QuestionError("bad-question", f"Every row of table {table.schema.table!r} is kept.")
    if asked.where is not None or asked.space is not None:
        raise QuestionError("bad-question", "Persons are counted over all their rows; leave where= and space= out.")


def _stride(asked: Holistic, width: int, step: Fraction) -> int:
    """Check that a space fits the statistic; of a Box, how many units lie between its points."""
    space = asked.space
    if space is None:
        return 1
    if isinstance(space, Cube):
        if not isinstance(asked.statistic, (terms.Edges, terms.Occurring)):
            raise QuestionError("wrong-kind", "The Hamming cube is for bits: Edges or Occurring.")
        return 1
    if isinstance(space, Candidates):
        return 1
    if space.width != width:
        raise QuestionError("bad-question", f"The statistic is {width} numbers, a point is {space.width}.")
    if isinstance(space, Box) and not space.bounded:
        return 1
    points = units(space, step)
    return int(points[1, 0] - points[0, 0]) if isinstance(space, Box) and len(points) > 1 else 1


def _law(request: Asked, move: Move, spend: Loss) -> tuple[Scaled, Fraction, str]:
    """The law, what of the statistic it must hide, and in which norm; what nobody moves is hidden like any other (T19).

    Privacy: of a finite space D = 2S, or S on a circle all of whose places are points (docs/theory/metric.md).
    """
    pure = isinstance(spend, Epsilon)
    if not isinstance(spend, (Epsilon, Rho, EpsilonDelta)):
        raise QuestionError("spend-kind", "This budget does not take that spend.")
    paid = spend.rho if isinstance(spend, EpsilonDelta) else spend.exact
    if paid <= 0:
        raise QuestionError("too-little-noise", "This spend holds no zero-concentrated loss at all.")
    if isinstance(request.space, Bits):
        bits = Fraction(max(move.bits, 1))
        return BitLaw(scale_of(bits / paid if pure else root_of(bits / (2 * paid)))), bits, "l1"
    space = request.space
    if isinstance(space, Scored):
        moved, size = max(move.most, 1), sum(space.weights)
        if pure and max(space.weights) == 1:  # permute-and-flip has no base measure
            return FlipLaw(scale_of(Fraction(2 * moved) / paid), size), Fraction(2 * moved), "l1"
        if pure:
            return MetricLaw(scale_of(Fraction(2 * moved) / paid), size), Fraction(2 * moved), "l1"
        square = Fraction((2 * moved) ** 2)
        return ExponentialLaw(scale_of(root_of(square / (8 * paid))), size), square, "l2"
    if isinstance(space, metric.Points):
        moved, size = max(space.moved(move), 1), len(space.points)
        if pure:
            span = Fraction(moved if space.even else 2 * moved)
            return MetricLaw(scale_of(span / paid), size), span, "l1"
        square = Fraction((2 * moved) ** 2)
        return ExponentialLaw(scale_of(root_of(square / (8 * paid))), size), square, "l2"
    if pure:
        l1 = Fraction(max(move.l1, 1))
        return LaplaceLaw(scale_of(l1 / paid)), l1, "l1"
    l2 = Fraction(max(move.l2_squared, 1))
    return GaussianLaw(scale_of(root_of(l2 / (2 * paid)))), l2, "l2"


def _paid(draw: Draw, spend: Loss) -> None:
    """Check that the price of the rounded scale is within what is paid."""
    cost = cost_of(draw)
    spent = cost.epsilon if isinstance(spend, Epsilon) else cost.rho
    paid = spend.rho if isinstance(spend, EpsilonDelta) else getattr(spend, "exact", Fraction(0))
    if spent is None or spent > paid:
        raise AssertionError("calibration would cost more than the spend")
