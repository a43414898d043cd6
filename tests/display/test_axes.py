"""Axes: which labels are time, where they lie, and ticks that read well."""

from __future__ import annotations

import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sulq.display import moments
from sulq.display.axes import Timeline, number_ticks, time_ticks

DAYS = [datetime.date(2020, 1, day) for day in (1, 2, 5)]


@pytest.mark.parametrize(
    "labels",
    [
        DAYS,
        DAYS[::-1],
        [day.isoformat() for day in DAYS],
        [(DAYS[0], DAYS[1]), (DAYS[1], DAYS[2]), (DAYS[2], None)],
        ["2020-01-01T00:00:00", "2020-01-01T01:00:00", "2020-01-01T06:00:00"],
        [1984, 1985, 1990],
        ["1984", "1985", "1986", "missing"],
        [1984, 1985, 1986, None],
        list(range(0, 120, 5)),
    ],
)
def test_points_in_time_have_places_in_order(labels: list[object]) -> None:
    """Dates, moments, their texts, bins of them, years, and many whole numbers; a missing label has no place."""
    found = Timeline.of(labels)
    assert found is not None
    places = [place for place in found.places if place is not None]
    assert places in (sorted(set(places)), sorted(set(places), reverse=True))
    assert [place is None for place in found.places] == [label in (None, "missing") for label in labels]


@pytest.mark.parametrize(
    "labels",
    [
        [],
        DAYS[:2],
        ["Lod", "Yafo", "Haifa"],
        [0, 1, 2, 3],
        [1984, 1986, 1985],
        [DAYS[0]] * 3,
        [1, "a", None],
        [True] * 20,
        [(0, 20), (20, 40), (40, 60)],
        ["12", "13", "14"],
    ],
)
def test_other_labels_are_no_timeline(labels: list[object]) -> None:
    """Control: names, few whole numbers, what is out of order or too short stay bars."""
    assert Timeline.of(labels) is None


@given(st.floats(-1e12, 1e12), st.floats(0, 1e12), st.integers(2, 12))
def test_numbers_have_round_ticks_that_cover_them(low: float, wide: float, most: int) -> None:
    """Steps of 1, 2 or 5 times a power of ten; no more of them than room."""
    ticks = number_ticks(low, low + wide, most)
    assert len(ticks) <= most + 3
    assert ticks == sorted(set(ticks))
    assert ticks[0] <= low + 1e-6 * wide + 1e-3
    assert ticks[-1] >= low + wide - 1e-6 * wide - 1e-3


@given(
    st.datetimes(datetime.datetime(1700, 1, 1), datetime.datetime(2200, 1, 1)),  # noqa: DTZ001 - in UTC
    st.timedeltas(datetime.timedelta(seconds=10), datetime.timedelta(days=60_000)),
    st.integers(3, 10),
)
def test_time_has_ticks_within_its_span(first: datetime.datetime, wide: datetime.timedelta, most: int) -> None:
    """In order, apart, and of different texts; never more than fit."""
    low, high = moments.seconds(first), moments.seconds(first + wide)
    ticks = time_ticks(low, high, most)
    places = [place for place, _ in ticks]
    assert len(ticks) <= most + 2
    assert places == sorted(set(places))
    assert all(low <= place <= high for place in places)
    assert len({text for _, text in ticks}) == len(ticks)


def test_ticks_are_written_by_their_step() -> None:
    """Hours of a day, days of a month, months, years; years of a timeline of numbers have no comma."""
    day = datetime.datetime(2020, 1, 1)  # noqa: DTZ001 - in UTC
    start = moments.seconds(day)

    def texts(wide: float, most: int = 6) -> list[str]:
        return [text for _, text in time_ticks(start, start + wide, most)]

    assert texts(86_400)[:3] == ["00:00", "06:00", "12:00"]
    assert texts(5 * 86_400)[1] == "2020-01-02"
    assert texts(200 * 86_400)[:2] == ["2020-01", "2020-03"]
    assert texts(3_000 * 86_400)[:2] == ["2020", "2022"]
    years = Timeline.of(list(range(1984, 2004)))
    assert years is not None
    assert [text for _, text in years.ticks(5)] == ["1985", "1990", "1995", "2000"]
