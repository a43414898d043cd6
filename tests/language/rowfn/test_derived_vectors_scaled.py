"""A vector times a number: exact products, true bounds, a ball that grows by the factor."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sulq.errors import QuestionError
from sulq.language.domain import Bool, Category, Int, Real, Schema
from sulq.language.kinds import Grid
from sulq.language.rowfn import Bins, Clip, Col, Dot, Lit, Lookup, Outer, Scaled, Vector, WithinBall
from sulq.language.rowfn.base import evaluate
from tests.frames import Frame

SCHEMA = Schema.of(
    "t", {"x": Real(-1, 1), "y": Real(-1, 1), "k": Real(-3, 7), "l": Category(["no", "yes"]), "b": Bool()}
)
PAIR = Vector((Col("x"), Col("y")))
SIGN = Lookup((Col("l"),), ((-1,), (1,)))
coordinates = st.integers(-(2**22), 2**22) | st.sampled_from([-(2**22), 0, 2**22])
rows = st.lists(
    st.fixed_dictionaries({"x": coordinates, "y": coordinates, "k": st.integers(-3 * 2**19, 7 * 2**19)}), max_size=5
)


@settings(max_examples=80)
@given(rows, st.integers(1, 15), st.integers(1, 15), st.none() | st.floats(0.1, 2))
def test_every_term_is_the_product_of_two_whole_numbers_SR16(found, bits, factor_bits, radius):
    """Coordinate times factor in big integers, within the stated box and ball, and near the product of the numbers."""
    vector = Vector((Col("x"), Col("y")), bits)
    inner = vector if radius is None or radius < vector.kind(SCHEMA).step else WithinBall(vector, radius)
    fn = Scaled(inner, Col("k"), factor_bits)
    step, low, high = fn.span(SCHEMA)
    kind = fn.kind(SCHEMA)
    assert kind.step == inner.kind(SCHEMA).step * step
    frame = Frame(SCHEMA, found)
    terms, vectors = evaluate(fn, frame).values.tolist(), evaluate(inner, frame).values.tolist()
    for row, q, got in zip(found, vectors, terms, strict=True):
        exact = Fraction(row["k"], 2**19)
        factor = next(f for f in range(low, high + 1) if f <= exact / step + Fraction(1, 2) < f + 1)
        assert got == [factor * a for a in q]
        assert abs(factor * step - exact) <= step / 2
        assert all(a <= x <= b for a, x, b in zip(kind.low, got, kind.high, strict=True))
        assert kind.ball is None or sum(x * x for x in got) <= kind.ball**2


def test_a_sign_stays_a_sign():
    """A factor on a lattice of its own, as a label's sign, is exact: the terms are the coordinates, turned or not."""
    fn = Scaled(WithinBall(PAIR, 1), SIGN)
    kind, inner = fn.kind(SCHEMA), WithinBall(PAIR, 1).kind(SCHEMA)
    assert (kind.step, kind.ball) == (inner.step, inner.ball)
    assert (kind.low, kind.high) == ((-2048, -2048), (2048, 2048))
    found = evaluate(fn, Frame(SCHEMA, [{"x": 2**20, "y": -(2**19), "l": 0}, {"x": 2**20, "y": -(2**19), "l": 1}]))
    assert found.values.tolist() == [[-512, 256], [512, -256]]


def test_the_box_is_the_hull_of_the_corners():
    """Vectors and factors that change sign, or do not: least and largest of the four products of ends."""
    schema = Schema.of("t", {"p": Int(2, 5), "q": Int(-3, 4), "f": Int(-2, 3), "g": Int(2, 3)})
    pair = Vector((Col("p"), Col("q")), 3)
    assert Scaled(pair, Col("f")).kind(schema) == Grid(Fraction(1), (-10, -9), (15, 12))
    assert Scaled(pair, Col("g")).kind(schema) == Grid(Fraction(1), (4, -9), (15, 12))
    assert Scaled(pair, Lit(0)).kind(schema) == Grid(Fraction(1), (0, 0), (0, 0))
    assert Scaled(pair, Lit(-1)).kind(schema) == Grid(Fraction(1), (-5, -4), (-2, 3))


def test_missing_where_the_vector_or_the_factor_is():
    """Either missing makes the term missing; the kind says whether that can be."""
    fn = Scaled(PAIR, Col("k"))
    found = evaluate(
        fn, Frame(SCHEMA, [{"x": 1, "y": 1, "k": 0}, {"x": None, "y": 1, "k": 0}, {"x": 1, "y": 1, "k": None}])
    )
    assert found.missing.tolist() == [False, True, True]
    assert fn.kind(SCHEMA).nullable
    filled = Vector((Col("x").fill(0), Col("y").fill(0)))
    assert Scaled(filled, Col("k")).kind(SCHEMA).nullable
    assert Scaled(PAIR, Col("k").fill(1)).kind(SCHEMA).nullable
    assert not Scaled(filled, Col("k").fill(1)).kind(SCHEMA).nullable


def test_a_logistic_gradient_is_a_scaled_row():
    """(sigma(w.x) - y) x with the curve a public table: each term is the product to half a step of the factor."""
    edges = [-2 + 4 * i / 64 for i in range(65)]
    curve = [1 / (1 + math.exp(-(a + b) / 2)) for a, b in itertools.pairwise(edges)]
    margin = Clip(Dot(PAIR, (0.7, -0.3)), -2, 2)
    residual = Lookup((Bins(margin, tuple(edges)),), tuple((s,) for s in curve)) - Col("b")
    fn = Scaled(WithinBall(PAIR, 1), residual, 11)
    kind = fn.kind(SCHEMA)
    assert float(kind.ball * kind.step) <= 1.0
    row = {"x": 2**21, "y": 2**20, "b": 1}
    frame = Frame(SCHEMA, [row])
    slope = float(evaluate(residual, frame).values[0])
    got = evaluate(fn, frame).values[0] * float(kind.step)
    assert got.tolist() == pytest.approx([slope * 0.5, slope * 0.25], abs=2**-12)


def test_terms_beyond_30_bits_are_refused_SR17():
    """A coordinate times the factor has at most 2^30 units, the limit of an outer product's terms (SR17, T5)."""
    wide = Vector((Col("x"), Col("y")), 15)
    assert Scaled(wide, Col("x"), 15).kind(SCHEMA).high == (2**30, 2**30)
    table = Lookup((Col("l"),), ((2.0**22, 1), (0, 1)))
    twice = Scaled(Scaled(wide, Col("x"), 15), Col("x"), 1)
    for fn in (Scaled(table, Col("x"), 9), Scaled(Outer(wide), Col("x"), 1), twice):
        with pytest.raises(QuestionError) as refusal:
            fn.kind(SCHEMA)
        assert refusal.value.code == "too-large"
    assert Scaled(table, Col("x"), 8).kind(SCHEMA).high == (2**30, 2**8)


@pytest.mark.parametrize("bits", [0, 16, True, 2.0])
def test_bits_out_of_range_are_refused(bits):
    """A factor has 1 to 15 bits."""
    with pytest.raises(QuestionError):
        Scaled(PAIR, Col("k"), bits)
