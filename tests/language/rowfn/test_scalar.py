"""Numbers and conditions of one row: literals, their fit to columns, lattices and filled values."""

from __future__ import annotations

import datetime
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sulq.errors import QuestionError
from sulq.language.kinds import Code, Scalar, Truth, Words
from sulq.language.rowfn import Arith, Case, Clip, Col, Compare, Fill, Lit, Logic, row
from sulq.language.rowfn.base import literal, outward
from sulq.language.rowfn.conditions import against
from tests.expressions import SCHEMA
from tests.frames import Frame

UTC = datetime.UTC


def test_literals_become_plain_values():
    """NumPy scalars, fractions, dates and moments are stored as what the wire can carry."""
    cases = {
        np.int64(3): 3,
        np.float32(0.5): 0.5,
        np.bool_(True): True,
        Fraction(1, 4): 0.25,
        datetime.date(2020, 1, 2): "2020-01-02",
        datetime.datetime(2020, 1, 2, 3, tzinfo=UTC): "2020-01-02T03:00:00+00:00",
    }
    for given_, stored in cases.items():
        assert literal(given_) == stored
        assert type(literal(given_)) is type(stored)
        assert Lit(given_).value == stored
    clipped = Clip(Col("few"), np.int64(1), Fraction(3, 2))
    assert (clipped.lo, clipped.hi, type(clipped.lo)) == (1, 1.5, int)
    assert row(Col("few")).name == "few"


def test_operators_build_the_expression_that_is_written():
    """Reflected operators keep the sides in order."""
    few = Col("few")
    for fn, (op, left, right) in {
        few + 1: ("+", few, 1),
        1 + few: ("+", 1, few),
        few - 1: ("-", few, 1),
        1 - few: ("-", 1, few),
        few * 2: ("*", few, 2),
        2 * few: ("*", 2, few),
        few / 2: ("/", few, 2),
        2 / few: ("/", 2, few),
        -few: ("-", 0, few),
    }.items():
        sides = [side.value if isinstance(side, Lit) else side for side in (fn.left, fn.right)]
        assert fn.op == op
        assert sides[0] is left or isinstance(sides[0], int)
        assert sides[1] is right or isinstance(sides[1], int)
        assert [x for x in sides if isinstance(x, int)] == [x for x in (left, right) if isinstance(x, int)]
    between = few.between(0, 2)
    assert [item.op for item in between.items] == [">=", "<="]


@pytest.mark.parametrize(
    ("op", "mirrored"), [("<", ">"), ("<=", ">="), (">", "<"), (">=", "<="), ("==", "=="), ("!=", "!=")]
)
def test_a_constant_on_the_left_is_turned_to_the_right(op, mirrored):
    """3 < x is x > 3: engines meet the constant on one side only."""
    left, right, found = Compare(op, Lit(3), Col("few")).sides(SCHEMA)
    assert (left.name, right, found) == ("few", 3.0, mirrored)


def test_literals_meet_columns_on_their_grid():
    """A category's label becomes its code, a date its days, a moment its microseconds."""
    assert against("Yafo", Code(("Haifa", "Lod", "Yafo"))) == 2
    assert against("2020-03-01", Col("day").kind(SCHEMA)) == 18322
    assert against("1970-01-01T00:00:00.000001", Col("moment").kind(SCHEMA)) == 1
    assert against("1970-01-01T01:00:00+01:00", Col("moment").kind(SCHEMA)) == 0
    assert against("x", Words()) == "x"
    assert against(1, Truth()) == 1


@pytest.mark.parametrize("text", ["yesterday", "2020-02-30", "0001-01-01T00:00:00+14:00", "", "2020-13-01"])
def test_a_date_that_is_none_is_a_bad_literal_T51(text):
    """Text that is no date, or none in UTC, is refused with a code (T51)."""
    for column in ("day", "moment"):
        with pytest.raises(QuestionError) as refusal:
            (Col(column) > text).kind(SCHEMA)
        assert refusal.value.code == "bad-literal"


def test_a_long_list_meets_many_categories_at_once():
    """A list over all of 65,536 categories is fitted by one table, not by a search for each (T74)."""
    labels = tuple(f"c{i}" for i in range(2**16))
    kind = Code(labels)
    fn = Col("city").isin(labels[:10_000])
    assert fn._fitted(kind) == list(range(10_000))
    with pytest.raises(QuestionError) as refusal:
        Col("city").isin([*labels[:3], "other"])._fitted(kind)
    assert refusal.value.code == "unknown-category"


@given(st.fractions(-(10**40), 10**40), st.fractions(0, 10**40))
def test_outward_holds_the_interval_between_the_next_doubles(lo, span):
    """The widened interval ends at doubles, holds the exact one, and is no wider than it must be."""
    hi = lo + span
    low, high = outward(lo, hi)
    assert low <= lo <= hi <= high
    assert Fraction(float(low)) == low
    assert Fraction(float(high)) == high
    assert np.nextafter(float(low), np.inf) > lo
    assert np.nextafter(float(high), -np.inf) < hi


def test_what_may_pass_every_double_counts_as_unbounded():
    """A product past 2^300 has no interval, and its non-finite values are missing (T5, T30)."""
    power = Col("large")
    for _ in range(8):
        power = power * Col("large")
    assert power.kind(SCHEMA) == Scalar(None, None, power.kind(SCHEMA).step, nullable=True)
    frame = Frame(SCHEMA, [{"large": SCHEMA.find("large").high}])
    assert power.cells(frame).missing.all()


def test_lattices_follow_the_arithmetic():
    """Steps: the finer of two for sums, the product for products, none for quotients and odd clips."""
    kinds = {
        Col("few") + 0.5: Fraction(1, 2),
        Col("few") * 0.25: Fraction(1, 4),
        Col("few") / 2: None,
        Col("few").clip(-1, 2): Fraction(1),
        Col("few").clip(-1, 3.5): Fraction(1),
        Col("few").clip(-1.5, 2): None,
        Col("few").fill(7): Fraction(1),
        Col("few").fill(0.5): None,
        Case(((Col("flag"), Lit(1)), (Col("flag"), Lit(0.5)))): Fraction(1, 2),
        Col("flag") + 0: Fraction(1),
    }
    assert {fn: fn.kind(SCHEMA).step for fn in kinds} == kinds


def test_a_filled_value_is_never_missing_and_inside_its_interval():
    """Filling widens the interval to hold its constant, and takes away missing."""
    kind = Col("above").fill(-3).kind(SCHEMA)
    assert (kind.lo, kind.hi, kind.nullable) == (-3, 105, False)
    assert Fill(1 / Col("few"), 0).kind(SCHEMA) == Scalar(None, None, None, nullable=False)
    assert Fill(Col("day"), "2030-01-01").kind(SCHEMA).clock == "date"
    assert Fill(Col("flag"), 1).kind(SCHEMA) == Truth(nullable=False)


@pytest.mark.parametrize(
    "maker",
    [
        lambda: Arith("**", Col("few"), Col("few")),
        lambda: Compare("like", Col("few"), Col("few")),
        lambda: Logic("xor", (Col("flag"),)),
        lambda: Logic("and", ()),
        lambda: Case(()),
    ],
)
def test_no_operation_but_the_listed_ones(maker):
    """The language is closed: an operation it does not know is refused (T23)."""
    with pytest.raises(QuestionError) as refusal:
        maker()
    assert refusal.value.code == "bad-question"


def test_reversed_bounds_of_a_clip_are_refused():
    """clip(hi, lo) is a mistake, not an empty interval."""
    with pytest.raises(QuestionError, match="reversed"):
        Col("few").clip(2, 1)
    with pytest.raises(QuestionError):
        Col("few").clip(True, 2)
    with pytest.raises(QuestionError):
        Col("few").clip("0", 2)
