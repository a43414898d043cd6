"""A description's table: top categories, bars and how the spend was divided, in words and as HTML."""

from __future__ import annotations

import pandas as pd
import pytest

import sulq
from sulq import Epsilon
from sulq.errors import QuestionError
from sulq.sql.description_table import ColumnSummary, divided
from sulq.testing import exact


def test_the_most_frequent_categories_come_first_and_missing_is_none_of_them():
    """Five of them at most; bins of a number are no categories."""
    counts = tuple((label, (n, n - 1, n + 1)) for label, n in zip("abcdefg", (1, 7, 3, 9, 2, 5, 4), strict=True))
    found = ColumnSummary("x", "category", {}, (*counts, (None, (99, 98, 100))), ordered=False)
    assert [label for label, _ in found.top] == ["d", "b", "f", "g", "c"]
    assert ColumnSummary("x", "real", {}, counts, ordered=True).top == ()


def test_the_spend_is_divided_in_words():
    """Parts of the same thing are one, whatever column they are of."""
    told = divided([("a", "quartiles", 0.5), ("b", "quartiles", 0.25), ("b", "chart", 0.25)])
    assert told == "of the spend 75% quartiles, 25% chart"


def test_of_many_columns_the_text_is_cut_and_the_frame_is_whole():
    """Forty lines in a terminal, and how to have the others; texts alone have no picture."""
    names = [f"c{i}" for i in range(43)]
    frame = pd.DataFrame({name: ["x", None] for name in names})
    with sulq.connect(frame, columns=dict.fromkeys(names, sulq.Text()), budget=Epsilon(9), synthetic=True) as db:
        found = exact(db).describe(spend=Epsilon(1))
    assert "... 3 more columns" in repr(found)
    assert len(found.to_pandas()) == 43
    assert found.value["c42"] == {"count": 1, "missing": 1}
    with pytest.raises(QuestionError, match="counts to draw"):
        found.plot()
