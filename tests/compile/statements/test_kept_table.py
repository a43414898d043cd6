"""Kept rows as statements name them: no name of an owner's, the narrowest integers."""

from __future__ import annotations

import duckdb
import pytest

from sulq.compile.statements.kept_table import SPELLED, names, smallest, spelled
from sulq.language.domain import Category, Int, Schema, Text

ODD = 'a"; DROP TABLE kept; --'


def test_columns_have_generated_names_T71() -> None:
    """Whatever the owner calls a column, SQL sees c0, c1, ..."""
    schema = Schema.of("data", {ODD: Int(0, 1), "b": Category(("x", "y"))})
    assert names(schema) == {ODD: "c0", "b": "c1"}
    assert spelled(schema) == {"c1": "d1"}


def test_long_lists_of_categories_are_not_spelled() -> None:
    """Past so many the texts are no shorter than what they stand for."""
    for size in (SPELLED, SPELLED + 1):
        schema = Schema.of("data", {"c": Category(tuple(range(size)))})
        assert bool(spelled(schema)) == (size == SPELLED)


@pytest.mark.parametrize("bits", [7, 15, 31, 52])
def test_the_narrowest_integer_holds_both_ends(bits: int) -> None:
    """DuckDB's own cast says so; one more does not fit, but for the widest."""
    low, high = -(2**bits), 2**bits - 1
    kind = smallest(Int(low, high))
    with duckdb.connect() as own:
        fits = own.execute(f"SELECT TRY_CAST({low} AS {kind}), TRY_CAST({high} AS {kind})").fetchone()
        past = own.execute(f"SELECT TRY_CAST({high + 1} AS {kind})").fetchone()
    assert fits == (low, high)
    assert (past == (None,)) == (bits < 52)
    assert smallest(Text()) == "VARCHAR"
