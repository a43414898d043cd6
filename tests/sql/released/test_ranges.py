"""Interval arithmetic: whatever the statistics are within their intervals, the expression is within its range."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sulq.errors import QuestionError
from sulq.sql.released.functions import COMPARISONS, LAX, STRICT, act
from sulq.sql.released.ranges import (
    Anything,
    NumberRange,
    OneOf,
    Outcome,
    hull,
    may,
    only,
    outcome,
    shown,
    span,
)
from tests.counts import count

NUMERIC = [op for op in (*COMPARISONS, *STRICT, *LAX) if op not in ("pi", "like", "ilike", "and", "or")]
RUNS = count("ranges of expressions", short=1_000, long=200_000)
ends = st.one_of(st.integers(-20, 20).map(float), st.floats(-1e3, 1e3, allow_nan=False))


@st.composite
def parts(draw: st.DrawFn) -> tuple[Outcome, object]:
    """A range and a value within it."""
    if draw(st.booleans()):
        low, high = sorted((draw(ends), draw(ends)))
        value = min(max(low + (high - low) * draw(st.sampled_from([0.0, 1.0, 0.5, 0.3])), low), high)
        null = draw(st.booleans()) and draw(st.booleans())
        return NumberRange(low, high, null), None if null and draw(st.booleans()) else value
    values = draw(st.lists(st.sampled_from([None, True, False, 3, -2, 2.5]), min_size=1, max_size=3))
    return OneOf(frozenset(values)), draw(st.sampled_from(values))


def within(value: object, found: Outcome) -> bool:
    if isinstance(found, Anything):
        return True
    if isinstance(found, OneOf):
        return any(value is one or (value == one and value is not None and one is not None) for one in found.values)
    if value is None:
        return found.null
    slip = 1e-9 * max(1.0, abs(float(value)))
    return found.low - slip <= float(value) <= found.high + slip


@given(st.sampled_from(NUMERIC), st.lists(parts(), min_size=1, max_size=3))
@settings(max_examples=RUNS)
def test_a_range_holds_every_value_it_could_have(op, args):
    """Any value of the arguments' ranges gives a value of the result's range, missing ones included."""
    try:
        found = outcome(op, [range_ for range_, _ in args])
        value = act(op, [value for _, value in args])
    except (QuestionError, TypeError):
        return
    assert within(value, found), (op, args, found, value)


@given(st.sampled_from(["and", "or"]), st.lists(st.sets(st.sampled_from([True, False, None]), min_size=1), min_size=1))
def test_logic_of_what_may_be_true(op, several):
    """Three-valued logic of possible truths is the set of its possible results, whether worked out or enumerated."""
    ranges = [OneOf(frozenset(values)) for values in several]
    found = outcome(op, [*ranges, *[OneOf(frozenset((op == "and",)))] * 5])
    for values in itertools.islice(itertools.product(*several), 50):
        assert within(act(op, list(values)), found)


@given(parts(), parts())
def test_whole_quotients_are_cut_off(a, b):
    """A quotient of whole numbers lies in the range of the cut-off quotient."""
    if any(value is None for _, value in (a, b)) or b[1] == 0:
        return
    found, quotient = outcome("trunc", [outcome("/", [a[0], b[0]])]), float(a[1]) / float(b[1])
    if isinstance(found, NumberRange) and math.isfinite(quotient):  # what overflows is missing
        assert found.low <= math.trunc(quotient) <= found.high


@given(st.lists(parts(), min_size=1, max_size=4))
def test_a_hull_holds_all_of_them(several):
    """Whatever one of several ranges holds, their hull holds."""
    found = hull([range_ for range_, _ in several])
    assert all(within(value, found) for _, value in several)


def test_ranges_that_decide_are_certain():
    """Ranges apart decide a comparison; overlapping ones leave it open; logic follows."""
    assert outcome("<", [NumberRange(0, 1), NumberRange(2, 3)]) == only(value=True)
    assert outcome("<", [NumberRange(0, 2), NumberRange(1, 3)]) == OneOf(frozenset((True, False)))
    open_ = outcome("<", [NumberRange(0, 2), only(1)])
    assert outcome("and", [open_, only(value=False)]) == only(value=False)
    assert outcome("or", [Anything(), only(value=True)]).values >= {True}
    assert may(Anything(), None)
    assert not may(only(value=True), None)
    assert shown(only("x")) is None
    assert shown(only(value=True)) is None
    assert shown(NumberRange(1, 2)) == (1, 2)
    assert shown(Anything()) is None
    assert span(OneOf(frozenset(("x", 1)))) is None
    assert outcome("coalesce", [NumberRange(1, 2, null=True), only(5)]) == NumberRange(1, 5)
    assert isinstance(outcome("coalesce", [Anything(), only(5)]), Anything)
    assert outcome("is null", [Anything()]) == OneOf(frozenset((True, False)))


def test_what_may_be_missing_is_said_to_be():
    """LN and LOG have no value at 0, SQRT has; nothing is in an empty list, but of a missing value nobody knows."""
    zero, tiny = NumberRange(0, 2), NumberRange(0.5, 2)
    for op, args in (("ln", [zero]), ("log", [zero]), ("log", [zero, tiny]), ("log", [tiny, zero])):
        assert outcome(op, args).null, (op, args)
    assert not outcome("sqrt", [zero]).null
    assert not outcome("log", [NumberRange(2, 3), tiny]).null
    assert outcome("in", [NumberRange(0, 2, null=True)]) == OneOf(frozenset((False, None)))
    assert outcome("in", [zero]) == only(value=False)


@pytest.mark.parametrize(
    ("op", "args", "low", "high"),
    [
        ("+", [NumberRange(1, 2), NumberRange(3, 5)], 4, 7),
        ("-", [NumberRange(1, 2), NumberRange(3, 5)], -4, -1),
        ("*", [NumberRange(-1, 2), NumberRange(3, 5)], -5, 10),
        ("/", [NumberRange(1, 2), NumberRange(4, 8)], 0.125, 0.5),
        ("abs", [NumberRange(-3, 2)], 0, 3),
        ("power", [NumberRange(-3, 2), only(2)], 0, 9),
        ("sqrt", [NumberRange(4, 9)], 2, 3),
        ("ln", [NumberRange(1, math.e)], 0, 1),
        ("log", [NumberRange(10, 100)], 1, 2),
        ("cos", [NumberRange(0, math.pi)], -1, 1),
        ("sin", [NumberRange(0, 0.1)], 0, math.sin(0.1)),
        ("round", [NumberRange(1.24, 1.26), only(1)], 1.2, 1.3),
        ("floor", [NumberRange(1.5, 2.5)], 1, 2),
        ("mod", [NumberRange(7, 8), only(5)], 2, 3),
        ("exp", [NumberRange(-math.inf, 0)], 0, 1),
        ("greatest", [NumberRange(1, 5), only(3)], 3, 5),
        ("least", [NumberRange(1, 5), only(3)], 1, 3),
    ],
)
def test_ranges_are_no_wider_than_they_must_be(op, args, low, high):
    """The range of one operation is exact."""
    found = outcome(op, args)
    assert isinstance(found, NumberRange)
    assert (found.low, found.high) == (pytest.approx(low, abs=1e-9), pytest.approx(high, abs=1e-9))
