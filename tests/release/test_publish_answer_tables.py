"""Answers as columns of plain kinds, and as bars."""

from __future__ import annotations

import datetime

import numpy as np
import pyarrow as pa

from sulq import Epsilon, Sums, Together, col
from sulq.language.rowfn import Lit
from sulq.release.publish import chart_of, columns_of, plain
from tests.learn.cases import COLUMNS, DATA, exact, opened


def test_columns_are_of_one_kind_each() -> None:
    """Whole numbers, numbers, truths; days and mixtures as texts, what is too large as a double; None stays missing."""
    made = plain(
        {
            "n": [1, None],
            "x": [1, 2.5],
            "flag": [True, None],
            "day": [datetime.date(2020, 1, 2), None],
            "mixed": ["a", 3],
            "huge": [2**70, 1],
            "none": [None, None],
        }
    )
    kinds = {name: cells.type for name, cells in made.items()}
    text = pa.string()
    assert kinds == {
        "n": pa.int64(), "x": pa.float64(), "flag": pa.bool_(), "day": text, "mixed": text, "huge": pa.float64(),
        "none": text,
    }  # fmt: skip
    assert made["day"].to_pylist() == ["2020-01-02", None]


def test_bars_have_intervals_and_the_names_of_their_keys() -> None:
    """The first column that has intervals; where none has, or none is finite, there is no picture."""
    db = opened(COLUMNS, DATA)
    found = columns_of(
        db.sql("SELECT city, smoker, COUNT(*) AS people FROM data GROUP BY city, smoker", spend=Epsilon(1))
    )
    chart = chart_of("by city", found)
    assert chart is not None
    assert chart.names[0] == f"{found['city'][0]} / {found['smoker'][0]}"
    assert chart.values == tuple(map(float, found["people"]))
    assert min(chart.error) > 0
    assert chart_of("none", {"a": [1], "b": ["x"]}) is None
    assert chart_of("none", {"a": [1.0], "low_a": [-np.inf], "high_a": [np.inf]}) is None
    one = chart_of("a sum", columns_of(db.ask(Sums((col("age"),)), spend=Epsilon(1))))
    assert one is not None
    assert one.names == ("value",)


def test_answers_together_stand_side_by_side() -> None:
    """Each question's columns after the other's; shorter ones end in missing cells."""
    asked = Together((Sums((Lit(1),), None, (col("city"),)), Sums((col("age"),))))
    found = columns_of(exact(opened(COLUMNS, DATA)).ask(asked, spend=Epsilon(1)))
    assert {len(cells) for cells in found.values()} == {3}
    assert found["2. value"][1:] == [None, None]
    assert pa.table(plain(found)).num_rows == 3
