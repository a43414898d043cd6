"""Mathematical functions: total on every double, and exactly as wide as their arguments make them."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sulq.errors import QuestionError
from sulq.language.domain import Int, Real, Schema
from sulq.language.kinds import Scalar
from sulq.language.rowfn import Col, Greatest, Least, Lit, Maths, Modulo, Power, Round
from sulq.language.rowfn import maths as module
from sulq.language.rowfn.base import evaluate
from tests import expressions
from tests.counts import count
from tests.expressions import SCHEMA
from tests.frames import Frame
from tests.meaning import meaning

CASES = count("ln, exp and powers against the C library", short=150, long=10_000)
OPERATIONS = module.OPERATIONS
POWERS = (0, 1, 2, 3, 4, 16, -1, -2, -3, 0.5, -0.5, 0.3, 17, 18, -17, 2.5)


def points(fn, schema: Schema) -> list[float | None]:
    column = schema.find("x")
    rows = [{"x": code, "person": 0, "position": 0} for code in range(column.low, column.high + 1)]
    cells = evaluate(fn, Frame(schema, rows))
    missing = np.zeros(len(rows), bool) if cells.missing is None else cells.missing
    return [None if gone else float(value) for value, gone in zip(cells.values, missing, strict=True)]


@pytest.mark.parametrize(("lo", "hi"), [(-9, 14), (0, 20), (1, 20), (-20, -1), (-20, 0), (3, 3), (0, 0), (-1, 1)])
@pytest.mark.parametrize("make", [Int, lambda lo, hi: Real(lo / 4, hi / 4, 0.25)], ids=["i", "r"])
@pytest.mark.parametrize(
    "build",
    [
        *(lambda x, op=op: Maths(op, x) for op in OPERATIONS),
        *(lambda x, e=e: Power(x, e) for e in POWERS),
        *(lambda x, d=d: Round(x, d) for d in (-1, 0, 1, 3)),
        *(lambda x, by=by: Modulo(x, by) for by in (1, 2, -3, 4, 7, 0.5, 0.25, 100)),
    ],
)
def test_an_interval_is_that_of_all_its_points_T13(lo, hi, make, build):
    """Over every point of a column the interval holds all values; it is no wider than they need (T13)."""
    schema = Schema("t", (("x", make(lo, hi)),))
    fn = build(Col("x"))
    kind = fn.kind(schema)
    values = [value for value in points(fn, schema) if value is not None]
    assert kind.bounded
    assert all(kind.lo <= Fraction(value) <= kind.hi for value in values)
    if values and not isinstance(fn, Modulo):  # the remainders of few numbers need not reach the largest
        slack = 4 * max(math.ulp(float(kind.lo)), math.ulp(float(kind.hi)))
        assert min(values) - float(kind.lo) <= slack
        assert float(kind.hi) - max(values) <= slack
    if kind.step is not None:
        assert all((Fraction(value) / kind.step).denominator == 1 for value in values)
    if None in points(fn, schema):
        assert kind.nullable


def test_an_interval_that_is_too_narrow_is_noticed_T13():
    """Control: without the lower half of the argument the cube's interval misses values."""
    schema = Schema("t", (("x", Int(-3, 3)),))
    narrow = Power(Col("x"), 3).kind(Schema("t", (("x", Int(0, 3)),)))
    assert not all(narrow.lo <= Fraction(value) <= narrow.hi for value in points(Power(Col("x"), 3), schema))


@settings(max_examples=CASES)
@given(expressions.transcendental(), expressions.tables(), st.randoms(use_true_random=False))
def test_ln_exp_and_power_are_the_c_librarys_but_for_the_last_places_SR16(fn, rows, chance):
    """Next to the plain Python value, within the interval, and the same for a row in whatever batch it comes."""
    kind = fn.kind(SCHEMA)
    cells = evaluate(fn, Frame(SCHEMA, rows))
    alone = [evaluate(fn, Frame(SCHEMA, [row])) for row in rows]
    for i, row in enumerate(rows):
        want = meaning(fn, SCHEMA, row)
        assert (cells.missing is not None and bool(cells.missing[i])) == (want is None)
        if want is not None:
            found = float(cells.values[i])
            assert found == float(alone[i].values[0])
            assert abs(found - want) <= 4 * math.ulp(want)
            assert not kind.bounded or kind.lo <= Fraction(found) <= kind.hi
    order = chance.sample(range(len(rows)), len(rows))
    shuffled = evaluate(fn, Frame(SCHEMA, [rows[i] for i in order]))
    assert [float(x) for x in shuffled.values] == [float(cells.values[i]) for i in order]


def test_a_row_is_worth_the_same_in_batches_of_every_length_SR16():
    """Whole registers and what is left over of them give the same bits."""
    schema = Schema("t", (("x", Real(0, 64, 2.0**-10)),))
    codes = [1 + 397 * i % 60_000 for i in range(67)]
    rows = [{"x": code, "person": 0, "position": 0} for code in codes]
    for fn in (Maths("ln", Col("x")), Maths("exp", Col("x")), Power(Col("x"), 2.3)):
        whole = evaluate(fn, Frame(schema, rows)).values
        for size in (1, 2, 3, 5, 8, 13, 31):
            for start in range(0, len(rows), size):
                part = evaluate(fn, Frame(schema, rows[start : start + size])).values
                assert np.array_equal(part, whole[start : start + size])


def test_the_clamp_holds_what_a_library_gets_wrong_T13(monkeypatch: pytest.MonkeyPatch):
    """A logarithm that is off by a tenth still stays in the interval that the noise was made for."""
    schema = Schema("t", (("x", Int(1, 100)),))
    fn = Maths("ln", Col("x"))
    kind = fn.kind(schema)
    log = np.log
    monkeypatch.setattr(module.np, "log", lambda x: log(x) + 0.1)
    assert max(log(np.arange(1, 101)) + 0.1) > kind.hi  # control: unclamped it leaves
    assert all(kind.lo <= Fraction(value) <= kind.hi for value in points(fn, schema))


@pytest.mark.parametrize(
    ("fn", "want"),
    [
        (Maths("ln", Col("wide")), (Fraction(0), 53 * Fraction(math.log(2)))),
        (Maths("ln", 1 / Col("few")), (Fraction(-745), Fraction(710))),
        (Maths("exp", Col("few")), (Fraction(0), Fraction(21))),
    ],
)
def test_ln_and_exp_of_what_has_no_bounds_have_some(fn, want):
    """A double's logarithm is small, whatever the double; a whole number's is not negative."""
    kind = fn.kind(SCHEMA)
    assert want[0] <= kind.lo
    assert kind.hi <= want[1] + Fraction(1, 1000)


@pytest.mark.parametrize("fn", [Maths("exp", Col("wide")), Power(Col("large"), 7), Maths("sqrt", 1 / Col("few"))])
def test_what_may_pass_every_double_counts_as_unbounded(fn):
    """It can be compared and clipped; a value that is not finite is missing."""
    assert not fn.kind(SCHEMA).bounded
    assert fn.clip(0, 1).kind(SCHEMA).bounded


@pytest.mark.parametrize(
    ("value", "digits", "want"),
    [
        (2.5, 0, 3.0),
        (-2.5, 0, -3.0),
        (0.5, 0, 1.0),
        (1.25, 1, 1.3),
        (-1.25, 1, -1.3),
        (1250.0, -2, 1300.0),
        (0.49999999999999994, 0, 0.0),
    ],
)
def test_halves_are_rounded_away_from_zero(value, digits, want):
    """As PostgreSQL rounds its numeric; the number next to a half is not one."""
    fn = Round(Lit(value), digits)
    assert float(evaluate(fn, Frame(SCHEMA, [{}])).values[0]) == want
    assert fn.kind(SCHEMA).lo == fn.kind(SCHEMA).hi == Fraction(want)


def test_a_whole_number_stays_whole_when_digits_are_asked_of_it():
    """Rounding to two places changes no whole number, however large, and it stays a key."""
    assert Round(Col("wide"), 2).kind(SCHEMA) == Col("wide").kind(SCHEMA)
    assert Round(Col("part"), 0).kind(SCHEMA).step == 1
    assert Round(Col("part"), 1).kind(SCHEMA).step is None


def test_least_and_greatest_leave_aside_what_is_missing():
    """The bounds know which of the numbers are always there."""
    some, sure = Col("few"), Lit(1)  # -2..3, and 1
    assert Least((some, sure)).kind(SCHEMA) == Scalar(Fraction(-2), Fraction(1), Fraction(1), nullable=False)
    assert Greatest((some, sure)).kind(SCHEMA) == Scalar(Fraction(1), Fraction(3), Fraction(1), nullable=False)
    both = Least((some, Col("above"))).kind(SCHEMA)
    assert (both.lo, both.hi, both.nullable) == (-2, 105, True)
    rows = [{"few": a, "above": b} for a in (1, None) for b in (101, None)]
    cells = evaluate(Least((some, Col("above"))), Frame(SCHEMA, rows))
    assert [None if gone else x for x, gone in zip(cells.values, cells.missing, strict=True)] == [1, 1, 101, None]
    assert Least((Col("day"), Col("day"))).kind(SCHEMA).clock == "date"
    assert not Greatest((some, 1 / Col("few"))).kind(SCHEMA).bounded


@pytest.mark.parametrize(
    "maker",
    [
        lambda: Maths("tan", Col("few")),
        lambda: Round(Col("few"), 16),
        lambda: Round(Col("few"), 1.5),
        lambda: Round(Col("few"), True),
        lambda: Power(Col("few"), 1001),
        lambda: Power(Col("few"), "2"),
        lambda: Modulo(Col("few"), 0),
        lambda: Modulo(Col("few"), math.nan),
        lambda: Least(()),
        lambda: Greatest((3,)),
        lambda: Maths("abs", 3),
    ],
)
def test_what_has_no_meaning_is_refused(maker):
    """Unknown operations, too many digits, no numbers."""
    with pytest.raises(QuestionError) as refusal:
        maker()
    assert refusal.value.code in {"bad-question", "bad-literal"}


@pytest.mark.parametrize(
    "fn", [Maths("abs", Col("city")), Round(Col("name"), 1), Least((Col("day"), Col("few"))), Power(Col("city"), 2)]
)
def test_wrong_kinds_are_refused(fn):
    """Only numbers have functions; dates and numbers are not mixed."""
    with pytest.raises(QuestionError) as refusal:
        fn.kind(SCHEMA)
    assert refusal.value.code == "wrong-kind"


@pytest.mark.parametrize(
    "wrap",
    [
        lambda fn: Maths("abs", fn),
        lambda fn: Round(fn, 2),
        lambda fn: Power(fn, 1),
        lambda fn: Modulo(fn, 7),
        lambda fn: Least((fn,)),
    ],
)
def test_a_kind_asks_each_part_once_T74(wrap):
    """Forty storeys have their kind at once; a node that asked twice would ask 2^40 times (T74)."""
    fn = Col("few")
    for _ in range(40):
        fn = wrap(fn)
    assert fn.kind(SCHEMA).bounded
