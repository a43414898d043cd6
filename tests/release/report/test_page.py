"""What a page is made of: cells with their intervals, lines with round ticks, paragraphs."""

from __future__ import annotations

import datetime
import itertools
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sulq.release.base import Chart
from sulq.release.report.page import _ticks, drawing, is_time, texts

DAYS = [datetime.date(2020, month, 1) for month in range(1, 6)]


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (DAYS, True),
        ([*DAYS, None], True),
        (DAYS[::-1], False),
        ([2015, 2016, 2017], True),
        ([2015, 2016], False),
        ([1, 2, 3], False),
        ([True, False, True], False),
        (["a", "b", "c"], False),
        ([None, None, None], False),
        ([], False),
    ],
)
def test_moments_in_order_are_time(cells: list[object], *, expected: bool) -> None:
    """Dates and years are; numbers, texts and what stands in another order are not."""
    assert is_time(cells) is expected


def test_an_estimate_is_shown_with_its_interval() -> None:
    """What is unknown is called so; a key that is missing is."""
    assert texts([10.0, None, 2.5], ([8.0, 0.0, 2.0], [12.0, 9.0, 3.5])) == ["10 +- 2", "unknown", "2.5 in [2.0, 3.5]"]
    assert texts(["Lod", None, 3], None) == ["Lod", "missing", "3"]
    date = datetime.date(2020, 1, 2)
    assert texts([date], ([DAYS[0]], [DAYS[1]])) == ["2020-01-02 in [2020-01-01, 2020-02-01]"]


@given(st.floats(-1e9, 1e9), st.floats(0, 1e9))
def test_ticks_are_even_and_hold_the_range(low: float, span: float) -> None:
    """At least two, at most eight or so, as far apart from each other."""
    ticks = _ticks(low, low + span)
    size = max(abs(low), span, 1.0)
    assert ticks[0] <= low + 1e-9 * size
    assert ticks[-1] >= low + span - 1e-9 * size
    steps = (
        {round((b - a) / (ticks[1] - ticks[0]), 6) for a, b in itertools.pairwise(ticks)} if len(ticks) > 1 else {1.0}
    )
    assert steps == {1.0}
    assert len(ticks) <= 8


def test_a_line_has_a_point_for_each_name_in_a_band() -> None:
    """Every point lies within its band, and names are escaped."""
    chart = Chart("A <b>", tuple("abc<"), (1.0, 5.0, 3.0, 2.0), (0.5, 1.0, 0.0, 2.0), "said")
    drawn = drawing(chart, line=True)
    assert "<b>" not in drawn
    line = [
        tuple(map(float, at.split(",")))
        for at in re.search(r'polyline class="line" points="([^"]*)"', drawn)[1].split()
    ]
    band = [
        tuple(map(float, at.split(","))) for at in re.search(r'polygon class="band" points="([^"]*)"', drawn)[1].split()
    ]
    assert len(line) == 4
    for (x, y), (top_x, top), (low_x, low) in zip(line, band[:4], band[:3:-1], strict=True):
        assert x == top_x == low_x
        assert top - 0.1 <= y <= low + 0.1
    assert drawing(None, line=True) == ""
