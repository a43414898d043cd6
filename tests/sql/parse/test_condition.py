"""Tests of sulq.sql.parse.condition."""

from __future__ import annotations

import pytest

from sulq.errors import QuestionError
from sulq.sql.parse.condition import parse_condition
from sulq.sql.parse.syntax import Call, ColumnRef, Literal, Name, SqlRefused


def test_a_condition_is_read_as_after_where() -> None:
    """The same syntax as a query's, with names in quotes where they need them."""
    year = ColumnRef(Name("year"))
    assert parse_condition("year = 1984") == Call("=", (year, Literal(1984, "int")))
    assert parse_condition("(year = 1984) -- a remark") == parse_condition("year /* so */ = 1984")
    assert parse_condition('"a b" AND NOT year').args[0] == ColumnRef(Name("a b", quoted=True))  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("text", "code", "at", "words"),
    [
        ("SELECT 1", "sql-syntax", 0, "does not begin with SELECT"),
        ("where a = 1", "sql-syntax", 0, "does not begin with WHERE"),
        ("group by a", "sql-syntax", 0, "does not begin with GROUP BY"),
        ("a = 1 GROUP BY b", "sql-syntax", 6, "near 'GROUP BY'"),
        ("a = 1 LIMIT 3", "sql-syntax", 6, "near 'LIMIT'"),
        ("a = 1) UNION SELECT (1", "sql-syntax", 5, "near ')'"),
        ("a = 1; DROP TABLE t", "sql-syntax", 7, "near 'DROP'"),
        ("a = 1; b = 2", "sql-syntax", 5, "One condition at a time"),
        ("a IN (SELECT b FROM t)", "sql-unsupported", 6, "A subquery in a condition"),
        ("b > 1 AND EXISTS (SELECT b FROM t)", "sql-unsupported", 18, "A subquery in a condition"),
        ("a > (SELECT MAX(a) FROM t)", "sql-unsupported", 5, "A subquery in a condition"),
        ("a > 1 AND COUNT(*) > 3", "sql-unsupported", 10, "COUNT in a condition on rows"),
        ("RANK() OVER (ORDER BY a) = 1", "sql-unsupported", 0, "A window function"),
        ("a > 1 AND md5(b) = 'x'", "sql-unsupported", 10, "md5()"),
    ],
)
def test_anything_else_is_refused_where_it_stands_T69(text: str, code: str, at: int, words: str) -> None:
    """No clause, no query, no aggregate and no second statement passes, however it is joined to the condition."""
    with pytest.raises(SqlRefused) as caught:
        parse_condition(text)
    assert caught.value.code == code
    assert words in caught.value.message
    assert caught.value.at == at
    assert "query" not in caught.value.message.replace("subquery", "")


@pytest.mark.parametrize(
    "text", [None, 5, "", "   ", "-- nothing", "a\x00", "(" * 500 + "1" + ")" * 500, "a + " * 9_000]
)
def test_what_is_no_condition_is_refused_in_its_own_words_T74(text: object) -> None:
    """Bombs and empty texts: of a condition, never of a query."""
    with pytest.raises((QuestionError, SqlRefused)) as caught:
        parse_condition(text)  # type: ignore[arg-type]
    assert "condition" in caught.value.message
    assert "query" not in caught.value.message
