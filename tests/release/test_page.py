"""The page of a release: bars with numbers rounded by their intervals, lines over time, and nothing but text."""

from __future__ import annotations

import re

from sulq.release.page import MAX_BARS, Chart, page

ERROR = (33.0, 33.0, 33.0)


def test_bars_carry_numbers_rounded_by_their_intervals() -> None:
    """The number beside a bar has its interval; one without has none. Names stay text (T83)."""
    shown = page("t", "paid", [Chart("c", ("<Lod>", "Yafo"), (1234.4, -2.0), (33.3, 33.3), "said")])
    assert ">1234 +- 34</text>" in shown
    assert ">-2 +- 34</text>" in shown
    assert "<Lod>" not in shown
    assert shown.count('class="bar"') == shown.count('class="whisker"') == 2
    bare = page("t", "paid", [Chart("c", ("a",), (0.123456,))])
    assert ">0.123456</text>" in bare
    assert 'class="whisker"' not in bare


def test_time_is_drawn_as_a_line() -> None:
    """Names that are dates or years: a line, a band and ticks; all points, however many. Control: cities are bars."""
    days = tuple(f"2020-{month:02}-{day:02}" for month in range(1, 7) for day in range(1, 28))
    shown = page("t", "paid", [Chart("c", days, tuple(map(float, range(len(days)))), (3.0,) * len(days))])
    assert shown.count('class="trace"') == shown.count('class="band"') == 1
    assert 'class="bar"' not in shown
    assert ">2020-02</text>" in shown
    assert "more are in the tables" not in shown
    years = page("t", "paid", [Chart("c", ("1984", "1985", "1986", "missing"), (5.0, 6.0, 7.0, 1.0), (1.0,) * 4)])
    assert len(re.findall(r">19\d\d</text>", years)) >= 2
    names = tuple(f"city {i}" for i in range(MAX_BARS + 3))
    many = page("t", "paid", [Chart("c", names, (1.0,) * len(names))])
    assert many.count('class="bar"') == MAX_BARS
    assert "3 more are in the tables" in many


def test_values_that_are_all_alike_have_a_place() -> None:
    """A line without any width in its values, and one of values near zero, divide by nothing."""
    for value in (0.0, 5.0, 1e-13, 1e17):
        shown = page("t", "paid", [Chart("c", ("1984", "1985", "1986"), (value,) * 3)])
        assert "nan" not in shown
        assert 'class="trace"' in shown
