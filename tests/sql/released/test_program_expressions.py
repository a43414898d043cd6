"""Tests of sulq.sql.released.program."""

from __future__ import annotations

import datetime

import pytest

from sulq.sql.parse.syntax import Call, Literal, Node
from sulq.sql.released.program import KeyLabel, StatAt, SubqueryValue
from tests.sql.asking import program, refused
from tests.sql.programs import const

N, S = StatAt(0), StatAt(1)


def shown(text: str) -> Node:
    return program(f"SELECT COUNT(*), SUM(age), {text} FROM people GROUP BY sex").columns[2][1]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SUM(age) / COUNT(*)", Call("/", (S, N))),
        ("ROUND(SUM(age), 1)", Call("round", (S, const(1)))),
        ("COUNT(*) BETWEEN 1 AND 3", Call("and", (Call(">=", (N, const(1))), Call("<=", (N, const(3)))))),
        ("CASE WHEN COUNT(*) > 3 THEN 'a' END", Call("case", (Call(">", (N, const(3))), const("a")))),
        ("CAST(COUNT(*) AS text)", Call("cast text", (N,))),
        ("CAST(COUNT(*) AS varchar(2))", Call("left", (Call("cast text", (N,)), const(2)))),
        ("POSITION('f' IN sex)", Call("position", (const("f"), KeyLabel(0)))),
        ("TRIM(sex)", Call("trim", (KeyLabel(0),))),
        ("COUNT(*) % 2", Call("mod", (N, const(2)))),
        ("COS(COUNT(*))", Call("cos", (N,))),
        ("sex IN ('f', 'm')", Call("in", (KeyLabel(0), const("f"), const("m")))),
        ("DATE '2020-03-31' - INTERVAL '1 month'", const(datetime.date(2020, 2, 29))),
        ("DATE '2020-01-01' + INTERVAL '2 days'", const(datetime.date(2020, 1, 3))),
        ("clip(COUNT(*), 0, 9)", Call("least", (Call("greatest", (N, const(0))), const(9)))),
    ],
)
def test_expressions_over_released_values(text: str, expected: Node) -> None:
    """Operators and functions by their PostgreSQL names."""
    assert shown(text) == expected


def test_a_subquery_is_a_value_once_it_is_released() -> None:
    """It is asked together with the query, at one debit."""
    found = program("SELECT COUNT(*) * 1.0 / (SELECT COUNT(*) FROM visits) FROM people").columns[0][1]
    assert isinstance(found, Call)
    assert isinstance(found.args[1], SubqueryValue)
    assert refused("SELECT COUNT(*) + (SELECT age FROM people) FROM people").code == "raw-rows"
    assert refused("SELECT COUNT(*) + (SELECT COUNT(*), 1 FROM people) FROM people").code == "sql-syntax"


def test_random_is_one_draw_and_stands_beside_no_groups() -> None:
    """A number of the query, not of each row."""
    found = program("SELECT RANDOM(), COUNT(*) FROM people").columns[0][1]
    assert isinstance(found, Literal)
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
