"""Vectors of integers on a public grid: exact products, true balls, identities that carry the sensitivities."""

from __future__ import annotations

import copy
import dataclasses
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sulq.errors import QuestionError
from sulq.language.domain import Bool, Category, Int, Real, Schema
from sulq.language.kinds import Grid
from sulq.language.rowfn import (
    Bernstein,
    Clip,
    Col,
    Dot,
    Each,
    Lookup,
    Nearest,
    Outer,
    Route,
    Vector,
    WithinBall,
    WithinL1,
)
from sulq.language.rowfn.base import evaluate, figure
from sulq.language.rowfn.vectors import rounding, scalar_grid, to_grid
from tests.frames import Frame

WIDTH = 24
CUBE = Schema.of("cube", {f"x{i}": Real(-1, 1) for i in range(WIDTH)} | {"n": Int(-(2**31), 2**31), "b": Bool()})
NAMES = [f"x{i}" for i in range(WIDTH)]
cells = st.integers(-(2**22), 2**22) | st.sampled_from([-(2**22), 0, 1, 2**22])
points = st.lists(st.lists(cells, min_size=WIDTH, max_size=WIDTH), min_size=1, max_size=6)


def frame(rows: list[list[int]]) -> Frame:
    return Frame(CUBE, [dict(zip(NAMES, row, strict=True)) for row in rows])


def cube(width: int, bits: int = 11) -> Vector:
    return Vector(tuple(Col(name) for name in NAMES[:width]), bits)


@settings(max_examples=60)
@given(
    points, st.lists(st.floats(-1e60, 1e60) | st.integers(-9, 9), min_size=WIDTH, max_size=WIDTH), st.integers(1, 20)
)
def test_dot_is_the_exact_integer_SR16(rows, weights, bits):
    """The float64 kernel gives what big integers give, in any order of the coordinates."""
    fn = Dot(cube(WIDTH), tuple(weights), bits)
    units, step = fn.units()
    assert all(abs(u) <= 2**bits for u in units)
    whole = evaluate(fn.vector, frame(rows)).values.tolist()
    unit = step * fn.vector.kind(CUBE).step
    exact = [float(sum(q * w for q, w in zip(row, units, strict=True)) * unit) for row in whole]
    assert evaluate(fn, frame(rows)).values.tolist() == exact
    order = list(range(WIDTH))[::-1]
    turned = Dot(Vector(tuple(fn.vector.items[i] for i in order)), tuple(weights[i] for i in order), bits)
    assert evaluate(turned, frame(rows)).values.tolist() == exact


def test_products_that_would_leave_the_exact_integers_are_refused_SR16():
    """The static check: d * max|q| * max|w| stays below 2^53, for dot, nearest and within_ball."""
    schema = Schema.of("t", {f"c{i}": Real(-1, 1) for i in range(300)})
    wide = Vector(tuple(Col(f"c{i}") for i in range(300)), 15)
    assert Dot(wide, (1.0,) * 300, 20).kind(schema).bounded
    long = Vector(tuple(Col(f"c{i % 300}") for i in range(4096)), 15)
    for fn in (
        Dot(Vector((Lookup((Each(Col("c0")),), ((1,),)),)), (1,)),
        Nearest(Vector((Col("c0"),), 15), ((1, 2),)),
        Dot(wide, (1.0,)),
    ):
        with pytest.raises(QuestionError):
            fn.kind(schema)
    table = Schema.of("t", {"k": Category(["a", "b"])})
    vast = Lookup((Col("k"),), ((2.0**22,) * 3000, (1.0,) * 3000))
    for fn in (Dot(vast, (1.0,) * 3000, 20), Nearest(vast, ((0.0,) * 3000,)), WithinBall(vast, 5)):
        with pytest.raises(QuestionError) as refusal:
            fn.kind(table)
        assert refusal.value.code == "too-large"
    assert Nearest(long, ((0.0,) * 4096,)).kind(schema).size == 1


@settings(max_examples=60)
@given(points, st.lists(st.lists(st.floats(-3, 3), min_size=3, max_size=3), min_size=1, max_size=5), st.integers(1, 15))
def test_nearest_is_exact_and_ties_go_to_the_lowest_index_S0_13(rows, centres, bits):
    """Squared distances in big integers have the same first minimum, repeated centres included (S0.13, trap 9)."""
    doubled = tuple(map(tuple, centres + centres))
    fn = Nearest(cube(3, bits), doubled)
    places = fn.units(CUBE).tolist()
    found = evaluate(fn, frame(rows)).values.tolist()
    for q, best in zip(evaluate(fn.vector, frame(rows)).values.tolist(), found, strict=True):
        distances = [sum((a - b) ** 2 for a, b in zip(q, place, strict=True)) for place in places]
        assert best == distances.index(min(distances)) < len(centres)


@settings(max_examples=80)
@given(st.integers(-(2**40), 2**40), st.integers(0, 2**41), st.sampled_from([1, 2]), st.booleans(), st.data())
def test_bernstein_terms_sum_to_the_same_whole_SR18(lo, span, degree, missing, data):
    """The terms are non-negative whole numbers and sum to (b - a)^m exactly, whatever the value, there or not."""
    schema = Schema.of("t", {"v": Int(lo, lo + span)})
    fn = Bernstein(Col("v"), degree, missing)
    rows = [{"v": v} for v in [lo, lo + span, data.draw(st.integers(lo, lo + span)), *([None] if missing else [])]]
    step, low, high = fn.span(schema)
    kind = fn.kind(schema)
    found = evaluate(fn, Frame(schema, rows)).values
    assert (found >= 0).all()
    assert (found <= np.array(kind.high)).all()
    assert set(found.sum(axis=1).tolist()) == {(high - low) ** degree}
    assert kind.step == step**degree
    assert (high - low) ** degree <= 2 ** (22 if degree == 1 else 30) + 2 ** (12 if degree == 1 else 17)


def test_bernstein_terms_give_the_moments():
    """p, q, r of degree 2 hold n, the sum and the sum of squares: (p + q/2, p) are the first two moments of t."""
    schema = Schema.of("t", {"v": Int(2, 12)})
    values = [2, 3, 12, 7, 7]
    p, q, r = evaluate(Bernstein(Col("v"), 2), Frame(schema, [{"v": v} for v in values])).values.sum(axis=0).tolist()
    shifted = [v - 2 for v in values]
    assert p + q + r == 10**2 * len(values)
    assert p + q / 2 == 10 * sum(shifted)
    assert p == sum(s * s for s in shifted)


def test_outer_is_the_upper_triangle():
    """x_i x_j for i <= j, row by row; squares of what may change sign start at zero."""
    schema = Schema.of("t", {"a": Int(-2, 3), "b": Int(1, 4)})
    fn = Outer(Vector((Col("a"), Col("b")), 2))
    kind = fn.kind(schema)
    assert (kind.low, kind.high) == ((0, -8, 1), (9, 12, 16))
    assert evaluate(fn, Frame(schema, [{"a": -2, "b": 4}])).values.tolist() == [[4, -8, 16]]


def test_products_of_products_are_refused_SR17():
    """Coordinates of an outer product hold at most 15 bits: no product can pass 64 bits (SR17, T5)."""
    table = Schema.of("t", {"k": Category(["a", "b"]), "x": Real(-1, 1)})
    wide = Lookup((Col("k"),), ((0.1, 1.0), (1e15, 3.0)))
    deep = Outer(Outer(Vector((Col("x"),), 15)))
    for fn in (Outer(wide), deep):
        with pytest.raises(QuestionError) as refusal:
            fn.kind(table)
        assert refusal.value.code == "too-large"
    assert Outer(Vector((Col("x"),), 15)).kind(table).high == (2**30,)


def test_a_table_is_read_at_all_keys_the_last_fastest():
    """Two keys and a flag: the table's row is the mixed-radix number of the codes; missing keys give missing."""
    schema = Schema.of("t", {"c": Category(["u", "v", "w"]), "f": Bool()})
    fn = Lookup((Col("c"), Each(Col("f"))), tuple((10.5 * i,) for i in range(6)))
    rows = [{"c": c, "f": f} for c in (0, 1, 2) for f in (0, 1)] + [{"c": None, "f": 1}]
    found = evaluate(fn, Frame(schema, rows))
    assert found.values[:6].tolist() == [10.5 * i for i in range(6)]
    assert found.missing.tolist() == [False] * 6 + [True]
    kind = fn.kind(schema)
    assert (kind.lo, kind.hi) == (0, Fraction(105, 2))
    for table in (((1,),) * 5, ((1,),) * 7):
        with pytest.raises(QuestionError):
            Lookup((Col("c"), Each(Col("f"))), table).kind(schema)
    with pytest.raises(QuestionError):
        Lookup((Col("c"),), ((1,), (1, 2), (3,)))
    with pytest.raises(QuestionError):
        Lookup((), ((1,),))
    with pytest.raises(QuestionError):
        Lookup((Col("c"),), ((1e16,), (0,), (0,)))


entries = st.sampled_from([0, 1, -1, 2.5, 1e15, -1e15, 10**15, True, np.float64(2), np.int64(3), Fraction(1, 2)])


@settings(max_examples=200)
@given(
    st.lists(st.tuples(entries, entries), min_size=1, max_size=3),
    st.sampled_from([None, 10**15 + 1, 1e16, 2**53 + 1, 10**400, -(10**400), math.nan, -math.inf, "1", None, [1]]),
    st.booleans(),
)
def test_a_table_is_checked_at_once_as_number_by_number(rows, bad, lists):
    """The same table, or the same refusal, as `figure` gives for each number; plain numbers are kept as they are."""
    table = tuple(map(list if lists else tuple, [*rows, *([] if bad is None else [(1, bad)])]))

    def one_by_one() -> tuple:
        found = tuple(tuple(figure(x) for x in row) for row in table)
        if any(not abs(x) <= 1e15 for row in found for x in row):
            raise QuestionError("bad-literal", "A table holds numbers up to 1e15.")
        return found

    outcomes = []
    for work in (one_by_one, lambda: Lookup((Col("x0"),), table).table):
        try:
            found = work()
            outcomes.append((found, [[type(x) for x in row] for row in found]))
        except QuestionError as error:
            outcomes.append(str(error))
    assert outcomes[0] == outcomes[1]
    if not lists and all(type(x) in (int, float) for row in rows for x in row) and bad is None:
        assert Lookup((Col("x0"),), table).table is table


def test_what_a_row_function_keeps_is_no_part_of_it():
    """A kind is of the schema that is asked about, whatever was asked before; what is kept cannot be changed."""
    key = Each(Col("x"))
    one, other = (Schema.of("t", {"x": Int(0, top)}) for top in (1, 2))
    assert [key.kind(schema).size for schema in (one, other, one, one)] == [2, 3, 2, 2]
    route = Route((key,), ((0, -1, -2),))
    assert route.kind(one).size == 2
    with pytest.raises(QuestionError):
        route.kind(other)
    table = Lookup((key,), ((1, 2), (3, 4)))
    units, _ = table.units()
    assert table.units()[0] is units
    with pytest.raises(ValueError, match="read-only"):
        units[0, 0] = 9
    assert repr(table) == repr(Lookup((key,), ((1, 2), (3, 4))))
    copied = copy.deepcopy(table)
    assert copied.units()[0].tolist() == units.tolist()
    assert dataclasses.replace(table, table=((5, 6), (7, 8))).units()[0].tolist() == [[5, 6], [7, 8]]


def test_whole_tables_stay_whole():
    """A table of whole numbers is kept on the grid of 1 while it fits 22 bits; others round to it."""
    assert Lookup((Col("c"),), ((3,), (-(2**22),))).units()[1] == 1
    assert Lookup((Col("c"),), ((3,), (2**23,))).units()[1] == 2
    units, step = Lookup((Col("c"),), ((0.3,), (-1.0,))).units()
    assert (step, units.tolist()) == (Fraction(1, 2**22), [[round(0.3 * 2**22)], [-(2**22)]])


@given(
    st.floats(allow_nan=True, allow_infinity=True),
    st.integers(-20, 20),
    st.integers(-(2**22), 0),
    st.integers(0, 2**22),
)
def test_FACTS_grid_rounding_is_floor_of_x_plus_a_half_then_a_clamp(x, exponent, low, high):
    """The one rounding all engines share, total on NaN, infinities and denormals (T6)."""
    step = Fraction(2) ** exponent
    found = int(to_grid(np.array([x]), step, low, high)[0])
    if math.isnan(x):
        assert found in {low, high}
    elif math.isinf(x):
        assert found == (high if x > 0 else low)
    else:
        assert found == min(max(math.floor(x * 2.0**-exponent + 0.5), low), high)


@given(st.fractions(-(2**200), 2**200), st.fractions(0, 2**200), st.none() | st.integers(-250, 30))
def test_a_summed_number_has_at_most_2_to_22_units_SR17(lo, span, lattice):
    """|term| <= 2^22, bounds widen outwards, a lattice that fits is kept exactly."""
    hi = lo + span
    step, low, high = scalar_grid(lo, hi, None if lattice is None else Fraction(2) ** lattice)
    assert low * step <= lo <= hi <= high * step
    assert max(abs(low), abs(high)) <= 2**22
    assert step.numerator == 1 or step.denominator == 1
    if lattice is not None and Fraction(2) ** lattice >= step:
        assert step == Fraction(2) ** lattice
        assert rounding(Fraction(2) ** lattice, step) == 0
    else:
        assert rounding(None, step) == step / 2
        assert max(abs(low), abs(high)) >= 2**21 or step == Fraction(2) ** -300 or (lo, hi) == (0, 0)


def test_a_grid_is_never_finer_than_doubles_allow():
    """A magnitude of 1e-400 is summed on a grid whose step and inverse are ordinary doubles."""
    schema = Schema.of("t", {"v": Real(0, 1e-50)})
    power = Col("v")
    for _ in range(8):
        power = power * Col("v")
    kind = Vector((power,)).kind(schema)
    assert kind == Grid(Fraction(2) ** -300, (0,), (1,), None, nullable=True)
    assert evaluate(Vector((power,)), Frame(schema, [{"v": 2**22}])).values.tolist() == [[0]]


@pytest.mark.parametrize(
    "maker",
    [
        lambda: Vector(()),
        lambda: Vector((Col("n"),), 16),
        lambda: Vector((Col("n"),), 0),
        lambda: Dot(Vector((Col("n"),)), (1,), 21),
        lambda: Nearest(Vector((Col("n"),)), ()),
        lambda: WithinBall(Vector((Col("n"),)), 0),
        lambda: WithinL1(Vector((Col("n"),)), 0),
        lambda: WithinBall(Vector((Col("n"),)), -1),
        lambda: WithinL1(Vector((Col("n"),)), -1),
        lambda: WithinBall(Vector((Col("n"),)), True),
        lambda: WithinL1(Vector((Col("n"),)), True),
        lambda: Bernstein(Col("n"), 3),
        lambda: Bernstein(Col("n"), 0),
        lambda: Bernstein(Col("n"), 1, missing=1),
    ],
)
def test_shapes_out_of_range_are_refused(maker):
    """Widths, bits, radii and degrees have their limits."""
    with pytest.raises(QuestionError):
        maker()


def test_a_vector_takes_numbers_and_conditions():
    """Mixed coordinates share the grid of the largest; one missing coordinate makes the vector missing."""
    fn = Vector((Col("b"), Clip(Col("n"), -3, 5)), 4)
    kind = fn.kind(CUBE)
    assert (kind.step, kind.low, kind.high) == (Fraction(1, 2), (0, -6), (2, 10))
    found = evaluate(fn, Frame(CUBE, [{"b": 1, "n": 2**30}, {"b": None, "n": 0}]))
    assert found.values[0].tolist() == [2, 10]
    assert found.missing.tolist() == [False, True]
