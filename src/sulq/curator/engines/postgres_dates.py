"""Parts and periods of dates as PostgreSQL's SQL: whole days and microseconds, and its calendar for longer periods.

A day that is not known to lie within the years 1 to 9999 is held there before the
calendar sees it, and NULL: no order of evaluation can make one fail (T30).
"""

from __future__ import annotations

from typing import Final

from sulq.curator.engines.piece import Piece, Writer, joined
from sulq.curator.engines.postgres_literal import double
from sulq.terms.domain import MICROSECONDS
from sulq.terms.rowfn.dates import DatePart, DateTrunc, ToDate, ToTimestamp, calendar, clocked, reach
from sulq.terms.rowfn.scalar import Col, RowFn

SPANS: Final = {"hour": 3_600_000_000, "minute": 60_000_000, "second": 1_000_000}
_EPOCH: Final = "date '1970-01-01'"


def number(writer: Writer, fn: RowFn) -> Piece | None:
    """A function of dates as a double; None for any other."""
    match fn:
        case DatePart(part, item):
            return _part(writer, part, item)
        case DateTrunc(part, item):
            return joined("CAST({0} AS float8)", _period(writer, part, item))
        case ToDate(item):
            if _clock(writer, item) == "date":
                return writer.number(item)
            return joined("CAST({0} AS float8)", _days(writer, item))
        case ToTimestamp(item):
            return _moment(writer, item)
    return None


def _clock(writer: Writer, item: RowFn) -> str:
    return clocked(item, writer.schema).clock or "date"


def _units(writer: Writer, fn: RowFn) -> Piece:
    """Whole days or microseconds, NULL outside the calendar; a name."""
    kind = clocked(fn, writer.schema)
    if isinstance(fn, Col) and not reach(kind)[2]:
        return writer.named(joined("CAST({0} AS bigint)", writer.column(fn.name)))
    first, last = map(double, calendar(kind.clock or "date"))
    held = f"CAST(least(greatest({{0}}, {first}), {last}) AS bigint)"
    item = writer.named(writer.number(fn))
    return writer.named(joined(f"CASE WHEN {{0}} >= {first} AND {{0}} <= {last} THEN {held} END", item))


def _floored(by: int) -> str:
    """What is over of {0} by a whole number, never negative."""
    return f"mod(mod({{0}}, {by}) + {by}, {by})"


def _days(writer: Writer, fn: RowFn) -> Piece:
    """The day, as a whole number; a name."""
    units = _units(writer, fn)
    if _clock(writer, fn) == "date":
        return units
    return writer.named(joined(f"(({{0}} - {_floored(MICROSECONDS)}) / {MICROSECONDS})", units))


def _of_day(writer: Writer, fn: RowFn) -> Piece:
    """Microseconds since midnight."""
    return writer.named(joined(_floored(MICROSECONDS), _units(writer, fn)))


def _part(writer: Writer, part: str, item: RowFn) -> Piece:
    date = _clock(writer, item) == "date"
    if part == "epoch":
        scale = f"* {double(86_400)}" if date else f"/ {double(1_000_000)}"
        return joined(f"(CAST({{0}} AS float8) {scale})", _units(writer, item))
    if part in SPANS:
        if date:
            return joined(f"CASE WHEN {{0}} IS NOT NULL THEN {double(0)} END", _units(writer, item))
        rest = _of_day(writer, item)
        if part == "second":
            return joined(f"(CAST(mod({{0}}, {SPANS['minute']}) AS float8) / {double(1_000_000)})", rest)
        whole = f"mod({{0}} / {SPANS[part]}, 60)" if part == "minute" else f"({{0}} / {SPANS[part]})"
        return joined(f"CAST({whole} AS float8)", rest)
    day = f"({_EPOCH} + CAST({{0}} AS integer))"
    return joined(f"CAST(extract({part} FROM {day}) AS float8)", _days(writer, item))  # of PARTS: not an analyst's text


def _period(writer: Writer, part: str, item: RowFn) -> Piece:
    """The beginning of a period on the item's own clock, as a whole number."""
    date = _clock(writer, item) == "date"
    if part in SPANS and not date:
        return joined(f"({{0}} - mod({{1}}, {SPANS[part]}))", _units(writer, item), _of_day(writer, item))
    days = _days(writer, item)
    if part == "week":
        days = joined("({0} - mod(mod({0} + 3, 7) + 7, 7))", days)  # 1970 began on a Thursday
    elif part in ("year", "quarter", "month"):
        moment = f"CAST({_EPOCH} + CAST({{0}} AS integer) AS timestamp)"
        days = joined(f"CAST(CAST(date_trunc('{part}', {moment}) AS date) - {_EPOCH} AS bigint)", days)
    return days if date else joined(f"({{0}} * {MICROSECONDS})", days)


def _moment(writer: Writer, item: RowFn) -> Piece:
    if _clock(writer, item) == "timestamp":
        return writer.number(item)
    first, last = ToTimestamp.days()
    days = writer.named(writer.number(item))
    guard = f"{{0}} >= {double(first)} AND {{0}} <= {double(last)}"
    held = f"least(greatest({{0}}, {double(first)}), {double(last)})"
    return joined(f"CASE WHEN {guard} THEN {held} * {double(MICROSECONDS)} END", days)
