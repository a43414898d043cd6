"""Charts by matplotlib: bars for names, a line with a band for time, ticks that are dates or years."""

from __future__ import annotations

import datetime

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sulq.display.plots import PlotSeries, draw


def drawn(labels: list[object], values: list[object]) -> Axes:
    numbers = [value if isinstance(value, float) else np.nan for value in values]
    ends = [number - 1 for number in numbers], [number + 1 for number in numbers]
    series = PlotSeries.of(labels, [str(label) for label in labels], [values, *ends])
    axes = Figure().add_subplot()
    return draw(axes, series, title="title", name="n", across="key")


def test_names_are_bars() -> None:
    """One for each known value; of what is unknown none."""
    axes = drawn(["a", "b", "c"], [1.0, None, 3.0])
    assert [bar.get_height() for bar in axes.patches] == [1, 3]
    assert [text.get_text() for text in axes.get_xticklabels()] == ["a", "c"]
    assert (axes.get_title(), axes.get_ylabel(), axes.get_xlabel()) == ("title", "n", "key")


def test_time_is_a_line_with_a_band() -> None:
    """Dates lie where they are, and ticks are dates; a missing one is left out, which the axis says."""
    days: list[object] = [datetime.date(2020, 1, day) for day in (1, 2, 3, 10)]
    axes = drawn([*days, None], [1.0, 2.0, 3.0, 4.0, 9.0])
    assert axes.patches == [] or len(axes.patches) == 0
    (line,) = axes.lines
    assert list(line.get_ydata()) == [1, 2, 3, 4]
    places = np.diff(line.get_xdata())
    assert places[2] == 7 * places[0]
    assert len(axes.collections) == 1
    assert all(text.get_text().startswith("2020-01-") for text in axes.get_xticklabels())
    assert axes.get_xlabel() == "key (rows without one are left out)"


def test_years_are_a_line_and_have_no_comma() -> None:
    """Control: three classes numbered from one are bars."""
    axes = drawn(list(range(1984, 1994)), [float(i) for i in range(10)])
    assert len(axes.lines) == 1
    assert {text.get_text() for text in axes.get_xticklabels()} <= {str(year) for year in range(1980, 2000)}
    assert len(drawn([1, 2, 3], [1.0, 2.0, 3.0]).patches) == 3
