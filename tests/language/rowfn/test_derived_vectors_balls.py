"""Vectors shortened to an L2 or an L1 norm: the whole numbers themselves are within it."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sulq.errors import QuestionError
from sulq.language.domain import Category, Int, Real, Schema
from sulq.language.rowfn import Col, Lookup, Outer, Scaled, Vector, WithinBall, WithinL1
from sulq.language.rowfn.base import evaluate
from tests.frames import Frame

WIDTH = 24
NAMES = [f"x{i}" for i in range(WIDTH)]
CUBE = Schema.of("cube", {name: Real(-1, 1) for name in NAMES})
cells = st.integers(-(2**22), 2**22) | st.sampled_from([-(2**22), 0, 1, 2**22])
points = st.lists(st.lists(cells, min_size=WIDTH, max_size=WIDTH), min_size=1, max_size=6)
shapes = st.tuples(st.integers(1, WIDTH), st.integers(1, 15), st.floats(2**-10, 8))
PAIR = Vector((Col("a"), Col("b")), 4)
FAR = Schema.of("t", {"a": Int(5, 10), "b": Int(5, 10)})


def squares(row: list[int]) -> int:
    """The squared L2 norm."""
    return sum(x * x for x in row)


def total(row: list[int]) -> int:
    """The L1 norm."""
    return sum(map(abs, row))


@settings(max_examples=60)
@given(points, shapes)
def test_a_shortened_vector_lies_in_its_ball_SR16(rows, shape):
    """The integer vector itself has norm at most the radius, points the same way, and is kept if it was inside."""
    _lies_within(WithinBall, squares, rows, shape)


@settings(max_examples=60)
@given(points, shapes)
def test_a_vector_shortened_in_L1_lies_in_its_ball_S4_10_SR16(rows, shape):
    """Likewise of the sum of absolute coordinates: rounding toward zero never adds to it."""
    _lies_within(WithinL1, total, rows, shape)


def _lies_within(made, norm, rows, shape):
    (width, bits, radius), power = shape, 2 if norm is squares else 1
    vector = Vector(tuple(map(Col, NAMES[:width])), bits)
    fn = made(vector, radius)
    if radius < vector.kind(CUBE).step:
        with pytest.raises(QuestionError):
            fn.kind(CUBE)
        return
    kind = fn.kind(CUBE)
    length = kind.ball if power == 2 else kind.l1
    assert length <= Fraction(radius) / kind.step < length + 1
    frame = Frame(CUBE, [dict(zip(NAMES, row, strict=True)) for row in rows])
    before, after = (evaluate(item, frame).values for item in (vector, fn))
    for q, s in zip(before.tolist(), after.tolist(), strict=True):
        assert norm(s) <= length**power
        assert norm(q) > length**power or q == s
        assert all(a * b >= 0 and abs(b) <= abs(a) for a, b in zip(q, s, strict=True))
        assert all(a <= x <= b for a, x, b in zip(kind.low, s, kind.high, strict=True))


def test_rounding_to_the_nearest_would_leave_the_ball_SR16():
    """The control: of five equal coordinates, shortened to 8 units, the nearest whole numbers add up to 10."""
    names = NAMES[:5]
    schema = Schema.of("t", dict.fromkeys(names, Int(0, 4)))
    row = dict.fromkeys(names, 4)
    found = evaluate(WithinL1(Vector(tuple(map(Col, names)), 2), 8), Frame(schema, [row])).values.tolist()[0]
    assert found == [1] * 5
    assert total(found) <= 8 < total([round(4 * 8 / 20)] * 5) == 10


@pytest.mark.parametrize(("made", "values", "roomy"), [
    (WithinBall, [[1, 1], [1, 2]], 15), (WithinL1, [[1, 1], [1, 2]], 20),
])  # fmt: skip
def test_a_ball_widens_the_box_towards_zero_SR1(made, values, roomy):
    """Shortening a vector away from zero brings its coordinates below their own lower bounds (SR1, T13)."""
    fn = made(PAIR, 3)
    kind = fn.kind(FAR)
    assert (kind.low, kind.high) == ((0, 0), (3, 3))
    assert evaluate(fn, Frame(FAR, [{"a": 5, "b": 5}, {"a": 5, "b": 10}])).values.tolist() == values
    whole = made(PAIR, roomy).kind(FAR)
    assert (whole.low, whole.high) == ((5, 5), (10, 10))


def test_norms_pass_to_products_and_multiples_S4_10():
    """Of L1 norm 3: products of 9, multiples by up to 4 of 12. The outer ball alone counts of two."""
    schema = Schema.of("t", {"a": Int(-5, 5), "b": Int(-5, 5), "k": Int(-4, 2)})
    short = WithinL1(Vector((Col("a"), Col("b")), 3), 3)
    assert (short.kind(schema).l1, short.kind(schema).ball) == (3, None)
    assert Outer(short).kind(schema).l1 == 9
    assert Scaled(short, Col("k")).kind(schema).l1 == 12
    assert (WithinBall(short, 2).kind(schema).l1, WithinL1(WithinBall(short, 2), 2).kind(schema).ball) == (None, None)


def test_what_leaves_the_exact_integers_is_refused_SR16():
    """The largest coordinate times the radius, and the sum of all, stay below 2^53."""
    table = Schema.of("t", {"k": Category(["a", "b"])})
    vast = Lookup((Col("k"),), ((2.0**22,) * 3000, (1.0,) * 3000))
    assert WithinL1(vast, 5).kind(table).l1 == 5
    with pytest.raises(QuestionError) as refusal:
        WithinL1(vast, 2.0**31).kind(table)
    assert refusal.value.code == "too-large"
