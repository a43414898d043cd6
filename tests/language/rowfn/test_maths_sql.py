"""Mathematical functions as SQL: exact where IEEE 754 says so, else within the interval and the last places."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings

from sulq.language.domain import Int, Real, Schema
from sulq.language.rowfn import Col, Maths, Modulo, Power, Round
from tests import expressions
from tests.counts import count
from tests.expressions import EXACT, SCHEMA
from tests.sources.rowwise import filled, in_numpy, in_sql

CASES = count("ln, exp and powers as SQL", short=100, long=10_000)
HALVES = Schema("data", (("x", Real(-8, 8, 2.0**-6)), ("n", Int(-(2**53), 2**53))))


@settings(max_examples=CASES)
@given(expressions.transcendental(), expressions.tables())
def test_ln_exp_and_power_differ_in_the_last_places_at_most_SR16_T11(fn, rows):
    """Where one library gives a value the other does, next to it, and within the interval the plan was told."""
    kind = fn.kind(SCHEMA)
    rows = [{**row, "position": i} for i, row in enumerate(rows)]
    for ours, theirs in zip(in_sql(fn, rows) or [], in_numpy(fn, rows), strict=False):
        assert (ours is None) == (theirs is None)
        if ours is not None:
            assert abs(ours - theirs) <= 4 * math.ulp(ours)
            assert not kind.bounded or kind.lo <= ours <= kind.hi


@pytest.mark.parametrize(
    "fn",
    [
        *(Maths(op, Col("x")) for op in EXACT),
        *(Round(Col("x"), digits) for digits in range(-3, 8)),
        *(Modulo(Col("x"), by) for by in (1, -1, 0.1, 3, -2.5, 7.75, 1e9)),
        *(Power(Col("x"), by) for by in (0, 1, 2, 3, 7, 16, -1, -3, 0.5)),
    ],
    ids=repr,
)
def test_every_grid_point_is_the_same_SR16(fn):
    """All 1025 points of a column, and none, to the bit."""
    rows = filled({"x": [*range(-512, 513), None]}, HALVES)
    assert in_sql(fn, rows, HALVES) == in_numpy(fn, rows, HALVES)


@pytest.mark.parametrize("digits", [-15, -3, -1, 0, 2])
def test_whole_numbers_of_all_sizes_are_rounded_alike(digits):
    """Up to 2^53, the next to halves of powers of ten among them."""
    ends = [s * (10**k * 5 + d) for k in range(15) for d in (-1, 0, 1) for s in (1, -1)]
    rows = filled({"n": [*ends, 2**53, -(2**53), 0]}, HALVES)
    fn = Round(Col("n"), digits)
    assert in_sql(fn, rows, HALVES) == in_numpy(fn, rows, HALVES)
