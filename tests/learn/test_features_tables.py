"""Ordinary tables to predict on, by column."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from sulq.learn.features import cells, is_missing
from tests.learn.cases import refused

TABLE = {"b": [4, 5, 6], "a": [1, 2, 3]}


@pytest.mark.parametrize(
    "frame", [pd.DataFrame(TABLE), pl.DataFrame(TABLE), pa.table(TABLE)], ids=["pandas", "polars", "arrow"]
)
def test_a_frames_columns_are_found_by_name(frame: object) -> None:
    """Whatever their order, and whatever else is there."""
    assert cells(frame, ["a"])["a"].tolist() == [1, 2, 3]
    refused("bad-table", cells, frame, ["c"])


def test_an_arrays_columns_are_found_by_their_order() -> None:
    """As many as were learned from, no more and no fewer; one column may be a plain list."""
    found = cells(np.array([[1, 4], [2, 5]]), ["a", "b"])
    assert {name: column.tolist() for name, column in found.items()} == {"a": [1, 2], "b": [4, 5]}
    assert cells([1.0, 2.0], ["a"])["a"].tolist() == [1, 2]
    refused("bad-table", cells, np.zeros((2, 3)), ["a", "b"])
    refused("bad-table", cells, [1.0, 2.0], ["a", "b"])


def test_a_cell_is_missing_however_a_library_says_so() -> None:
    """None, NaN, NaT and pandas' NA; zero, the empty text and the false are there."""
    assert all(
        is_missing(cell) for cell in (None, float("nan"), np.float32("nan"), np.datetime64("NaT"), pd.NaT, pd.NA)
    )
    assert not any(is_missing(cell) for cell in (0, 0.0, "", False, np.bool_(False), np.int64(0), "NA"))
