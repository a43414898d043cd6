"""Tables as texts and HTML: columns below each other, rows that are not shown counted, markup escaped."""

from __future__ import annotations

from sulq.display import tables


def test_columns_stand_below_each_other() -> None:
    """Each as wide as its widest cell, at its left edge or its right one."""
    rows = [("a", "1"), ("long", "22")]
    assert tables.text(("name", "n"), rows) == "name  n\na     1\nlong  22"
    assert tables.text(("name", "n"), rows, right=True) == "name   n\na      1\nlong  22"


def test_rows_that_are_left_out_are_counted() -> None:
    """One, many, none."""
    assert [tables.not_shown(rows) for rows in (0, 1, 12_345)] == ["", "... 1 more row", "... 12,345 more rows"]
    assert tables.text(("a",), [("b",)], more=2).endswith("\n... 2 more rows")
    assert "<p>... 2 more rows</p>" in tables.as_html(("a",), [("b",)], "tail", more=2)


def test_markup_in_cells_stays_text_T83() -> None:
    """Names, cells and the line below are escaped."""
    page = tables.as_html(("<b>",), [("<i>",)], "<script>")
    assert "<b>" not in page
    assert "<i>" not in page
    assert "<script>" not in page
