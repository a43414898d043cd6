"""Tests of sulq.sql.released.expressions."""

from __future__ import annotations

import datetime

import pytest

from sulq.sql.released.program import Apply, Cond, Const, Expr, Key, Single, StatAt
from tests.sql.asking import program, refused

N, S = StatAt(0), StatAt(1)


def shown(text: str) -> Expr:
    return program(f"SELECT COUNT(*), SUM(age), {text} FROM people GROUP BY sex").columns[2][1]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SUM(age) / COUNT(*)", Apply("/", (S, N))),
        ("ROUND(SUM(age), 1)", Apply("round", (S, Const(1)))),
        ("COUNT(*) BETWEEN 1 AND 3", Apply("and", (Apply(">=", (N, Const(1))), Apply("<=", (N, Const(3)))))),
        ("CASE WHEN COUNT(*) > 3 THEN 'a' END", Cond(((Apply(">", (N, Const(3))), Const("a")),))),
        ("CAST(COUNT(*) AS text)", Apply("cast text", (N,))),
        ("CAST(COUNT(*) AS varchar(2))", Apply("left", (Apply("cast text", (N,)), Const(2)))),
        ("POSITION('f' IN sex)", Apply("position", (Const("f"), Key(0)))),
        ("TRIM(sex)", Apply("trim", (Key(0),))),
        ("COUNT(*) % 2", Apply("mod", (N, Const(2)))),
        ("COS(COUNT(*))", Apply("cos", (N,))),
        ("sex IN ('f', 'm')", Apply("in", (Key(0), Const("f"), Const("m")))),
        ("DATE '2020-03-31' - INTERVAL '1 month'", Const(datetime.date(2020, 2, 29))),
        ("DATE '2020-01-01' + INTERVAL '2 days'", Const(datetime.date(2020, 1, 3))),
        ("clip(COUNT(*), 0, 9)", Apply("least", (Apply("greatest", (N, Const(0))), Const(9)))),
    ],
)
def test_expressions_over_released_values(text: str, expected: Expr) -> None:
    """Operators and functions by their PostgreSQL names."""
    assert shown(text) == expected


def test_a_subquery_is_a_value_once_it_is_released() -> None:
    """It is asked together with the query, at one debit."""
    found = program("SELECT COUNT(*) * 1.0 / (SELECT COUNT(*) FROM visits) FROM people").columns[0][1]
    assert isinstance(found, Apply)
    assert isinstance(found.args[1], Single)
    assert refused("SELECT COUNT(*) + (SELECT age FROM people) FROM people").code == "raw-rows"
    assert refused("SELECT COUNT(*) + (SELECT COUNT(*), 1 FROM people) FROM people").code == "sql-syntax"


def test_random_is_one_draw_and_stands_beside_no_groups() -> None:
    """A number of the query, not of each row."""
    found = program("SELECT RANDOM(), COUNT(*) FROM people").columns[0][1]
    assert isinstance(found, Const)
    assert refused("SELECT RANDOM(), COUNT(*) FROM people GROUP BY sex").code == "sql-unsupported"


@pytest.mark.parametrize(
    "text",
    [
        "COUNT(*) + INTERVAL '1 day'", "BTRIM(sex, 'xy')", "sex IN (SELECT kind FROM visits)",
        "EXISTS (SELECT 1 FROM visits)", "INTERVAL '1 day'",
    ],
)  # fmt: skip
def test_what_released_values_cannot_do(text: str) -> None:
    """Refused with a code."""
    if text.startswith("COUNT(*) + "):
        assert program(f"SELECT {text} FROM people")  # whole days are a number of days
    else:
        assert refused(f"SELECT {text} FROM people GROUP BY sex").code == "sql-unsupported"
