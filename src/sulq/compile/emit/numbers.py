"""Row functions that give a number, as SQL: arithmetic, mathematical functions, and DuckDB's calendar.

An argument outside a function's domain is NULL before the function sees it; days and moments are known to lie within
the calendar.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from sulq.compile.emit.keys import table
from sulq.compile.emit.piece import Piece, clamped, double, finite, joined, places_of
from sulq.compile.statements.kept_table import PLACE
from sulq.language.domain import MICROSECONDS
from sulq.language.kinds import Scalar
from sulq.language.rowfn import Arith, Case, Clip, Col, Position, RowFn
from sulq.language.rowfn.dates import DatePart, DateTrunc, Moment, ToDate, ToTimestamp, calendar, clocked, reach
from sulq.language.rowfn.keys import Value
from sulq.language.rowfn.maths import OPERATIONS, Greatest, Least, Maths, Modulo, Power, Round

if TYPE_CHECKING:
    from sulq.compile.emit.emitter import Emitter

OF_DAY = ("hour", "minute", "second")


def _position(_: Emitter, __: Position) -> Piece:
    return Piece(f"CAST(CASE WHEN {PLACE} > {Position.LIMIT} THEN {Position.LIMIT} ELSE {PLACE} END AS DOUBLE)")


def _arithmetic(writer: Emitter, fn: Arith) -> Piece:
    result = joined(f"({{0}} {fn.op} {{1}})", writer.number(fn.left), writer.number(fn.right))
    return result if fn.kind(writer.schema).bounded else finite(writer, result)


def _case(writer: Emitter, fn: Case) -> Piece:
    pieces: list[Piece] = []
    form = "CASE"
    for when, then in fn.branches:
        form += f" WHEN {{{len(pieces)}}} THEN {{{len(pieces) + 1}}}"
        pieces += [writer.truth(when), writer.number(then)]
    if fn.otherwise is not None:
        form += f" ELSE {{{len(pieces)}}}"
        pieces.append(writer.number(fn.otherwise))
    return joined(f"{form} END", *pieces)


def _clip(writer: Emitter, fn: Clip) -> Piece:
    return clamped(writer.named(writer.number(fn.item)), float(fn.lo), float(fn.hi))


def _maths(writer: Emitter, fn: Maths) -> Piece:
    found = _applied(writer, fn.op, writer.number(fn.item))
    return found if OPERATIONS[fn.op].exact else _held(writer, found, fn.kind(writer.schema))


def _applied(writer: Emitter, op: str, item: Piece) -> Piece:
    operation = OPERATIONS[op]
    if operation.domain is None:
        return joined(operation.sql, item)
    sign, end = operation.domain
    return joined(operation.sql.format(f"CASE WHEN {{0}} {sign} {double(end)} THEN {{0}} END"), writer.named(item))


def _held(writer: Emitter, item: Piece, kind: Scalar) -> Piece:
    if kind.lo is None or kind.hi is None:
        return item
    return clamped(writer.named(item), float(kind.lo), float(kind.hi))


def _rounded(writer: Emitter, fn: Round) -> Piece:
    item = writer.number(fn.item)
    if fn.unchanged(writer.schema):
        return item
    there, back = ("*", "/") if fn.digits >= 0 else ("/", "*")
    scale = double(10.0 ** abs(fn.digits))
    scaled = joined(f"({{0}} {there} {scale})", item)
    if fn.kind(writer.schema).bounded:
        return joined(f"(round({{0}}) {back} {scale})", scaled)
    return finite(writer, joined(f"(round({{0}}) {back} {scale})", finite(writer, scaled)))


def _power(writer: Emitter, fn: Power) -> Piece:
    item = writer.named(writer.number(fn.item))
    kind = fn.kind(writer.schema)
    if fn.exponent == 0:
        return joined("CASE WHEN {0} IS NOT NULL THEN 1e0 END", item)
    if fn.root:
        return _applied(writer, "sqrt", item)
    if fn.whole is not None:
        product = " * ".join(["{0}"] * abs(fn.whole))
        if fn.whole > 0:
            found = joined(f"({product})", item)
            return found if kind.bounded else finite(writer, found)
        return finite(writer, joined(f"(1e0 / ({product}))", item))
    domain = [] if fn.signed else ["{0} >= 0e0"]
    domain += ["{0} <> 0e0"] if fn.exponent < 0 else []
    base = f"CASE WHEN {' AND '.join(domain)} THEN {{0}} END" if domain else "{0}"
    found = joined(f"pow({base}, {double(float(fn.exponent))})", item)
    return _held(writer, finite(writer, found), kind)


def _modulo(writer: Emitter, fn: Modulo) -> Piece:
    return joined(f"({{0}} % {double(float(fn.right))})", writer.number(fn.left))


def _extreme(writer: Emitter, fn: Least | Greatest) -> Piece:
    name = "least" if isinstance(fn, Least) else "greatest"
    return joined(f"{name}({places_of(fn.items)})", *map(writer.number, fn.items))


def _value(writer: Emitter, fn: Value) -> Piece:
    """The number a label is."""
    figures, item = fn.figures(writer.schema), writer.code(fn.item)
    first = figures[0]
    if first is not None and figures == [first + i for i in range(len(figures))] and abs(first) < 2**52:
        return joined(f"(CAST({{0}} AS DOUBLE) + {double(first)})", item)
    return table(item, ["NULL" if x is None else double(x) for x in figures], "DOUBLE")


def _within(writer: Emitter, fn: RowFn) -> Piece:
    """A day or moment as a double, NULL outside the calendar."""
    kind = clocked(fn, writer.schema)
    item = writer.number(fn)
    if not reach(kind)[2]:
        return item
    first, last = map(double, calendar(kind.clock or "date"))
    return joined(f"CASE WHEN {{0}} >= {first} AND {{0}} <= {last} THEN {{0}} END", writer.named(item))


def _stamp(writer: Emitter, fn: RowFn) -> Piece:
    """A day or moment as a timestamp of DuckDB's."""
    kind = clocked(fn, writer.schema)
    if isinstance(fn, Col) and writer.rows.names[fn.name] not in writer.rows.doubles:
        units = joined("CAST({0} AS BIGINT)", writer.column(fn.name))  # a stored integer: no cast can fail
    else:
        units = joined("TRY_CAST({0} AS BIGINT)", _within(writer, fn))
    scale = f" * {MICROSECONDS}" if kind.clock == "date" else ""
    return joined(f"make_timestamp({{0}}{scale})", units)


def _part(writer: Emitter, fn: DatePart) -> Piece:
    date = clocked(fn.item, writer.schema).clock == "date"
    if fn.part == "epoch":
        return joined("({0} * 86400e0)" if date else "({0} / 1000000e0)", _within(writer, fn.item))
    if date and fn.part in OF_DAY:
        return joined("CASE WHEN {0} IS NOT NULL THEN 0e0 END", _within(writer, fn.item))
    stamp = _stamp(writer, fn.item)
    if fn.part == "second":
        return joined("(CAST(date_part('microseconds', {0}) AS DOUBLE) / 1000000e0)", stamp)
    return joined(f"CAST(date_part('{fn.part}', {{0}}) AS DOUBLE)", stamp)  # of PARTS: not the analyst's text


def _period(writer: Emitter, fn: DateTrunc) -> Piece:
    date = clocked(fn.item, writer.schema).clock == "date"
    if date and (fn.part == "day" or fn.part in OF_DAY):
        return _within(writer, fn.item)
    scale = f" // {MICROSECONDS}" if date else ""  # exact: the beginning of a day
    return joined(f"CAST(epoch_us(date_trunc('{fn.part}', {{0}})){scale} AS DOUBLE)", _stamp(writer, fn.item))


def _day(writer: Emitter, fn: ToDate) -> Piece:
    """The day of a moment.

    Of |x| < 2^53 microseconds the quotient is below 2^17 days, where doubles lie
    2^-36 apart: a moment is at least 1/86400000000 > 2^-37 days before the next
    day, so rounding never reaches it.
    """
    if clocked(fn.item, writer.schema).clock == "date":
        return writer.number(fn.item)
    return joined(f"floor({{0}} / {double(MICROSECONDS)})", _within(writer, fn.item))


def _moment(writer: Emitter, fn: ToTimestamp) -> Piece:
    kind = clocked(fn.item, writer.schema)
    if kind.clock == "timestamp":
        return writer.number(fn.item)
    first, last = ToTimestamp.days()
    low, high, outside = reach(kind)
    days = writer.number(fn.item)
    if outside or low < first or high > last:
        guard = f"{{0}} >= {double(first)} AND {{0}} <= {double(last)}"
        days = joined(f"CASE WHEN {guard} THEN {{0}} END", writer.named(days))
    return joined(f"({{0}} * {double(MICROSECONDS)})", days)


SQL: Final[Mapping[type[RowFn], Callable[[Emitter, Any], Piece]]] = {
    Arith: _arithmetic,
    Case: _case,
    Clip: _clip,
    DatePart: _part,
    DateTrunc: _period,
    Greatest: _extreme,
    Least: _extreme,
    Maths: _maths,
    Modulo: _modulo,
    Moment: lambda _, fn: Piece(double(fn.value), atom=True),
    Position: _position,
    Power: _power,
    Round: _rounded,
    ToDate: _day,
    ToTimestamp: _moment,
    Value: _value,
}
