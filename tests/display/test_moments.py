"""Dates and moments: their places, and texts no finer than their interval."""

# ruff: noqa: DTZ001, DTZ901 - moments here are in UTC, without a zone

from __future__ import annotations

import datetime
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sulq.display import moments

NOON = datetime.datetime(2020, 1, 11, 12, 0, 7, 435519)
MOMENTS = st.datetimes(datetime.datetime(1700, 1, 1), datetime.datetime(2250, 1, 1))


@given(MOMENTS, st.timedeltas(datetime.timedelta(0), datetime.timedelta(days=900)))
def test_a_printed_interval_holds_the_true_one(when: datetime.datetime, wide: datetime.timedelta) -> None:
    """Ends are rounded outwards, and the value lies between them."""
    low, high = when - wide, when + wide / 3
    at, start, end = (datetime.datetime.fromisoformat(text) for text in moments.estimate(when, low, high))
    assert start <= low <= when <= high <= end
    assert start <= at <= end


@pytest.mark.parametrize(
    ("away", "shown"),
    [
        (datetime.timedelta(days=40), "2020-01-12 in [2019-12-02, 2020-02-21]"),
        (datetime.timedelta(hours=13), "2020-01-11 12:00 in [2020-01-10 23:00, 2020-01-12 02:00]"),
        (datetime.timedelta(minutes=15), "2020-01-11 12:00 in [2020-01-11 11:45, 2020-01-11 12:16]"),
        (datetime.timedelta(seconds=1), "2020-01-11 12:00:07.4 in [2020-01-11 12:00:06.4, 2020-01-11 12:00:08.5]"),
    ],
)
def test_a_moment_is_rounded_by_its_interval(away: datetime.timedelta, shown: str) -> None:
    """To days, hours, minutes, or tenths of a second. Control: its own text has microseconds."""
    assert moments.bracketed(NOON, NOON - away, NOON + away) == shown
    assert moments.text(NOON).endswith("07.435519")


def test_dates_are_whole_days() -> None:
    """A date is written as it is, and so are the ends of its interval."""
    first, last = datetime.date(2020, 1, 1), datetime.date(2020, 1, 8)
    assert moments.bracketed(first, first, last) == "2020-01-01 in [2020-01-01, 2020-01-08]"


def test_places_lead_back() -> None:
    """Days and microseconds from 1970; beyond the calendar the nearest there is."""
    assert moments.moment(moments.place(datetime.date(2020, 2, 29)), "date") == datetime.date(2020, 2, 29)
    assert moments.moment(moments.place(NOON), "timestamp") == NOON
    for far in (1e300, math.inf):
        assert moments.moment(far, "date") == datetime.date.max
    assert moments.moment(-1e300, "timestamp") == datetime.datetime.min


def test_an_interval_of_dates_holds_parts_of_days() -> None:
    """A mean of dates lies between days: its ends are rounded outwards. Control: the nearest day leaves some out."""
    day = datetime.date(1970, 1, 2)
    assert (moments.first(1.4, "date"), moments.last(1.4, "date")) == (day, datetime.date(1970, 1, 3))
    assert moments.moment(1.4, "date") == day
    assert moments.first(-math.inf, "timestamp") == datetime.datetime.min
    assert moments.last(math.inf, "date") == datetime.date.max


def test_labels_that_are_moments_are_read() -> None:
    """Dates, moments and their ISO texts, with a zone or without; nothing else."""
    day = datetime.datetime(2020, 1, 2)
    for label in (datetime.date(2020, 1, 2), day, "2020-01-02", "2020-01-02T00:00:00", "2020-01-02T02:00:00+02:00"):
        assert moments.read(label) == day
    for label in ("Lod", "2020", "20200102xx", "1234-xx-99", 2020, None, 1.5):
        assert moments.read(label) is None
    assert moments.at(moments.seconds(day)) == day
