"""Tests of sulq.sql.rows.arithmetic."""

from __future__ import annotations

import datetime
from fractions import Fraction

import pytest

from sulq.language.rowfn import (
    Arith,
    Clip,
    Col,
    DatePart,
    DateTrunc,
    Greatest,
    Lit,
    Maths,
    Modulo,
    Power,
    Round,
    RowFn,
    ToTimestamp,
)
from sulq.sql.parse.syntax import SqlRefused
from sulq.sql.rows.values import Cell, Fixed
from tests.sql.asking import node, same, table

AGE, INCOME, BORN, SEEN = (Col(name) for name in ("age", "income", "born", "seen"))
DAY = 86_400_000_000
SHARE = Arith("/", Arith("*", Arith("-", INCOME, Lit(0)), Lit(4)), Lit(100))


@pytest.mark.parametrize(
    ("text", "expected", "kind"),
    [
        ("age + 1", Arith("+", AGE, Lit(1)), "int"),
        ("age * income", Arith("*", AGE, INCOME), "float"),
        ("age / 10", Maths("trunc", Arith("/", AGE, Lit(10))), "int"),
        ("age / 10.0", Arith("/", AGE, Lit(10.0)), "float"),
        ("-age", Arith("-", Lit(0), AGE), "int"),
        ("age % 3", Modulo(AGE, 3), "int"),
        ("ABS(age)", Maths("abs", AGE), "int"),
        ("FLOOR(income / 4)", Maths("floor", Arith("/", INCOME, Lit(4))), "float"),
        ("ROUND(income, 1)", Round(INCOME, 1), "float"),
        ("TRUNC(income)", Maths("trunc", INCOME), "float"),
        ("POWER(age, 2)", Power(AGE, 2), "float"),
        ("GREATEST(age, income)", Greatest((AGE, INCOME)), "float"),
        ("clip(age, 0, 10)", Clip(AGE, 0, 10), "int"),
        ("WIDTH_BUCKET(income, 0, 100, 4)",
         Clip(Arith("+", Maths("floor", SHARE), Lit(1)), 0, 5),
         "int"),
        ("EXTRACT(YEAR FROM born)", DatePart("year", BORN), "float"),
        ("EXTRACT(DECADE FROM born)", Maths("floor", Arith("/", DatePart("year", BORN), Lit(10))), "float"),
        ("FLOOR(age)", Maths("floor", AGE), "float"),
        ("date_trunc('month', seen)", DateTrunc("month", SEEN), "timestamp"),
        ("born + 5", Arith("+", BORN, Lit(5)), "date"),
        ("born - DATE '1990-01-01'", None, "int"),
        ("seen + INTERVAL '2 days'", Arith("+", SEEN, Lit(2 * DAY)), "timestamp"),
        ("born - INTERVAL '2 days'", ToTimestamp(Arith("+", BORN, Lit(-2))), "timestamp"),
    ],
)  # fmt: skip
def test_arithmetic_over_rows(text: str, expected: RowFn | None, kind: str) -> None:
    """Numbers and dates compute as in PostgreSQL: whole numbers divide to whole numbers."""
    found = table().express().term(node(text))
    assert isinstance(found, Cell)
    assert found.type == kind
    assert expected is None or same(found.fn, expected)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("7 / -2", -3),
        ("7 / 2.0", Fraction(7, 2)),
        ("1 / 0", None),
        ("DATE '2020-03-31' - INTERVAL '1 month'", datetime.date(2020, 2, 29)),
        ("DATE '1998-12-01' - INTERVAL '90' DAY", datetime.date(1998, 9, 2)),
        ("DATE '2020-01-01' + 31", datetime.date(2020, 2, 1)),
        ("DATE '2020-01-02' - DATE '2020-01-01'", 1),
        ("TIMESTAMP '2020-01-01 00:00:00' + INTERVAL '1 hour'", datetime.datetime(2020, 1, 1, 1)),  # noqa: DTZ001
    ],
)
def test_arithmetic_of_constants(text: str, value: object) -> None:
    """Constants are folded exactly."""
    found = table().express().term(node(text))
    assert isinstance(found, Fixed)
    assert found.value == value


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("sex + 1", "wrong-kind"),
        ("born + born", "wrong-kind"),
        ("born + income", "wrong-kind"),
        ("seen - seen", "sql-unsupported"),
        ("born + INTERVAL '1 month'", "sql-unsupported"),
        ("POWER(age, income)", "sql-unsupported"),
        ("ROUND(income, age)", "sql-unsupported"),
        ("LOG(1, age)", "bad-literal"),
        ("WIDTH_BUCKET(income, 1, 1, 4)", "bad-literal"),
        ("EXTRACT(YEAR FROM age)", "wrong-kind"),
        ("LEAST(sex, educ)", "wrong-kind"),
        ("TRUNC(income, 400)", "bad-literal"),
    ],
)
def test_arithmetic_without_a_meaning_is_refused(text: str, code: str) -> None:
    """What cannot be total, or has no meaning, is refused."""
    with pytest.raises(SqlRefused) as caught:
        table().express().cell(node(text))
    assert caught.value.code == code
