"""Dates in PostgreSQL's SQL: every part and period of days all over the calendar, and of moments around midnight."""

from __future__ import annotations

import pytest

from sulq.terms.domain import Date, Schema, Timestamp
from sulq.terms.rowfn import Col, DatePart, DateTrunc, Moment, ToDate, ToTimestamp
from sulq.terms.rowfn.dates import FIRST_DAY, LAST_DAY, PARTS, PERIODS
from tests.curator.engines.rowwise import filled, in_numpy
from tests.curator.engines.rowwise_postgres import in_postgres

WIDE = Schema.of(
    "data",
    {"day": Date("0001-01-01", "9999-12-31"), "moment": Timestamp("1700-01-01T00:00:00", "2250-01-01T00:00:00")},
)
DAYS = [None, FIRST_DAY, FIRST_DAY + 6, LAST_DAY, -1, 0, 3, 59, 11_016, 11_017, 18_321, 18_322, 19_357, 47_540]
NOON = 43_200_000_000
MOMENTS = [
    None, 0, -1, 1, 2 * NOON - 1, 2 * NOON, -2 * NOON, -2 * NOON - 1, NOON, 951_782_399_999_999, 951_782_400_000_000,
    -8_520_336_000_000_000, 8_835_955_199_999_999, -62_135_596,
]  # fmt: skip
ROWS = filled({"day": DAYS, "moment": MOMENTS}, WIDE)


@pytest.mark.parametrize("part", PARTS)
def test_every_part_is_numpys(part):
    """Of days of the first and last year, of leap years and of weeks that lie in two years."""
    for item in (Col("day"), Col("moment"), ToDate(Col("moment")), ToTimestamp(Col("day"))):
        fn = DatePart(part, item)
        assert in_postgres(fn, ROWS, WIDE) == in_numpy(fn, ROWS, WIDE)


@pytest.mark.parametrize("part", PERIODS)
def test_every_period_is_numpys(part):
    """The beginning of a period, before 1970 too."""
    for item in (Col("day"), Col("moment"), ToDate(Col("moment"))):
        fn = DateTrunc(part, item)
        assert in_postgres(fn, ROWS, WIDE) == in_numpy(fn, ROWS, WIDE)


def test_T30_a_day_past_the_calendar_is_missing():
    """A day that was moved past the years 1 to 9999 has no part; PostgreSQL never sees it."""
    for far in (10, -10, 10**9, 4 * 10**6):
        for item in (Col("day") + far, ToTimestamp(Col("day") + far)):
            fn = DatePart("year", item)
            found = in_postgres(fn, ROWS, WIDE)
            assert found == in_numpy(fn, ROWS, WIDE)
            assert found.count(None) > 1
    fn = DatePart("doy", Moment("2000-12-31"))
    assert in_postgres(fn, ROWS, WIDE) == in_numpy(fn, ROWS, WIDE)
