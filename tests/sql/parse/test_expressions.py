"""Tests of sulq.sql.parse.expressions."""

from __future__ import annotations

import datetime
from fractions import Fraction

import pytest

from sulq.errors import QuestionError
from sulq.sql.parse.syntax import (
    Aggregate,
    Call,
    Cast,
    ColumnRef,
    Interval,
    Literal,
    Name,
    Node,
    SelectQuery,
)
from sulq.sql.parse.text import parse
from sulq.sql.parse.whitelist import REGRESSIONS


def read(text: str) -> Node:
    query = parse(f"SELECT {text} FROM t").query
    assert isinstance(query, SelectQuery)
    return query.items[0][0]


X = ColumnRef(Name("x"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1", Literal(1, "int")),
        ("2.50", Literal(Fraction(5, 2), "float")),
        ("1e3", Literal(Fraction(1000), "float")),
        ("'it''s'", Literal("it's", "text")),
        ("TRUE", Literal(True, "bool")),
        ("NULL", Literal(None, "null")),
        ("INTERVAL '90' DAY", Literal(Interval(days=90), "interval")),
        ("INTERVAL '1 month 2 days'", Literal(Interval(1, 2), "interval")),
        ("make_date(2020, 2, 29)", Literal(datetime.date(2020, 2, 29), "date")),
        ("t.x", ColumnRef(Name("x"), Name("t"))),
        ('"X y"', ColumnRef(Name("X y", quoted=True))),
        ("(x)", X),
        ("-x", Call("neg", (X,))),
        ("x % 2", Call("mod", (X, Literal(2, "int")))),
        ("x <> 1", Call("<>", (X, Literal(1, "int")))),
        ("x IS NOT NULL", Call("not", (Call("is null", (X,)),))),
        ("x IS NOT TRUE", Call("not", (Call("is true", (X,)),))),
        ("x NOT LIKE 'a' ESCAPE '#'", Call("not", (Call("like", (X, Literal("a", "text"), Literal("#", "text"))),))),
        ("x NOT IN (1)", Call("not", (Call("in", (X, Literal(1, "int"))),))),
        ("x AND x AND x", Call("and", (X, X, X))),
        ("CASE x WHEN 1 THEN 2 END", Call("case", (Call("=", (X, Literal(1, "int"))), Literal(2, "int")))),
        ("x::decimal(8, 2)", Cast(X, "float", 2)),
        ("CAST(x AS varchar(3))", Cast(X, "text", 3)),
        ("date_part('dow', x)", Call("extract", (Literal("dow", "text"), X))),
        ("date_trunc('week', x)", Call("date_trunc", (Literal("week", "text"), X))),
        ("TRIM(LEADING 'a' FROM x)", Call("ltrim", (X, Literal("a", "text")))),
        ("POSITION('m' IN x)", Call("position", (X, Literal("m", "text")))),
        ("COUNT(*)", Aggregate("rows")),
        ("COUNT(DISTINCT x)", Aggregate("count", (X,), distinct=True)),
        ("SUM(x) FILTER (WHERE x)", Aggregate("sum", (X,), where=X)),
        ("MEDIAN(x)", Aggregate("quantile_cont", (X,), q=Fraction(1, 2))),
        ("PERCENTILE_DISC(0.1) WITHIN GROUP (ORDER BY x)", Aggregate("quantile_disc", (X,), q=Fraction(1, 10))),
        ("PERCENTILE_CONT(0.1) WITHIN GROUP (ORDER BY x DESC)", Aggregate("quantile_cont", (X,), q=Fraction(9, 10))),
        ("VAR(x)", Aggregate("var_samp", (X,))),
        ("STDDEV_POP(x)", Aggregate("std_pop", (X,))),
        ("CORR(x, x)", Aggregate("corr", (X, X))),
        *((f"{name.upper()}(x, 2)", Aggregate(name, (X, Literal(2, "int")))) for name in REGRESSIONS),
    ],
)  # fmt: skip
def test_expressions_are_read(text: str, expected: Node) -> None:
    """Each construct of the language becomes the one node that means it."""
    assert read(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "md5(x)", 'x COLLATE "C"', "x AT TIME ZONE 'utc'", "ARRAY[1]", "ROW(1, 2)", "(1, 2)", "x = ANY(ARRAY[1])",
        "x BETWEEN SYMMETRIC 1 AND 2", "COUNT(x, y)", "COUNT(DISTINCT x, y)", "COUNT(t.*)", "SUM(*)", "SUM(x, y)",
        "to_char(x, 'YYYY')", "now()", "current_date", "x & 1", "array_agg(x)", "mode() WITHIN GROUP (ORDER BY x)",
        "PERCENTILE_CONT(2) WITHIN GROUP (ORDER BY x)", "PERCENTILE_DISC(0.2) WITHIN GROUP (ORDER BY x DESC)",
        "CAST(x AS json)", "CAST(x AS timestamptz)", "INTERVAL '1 fortnight'", "EXTRACT(microseconds FROM x)",
        "x::int[]", "RANK() OVER (ORDER BY x)", "b'1'", "make_date(2021, 2, 30)", "query('select 1')", "getenv('x')",
    ],
)  # fmt: skip
def test_anything_else_is_refused_T18(text: str) -> None:
    """A function or operator that is not on the list has no meaning here."""
    with pytest.raises(QuestionError) as caught:
        read(text)
    assert caught.value.code in ("sql-unsupported", "sql-syntax", "bad-literal")
    assert "line 1, column" in caught.value.message


def test_functions_keep_the_name_they_were_written_with() -> None:
    """PostgreSQL names a result after the function as it was written."""
    written = {"VARIANCE(x)": "variance", "var_samp(x)": "var_samp", "CEILING(x)": "ceiling", "substr(x, 1)": "substr"}
    for text, name in written.items():
        assert read(text).called == name  # type: ignore[union-attr]
    assert read("x + 1").called == "?column?"  # type: ignore[union-attr]
