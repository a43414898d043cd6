"""Extents of sums: the largest norm of one row's vector and of the difference of two, by enumeration."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sulq.compile.plan import extent as extents
from sulq.compile.plan.draft import _block
from sulq.compile.plan.extent import Extent, extent
from sulq.language.domain import Bool, Category, Int, Schema
from sulq.language.relation import Table
from sulq.language.rowfn import Bernstein, Col, Lit, Lookup, Outer, RowFn, Vector, WithinBall, WithinL1
from sulq.language.rowfn.maths import Maths
from sulq.language.tally import Tally
from tests.frames import Frame, terms

BOX = Schema.of("t", {"x": Int(-2, 3), "y": Int(1, 2), "c": Category(["a", "b", "c"]), "f": Bool()})
PAIR = Vector((Col("x"), Col("y")), 2)


def enumerated(fn: RowFn, schema: Schema) -> Extent:
    """Norms over all rows and all pairs of rows of a small table."""
    block = _block(fn, schema)
    names = list(schema.names)
    cells = [[*range(c.low, c.high + 1), None] for _, c in schema.columns]
    rows = [dict(zip(names, row, strict=True)) for row in itertools.product(*cells)]
    _, units = terms(Tally(Table(), (block,), None, (), 1), Frame(schema, rows))
    units = np.unique(units, axis=0)
    gaps = units[:, None] - units[None]
    found = []
    for vectors in (units, gaps.reshape(-1, units.shape[1])):
        far = np.abs(vectors)
        found += [int(far.sum(axis=1).max()), int((far * far).sum(axis=1).max()), int(far.max())]
    return Extent(*found)


@pytest.mark.parametrize(
    "fn",
    [
        Lit(1), Lit(0), Col("x"), Col("x").fill(0), Col("y"), Col("y").fill(1), Col("f"), Col("x") * 2 + 1, PAIR,
        Bernstein(Col("x")), Bernstein(Col("x"), 2), Bernstein(Col("x"), 1, missing=True),
        Bernstein(Col("x"), 2, missing=True), Lookup((Col("c"),), ((1,), (-4,), (2,))),
        Lookup((Col("c"),), ((1, 2), (-4, 0), (2, -2))), Outer(Vector((Col("f"), Col("f").fill(0)), 1)),
    ],
    ids=lambda fn: type(fn).__name__,
)  # fmt: skip
def test_extents_are_exact_for_boxes_terms_and_tables_SR1(fn):
    """Single and pair norms equal the enumeration of all rows and pairs, missing values included (SR1, T13)."""
    told, found = extent(_block(fn, BOX), BOX), enumerated(fn, BOX)
    assert (told.single_l1, told.single_l2_squared) == (found.single_l1, found.single_l2_squared)
    assert (told.pair_l1, told.pair_l2_squared) == (found.pair_l1, found.pair_l2_squared)
    assert (told.single_coordinate, told.pair_coordinate) == (found.single_coordinate, found.pair_coordinate)


tables = st.integers(1, 5).flatmap(
    lambda width: st.lists(
        st.lists(st.integers(-9, 9) | st.sampled_from([-(2**22), 2**22]), min_size=width, max_size=width).map(tuple),
        min_size=3,
        max_size=3,
    ).map(tuple)
)


@settings(max_examples=200)
@given(tables, st.sampled_from([1, 4, 2**18]))
def test_pairs_of_a_tables_rows_are_compared_alike_however_many_at_once_SR1(table, piece):
    """The extent of a table by its definition, row by row and pair by pair, in Python's integers.

    Without pairs the rest is the same, and no pair passes what is told. Control: one row alone is told otherwise.
    """
    fn = Lookup((Col("c"),), table)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(extents, "PIECE", piece)
        told, quick = (extent(_block(fn, BOX), BOX, pairs=pairs) for pairs in (True, False))
    rows = [*table, (0,) * len(table[0])]  # a row whose key is missing
    gaps = [tuple(a - b for a, b in zip(one, other, strict=True)) for one in rows for other in rows]
    for name, vectors in (("single", rows), ("pair", gaps)):
        l1, l2 = (max(sum(abs(x) ** power for x in vector) for vector in vectors) for power in (1, 2))
        most = max(abs(x) for vector in vectors for x in vector)
        assert (l1, l2) == (getattr(told, f"{name}_l1"), getattr(told, f"{name}_l2_squared"))
        assert most <= getattr(told, f"{name}_coordinate")
        assert l1 <= getattr(quick, f"{name}_l1")
        assert l2 <= getattr(quick, f"{name}_l2_squared")
        assert most <= getattr(quick, f"{name}_coordinate")
    assert [getattr(told, name) == getattr(quick, name) for name in Extent.__slots__][:3] == [True] * 3
    if len(set(rows)) > 1:
        assert told != extent(_block(Lit(0), BOX), BOX)


spans = st.tuples(st.integers(-4, 4), st.integers(0, 5)).map(lambda ab: Int(ab[0], ab[0] + ab[1]))


@settings(max_examples=80)
@given(spans, spans, st.integers(1, 4), st.sampled_from([1, 2, 3, 5, 9]))
def test_balls_and_their_products_are_covered_SR16(x, y, bits, radius):
    """Vectors in a ball, and the triangles of their outer products, never pass their extents (X1, SR16)."""
    schema = Schema.of("t", {"x": x, "y": y})
    vector = Vector((Col("x"), Col("y")), bits)
    if radius < vector.kind(schema).step:
        return
    short = (WithinBall(vector, radius), WithinL1(vector, radius))
    for fn in (vector, Outer(vector), *short, *map(Outer, short)):
        told, found = extent(_block(fn, schema), schema), enumerated(fn, schema)
        for name in Extent.__slots__:
            assert getattr(told, name) >= getattr(found, name)


def test_rows_of_norm_one_cost_one_and_the_root_of_two_X1():
    """A^T A over rows of L2 norm at most 1: Frobenius 1 for add_remove, sqrt 2 for replace_one (X1)."""
    schema = Schema.of("t", {f"x{i}": Int(-1, 1) for i in range(6)})
    ball = WithinBall(Vector(tuple(Col(f"x{i}") for i in range(6)), 10), 1)
    for fn, square in ((ball, 2**20), (Outer(ball), 2**40)):
        told = extent(_block(fn, schema), schema)
        assert told.single_l2_squared == square
        assert told.pair_l2_squared == (4 if fn is ball else 2) * square
    told = extent(_block(Outer(ball), schema), schema)
    assert told.single_l1 <= (6 + 1) / 2 * 2**20 + 1


@pytest.mark.parametrize("d", [2, 6, 20])
def test_sums_and_products_of_an_L1_ball_are_free_of_the_dimension_S4_10(d):
    """Rows of L1 norm at most g: sums move by g, or 2g, products by g^2, or 2g^2, for any number of columns [S4.10].

    Control: in an L2 ball of that radius both grow with the number of columns.
    """
    schema = Schema.of("t", {f"x{i}": Int(-1, 1) for i in range(d)})
    vector = Vector(tuple(Col(f"x{i}") for i in range(d)), 10)
    g = 2**10
    found = {
        fn: [extent(_block(each, schema), schema) for each in (fn(vector, 1), Outer(fn(vector, 1)))]
        for fn in (WithinL1, WithinBall)
    }
    for told, norm in zip(found[WithinL1], (g, g**2), strict=True):
        assert (told.single_l1, told.pair_l1) == (norm, 2 * norm)
        assert told.single_l2_squared == norm**2
    assert all(ball.single_l1 > l1.single_l1 for ball, l1 in zip(found[WithinBall], found[WithinL1], strict=True))


def test_missing_values_may_count_as_zero():
    """A value in [5, 7] that can be missing moves by 7 when it vanishes, not by 2 (SR1)."""
    schema = Schema.of("t", {"x": Int(5, 7)})
    assert extent(_block(Col("x"), schema), schema).pair_l1 == 7
    assert extent(_block(Col("x").fill(5), schema), schema).pair_l1 == 2


@pytest.mark.parametrize("fn", [Lit(4) ** 2, Lit(4) / 2, Maths("exp", Lit(1)), (Lit(4) ** 2).clip(16, 17)])
def test_a_value_that_has_none_somewhere_may_count_as_zero(fn: RowFn) -> None:
    """The kernel does not follow that it is never asked there, and would refuse a smaller move.

    Control: a constant, and quotients and powers of cells, which it follows.
    """
    schema = Schema.of("t", {"x": Int(5, 7, missing=False)})
    found = extent(_block(fn, schema), schema)
    assert found.pair_l1 == found.single_l1 > 0
    assert extent(_block(Lit(16), schema), schema).pair_l1 == 0
    assert extent(_block(Col("x") ** 2, schema), schema).pair_l1 == 49 - 25
    assert extent(_block(Col("x") / 2, schema), schema).pair_l1 < extent(_block(Col("x") / 2, schema), schema).single_l1
    assert extent(_block(Vector((Col("x") ** 2,), 6), schema), schema).pair_l1 > 49 - 25


def test_large_tables_are_bounded_by_their_rows(monkeypatch):
    """Past the limit of pairs a table is bounded by twice its longest row and by its box, never below the truth."""
    rng = np.random.default_rng(5)
    table = tuple(tuple(row) for row in rng.integers(-9, 9, (3, 4)).tolist())
    fn = Lookup((Col("c"),), table)
    exact = extent(_block(fn, BOX), BOX)
    monkeypatch.setattr(extents, "PAIRS", 0)
    bounded = extent(_block(fn, BOX), BOX)
    assert exact.pair_l1 <= bounded.pair_l1 <= 2 * exact.single_l1
    assert exact.pair_l2_squared <= bounded.pair_l2_squared <= 4 * exact.single_l2_squared
    assert (bounded.single_l1, bounded.single_l2_squared) == (exact.single_l1, exact.single_l2_squared)


def test_wide_tables_do_not_overflow():
    """70,000 entries of 2^22 units: the squares are summed beyond 64 bits."""
    schema = Schema.of("t", {"c": Category(["a", "b"])})
    fn = Lookup((Col("c"),), ((2**22,) * 70_000, (-(2**22),) * 70_000))
    told = extent(_block(fn, schema), schema)
    assert told.single_l2_squared == 70_000 * 2**44
    assert told.pair_l2_squared == 70_000 * 2**46
    full = Lookup((Col("c"),), ((2**22,) * 2**16, (-(2**22),) * 2**16))
    assert extent(_block(full, schema), schema).pair_l2_squared == 2**16 * 2**46
