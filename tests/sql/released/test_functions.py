"""Operators and functions of released values: PostgreSQL's results and types, total and missing-safe."""

from __future__ import annotations

import datetime
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sulq.display.moments import moment
from sulq.errors import QuestionError
from sulq.sql.released.functions import KNOWN, act, half_up, like, number, takes

DAY = datetime.date(2024, 3, 31)
TIME = datetime.datetime.fromisoformat("2024-03-31T13:45:07")

CASES = [
    ("+", (2, 3), 5),
    ("+", (DAY, 1), datetime.date(2024, 4, 1)),
    ("+", (1, DAY), datetime.date(2024, 4, 1)),
    ("-", (DAY, DAY), 0),
    ("-", (DAY, 31), datetime.date(2024, 2, 29)),
    ("-", (2.5, 1), 1.5),
    ("*", (2, 3.5), 7.0),
    ("/", (7, 2), 3),
    ("/", (-7, 2), -3),
    ("/", (7, 2.0), 3.5),
    ("/", (7, 0), None),
    ("mod", (-7, 3), -1),
    ("mod", (7.5, 2), 1.5),
    ("mod", (7, 0), None),
    ("power", (2, 10), 1024.0),
    ("power", (-8, 1 / 3), None),
    ("power", (0, -1), None),
    ("power", (10, 400), None),
    ("neg", (3,), -3),
    ("abs", (-3,), 3),
    ("abs", (-3.5,), 3.5),
    ("sign", (-3,), -1.0),
    ("floor", (2.7,), 2.0),
    ("floor", (5,), 5.0),
    ("ceil", (2.1,), 3.0),
    ("round", (2.5,), 3.0),
    ("round", (-2.5,), -3.0),
    ("round", (2.345, 2), 2.35),
    ("round", (1234, -2), 1200.0),
    ("round", (7, 2), 7.0),
    ("trunc", (-2.7,), -2.0),
    ("trunc", (2.789, 1), 2.7),
    ("trunc", (9,), 9.0),
    ("sqrt", (-1,), None),
    ("sqrt", (9,), 3.0),
    ("cbrt", (-27,), -3.0),
    ("ln", (0,), None),
    ("log", (100,), 2.0),
    ("log", (2, 8), 3.0),
    ("log", (1, 8), None),
    ("exp", (1000,), None),
    ("cos", (0,), 1.0),
    ("pi", (), math.pi),
    ("width_bucket", (5.5, 0, 10, 5), 3),
    ("width_bucket", (10, 0, 10, 5), 6),
    ("width_bucket", (-1, 0, 10, 5), 0),
    ("width_bucket", (1, 1, 1, 5), None),
    ("=", ("a", "a"), True),
    ("<>", (1, 1.0), False),
    ("<", ("2024-01-01", DAY), True),
    (">=", (TIME, "2024-03-31 13:45:07"), True),
    ("<=", (3, "4"), True),
    (">", (None, 3), None),
    ("and", (False, None), False),
    ("and", (True, None), None),
    ("or", (True, None), True),
    ("or", (False, None), None),
    ("or", (False, False), False),
    ("not", (None,), None),
    ("not", (True,), False),
    ("is null", (None,), True),
    ("is true", (None,), False),
    ("is false", (False,), True),
    ("is distinct from", (None, 1), True),
    ("is distinct from", (None, None), False),
    ("is not distinct from", (2, 2.0), True),
    ("in", (1, 2, 3), False),
    ("in", (1, 1, None), True),
    ("in", (1, 2, None), None),
    ("in", (None, 2), None),
    ("coalesce", (None, 2, 3), 2),
    ("nullif", (2, 2), None),
    ("nullif", (2, 3), 2),
    ("greatest", (1, None, 3), 3),
    ("least", (None, None), None),
    ("least", ("b", "a"), "a"),
    ("concat", ("a", None, 2), "a2"),
    ("||", ("a", 2.0), "a2"),
    ("||", (True, None), None),
    ("like", ("Haifa", "H%a"), True),
    ("like", ("a%b", "a\\%b"), True),
    ("ilike", ("Haifa", "h_ifa"), True),
    ("lower", ("AbC",), "abc"),
    ("upper", ("AbC",), "ABC"),
    ("length", ("abc",), 3),
    ("trim", ("  a ",), "a"),
    ("ltrim", ("  a ",), "a "),
    ("rtrim", ("  a ",), "  a"),
    ("substring", ("hello", 2, 3), "ell"),
    ("substring", ("hello", 0, 3), "he"),
    ("substring", ("hello", 4), "lo"),
    ("substring", ("hello", 1, -1), None),
    ("left", ("hello", 2), "he"),
    ("left", ("hello", -2), "hel"),
    ("right", ("hello", 2), "lo"),
    ("right", ("hello", 0), ""),
    ("right", ("hello", -2), "llo"),
    ("replace", ("banana", "an", "x"), "bxxa"),
    ("replace", ("banana", "", "x"), "banana"),
    ("starts_with", ("abc", "ab"), True),
    ("position", ("c", "abc"), 3),
    ("date_part", ("quarter", DAY), 1),
    ("date_part", ("dow", DAY), 0),
    ("date_part", ("hour", TIME), 13),
    ("date_part", ("eon", TIME), None),
    ("date_part", ("year", 3), None),
    ("date_trunc", ("month", DAY), datetime.datetime.fromisoformat("2024-03-01")),
    ("date_trunc", ("week", DAY), datetime.datetime.fromisoformat("2024-03-25")),
    ("date_trunc", ("hour", TIME), datetime.datetime.fromisoformat("2024-03-31T13:00")),
    ("date_trunc", ("day", "no date"), None),
    ("cast int", (2.5,), 3),
    ("cast int", (" 12 ",), 12),
    ("cast int", ("x",), None),
    ("cast float", ("2.5",), 2.5),
    ("cast float", ("x",), None),
    ("cast float", (2,), 2.0),
    ("cast text", (2.0,), "2"),
    ("cast text", (TIME,), "2024-03-31 13:45:07"),
    ("cast bool", ("yes",), True),
    ("cast bool", ("n",), False),
    ("cast bool", ("off",), False),
    ("cast bool", ("x",), None),
    ("cast bool", (0,), False),
    ("cast date", (TIME,), DAY),
    ("cast date", ("2024-03-31",), DAY),
    ("cast date", ("x",), None),
    ("cast date", (3,), None),
    ("cast timestamp", (DAY,), datetime.datetime.fromisoformat("2024-03-31")),
    ("cast timestamp", ("x",), None),
    ("cast timestamp", (3,), None),
]


@pytest.mark.parametrize(("op", "args", "expected"), CASES, ids=lambda case: str(case)[:30])
def test_functions_give_what_postgresql_gives(op, args, expected):
    """Values and types: whole numbers divide to whole numbers, and what has no value is missing."""
    found = act(op, list(args))
    assert found == (pytest.approx(expected) if isinstance(expected, float) else expected)
    assert type(found) is type(expected)


cells = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**6), 10**6),
    st.floats(allow_nan=False, allow_infinity=False, width=32),
)


@given(st.sampled_from([op for op in KNOWN if not op.startswith("cast")]), st.lists(cells, min_size=1, max_size=4))
def test_no_function_raises_anything_but_a_refusal(op, args):
    """Whatever the noisy values are, an expression has a value, is missing, or is refused with a code (T30)."""
    try:
        found = act(op, args)
    except QuestionError:
        return
    assert not isinstance(found, float) or math.isfinite(found)


def test_moments_and_numbers_are_each_other():
    """A date is its days, a time its microseconds; places beyond the calendar are its ends."""
    assert moment(number(DAY), "date") == DAY
    assert moment(number(TIME), "timestamp") == TIME
    assert moment(1e12, "date") == datetime.date.max
    assert moment(-1e30, "timestamp").year == 1
    assert number(True) == 1.0
    assert number(10**400) == math.inf
    with pytest.raises(QuestionError):
        number("x")


def test_odd_calls_are_refused():
    """Unknown functions and too many arguments are refused, not run."""
    for op, args in (("pg_sleep", [1]), ("floor", [1, "x"]), ("is null", [1, 2])):
        with pytest.raises(QuestionError):
            act(op, args)


def test_values_of_a_wrong_kind_have_no_result():
    """After the release nothing is refused: a text that is no number gives a missing value; texts sort last."""
    for op, args in (("<", ["x", 1]), ("<", ["x", DAY]), ("+", ["x", 1]), ("left", ["abc", "x"])):
        assert act(op, args) is None
    assert act("greatest", ["x", 1]) == "x"
    assert act("<", [DAY, 3 + 4j]) is None


FIRST = datetime.datetime(1, 1, 1)  # noqa: DTZ001 - moments here are in UTC, without a zone
EXTREME = (
    10**400, -(10**400), 1e308, -1e308, 5e-324, True, "", "x", "1e400", DAY, FIRST, datetime.date.max,
    "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", None,
)  # fmt: skip


@pytest.mark.parametrize("op", KNOWN)
def test_no_values_make_a_function_fail(op):
    """After the debit an answer comes out, whatever was released: a value, or none. Control: a wrong number of them."""
    for many in range(4):
        if takes(op, many):
            for i, first in enumerate(EXTREME):
                act(op, [first, *(EXTREME[(i + 5 * j + 1) % len(EXTREME)] for j in range(many - 1))][:many])
    with pytest.raises(QuestionError):
        act("pi", [1])


def test_dates_and_moments_are_compared_by_their_time():
    """Texts are read with their time and zone; a date is its first moment."""
    noon = datetime.datetime.combine(DAY, datetime.time(12))
    assert act("<", [DAY, f"{DAY} 12:00"]) is True
    assert act("=", [DAY, str(DAY)]) is True
    assert act("<", [DAY, noon]) is True
    assert act("cast timestamp", [f"{DAY}T14:00:00+02:00"]) == noon
    assert act(">", [act("cast timestamp", [f"{DAY}T14:00:00+02:00"]), DAY]) is True
    assert act("least", ["x", 1]) == 1


def test_rounding_and_patterns():
    """Halves go away from zero as written in decimals; patterns need not be well formed."""
    assert half_up(1.005, 2) == 1.01
    assert half_up(math.inf, 2) == math.inf
    assert like("a.c", "a.c")
    assert not like("abc", "a.c")
    assert like("x\ny", "x%")
    assert like("a", "a\\")


def test_a_pattern_of_many_wildcards_is_matched_in_linear_time_T74():
    """No choice of places is taken back, so a long label and many wildcards end at once."""
    assert not like("a" * 10_000, "%a" * 12 + "%b")
    assert act("ilike", ["A" * 10_000, "%a" * 12]) is True
