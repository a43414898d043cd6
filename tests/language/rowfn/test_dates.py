"""Dates and moments: parts against Python's own calendar, periods as keys, arithmetic that keeps the clock."""

from __future__ import annotations

import datetime
import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sulq.errors import QuestionError
from sulq.language.domain import Date, Schema, Timestamp, days, iso_text, microseconds
from sulq.language.rowfn import Arith, Col, DatePart, DateTrunc, Lit, Moment, ToDate, ToTimestamp, periods
from sulq.language.rowfn.base import evaluate
from sulq.language.rowfn.dates import FIRST_DAY, LAST_DAY, LAST_MOMENT, PARTS, PERIODS, started
from tests.counts import count
from tests.expressions import SCHEMA
from tests.frames import Frame
from tests.meaning import meaning

CASES = count("dates against Python's calendar", short=200, long=5_000)
EVER = Schema.of("t", {"d": Date("0001-01-01", "9999-12-31"), "m": Timestamp("1685-01-01", "2255-01-01")})
DAYS = st.integers(FIRST_DAY, LAST_DAY) | st.sampled_from([FIRST_DAY, LAST_DAY, 0, -1])
MOMENTS = st.integers(EVER.find("m").low, EVER.find("m").high) | st.sampled_from([0, -1, -86_400_000_001])


def value(fn, row, schema=EVER):
    cells = evaluate(fn, Frame(schema, [row]))
    return None if cells.missing is not None and cells.missing[0] else float(cells.values[0])


@settings(max_examples=CASES)
@given(DAYS, MOMENTS)
def test_parts_and_periods_are_those_of_pythons_calendar(day, moment):
    """Every part and every period, of days from year 1 to 9999 and of moments before and after 1970."""
    row = {"d": day, "m": moment}
    for name in ("d", "m"):
        fns = [DatePart(part, Col(name)) for part in PARTS] + [DateTrunc(part, Col(name)) for part in PERIODS]
        for fn in (*fns, ToDate(Col(name)), ToTimestamp(Col(name))):
            assert value(fn, row) == meaning(fn, EVER, row), fn


@settings(max_examples=CASES)
@given(st.data(), st.booleans())
def test_a_part_lies_in_its_interval_and_reaches_it_T13(data, moment):
    """Of any range of days: the interval holds each part, and is no wider than the days of that range need (T13)."""
    first = data.draw(MOMENTS if moment else DAYS)
    span = data.draw(st.sampled_from([0, 1, 5, 40, 400]) | st.integers(0, 1000))
    scale = data.draw(st.sampled_from([1, 10**6, 3600 * 10**6, 86_400 * 10**6])) if moment else 1
    last = min(first + span * scale, EVER.find("m").high if moment else LAST_DAY)
    ends = [iso_text(end, "timestamp" if moment else "date") for end in (first, last)]
    schema = Schema.of("t", {"x": (Timestamp if moment else Date)(*ends)})
    rows = [{"x": unit} for unit in sorted({*np.linspace(first, last, 50).astype(np.int64).tolist(), first, last})]
    for fn in [DatePart(part, Col("x")) for part in PARTS] + [DateTrunc(part, Col("x")) for part in PERIODS]:
        kind = fn.kind(schema)
        found = evaluate(fn, Frame(schema, rows)).values.tolist()
        assert all(kind.lo <= Fraction(x) <= kind.hi for x in found), fn
        if first == last:
            assert kind.lo <= Fraction(found[0]) <= kind.hi
            assert kind.hi - kind.lo <= Fraction(1, 10**5)


def test_a_narrow_range_has_narrow_parts():
    """Days of one month have that month; days of two years have all twelve."""
    kinds = {
        ("2020-02-03", "2020-02-27"): {"year": (2020, 2020), "month": (2, 2), "day": (3, 27), "quarter": (1, 1)},
        ("2020-02-03", "2020-04-27"): {"year": (2020, 2020), "month": (2, 4), "day": (1, 31), "quarter": (1, 2)},
        ("2019-12-31", "2020-01-01"): {"year": (2019, 2020), "month": (1, 12), "isoyear": (2020, 2020), "week": (1, 1)},
    }
    for ends, parts in kinds.items():
        schema = Schema.of("t", {"x": Date(*ends)})
        for part, want in parts.items():
            kind = DatePart(part, Col("x")).kind(schema)
            assert (kind.lo, kind.hi) == want, part


@pytest.mark.parametrize("make", [Date, Timestamp])
@pytest.mark.parametrize("part", PERIODS)
def test_periods_follow_one_another(part, make):
    """Each label is the beginning of its own period, and the moment before belongs to the one before."""
    short = make is Timestamp and part in ("hour", "minute", "second")
    ends = ("1969-12-31T23:40", "1970-01-01T02:20") if short else ("1960-05-05", "1975-07-07")
    schema = Schema.of("t", {"x": make(*ends)})
    column, clock = schema.find("x"), "date" if make is Date else "timestamp"
    labels = periods(part, Col("x"), schema).kind(schema).labels
    starts = [(days if make is Date else microseconds)(label) for label in labels]
    assert starts[0] == started(part, column.low, clock)
    assert starts[-1] == started(part, column.high, clock)
    for before, after in itertools.pairwise(starts):
        assert started(part, after, clock) == after
        assert started(part, after - 1, clock) == before


@pytest.mark.parametrize(
    ("part", "column", "labels"),
    [
        ("month", Date("2020-01-31", "2020-03-01"), ("2020-01-01", "2020-02-01", "2020-03-01")),
        ("week", Date("2020-01-01", "2020-01-06"), ("2019-12-30", "2020-01-06")),
        ("day", Date("2020-02-28", "2020-03-01"), ("2020-02-28", "2020-02-29", "2020-03-01")),
        ("hour", Date("2020-02-28", "2020-02-28"), ("2020-02-28",)),
        ("year", Date("9998-05-05", "9999-12-31"), ("9998-01-01", "9999-01-01")),
        ("quarter", Timestamp("2020-01-01", "2020-06-30"), ("2020-01-01T00:00:00", "2020-04-01T00:00:00")),
        ("day", Timestamp("2020-01-01", "2020-01-02"), ("2020-01-01T00:00:00", "2020-01-02T00:00:00")),
        ("hour", Timestamp("2020-01-01T01:59", "2020-01-01T02:00"), ("2020-01-01T01:00:00", "2020-01-01T02:00:00")),
    ],
)
def test_a_period_is_a_key_over_the_declared_range(part, column, labels):
    """Every period of the range is a label, the day it begins; each row lies in the period its truncation names."""
    schema = Schema.of("t", {"x": column})
    key = periods(part, Col("x"), schema)
    assert key.kind(schema).labels == labels
    scale = 1 if isinstance(column, Date) else max((column.high - column.low) // 300, 1)
    for unit in [*range(column.low, column.high, scale), column.high]:
        place = value(key, {"x": unit}, schema)
        start = value(DateTrunc(part, Col("x")), {"x": unit}, schema)
        assert labels[int(place)] == iso_text(int(start), "date" if isinstance(column, Date) else "timestamp")


def test_periods_past_all_measure_are_refused():
    """Seconds of a century are no key."""
    for part in ("second", "day"):
        schema = Schema.of("t", {"x": Timestamp("1900-01-01", "2000-01-01"), "d": Date("0001-01-01", "9999-12-31")})
        with pytest.raises(QuestionError) as refusal:
            periods(part, Col("x" if part == "second" else "d"), schema)
        assert refusal.value.code == "too-large"


def test_arithmetic_keeps_the_clock_where_it_should():
    """A date moved by whole days is a date; two dates differ by a number; halves of days are numbers."""
    day, moment = Col("day"), Col("moment")
    clocks = {
        day + 1: "date",
        1 + day: "date",
        day - 1: "date",
        day + Col("few"): "date",
        moment + 60_000_000: "timestamp",
        day - day: None,
        moment - moment: None,
        day + day: None,
        day * 2: None,
        1 - day: None,
        day + 0.5: None,
        day - Moment("2020-03-01"): None,
    }
    for fn, clock in clocks.items():
        assert fn.kind(SCHEMA).clock == clock, fn
    assert (day + 30 < "2020-04-01").kind(SCHEMA).nullable
    with pytest.raises(QuestionError):
        (day + 30 < 18321).kind(SCHEMA)


def test_what_leaves_the_calendar_is_missing_T30():
    """A day before year 1 has no year, and the kind says that it may be missing."""
    fn = DatePart("year", Arith("+", Moment("9999-12-31"), Col("few")))
    assert fn.kind(SCHEMA).nullable
    assert [value(fn, {"few": few}, SCHEMA) for few in (-1, 0, 1)] == [9999, 9999, None]
    sure = DatePart("year", Moment("9999-12-31"))
    assert not sure.kind(SCHEMA).nullable
    far = ToTimestamp(Moment("0001-01-01"))
    assert value(far, {}, SCHEMA) is None
    assert far.kind(SCHEMA).nullable


def test_constants_are_dates_of_the_calendar():
    """Texts and Python's own dates; moments in UTC and within the exact doubles."""
    assert Moment(datetime.date(2020, 2, 29)).value == 18321
    assert Moment("1970-01-01T01:00:00+01:00", "timestamp").value == 0
    assert Moment("2020-02-29").kind(SCHEMA).clock == "date"
    assert abs(LAST_MOMENT) < 2**53
    for bad in (("2020-02-30",), ("1600-01-01", "timestamp"), ("x",), ("2020-01-01", "time"), (3,)):
        with pytest.raises(QuestionError):
            Moment(*bad)


@pytest.mark.parametrize(
    "maker",
    [
        lambda: DatePart("era", Col("day")),
        lambda: DateTrunc("decade", Col("day")),
        lambda: DatePart("year", "day"),
        lambda: periods("era", Col("day"), SCHEMA),
        lambda: DatePart("year", Col("few")).kind(SCHEMA),
        lambda: DateTrunc("year", Lit("2020-01-01")).kind(SCHEMA),
        lambda: ToDate(Col("name")).kind(SCHEMA),
        lambda: ToTimestamp(Col("few")).kind(SCHEMA),
    ],
)
def test_what_is_no_date_has_no_parts(maker):
    """Numbers and texts are refused; so are parts that are not listed."""
    with pytest.raises(QuestionError) as refusal:
        maker()
    assert refusal.value.code in {"bad-question", "wrong-kind"}
