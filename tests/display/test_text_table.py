"""Tables for people: short enough to read, and plain JSON whatever is in them."""

from __future__ import annotations

import json
import math

from sulq.display.text_table import MAX_TEXT_ROWS, TextTable, cell


def test_a_table_is_a_text() -> None:
    """Columns stand below each other; what is not shown is counted."""
    table = TextTable("sizes", ("", "n"), (("a", 1.5), ("long", None)), more=3)
    assert table.text() == "sizes\n            n\na         1.5\nlong  unknown\n... 3 more rows"
    many = TextTable("x", ("i",), tuple((i,) for i in range(MAX_TEXT_ROWS + 2)))
    assert many.text().endswith("... 2 more rows")


def test_cells_are_plain_JSON() -> None:
    """Numbers that JSON has no word for, and anything else, are texts."""
    assert [cell(value) for value in (1, 0.5, True, None, "a", math.nan, math.inf)] == [
        1, 0.5, True, None, "a", "unknown", "inf",
    ]  # fmt: skip
    assert json.dumps(TextTable("a", ("b",), ((1,),)).to_json()) == '{"title": "a", "columns": ["b"], "rows": [[1]]}'
