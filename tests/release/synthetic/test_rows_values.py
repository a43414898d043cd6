"""Cells as values: within the declared bounds, on the declared grid, evenly, and back to the same cells."""

from __future__ import annotations

import datetime

import numpy as np
import pyarrow as pa
import pytest

import sulq
from sulq.language.attribute import Attribute
from sulq.release.synthetic.rows import decoded, encoded, kind

KINDS = [
    (sulq.Category(["b", "a"]), 8, pa.string()),
    (sulq.Category([7, 3, 5]), 8, pa.int64()),
    (sulq.Bool(), 8, pa.bool_()),
    (sulq.Int(-2, 3), 8, pa.int64()),
    (sulq.Int(-100, 1003), 7, pa.int64()),
    (sulq.Int(5, 5), 1, pa.int64()),
    (sulq.Real(-1, 2), 5, pa.float64()),
    (sulq.Real(0, 1, grid=0.25), 3, pa.float64()),
    (sulq.Real(3, 3), 2, pa.float64()),
    (sulq.Date("2020-01-01", "2021-03-01"), 6, pa.date32()),
    (sulq.Timestamp("2020-01-01T00:00:00", "2020-01-02T00:00:00"), 6, pa.timestamp("us")),
]


@pytest.mark.parametrize(("domain", "bins", "type_"), KINDS, ids=lambda x: str(x)[:40])
def test_values_are_of_the_declared_domain_and_of_their_cell(domain, bins, type_) -> None:
    """Every value is on the grid, within the bounds and in its cell: encoding it gives the cell again."""
    attribute = Attribute("x", domain, bins)
    cells = np.repeat(np.arange(attribute.size), 200)
    values = decoded(attribute, cells, np.random.default_rng(1))
    assert values.type == type_ == kind(attribute)
    assert np.array_equal(encoded(attribute, values), cells)
    if isinstance(domain, sulq.Category):
        assert {*values.to_pylist()} == {*domain.values}
    elif not isinstance(domain, sulq.Bool):
        whole = {pa.date32(): pa.int32(), pa.timestamp("us"): pa.int64()}.get(type_)
        numbers = np.asarray(values if whole is None else values.cast(whole), dtype=float) / float(domain.step)
        assert np.array_equal(numbers, np.floor(numbers))
        assert domain.low <= numbers.min() <= numbers.max() <= domain.high


def test_numbers_are_drawn_evenly_over_their_interval() -> None:
    """Each of the ten whole values of an interval comes about equally often; the ends belong to it."""
    attribute = Attribute("x", sulq.Int(0, 99), 10)
    values = np.asarray(decoded(attribute, np.full(100_000, 3), np.random.default_rng(2)))
    counts = np.bincount(values - values.min())
    assert len(counts) == 10
    assert np.abs(counts - 10_000).max() < 5.4 * np.sqrt(9_000)  # 7e-8 each, two-sided
    assert {*encoded(attribute, pa.array(values))} == {3}


def test_a_cell_without_a_grid_point_gives_the_nearest() -> None:
    """More intervals than grid points: every value is still declared, and none is invented between."""
    attribute = Attribute("x", sulq.Real(0, 1, grid=0.5), 8)
    values = decoded(attribute, np.arange(attribute.size), np.random.default_rng(3)).to_pylist()
    assert {*values} <= {0.0, 0.5, 1.0}


def test_days_are_days() -> None:
    """A drawn date is a date of Python's."""
    attribute = Attribute("x", sulq.Date("2020-02-28", "2020-03-01"), 3)
    found = decoded(attribute, np.zeros(5, dtype=np.int64), np.random.default_rng(4)).to_pylist()
    assert all(isinstance(day, datetime.date) for day in found)
