"""Row functions of dates and moments: their parts, the beginnings of periods, and constants.

A date is a whole number of days since 1970, a moment one of microseconds, in
UTC. The calendar is the proleptic Gregorian one, from year 1 to 9999; a day or
moment outside it (or a moment that is no exact double) has no parts and is
missing, so no row can raise (T30). Weeks are ISO weeks, from Monday.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Final, Literal

import numpy as np
import numpy.typing as npt

from sulq.errors import QuestionError, SetupError
from sulq.language.domain import INT_LIMIT, MICROSECONDS, Schema, days, iso_text, microseconds
from sulq.language.kinds import Cells, Frame, Integers, Scalar, Truths, union
from sulq.language.rowfn.base import Col, RowFn, describe, number, numbers, outward
from sulq.language.rowfn.keys import MAX_LABELS, Each, Relabel
from sulq.language.rowfn.maths import Maths
from sulq.language.rowfn.piece import Piece, double, joined
from sulq.language.rowfn.scalar import Clip

if TYPE_CHECKING:
    from sulq.language.rowfn.writer import SqlWriter

FIRST_DAY: Final = days("0001-01-01")
LAST_DAY: Final = days("9999-12-31")
LAST_MOMENT: Final = INT_LIMIT - 1
PARTS: Final = (
    "year", "isoyear", "quarter", "month", "week", "day", "dow", "isodow", "doy", "hour", "minute", "second", "epoch",
)  # fmt: skip
PERIODS: Final = ("year", "quarter", "month", "week", "day", "hour", "minute", "second")
OF_DAY: Final = ("hour", "minute", "second")
SECOND: Final = 1_000_000
_MONTHS: Final = {"year": 12, "quarter": 3, "month": 1}
_SPANS: Final = {"day": MICROSECONDS, "hour": 3600 * SECOND, "minute": 60 * SECOND, "second": SECOND}


def clocked(fn: RowFn, schema: Schema) -> Scalar:
    """The kind of a row function used as a date or moment."""
    kind = fn.kind(schema)
    if not isinstance(kind, Scalar) or kind.clock is None:
        raise QuestionError("wrong-kind", f"{describe(fn)} is not a date.")
    return kind


def calendar(clock: str) -> tuple[int, int]:
    """The first and last day, or moment, that has parts."""
    return (FIRST_DAY, LAST_DAY) if clock == "date" else (-LAST_MOMENT, LAST_MOMENT)


def reach(kind: Scalar) -> tuple[int, int, bool]:
    """The first and last day or moment a value of this kind that has parts can be, and whether some have none."""
    first, last = calendar(kind.clock or "date")
    if kind.lo is None or kind.hi is None:
        return first, last, True
    low, high = (min(max(end, first), last) for end in (math.ceil(kind.lo), math.floor(kind.hi)))
    return low, high, kind.lo < first or kind.hi > last


def within(fn: RowFn, clock: str, frame: Frame) -> tuple[Integers, Truths | None]:
    """Whole days or moments that have parts, 0 where there is none."""
    values, missing = numbers(fn, frame)
    first, last = calendar(clock)
    outside = ~((values >= first) & (values <= last))
    return np.where(outside, 0.0, values).astype(np.int64), union(missing, outside)


def _inside(writer: SqlWriter, fn: RowFn) -> Piece:
    """A day or moment as a double, NULL outside the calendar."""
    kind = clocked(fn, writer.schema)
    item = writer.number(fn)
    if not reach(kind)[2]:
        return item
    first, last = map(double, calendar(kind.clock or "date"))
    return joined(f"CASE WHEN {{0}} >= {first} AND {{0}} <= {last} THEN {{0}} END", writer.named(item))


def _stamp(writer: SqlWriter, fn: RowFn) -> Piece:
    """A day or moment as a timestamp of DuckDB's."""
    kind = clocked(fn, writer.schema)
    if isinstance(fn, Col) and writer.rows.names[fn.name] not in writer.rows.doubles:
        units = joined("CAST({0} AS BIGINT)", writer.column(fn.name))  # a stored integer: no cast can fail
    else:
        units = joined("TRY_CAST({0} AS BIGINT)", _inside(writer, fn))
    scale = f" * {MICROSECONDS}" if kind.clock == "date" else ""
    return joined(f"make_timestamp({{0}}{scale})", units)


def _day(values: Integers, clock: str) -> Integers:
    return values if clock == "date" else values // MICROSECONDS


def _since(values: Integers, clock: str, unit: str) -> Integers:
    """Whole years or months since 1970."""
    moments: npt.NDArray[np.datetime64] = _day(values, clock).astype("datetime64[D]")
    return moments.astype(f"datetime64[{unit}]").astype(np.int64)


def _start(values: Integers, unit: str) -> Integers:
    """The first days of years or months since 1970."""
    moments: npt.NDArray[np.datetime64] = values.astype(f"datetime64[{unit}]")
    return moments.astype("datetime64[D]").astype(np.int64)


def _thursday(values: Integers, clock: str) -> Integers:
    """The Thursday of the same ISO week: its year is the week's year. 1970 began on a Thursday."""
    day = _day(values, clock)
    return day - (day + 3) % 7 + 3


def _of_day(values: Integers, clock: str) -> Integers:
    """Microseconds since midnight."""
    return np.zeros_like(values) if clock == "date" else values % MICROSECONDS


def _week(values: Integers, clock: str) -> Integers:
    thursday = _thursday(values, clock)
    return (thursday - _start(_since(thursday, "date", "Y"), "Y")) // 7 + 1


_PARTS: Final[dict[str, Callable[[Integers, str], Integers]]] = {
    "year": lambda x, clock: _since(x, clock, "Y") + 1970,
    "isoyear": lambda x, clock: _since(_thursday(x, clock), "date", "Y") + 1970,
    "quarter": lambda x, clock: _since(x, clock, "M") % 12 // 3 + 1,
    "month": lambda x, clock: _since(x, clock, "M") % 12 + 1,
    "week": _week,
    "day": lambda x, clock: _day(x, clock) - _start(_since(x, clock, "M"), "M") + 1,
    "dow": lambda x, clock: (_day(x, clock) + 4) % 7,
    "isodow": lambda x, clock: (_day(x, clock) + 3) % 7 + 1,
    "doy": lambda x, clock: _day(x, clock) - _start(_since(x, clock, "Y"), "Y") + 1,
    "hour": lambda x, clock: _of_day(x, clock) // _SPANS["hour"],
    "minute": lambda x, clock: _of_day(x, clock) // _SPANS["minute"] % 60,
    "second": lambda x, clock: _of_day(x, clock) % _SPANS["minute"],  # in microseconds
}
# The values a part can have, and the period within which it only grows.
RANGES: Final[dict[str, tuple[int, int, str]]] = {
    "quarter": (1, 4, "year"),
    "month": (1, 12, "year"),
    "week": (1, 53, "isoyear"),
    "day": (1, 31, "month"),
    "dow": (0, 6, "day"),
    "isodow": (1, 7, "week"),
    "doy": (1, 366, "year"),
    "hour": (0, 23, "day"),
    "minute": (0, 59, "hour"),
    "second": (0, 60 * SECOND - 1, "minute"),
}


def part_of(part: str, value: int, clock: str) -> int:
    """One part of one date or moment; seconds in microseconds."""
    return int(_PARTS[part](np.array([value], dtype=np.int64), clock)[0])


@dataclass(frozen=True, slots=True, eq=False)
class DatePart(RowFn, item="The date"):
    """A part of a date or moment as a number: year, month, dow (0 is Sunday), second (with its fraction), epoch, ..."""

    part: str
    item: RowFn

    def __post_init__(self) -> None:
        if self.part not in PARTS:
            raise QuestionError("bad-question", f"A part of a date is one of {', '.join(PARTS)}.")
        RowFn.__post_init__(self)

    def kind(self, schema: Schema) -> Scalar:
        inner = clocked(self.item, schema)
        clock = inner.clock or "date"
        low, high, outside = reach(inner)
        nullable = inner.nullable or outside
        if self.part == "epoch":
            if clock == "date":
                return Scalar(Fraction(low * 86_400), Fraction(high * 86_400), Fraction(1), nullable)
            return Scalar(*outward(Fraction(low, SECOND), Fraction(high, SECOND)), nullable=nullable)
        first, last = self._range(low, high, clock)
        if self.part == "second":
            return Scalar(*outward(Fraction(first, SECOND), Fraction(last, SECOND)), nullable=nullable)
        return Scalar(Fraction(first), Fraction(last), Fraction(1), nullable)

    def _range(self, low: int, high: int, clock: str) -> tuple[int, int]:
        ends = part_of(self.part, low, clock), part_of(self.part, high, clock)
        if self.part not in RANGES:
            return ends
        first, last, period = RANGES[self.part]
        if clock == "date" and self.part in OF_DAY:
            return 0, 0
        if period == "isoyear":
            same = part_of("isoyear", low, clock) == part_of("isoyear", high, clock)
        else:
            same = started(period, low, clock) == started(period, high, clock)
        return ends if same else (first, last)

    def cells(self, frame: Frame) -> Cells:
        clock = clocked(self.item, frame.schema).clock or "date"
        values, missing = within(self.item, clock, frame)
        if self.part == "epoch":
            seconds = values * 86_400.0 if clock == "date" else values.astype(np.float64) / SECOND
            return Cells(seconds, missing)
        found = _PARTS[self.part](values, clock).astype(np.float64)
        return Cells(found / SECOND if self.part == "second" else found, missing)

    def sql(self, writer: SqlWriter) -> Piece:
        date = clocked(self.item, writer.schema).clock == "date"
        if self.part == "epoch":
            return joined("({0} * 86400e0)" if date else "({0} / 1000000e0)", _inside(writer, self.item))
        if date and self.part in OF_DAY:
            return joined("CASE WHEN {0} IS NOT NULL THEN 0e0 END", _inside(writer, self.item))
        stamp = _stamp(writer, self.item)
        if self.part == "second":
            return joined("(CAST(date_part('microseconds', {0}) AS DOUBLE) / 1000000e0)", stamp)
        return joined(f"CAST(date_part('{self.part}', {{0}}) AS DOUBLE)", stamp)  # of PARTS: not the analyst's text


def _starts(part: str, values: Integers, clock: str) -> Integers:
    """The beginning of each value's period, on the same clock."""
    scale = 1 if clock == "date" else MICROSECONDS
    if part in OF_DAY:
        return values if clock == "date" else values // _SPANS[part] * _SPANS[part]
    day = _day(values, clock)
    if part == "week":
        day = day - (day + 3) % 7
    elif part == "year":
        day = _start(_since(day, "date", "Y"), "Y")
    elif part != "day":
        months = _since(day, "date", "M")
        day = _start(months - months % 3 if part == "quarter" else months, "M")
    return day * scale


def started(part: str, value: int, clock: str) -> int:
    """The beginning of the period of one date or moment."""
    return int(_starts(part, np.array([value], dtype=np.int64), clock)[0])


@dataclass(frozen=True, slots=True, eq=False)
class DateTrunc(RowFn, item="The date"):
    """The beginning of the period a date or moment lies in, on the same clock."""

    part: str
    item: RowFn

    def __post_init__(self) -> None:
        if self.part not in PERIODS:
            raise QuestionError("bad-question", f"A period is one of {', '.join(PERIODS)}.")
        RowFn.__post_init__(self)

    def kind(self, schema: Schema) -> Scalar:
        inner = clocked(self.item, schema)
        low, high, outside = reach(inner)
        first, last = (Fraction(started(self.part, end, inner.clock or "date")) for end in (low, high))
        return Scalar(first, last, Fraction(1), inner.nullable or outside, inner.clock)

    def cells(self, frame: Frame) -> Cells:
        clock = clocked(self.item, frame.schema).clock or "date"
        values, missing = within(self.item, clock, frame)
        return Cells(_starts(self.part, values, clock).astype(np.float64), missing)

    def sql(self, writer: SqlWriter) -> Piece:
        date = clocked(self.item, writer.schema).clock == "date"
        if date and self.part in ("day", *OF_DAY):
            return _inside(writer, self.item)
        scale = f" // {MICROSECONDS}" if date else ""  # exact: the beginning of a day
        return joined(f"CAST(epoch_us(date_trunc('{self.part}', {{0}})){scale} AS DOUBLE)", _stamp(writer, self.item))


@dataclass(frozen=True, slots=True, eq=False)
class ToDate(RowFn, item="The date"):
    """The day of a moment; a date as it is."""

    item: RowFn

    def kind(self, schema: Schema) -> Scalar:
        inner = clocked(self.item, schema)
        if inner.clock == "date":
            return inner
        low, high, outside = reach(inner)
        first, last = (Fraction(end // MICROSECONDS) for end in (low, high))
        return Scalar(first, last, Fraction(1), inner.nullable or outside, "date")

    def cells(self, frame: Frame) -> Cells:
        clock = clocked(self.item, frame.schema).clock or "date"
        if clock == "date":
            return Cells(*numbers(self.item, frame))
        values, missing = within(self.item, clock, frame)
        return Cells((values // MICROSECONDS).astype(np.float64), missing)

    def sql(self, writer: SqlWriter) -> Piece:
        """The quotient of |x| < 2^53 microseconds is below 2^17 days, where doubles lie 2^-36 apart.

        A moment is at least 1/86400000000 > 2^-37 days before the next day, so rounding never reaches it.
        """
        if clocked(self.item, writer.schema).clock == "date":
            return writer.number(self.item)
        return joined(f"floor({{0}} / {double(MICROSECONDS)})", _inside(writer, self.item))


@dataclass(frozen=True, slots=True, eq=False)
class ToTimestamp(RowFn, item="The date"):
    """The first moment of a day, missing where moments do not reach (before 1685, after 2255); a moment as it is."""

    item: RowFn

    @staticmethod
    def days() -> tuple[int, int]:
        """The first and last day whose first moment is an exact double."""
        return -(LAST_MOMENT // MICROSECONDS), LAST_MOMENT // MICROSECONDS

    def kind(self, schema: Schema) -> Scalar:
        inner = clocked(self.item, schema)
        if inner.clock == "timestamp":
            return inner
        first, last = self.days()
        low, high, outside = reach(inner)
        nullable = inner.nullable or outside or low < first or high > last
        low, high = (min(max(end, first), last) * MICROSECONDS for end in (low, high))
        return Scalar(Fraction(low), Fraction(high), Fraction(1), nullable, "timestamp")

    def cells(self, frame: Frame) -> Cells:
        values, missing = numbers(self.item, frame)
        if clocked(self.item, frame.schema).clock == "timestamp":
            return Cells(values, missing)
        first, last = self.days()
        outside = ~((values >= first) & (values <= last))
        return Cells(np.where(outside, 0.0, values) * MICROSECONDS, union(missing, outside))

    def sql(self, writer: SqlWriter) -> Piece:
        kind = clocked(self.item, writer.schema)
        days = writer.number(self.item)
        if kind.clock == "timestamp":
            return days
        first, last = self.days()
        low, high, outside = reach(kind)
        if outside or low < first or high > last:
            guard = f"{{0}} >= {double(first)} AND {{0}} <= {double(last)}"
            days = joined(f"CASE WHEN {guard} THEN {{0}} END", writer.named(days))
        return joined(f"({{0}} * {double(MICROSECONDS)})", days)


@dataclass(frozen=True, slots=True, eq=False)
class Moment(RowFn):
    """A constant date ("2020-02-29") or moment in UTC ("2020-02-29T12:00:00")."""

    text: str
    clock: Literal["date", "timestamp"] = "date"

    def __post_init__(self) -> None:
        if self.clock not in ("date", "timestamp"):
            raise QuestionError("bad-question", "A constant moment is a date or a timestamp.")
        if isinstance(self.text, datetime.date):
            object.__setattr__(self, "text", self.text.isoformat())
        first, last = calendar(self.clock)
        if not first <= self.value <= last:
            raise QuestionError("bad-literal", "A timestamp lies between 1685 and 2255.")

    def moment(self) -> int:
        return self.value

    @property
    def value(self) -> int:
        """Days or microseconds since 1970."""
        try:
            return days(self.text) if self.clock == "date" else microseconds(self.text)
        except SetupError as error:
            raise QuestionError("bad-literal", error.message) from None

    def kind(self, schema: Schema) -> Scalar:
        exact = Fraction(self.value)
        return Scalar(exact, exact, Fraction(1), nullable=False, clock=self.clock)

    def cells(self, frame: Frame) -> Cells:
        return Cells(np.full(frame.size, float(self.value)), None)

    def sql(self, writer: SqlWriter) -> Piece:
        return Piece(double(self.value), atom=True)


def periods(part: str, item: RowFn, schema: Schema) -> Relabel:
    """The period of a date or moment as a key, over its declared range; the labels are the periods' beginnings.

    Periods are counted by a whole number: years, months since year 0, weeks and
    shorter ones since 1970. floor(x / b) of whole numbers, |x| < 2^53, is exact in
    doubles: x / b is at least 1 / b from the next whole number k, and half a unit in
    the last place of k is less than that, since k b <= 2^53.
    """
    if part not in PERIODS:
        raise QuestionError("bad-question", f"A period is one of {', '.join(PERIODS)}.")
    kind = clocked(item, schema)
    clock: Literal["date", "timestamp"] = "date" if kind.clock == "date" else "timestamp"
    if clock == "date" and part in _SPANS:
        part = "day"
    low, high, _ = reach(kind)
    ends = (_counted(part, Moment(iso_text(end, clock), clock)) for end in (low, high))
    first, last = (int(number(end, schema).limits[0]) for end in ends)
    if last - first >= MAX_LABELS:
        raise QuestionError("too-large", f"{describe(item)} has too many periods of a {part} for a key.")
    begun = _following(part, started(part, low, clock), last - first + 1, clock)
    starts = tuple(iso_text(start, clock) for start in begun.tolist())
    return Relabel(Each(Clip(_counted(part, item), first, last)), starts)


def _counted(part: str, item: RowFn) -> RowFn:
    """The number of the period each row lies in."""
    if part == "year":
        return DatePart("year", item)
    if part in _MONTHS:
        return DatePart("year", item) * (12 // _MONTHS[part]) + DatePart(part, item)
    if part == "week":
        return Maths("floor", (_within(ToDate(item)) + 3) / 7)
    return _within(ToDate(item)) if part == "day" else Maths("floor", _within(item) / _SPANS[part])


def _within(item: RowFn) -> RowFn:
    """A date or moment, missing outside the calendar."""
    return DateTrunc("second", item)


def _following(part: str, start: int, many: int, clock: str) -> Integers:
    """The beginnings of so many periods, the first of which begins at `start`."""
    places = np.arange(many, dtype=np.int64)
    if part in _MONTHS:
        days = _start(_since(np.array([start]), clock, "M") + places * _MONTHS[part], "M")
        return days if clock == "date" else days * MICROSECONDS
    span = _SPANS.get(part, 7 * MICROSECONDS)
    return start + places * (span // MICROSECONDS if clock == "date" else span)
