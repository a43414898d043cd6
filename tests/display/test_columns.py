"""Columns as texts and as typed arrays: counts whole, dates as dates, in frames and Arrow tables."""

from __future__ import annotations

import datetime
import math

import pandas as pd
import pyarrow as pa

from sulq.display.columns import (
    Kind,
    ShownColumn,
    as_arrow,
    as_pandas,
    as_whole,
    kind,
    table_html,
    table_text,
    text_rows,
)

DAY = datetime.date(2020, 1, 2)
MOMENT = datetime.datetime(2020, 1, 2, 3)  # noqa: DTZ001 - in UTC
COLUMNS = [
    ("year", [1984, None]),
    ("n", [12, -3]),
    ("mean", [0.5, None]),
    ("mixed", [1, 0.5]),
    ("day", [DAY, None]),
    ("at", [MOMENT, None]),
    ("flag", [True, False]),
    ("flag?", [True, None]),
    ("city", ["Lod", None]),
    ("none", [None, None]),
    ("large", [2**63, 1]),
    ("n", [1, 2]),
]


def test_frames_have_a_type_for_each_column() -> None:
    """Whole numbers stay whole beside missing ones, dates are datetime64; names may repeat."""
    frame = as_pandas(COLUMNS, pd)
    assert list(frame.columns) == [name for name, _ in COLUMNS]
    types = [str(dtype) for dtype in frame.dtypes]
    assert types[:8] == [
        "Int64", "int64", "float64", "float64", "datetime64[s]", "datetime64[us]", "bool", "boolean",
    ]  # fmt: skip
    assert frame["year"].tolist()[0] == 1984
    assert frame["large"].tolist() == [2**63, 1]  # past 64 bits they are Python's own, and not rounded
    assert frame["day"].isna().tolist() == [False, True]


def test_arrow_tables_have_them_too() -> None:
    """Numbers of two types are doubles; dates are days."""
    table = as_arrow(COLUMNS[:-1], pa)
    assert [str(field.type) for field in table.schema][:8] == [
        "int64", "int64", "double", "double", "date32[day]", "timestamp[us]", "bool", "bool",
    ]  # fmt: skip
    assert table["day"].to_pylist() == [DAY, None]
    assert table["none"].null_count == 2
    assert str(table["large"].type) == "double"  # as Arrow has no larger whole numbers


def test_a_kind_that_is_known_holds_whatever_the_cells_are_T29() -> None:
    """Means that are all unknown are doubles that are missing. Control: the cells alone do not tell."""
    cells = [("mean", [None, None]), ("day", [None, None])]
    kinds: dict[str, Kind] = {"mean": "number", "day": "date"}
    assert [str(dtype) for dtype in as_pandas(cells, pd, kinds).dtypes] == ["float64", "datetime64[s]"]
    assert [str(field.type) for field in as_arrow(cells, pa, kinds).schema] == ["double", "date32[day]"]
    assert kind([None, None]) == "other"


def test_whole_numbers_are_told_by_all_of_a_column() -> None:
    """Floats that are all whole become so; one that is not leaves all as they are."""
    assert as_whole([1.0, None, 2]) == [1, None, 2]
    assert as_whole([1.0, 2.5]) == [1.0, 2.5]
    for odd in ([math.inf, 1.0], [math.nan], [1e300]):
        assert [type(cell) for cell in as_whole(odd)] == [float] * len(odd)
    assert [type(cell) for cell in as_whole([3.0])] == [int]
    assert [kind(cells) for cells in ([], [1], [1.5, 2], ["a", 1])] == ["other", "whole", "number", "other"]


def test_a_table_is_cut_and_says_by_how_much() -> None:
    """As text and in HTML; estimates of the rows that are shown decide its style."""
    keys = ShownColumn("year", list(range(1984, 2014)))
    counts = ShownColumn("n", list(range(30)), [i - 3 for i in range(30)], [i + 3 for i in range(30)], [True] * 30)
    lines = table_text([keys, counts], 4).splitlines()
    assert lines[:2] == ["year  n", "1984  0 +- 3"]
    assert lines[5] == "... 26 more rows"
    assert "<p>... 26 more rows</p>" in table_html([keys, counts], "tail", 4)
    assert "more" not in table_text([keys, counts], 30)
    assert text_rows([keys, counts], 1) == [("1984", "0 +- 3")]
    assert table_text([]) == ""
