"""Hulls and rounding of what a number can be."""

from __future__ import annotations

from fractions import Fraction

import pytest

from sulq.kernel.facts import Refused
from sulq.kernel.values import INF, Value, as_double, double, hull, rounded


def number(low: int, high: int, kind: str = "BIGINT") -> Value:
    """A whole number between two."""
    return Value(kind, Fraction(low), Fraction(high), whole=True, null=False)


def test_a_hull_holds_all_and_takes_the_widest_type() -> None:
    """A double among integers makes doubles of all, and one that is NULL makes it one that may be."""
    found = hull(number(0, 3, "TINYINT"), number(-5, 1, "SMALLINT"))
    assert (found.type, found.low, found.high, found.null) == ("SMALLINT", -5, 3, False)
    found = hull(number(0, 3, "TINYINT"), Value("NULL"), double(0, 1))
    assert (found.type, found.low, found.high, found.null) == ("DOUBLE", 0, 3, True)


def test_kinds_that_duckdb_would_cast_are_refused() -> None:
    """A cast may fail, or make two values one."""
    with pytest.raises(Refused):
        hull(number(0, 1), Value("VARCHAR"))


def test_an_integer_past_2_to_53_is_rounded_as_a_double() -> None:
    """It is no polynomial any more; control: a smaller one is."""
    large = as_double(Value("BIGINT", Fraction(0), Fraction(2**53 + 1), whole=True, polynomial={(0,): 1}))
    small = as_double(Value("BIGINT", Fraction(0), Fraction(2**53), whole=True, polynomial={(0,): 1}))
    assert (large.high, large.polynomial) == (2**53, None)
    assert small.polynomial == {(0,): 1}
    assert rounded(Fraction(10) ** 400, INF) == INF
