"""A statistic of the whole table: what it reads, how far one person moves it, and the law that hides it."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from sulq.answers.plan import Part, Whole
from sulq.compile.plan.bind import allowed, walk
from sulq.compile.plan.scale import root_of, scale_of
from sulq.compile.plan.sensitivity import root_up
from sulq.compile.statistics.estimators import OWN
from sulq.compile.statistics.holistic import graph_of, limit, measured, requested, small, unit_of
from sulq.errors import QuestionError
from sulq.kernel.mechanisms import cost_of
from sulq.kernel.whole.asked import Asked, sensitivity
from sulq.kernel.whole.figure import Move
from sulq.kernel.whole.metric import Cube as Bits
from sulq.language.domain import EPOCH, Bool, Category, Column, Date, Int, Real, Schema, Text, Timestamp
from sulq.language.estimator import Certificate
from sulq.language.facts import Facts, TableFacts
from sulq.language.law import BitLaw, ExponentialLaw, GaussianLaw, LaplaceLaw, MetricLaw
from sulq.language.privacy import Draw, Epsilon, EpsilonDelta, Loss, Rho
from sulq.language.question import Holistic
from sulq.language.rowfn import Col, Position, RowFn
from sulq.language.rowfn.base import condition
from sulq.language.shape import shape
from sulq.language.space import Box, Cube, units
from sulq.language.statistic import (
    ESTIMATORS,
    OF_GRAPH,
    Aggregated,
    Certified,
    Edges,
    HeavyPersons,
    Occurring,
    SpanningTree,
    Statistic,
    ToConnected,
)
from sulq.language.tally import Block, Key, Tally

MOST_NUMBERS: Final = 2**27  # of all rows listed: 1 GiB, and as much again for each copy that is sorted
MOST_EDGES: Final = 2**24  # that the graph library holds, some 200 bytes each
DRAWN: Final = (SpanningTree, ToConnected)  # whose edges all go to the library; those of a cut are few by its vertices
Scaled = LaplaceLaw | GaussianLaw | MetricLaw | ExponentialLaw | BitLaw


@dataclass(frozen=True, slots=True)
class HolisticDraw:
    """A part of a plan that is ready, and the draw that its noise is."""

    part: Part
    draws: tuple[Draw, ...]
    key_delta: Fraction = Fraction(0)


def holistic(asked: Holistic, facts: Facts, spend: Loss) -> HolisticDraw:
    """Everything from public facts: blocks, sensitivity, space, law and price (SR5, SR10)."""
    table = facts.table_of(asked.over.name)
    over = shape(asked.over, facts)
    certificate = _certificate(asked, table, facts)
    _all_rows(asked, table, facts)
    for fn in walk(asked):
        allowed(fn, asked.over, facts)
    if asked.where is not None:
        condition(asked.where, over.schema)
    if isinstance(asked.statistic, OF_GRAPH):
        unfit = asked.statistic.graph.unfit(table.schema, None if table.public else facts.person_of(table))
        if unfit is not None:
            raise QuestionError(*unfit)
    blocks = tuple(_block(fn, over.schema) for fn in asked.statistic.row)
    if isinstance(asked.statistic, (Aggregated, Certified)):
        _measured(asked.statistic, over.schema)
    _room(asked, table, facts, blocks)
    rows = max(over.rows, 1)  # public rows get noise like any other
    small(asked.statistic, blocks)
    statistic, step = measured(asked.statistic, blocks, certificate), unit_of(asked.statistic, blocks, certificate)
    move, width = sensitivity(statistic, rows, facts.unit), statistic.figure(rows).width
    whole = Whole(asked.statistic, step, width, asked.space, _stride(asked, width, step), certificate)
    law, moved, norm = _law(requested(whole, blocks), move, spend)
    drawn = 1 if isinstance(law, MetricLaw) else width
    draw = Draw(law.kind, facts.unit.neighbors, norm, moved, law.scale, whole.unit, drawn)
    _paid(draw, spend)
    keys = () if whole.placed is not None else _keys(asked.statistic, move, over.schema)
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


def _measured(statistic: Aggregated | Certified, schema: Schema) -> None:
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
    if isinstance(statistic, Edges) and move.bits:
        names: tuple[str, ...] = (statistic.graph.u, statistic.graph.v)
    else:
        names = statistic.columns if isinstance(statistic, Occurring) else ()
    return tuple(Key(Col(name), _labels(schema.find(name))) for name in names)


def _labels(column: Column | None) -> tuple[object, ...]:
    """A column's values in the order of its codes, as an answer shows them."""
    match column:
        case Category():
            return column.values
        case Bool():
            return (False, True)
        case Date():
            return tuple((EPOCH + datetime.timedelta(day)).isoformat() for day in range(column.low, column.high + 1))
        case Int() | Real() | Timestamp():
            units = range(column.low, column.high + 1)
            return tuple(units) if column.step == 1 else tuple(float(unit * column.step) for unit in units)
    raise QuestionError("wrong-kind", "Free text has no labels.")


def _certificate(asked: Holistic, table: TableFacts, facts: Facts) -> Certificate | None:
    """The owner's certificate of a certified statistic; refuses what is not the owner's, or not certified (SR5).

    Privacy: the lemma is about tables of as many rows, each in its place, and about the columns that were certified. So
    no condition, which would leave rows out, and no person who owns more rows than are kept or whose rows are nobody's.
    """
    statistic = asked.statistic
    known = {item.name: item for item in table.estimators}
    if isinstance(statistic, Aggregated) and statistic.estimator not in {*ESTIMATORS, *known}:
        names = ", ".join([*ESTIMATORS, *known])
        raise QuestionError("not-certified", f"No estimator has that name; there are: {names}.")
    if isinstance(statistic, Aggregated) and statistic.estimator in OWN:
        wanted = OWN[statistic.estimator][0]
        if len(statistic.columns) != wanted:
            raise QuestionError("bad-question", f"{statistic.estimator} reads {wanted} columns.")
    if not isinstance(statistic, Certified):
        return None
    found = known[statistic.name].certificate if statistic.name in known else None
    if found is None:
        raise QuestionError("not-certified", "The owner has certified no function of that name.")
    if statistic.columns != found.columns:
        raise QuestionError("not-certified", f"{statistic.name} is certified for {', '.join(found.columns)} alone.")
    if asked.where is not None:
        raise QuestionError("not-certified", "A certificate is about the whole table; leave the condition out.")
    if not facts.unit.positions_are_public or facts.person_of(table) is not None:
        raise QuestionError("needs-position", "A certificate is about tables of as many rows, each one a person.")
    return found


def _all_rows(asked: Holistic, table: TableFacts, facts: Facts) -> None:
    """Refuse to count persons with more rows than are kept where every row is kept, under a condition or in a space.

    A condition is about kept rows; which of a person's other rows meet it is not known of a prepared copy.
    """
    if not isinstance(asked.statistic, HeavyPersons):
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
        if not isinstance(asked.statistic, (Edges, Occurring)):
            raise QuestionError("wrong-kind", "The Hamming cube is for bits: Edges or Occurring.")
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
    if space is not None:
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
