"""The grids of derived columns: totals that doubles hold, and columns that are copied."""

from __future__ import annotations

from fractions import Fraction

import pytest

from sulq.compile.statements.derived_tables import TOTAL_BITS, copied, person_terms
from sulq.language.domain import Category, Date, Int, Real, Schema, Text
from sulq.language.rowfn import col

WIDE = Schema(
    "t",
    (
        ("age", Int(0, 120)), ("big", Int(-(2**53), 2**53)), ("pay", Real(0, 1e30)), ("fine", Real(-1, 1, 2.0**-30)),
        ("city", Category(("x", "y"))), ("note", Text()), ("day", Date("2020-01-01", "2020-12-31")),
    ),
)  # fmt: skip


@pytest.mark.parametrize("rows", [1, 2, 5, 1000, 10**6])
@pytest.mark.parametrize("fn", [col("age"), col("big"), col("pay"), col("fine"), col("big") * col("big"), col("day")])
def test_no_total_of_a_persons_terms_passes_the_exact_doubles(fn, rows: int) -> None:
    """Any number of a person's terms adds up below 2^51, and the step is a power of two: doubles are exact (SR16)."""
    grid = person_terms(fn, WIDE, rows)
    assert rows * max(abs(grid.low), abs(grid.high)) <= 2**TOTAL_BITS + rows
    assert grid.step == Fraction(2) ** (grid.step.numerator.bit_length() - grid.step.denominator.bit_length())


def test_whole_numbers_are_added_as_they_are() -> None:
    """A value on a lattice loses nothing where its totals allow it; a wider one is rounded to a coarser grid."""
    assert person_terms(col("age"), WIDE, 10**6).step == 1
    assert person_terms(col("fine"), WIDE, 5).step == Fraction(1, 2**30)
    assert person_terms(col("big"), WIDE, 5).step > 1


def test_a_column_is_copied_where_the_grids_agree() -> None:
    """The same integers mean the same only on the same grid."""
    assert copied(col("age"), WIDE, Int(0, 120)) == "age"
    assert copied(col("note"), WIDE, Text()) == "note"
    assert copied(col("age"), WIDE, Int(0, 99)) is None
    assert copied(col("fine"), WIDE, Real(-1, 1)) is None
    assert copied(col("age") + 0, WIDE, Int(0, 120)) is None
