"""Blocks from aggregates: what SQL sums is what the terms add up to, at any size of totals (T5, T11)."""

from __future__ import annotations

from fractions import Fraction

import pyarrow as pa
import pytest

from sulq.language.domain import Int, Real, Schema
from sulq.language.relation import Table
from sulq.language.rowfn import Bernstein, Lit, col
from sulq.language.tally import Block, Tally
from tests import random_tallies
from tests.sources.cases import duck, plain_engine, sums

BIG = Schema("data", (("n", Int(-(2**53), 2**53)),))


@pytest.mark.parametrize("prepared", [None, False])
@pytest.mark.parametrize("sign", [1, -1])
def test_totals_beyond_64_bits_saturate_T5(prepared: object, sign: int) -> None:
    """SUM runs in 128 bits and is clamped to 2^62: columns at the ends of 64 bits neither raise nor wrap."""
    block = Block(col("n"), Fraction(1), (-(2**53),), (2**53,), vector=False)
    tally = Tally(Table(), (block,), None, (), 1)
    for rows, want in ((3, 3 * 2**53), (511, 511 * 2**53), (513, 2**62), (5_000, 2**62)):
        data = pa.table({"n": pa.array([sign * (2**63 - 1)] * rows, pa.int64())})
        assert sums(duck(data, schema=BIG, prepared=prepared), tally) == [[[sign * want]]]


def test_the_clamp_sits_under_the_sum_T11() -> None:
    """A block's bounds hold for each term, whatever the expression gives: a narrower block gives clamped terms."""
    schema = Schema("data", (("x", Real(0, 1000)),))
    data = pa.table({"x": [1.0, 10.0, 500.0, None, float("nan"), float("inf")]})
    for fn in (col("x"), col("x") * 3, col("x") / (col("x") - 10)):
        tally = Tally(Table(), (Block(fn, Fraction(1, 4), (-7,), (9,), vector=False),), None, (), 1)
        found = sums(duck(data, schema=schema), tally)
        assert (
            found
            == sums(plain_engine(data, schema=schema), tally)
            == sums(duck(data, schema=schema, prepared=False), tally)
        )
        assert -7 * 4 <= found[0][0][0] <= 9 * 6


def test_moments_far_from_zero_are_exact() -> None:
    """Squares are taken from the lower bound, so a narrow range far out loses nothing."""
    schema = Schema("data", (("n", Int(10**15, 10**15 + 40)),))
    cells = [10**15 + i for i in (0, 3, 17, 40, 40)]
    tally = random_tallies.question([Bernstein(col("n"), 2), Bernstein(col("n"))], schema)
    above, below = [c - 10**15 for c in cells], [10**15 + 40 - c for c in cells]
    want = [
        sum(u * u for u in above),
        sum(2 * u * v for u, v in zip(above, below, strict=True)),
        sum(v * v for v in below),
        sum(above),
        sum(below),
    ]
    for prepared in (None, False):
        assert sums(duck(pa.table({"n": cells}), schema=schema, prepared=prepared), tally) == [[want]]


@pytest.mark.parametrize("value", [0, 1, -2.5, 1e60, True, 0.1])
def test_a_constant_is_counted(value: object) -> None:
    """The sum of a constant is the count times its units."""
    tally = random_tallies.question([Lit(value)], BIG, where=col("n") > 0)
    data = pa.table({"n": [1, 2, -3, None]})
    assert sums(duck(data, schema=BIG), tally) == sums(plain_engine(data, schema=BIG), tally)
