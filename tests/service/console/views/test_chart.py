"""Charts: told in words, drawn within their frame, honest about zero, and never markup of a name's making."""

from __future__ import annotations

import datetime
import re
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sulq.service.console.views.chart import Bar, bars, gauge, points, spending

NUMBERS = st.floats(-1e12, 1e12, allow_nan=False)


def drawings(markup: str) -> list[ElementTree.Element]:
    return list(ElementTree.fromstring(f"<all>{markup}</all>"))


@given(st.lists(st.tuples(st.text(max_size=30), NUMBERS, NUMBERS, NUMBERS), min_size=1, max_size=8))
def test_any_chart_is_whole_and_within_its_frame(found: list[tuple[str, float, float, float]]) -> None:
    """Whatever the names and numbers, the drawing parses, is told in words, and stays within its frame."""
    printable = [("".join(c for c in name if c.isprintable()), *rest) for name, *rest in found]
    given_ = [Bar(name, value, min(value, a, b), max(value, a, b)) for name, value, a, b in printable]
    for drawn in drawings(bars(given_, title="a <b> & c")):
        _, _, width, height = map(float, drawn.attrib["viewBox"].split())
        assert drawn.attrib["role"] == "img"
        assert drawn.find("title").text == "a <b> & c"
        assert "95%" in drawn.find("desc").text
        for node in drawn.iter():
            for name in ("x", "x1", "x2", "cx"):
                assert -0.5 <= float(node.attrib.get(name, 0)) <= width + 0.5
            for name in ("y", "y1", "y2", "cy"):
                assert -0.5 <= float(node.attrib.get(name, 0)) <= height + 0.5


def test_error_bars_are_drawn_where_they_are_known() -> None:
    """A whisker has its two caps; an end that is not known has none; a value without interval has no whisker."""
    wide = drawings(bars([Bar("a", 5, 3, 8), Bar("b", 5, 3, float("inf")), Bar("c", 5, None, None)], title="t"))[0]
    counts = [sum(node.attrib.get("class") == "whisker" for node in group) for group in wide.findall("g")]
    assert counts == [3, 2, 0]


def test_bars_start_at_zero_or_are_dots() -> None:
    """A bar always starts at zero; estimates far from it are dots, which need no zero."""
    near = drawings(bars([Bar("a", 10, 5, 15), Bar("b", -2, -4, 1)], title="t"))[0]
    far = drawings(bars([Bar("a", 120, 118, 122), Bar("b", 125, 121, 129)], title="t"))[0]
    kinds = [{node.attrib.get("class") for node in drawn.iter()} for drawn in (near, far)]
    assert "bar" in kinds[0]
    assert "axis" in kinds[0]
    assert "bar" not in kinds[1]
    assert "dot" in kinds[1]


@given(st.lists(st.tuples(st.text(max_size=30), NUMBERS, NUMBERS), min_size=1, max_size=8))
def test_any_points_are_whole_and_within_their_frame(found: list[tuple[str, float, float]]) -> None:
    """Named points likewise: drawn where they are, told in words; nothing to draw is no drawing."""
    named = [("".join(c for c in name if c.isprintable()), a, b) for name, a, b in found]
    for drawn in drawings(points(named, title="t", x="across", y="up")):
        _, _, width, height = map(float, drawn.attrib["viewBox"].split())
        dots = [node for node in drawn.iter() if node.tag == "circle"]
        assert len(dots) == len(named)
        assert all(0 <= float(dot.attrib["cx"]) <= width and 0 <= float(dot.attrib["cy"]) <= height for dot in dots)
        assert "across" in drawn.find("desc").text
    assert points([("a", float("inf"), 1.0)], title="t", x="x", y="y") == ""


def test_no_drawing_carries_style_or_script() -> None:
    """Colours come from the style sheet; a name cannot bring in an element or an attribute."""
    hostile = '"><script>alert(1)</script><a style="x" onload=y'
    markup = bars([Bar(hostile, 1, 0, 2)], title=hostile) + gauge(0.5, hostile)
    markup += points([(hostile, 1.0, 2.0)], title=hostile, x=hostile, y=hostile)
    for drawn in drawings(markup):
        for node in drawn.iter():
            assert node.tag in {"svg", "title", "desc", "g", "text", "rect", "line", "circle", "path"}
            assert not {"style", "onload", "fill"} & set(node.attrib)


@pytest.mark.parametrize(
    ("left", "kind"), [(1.0, "plenty"), (0.2, "some"), (0.01, "low"), (-1.0, "low"), (7.0, "plenty")]
)
def test_a_gauge_says_how_much_is_left(left: float, kind: str) -> None:
    """Its strip never leaves its frame and its state follows what is left."""
    (drawn,) = drawings(gauge(left, "words"))
    strip = next(node for node in drawn if "level" in node.attrib.get("class", ""))
    assert kind in strip.attrib["class"]
    assert 0 <= float(strip.attrib["width"]) <= 100
    assert drawn.attrib["aria-label"] == "words"


def test_spending_ends_where_it_ends() -> None:
    """The words give first day, last day, number of asks and what was spent; nothing spent is no drawing."""
    day = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
    points = [(day + datetime.timedelta(days=i), 0.1 * (i + 1)) for i in range(5)]
    markup = spending(points, title="t")
    assert re.search(r"2026-01-01 to 2026-01-05 5 asks spent 50% of the budget", markup)
    assert len(drawings(markup)) == 2
    assert spending([], title="t") == ""
