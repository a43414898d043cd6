"""Quantiles, extremes and distinct values, as they are typed."""

from __future__ import annotations

from sulq import Epsilon, col
from tests.learn.cases import COLUMNS, DATA, exact, opened


def test_quantiles_and_extremes_are_values_of_the_rows() -> None:
    """Of rows that a condition keeps, written in any way; the median is the quantile of a half."""
    db = exact(opened(COLUMNS, DATA))
    spend = Epsilon(1)
    for where in ("smoker", col("smoker")):
        assert db.min("age", where=where, spend=spend).value == 0
        assert db.max("age", where=where, spend=spend).value == 100
    assert db.median("age", spend=spend).value == db.quantile("age", 0.5, spend=spend).value
    assert db.count_distinct("city", where="age > 10", spend=spend).value == 3
