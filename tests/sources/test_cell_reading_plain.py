"""The reference rules of reading, told by example."""

from __future__ import annotations

import numpy as np
import pytest

from sulq.language.domain import Bool, Category, Date, Int, Real
from tests.sources import plain_reading as reading


def read(column: object, cell: str, cells: list[object], kind: object = object) -> list[object]:
    """Codes of cells, None where missing."""
    codes, missing = reading.codes(column, cell, np.array(cells, dtype=kind), None)
    return [None if gone else code for code, gone in zip(codes.tolist(), missing.tolist(), strict=True)]


def test_numbers_are_clamped_and_rounded_half_up() -> None:
    """Inside the bounds floor(x/step + 1/2); outside the nearer bound; NaN is missing."""
    cells = [0.4, 0.5, -1.0, 99.0, float("inf"), float("-inf"), float("nan")]
    assert read(Int(0, 10), "number", cells, np.float64) == [0, 1, 0, 10, 10, 0, None]
    assert read(Real(0, 1, 0.25), "number", [0.3, 0.374, 0.375, 2.0], np.float64) == [1, 1, 2, 4]


def test_whole_numbers_near_2_to_53_stay_themselves() -> None:
    """Where half a unit cannot be added to a double, it is not: integers and doubles of one value agree."""
    column = Int(-(2**53), 2**53)
    cells = [2**52 + 1, -(2**52) - 1, 2**53 - 1, 2**53]
    assert read(column, "number", cells, np.float64) == read(column, "whole", cells, np.int64) == cells


def test_truths_and_categories() -> None:
    """The listed words are truths, whatever their ASCII case; categories match exactly, whole ones as numbers."""
    assert read(Bool(), "text", ["True", " f", "YES", "yeſ", "2", ""]) == [1, 0, 1, None, None, None]
    assert read(Bool(), "number", [0.0, 1.0, 0.5, float("nan")], np.float64) == [0, 1, None, None]
    assert read(Category(("x", "1")), "text", ["x", " x", "1", "1.0"]) == [0, None, 1, None]
    assert read(Category((1, 7)), "text", ["1", " 7.0 ", "7.5", "x"]) == [0, 1, None, None]


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("1970-01-02", 86_400_000_000),
        ("1970-01-01T00:00:01.5Z", 1_500_000),
        ("1970-01-01 01:00:00+01:00", 0),
        ("1969-12-31T23:59:59.9999999", -1),
        ("2021-02-29", None),
        ("1970-01-01T24:00:00", None),
        ("1/1/1970", None),
        ("0000-01-01", None),
    ],
)
def test_moments(text: str, want: int | None) -> None:
    """ISO dates and moments, UTC unless they say otherwise, cut to the microsecond; nothing else."""
    assert reading.read_moment(text) == want


def test_days_are_floors_of_moments() -> None:
    """A moment before 1970 belongs to its own day."""
    assert read(Date("1969-01-01", "1971-01-01"), "moment", [-1, 0, 86_400_000_000], np.int64) == [-1, 0, 1]
