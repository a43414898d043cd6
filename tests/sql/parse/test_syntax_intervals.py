"""Tests of sulq.sql.parse.syntax."""

from __future__ import annotations

import datetime

import pytest

from sulq.sql.parse.syntax import Interval, interval, moved


@pytest.mark.parametrize(
    ("text", "unit", "expected"),
    [
        ("90", "DAY", Interval(days=90)),
        ("1 year", None, Interval(months=12)),
        ("-2 weeks 3 hours", None, Interval(days=-14, microseconds=3 * 3_600_000_000)),
        ("1 mon", None, Interval(months=1)),
        ("", "DAY", None),
        ("5", None, None),
        ("many days", None, None),
        ("10000000 days", None, None),
    ],
)
def test_intervals_are_read(text: str, unit: str | None, expected: Interval | None) -> None:
    """Numbers with units; anything else is not an interval."""
    assert interval(text, unit) == expected


def test_months_are_cut_to_the_month_as_postgresql_does() -> None:
    """31 January and a month is the last of February; a date that is none is None."""
    assert moved(datetime.date(2020, 1, 31), Interval(months=1)) == datetime.datetime(2020, 2, 29)  # noqa: DTZ001
    assert moved(datetime.date(2020, 3, 31), -Interval(months=1)) == datetime.datetime(2020, 2, 29)  # noqa: DTZ001
    assert moved(datetime.date(9999, 12, 1), Interval(months=1)) is None
    assert moved(datetime.date(9999, 12, 31), Interval(days=1)) is None
