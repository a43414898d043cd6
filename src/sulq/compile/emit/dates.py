"""Parts and periods of dates as SQL: DuckDB's calendar, of days and moments that are known to lie within it."""

from __future__ import annotations

from sulq.compile.emit.literals import double
from sulq.compile.emit.piece import Piece, PieceWriter, joined
from sulq.language.domain import MICROSECONDS
from sulq.language.rowfn import Col, RowFn
from sulq.language.rowfn.dates import DatePart, DateTrunc, Moment, ToDate, ToTimestamp, calendar, clocked, reach

OF_DAY = ("hour", "minute", "second")


def number(writer: PieceWriter, fn: RowFn) -> Piece | None:
    """A function of dates as a double; None for any other."""
    match fn:
        case Moment():
            return Piece(double(fn.value), atom=True)
        case DatePart():
            return _part(writer, fn)
        case DateTrunc():
            return _period(writer, fn)
        case ToDate(item):
            return _day(writer, item)
        case ToTimestamp(item):
            return _moment(writer, item)
    return None


def _within(writer: PieceWriter, fn: RowFn) -> Piece:
    """A day or moment as a double, NULL outside the calendar."""
    kind = clocked(fn, writer.schema)
    item = writer.number(fn)
    if not reach(kind)[2]:
        return item
    first, last = map(double, calendar(kind.clock or "date"))
    return joined(f"CASE WHEN {{0}} >= {first} AND {{0}} <= {last} THEN {{0}} END", writer.named(item))


def _stamp(writer: PieceWriter, fn: RowFn) -> Piece:
    """A day or moment as a timestamp of DuckDB's."""
    kind = clocked(fn, writer.schema)
    if isinstance(fn, Col) and writer.rows.names[fn.name] not in writer.rows.doubles:
        units = joined("CAST({0} AS BIGINT)", writer.column(fn.name))  # a stored integer: no cast can fail
    else:
        units = joined("TRY_CAST({0} AS BIGINT)", _within(writer, fn))
    scale = f" * {MICROSECONDS}" if kind.clock == "date" else ""
    return joined(f"make_timestamp({{0}}{scale})", units)


def _part(writer: PieceWriter, fn: DatePart) -> Piece:
    date = clocked(fn.item, writer.schema).clock == "date"
    if fn.part == "epoch":
        return joined("({0} * 86400e0)" if date else "({0} / 1000000e0)", _within(writer, fn.item))
    if date and fn.part in OF_DAY:
        return joined("CASE WHEN {0} IS NOT NULL THEN 0e0 END", _within(writer, fn.item))
    stamp = _stamp(writer, fn.item)
    if fn.part == "second":
        return joined("(CAST(date_part('microseconds', {0}) AS DOUBLE) / 1000000e0)", stamp)
    return joined(f"CAST(date_part('{fn.part}', {{0}}) AS DOUBLE)", stamp)  # of PARTS: not the analyst's text


def _period(writer: PieceWriter, fn: DateTrunc) -> Piece:
    date = clocked(fn.item, writer.schema).clock == "date"
    if date and (fn.part == "day" or fn.part in OF_DAY):
        return _within(writer, fn.item)
    scale = f" // {MICROSECONDS}" if date else ""  # exact: the beginning of a day
    return joined(f"CAST(epoch_us(date_trunc('{fn.part}', {{0}})){scale} AS DOUBLE)", _stamp(writer, fn.item))


def _day(writer: PieceWriter, item: RowFn) -> Piece:
    """The day of a moment.

    Of |x| < 2^53 microseconds the quotient is below 2^17 days, where doubles lie
    2^-36 apart: a moment is at least 1/86400000000 > 2^-37 days before the next
    day, so rounding never reaches it.
    """
    if clocked(item, writer.schema).clock == "date":
        return writer.number(item)
    return joined(f"floor({{0}} / {double(MICROSECONDS)})", _within(writer, item))


def _moment(writer: PieceWriter, item: RowFn) -> Piece:
    kind = clocked(item, writer.schema)
    if kind.clock == "timestamp":
        return writer.number(item)
    first, last = ToTimestamp.days()
    low, high, outside = reach(kind)
    days = writer.number(item)
    if outside or low < first or high > last:
        guard = f"{{0}} >= {double(first)} AND {{0}} <= {double(last)}"
        days = joined(f"CASE WHEN {guard} THEN {{0}} END", writer.named(days))
    return joined(f"({{0}} * {double(MICROSECONDS)})", days)
