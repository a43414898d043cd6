"""Columns and their bounds: public, finite, on a grid, and never read off the data."""

from __future__ import annotations

import datetime
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from sulq.answers import wire
from sulq.errors import SetupError
from sulq.language.domain import (
    COLUMNS,
    Bool,
    Category,
    Date,
    Int,
    Real,
    Schema,
    Text,
    Timestamp,
    Vertices,
    days,
    declare,
    grid_for,
    is_text,
    may_be_missing,
    microseconds,
    power_of_two,
)
from sulq.service.console.views.words import kind
from sulq.sql.rows.row_set import type_of

NAN, INF = float("nan"), float("inf")


def code(maker) -> str:
    with pytest.raises(SetupError) as refusal:
        maker()
    return refusal.value.code


@pytest.mark.parametrize(
    "maker",
    [
        lambda: Int(2, 1),
        lambda: Real(2, 1),
        lambda: Real(1.0, math.nextafter(1.0, 0.0)),
        lambda: Date("2020-01-02", "2020-01-01"),
        lambda: Timestamp("2020-01-01T00:00:00.000001", "2020-01-01"),
        lambda: declare((3, 1), "x"),
        lambda: declare((3.0, 1), "x"),
    ],
)
def test_reversed_bounds_are_refused_T12(maker):
    """A lower bound above the upper one would be a negative range, and no noise at all (T12)."""
    assert code(maker) == "bad-bounds"


@pytest.mark.parametrize("bad", [NAN, INF, -INF, 1e61, -1e300, 10**400])
def test_bounds_must_be_finite_T12(bad):
    """NaN and infinities bound nothing (T12, T6)."""
    assert code(lambda: Real(bad, 1)) == "bad-bounds"
    assert code(lambda: Real(0, bad)) == "bad-bounds"
    assert code(lambda: Real(0, 1, grid=bad)) == "bad-bounds"


@pytest.mark.parametrize("bad", [None, "0", True, 1j, [0], b"0", Fraction(1, 2), np.datetime64("2020-01-01")])
def test_bounds_must_be_numbers_T12(bad):
    """None, text, truth values and what the wire cannot carry are refused as bounds (T12, T51)."""
    assert code(lambda: Real(bad, 1)) == "bad-declaration"
    assert code(lambda: Int(bad, 1)) == "bad-declaration"
    assert code(lambda: Int(0, bad)) == "bad-declaration"
    if bad is not None:
        assert code(lambda: Real(0, 1, grid=bad)) == "bad-declaration"


def test_whole_bounds_are_exact_doubles():
    """An Int reaches 2^53 and no farther; parts of numbers are refused."""
    assert Int(-(2**53), 2**53).high == 2**53
    assert code(lambda: Int(0, 2**53 + 1)) == "bad-bounds"
    assert code(lambda: Int(0, 1.5)) == "bad-declaration"
    assert (Int(3, 3).low, Int(3, 3).high, Int(3, 3).step) == (3, 3, 1)


@given(st.fractions(Fraction(1, 2**80), 2**80))
def test_powers_of_two_below_a_number(number):
    """The largest power of two that is not above it."""
    power = power_of_two(number)
    assert power <= number < 2 * power
    assert power.numerator == 1 or power.denominator == 1
    assert (power.numerator * power.denominator).bit_count() == 1


@given(st.fractions(Fraction(1, 2**80), 2**80), st.integers(1, 30))
def test_a_grid_is_the_finest_that_fits(magnitude, bits):
    """A magnitude needs at most 2^bits units, and would need more on half the step."""
    step = grid_for(magnitude, bits)
    assert magnitude <= step * 2**bits
    assert magnitude > step / 2 * 2**bits
    assert grid_for(Fraction(0), bits) == 1


@given(st.floats(-1e9, 1e9), st.floats(0, 1e9), st.none() | st.floats(2**-2, 1e6))
def test_a_grid_is_lowered_to_a_power_of_two_and_bounds_widen_outwards(lo, span, grid):
    """Real's step is a power of two at most the asked one; its units reach past the bounds by less than one step."""
    hi = lo + span
    assume(max(abs(lo), abs(hi)) == 0 or max(abs(lo), abs(hi)) > 1e-30)  # smaller ranges are refused, below
    column = Real(lo, hi, grid) if grid is None or max(abs(lo), abs(hi)) / grid < 2**29 else Real(lo, hi)
    step = column.step
    assert (step.numerator * step.denominator).bit_count() == 1
    assert column.low * step <= Fraction(lo)
    assert Fraction(hi) <= column.high * step
    assert Fraction(lo) - column.low * step < step
    assert column.high * step - Fraction(hi) < step
    assert max(abs(column.low), abs(column.high)) < 2**31
    if column.grid is not None:
        assert step <= Fraction(grid) < 2 * step
    else:
        assert max(abs(column.low), abs(column.high)) <= 2**22


def test_the_grid_of_a_tenth_is_a_sixteenth():
    """The example of the guide: 0.1 is lowered to 1/16, and [0.1, 0.9] widens to [1/16, 15/16]."""
    column = Real(0.1, 0.9, grid=0.1)
    assert (column.step, column.low, column.high) == (Fraction(1, 16), 1, 15)


def test_a_grid_has_at_most_2_to_31_units():
    """|q| < 2^31 by policy: finer grids, and ranges no grid serves, are refused."""
    assert Real(0, 1, grid=2.0**-30).high == 2**30
    assert code(lambda: Real(0, 1, grid=2.0**-31)) == "bad-bounds"
    assert code(lambda: Real(0, 1, grid=0)) == "bad-bounds"
    assert code(lambda: Real(0, 1, grid=-1)) == "bad-bounds"
    assert code(lambda: Real(0, 5e-324)) == "bad-bounds"
    assert code(lambda: Real(0, 1e-60)) == "bad-bounds"
    assert Real(0, 0).high == 0
    assert Real(0, 1, grid=1e9).high == 1


def test_categories_are_different_texts_or_whole_numbers():
    """A list of one kind, without repeats, of at most 2^20."""
    assert (Category(["a", "b"]).low, Category(["a", "b"]).high, Category([5]).high) == (0, 1, 0)
    assert Category(range(3)).values == (0, 1, 2)
    for bad in ([], ["a", "a"], ["a", 1], [True, False], [1.5], [None], [["a"]], [{}], range(2**20 + 1), [2**60]):
        assert code(lambda bad=bad: Category(bad)) == "bad-declaration"
    for bad in ("abc", 5, None, {"a": 1}):
        assert code(lambda bad=bad: Category(bad)) == "bad-declaration"


def test_dates_are_days_since_1970():
    """Bounds are dates or their ISO text; the grid is the day."""
    column = Date("1969-12-31", datetime.date(1970, 1, 3))
    assert (column.lo, column.hi, column.low, column.high, column.step) == ("1969-12-31", "1970-01-03", -1, 2, 1)
    assert days("2000-03-01") == 11017
    for bad in (
        "2020-02-30",
        "tomorrow",
        5,
        None,
        datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC),
        "2020-01-01T00:00",
    ):
        assert code(lambda bad=bad: Date(bad, "2030-01-01")) == "bad-bounds"


def test_moments_are_microseconds_in_utc():
    """Bounds are moments or their ISO text; a zone is turned into UTC; the range is that of exact doubles."""
    column = Timestamp("1969-12-31T23:59:59.999999", "1970-01-01T02:00:00+01:00")
    assert (column.low, column.high) == (-1, 3_600_000_000)
    assert microseconds(datetime.datetime(1970, 1, 1, 0, 0, 1, tzinfo=datetime.UTC)) == 1_000_000
    for bad in ("0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "1600-01-01", "2500-01-01", "noon", 5, None):
        assert code(lambda bad=bad: Timestamp(bad, bad)) == "bad-bounds"


def test_short_declarations():
    """(0, 120) and range(120) are short for Int, (0.0, 1) for Real, a list for Category; Bool and Text stand alone."""
    assert declare((0, 120), "x") == Int(0, 120)
    assert declare((0.0, 1), "x") == Real(0.0, 1)
    assert declare(["a"], "x") == Category(("a",))
    assert declare(range(2), "x") == Int(0, 1)
    assert declare(range(0, 9, 3), "x") == Category((0, 3, 6))
    assert declare(Bool, "x") == Bool()
    assert declare(Text, "x") == Text()
    assert declare(Int(0, 1), "x") == Int(0, 1)
    for bad in (5, "text", None, (1,), (1, 2, 3), {}, Int, dict, len):
        assert code(lambda bad=bad: declare(bad, "income")) == "bad-declaration"
    for bad in (("a", "b"), (None, 1), (True, False), (True, 2)):
        assert code(lambda bad=bad: declare(bad, "income")) in {"bad-declaration", "bad-bounds"}


def test_a_text_has_a_declared_bound_T100():
    """From 1 to 10,000 characters, the default; canonical JSON, digests and words of the default stay as they were."""
    assert Text().longest == 10_000
    assert wire.to_json(Text()) == {"kind": "Text"}
    assert wire.encode(Text(200)) == '{"kind":"Text","longest":200}'
    for text in (Text(), Text(200)):
        assert wire.decode(wire.encode(text)) == wire.from_json(wire.to_json(text)) == text
    assert wire.decode('{"kind":"Text"}') == Text()
    assert (repr(Text()), repr(Text(200))) == ("Text()", "Text(longest=200)")
    for bad, code in ((0, "bad-bounds"), (10_001, "bad-bounds"), (True, "bad-declaration"), ("9", "bad-declaration")):
        with pytest.raises(SetupError) as error:
            Text(bad)
        assert error.value.code == code


def test_a_schema_keeps_names_and_order():
    """Columns by name, in the order declared; nothing else is found (T21)."""
    schema = Schema.of("t", {"b": (0, 1), "a": ["x"]})
    assert list(schema.names) == ["b", "a"]
    assert schema.find("a") == Category(("x",))
    assert schema.find("c") is None
    for bad in (None, {}, [], "abc", {"": (0, 1)}, {3: (0, 1)}):
        assert code(lambda bad=bad: Schema.of("t", bad)) == "bad-declaration"
    assert code(lambda: Schema("t", (("a", Bool()), ("a", Bool())))) == "bad-declaration"


def test_every_column_but_text_has_a_grid():
    """Step, lowest and highest unit are there for all but free text."""
    made = [Int(0, 1), Real(0, 1), Bool(), Category(["a"]), Date("2020-01-01", "2020-01-02")]
    made += [Timestamp("2020-01-01", "2020-01-02"), Vertices(0, 1)]
    assert {*map(type, made), Text} == set(COLUMNS)
    assert all(column.low <= column.high and column.step > 0 for column in made)
    assert all(type_of(column) and kind(column) for column in [*made, Text()])  # in SQL, and in the console's words


def test_vertices_are_whole_numbers_and_no_Int_SR10():
    """The same bounds and refusals; but another declaration, so that one is never taken for the other."""
    assert Vertices(0, 9) != Int(0, 9)
    assert isinstance(Vertices(0, 9), Int)
    assert Vertices(0, 9) == Vertices(0, 9)
    assert code(lambda: Vertices(3, 2)) == code(lambda: Int(3, 2)) == "bad-bounds"
    assert code(lambda: Vertices(0.5, 2)) == "bad-declaration"


@pytest.mark.parametrize("name", ["", "a\x00b", "\ud800", "x" * 1_001, 3])
def test_a_name_is_text_of_moderate_length_T71(name: object) -> None:
    """Of a table and of a column; 1,000 characters of any script are a name."""
    for table, columns in ((name, {"a": Int(0, 1)}), ("t", {name: Int(0, 1)})):
        with pytest.raises(SetupError) as caught:
            Schema.of(table, columns)  # type: ignore[arg-type]
        assert caught.value.code == "bad-declaration"
    assert Schema.of("\u05d0" * 1_000, {"'; --": Int(0, 1)}).names == ["'; --"]


def test_half_a_character_is_no_text_T71() -> None:
    """What cannot be written as UTF-8 is no text."""
    assert is_text("a\U0001f469\u202e\x00")
    assert not is_text("a\ud83d")


NEVER = {  # a column, a default of it, what is stored with it and without, and what is no value of it
    "int": (Int(-3, 9), 5, 5, -3, (10, 2.0, True, "5")),
    "real": (Real(0, 8, 0.5), 3.3, 7, 0, (9, NAN, INF, True, "3")),
    "bool": (Bool(), True, 1, 0, (1, "true")),
    "category": (Category(["a", "b"]), "b", 1, 0, ("c", 1, True)),
    "numbers": (Category([5, 7]), 7, 1, 0, (6, "7", True)),
    "date": (Date("2020-01-01", "2020-12-31"), "2020-01-03", days("2020-01-03"), days("2020-01-01"), ("2021-01-01",)),
    "timestamp": (Timestamp("2020-01-01", "2020-12-31"), "2020-02-01T01:00:00", microseconds("2020-02-01T01:00:00"),
                  microseconds("2020-01-01"), ("2021-01-01", "soon")),
    "text": (Text(), "none", "none", "", (1, "\x00", "x" * 10_001)),
}  # fmt: skip


@pytest.mark.parametrize("name", NEVER)
def test_a_column_that_is_never_missing_has_a_default_in_its_domain(name):
    """Without one the low bound, the first category, False, the empty text; another value is the owner's mistake."""
    column, default, stored, lowest, wrong = NEVER[name]
    assert column.missing
    never = replace(column, missing=False)
    assert never.filled == lowest
    assert replace(never, default=default).filled == stored
    for value in wrong:
        assert code(lambda value=value: replace(never, default=value)) in ("bad-declaration", "bad-bounds")
    assert code(lambda: replace(column, default=default)) == "bad-declaration"
    assert code(lambda: replace(column, missing=None)) == "bad-declaration"


@pytest.mark.parametrize("name", NEVER)
def test_what_is_not_said_is_not_written(name):
    """Texts and digests of columns are as they were before a column could say that it is never missing."""
    column, default, *_ = NEVER[name]
    assert "missing" not in wire.encode(column)
    assert "missing" not in repr(column)
    never = replace(column, missing=False, default=default)
    assert wire.decode(wire.encode(never)) == never
    assert "missing=False, default=" in repr(never)
    assert wire.digest(never) != wire.digest(replace(column, missing=False)) != wire.digest(column)
    assert may_be_missing(never) == column
