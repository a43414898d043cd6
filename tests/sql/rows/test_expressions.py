"""Tests of sulq.sql.rows.expressions."""

from __future__ import annotations

import pytest

from sulq.errors import QuestionError
from sulq.language import rowfn
from sulq.language.rowfn import (
    Arith,
    Choice,
    Col,
    Compare,
    Fill,
    First,
    IsIn,
    IsMissing,
    Lit,
    Logic,
    Moment,
    Not,
    NullIf,
    Relabel,
    RowFn,
    ToTimestamp,
)
from sulq.sql.parse.syntax import SqlRefused
from sulq.sql.rows.values import Cell, Fixed
from tests.sql.asking import node, same, table

AGE, SEX, EDUC, MARRIED, BORN = (Col(name) for name in ("age", "sex", "educ", "married", "born"))
OLD, YOUNG = Compare(">", AGE, Lit(40)), Compare("<", AGE, Lit(20))


def fn(text: str) -> RowFn:
    found = table().express().term(node(text))
    assert isinstance(found, Cell)
    return found.fn


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("age > 40", OLD),
        ("40 < age", OLD),
        ("age > '40'", OLD),
        ("age > 40 AND age < 20", Logic("and", (OLD, YOUNG))),
        ("NOT age > 40", Not(OLD)),
        ("age IS NULL", IsMissing(AGE)),
        ("age IN (1, 2)", IsIn(AGE, (1, 2))),
        ("age BETWEEN 1 AND 2", Logic("and", (Compare(">=", AGE, Lit(1)), Compare("<=", AGE, Lit(2))))),
        ("married", MARRIED),
        ("married = FALSE", Not(MARRIED)),
        ("married IS TRUE", Fill(MARRIED, False)),
        ("married IS NOT FALSE", Not(Fill(Not(MARRIED), False))),
        ("sex = 'f'", Compare("==", SEX, Lit("f"))),
        ("educ < 'secondary'", IsIn(EDUC, ("primary",))),
        ("born < '1990-06-01'", Compare("<", BORN, Moment("1990-06-01"))),
        ("born < seen", Compare("<", ToTimestamp(BORN), Col("seen"))),
        ("COALESCE(age, 1)", First((AGE, Lit(1)))),
        ("COALESCE(age, NULL)", AGE),
        ("NULLIF(age, 1)", NullIf(AGE, Lit(1))),
        ("NULLIF(sex, 'f')", Relabel(SEX, (None, "m"))),
        ("CASE WHEN age > 40 THEN 1 ELSE 0 END", rowfn.Case(((OLD, Lit(1)),), Lit(0))),
        ("CASE WHEN age > 40 THEN 'x' ELSE 'b' END", Choice(((OLD, 1),), ("b", "x"), 0)),
        ("CASE WHEN age > 40 THEN 'x' END", Choice(((OLD, 0),), ("x",), None)),
        ("CASE WHEN age > 40 THEN age END", rowfn.Case(((OLD, AGE),))),
        ("CASE WHEN age > 40 THEN married ELSE FALSE END",
         Compare("==", rowfn.Case(((OLD, MARRIED),), Lit(False)), Lit(1))),
    ],
)  # fmt: skip
def test_expressions_become_row_functions(text: str, expected: RowFn) -> None:
    """Logic, comparisons, CASE and their like, each by the row function that means it."""
    assert same(fn(text), expected)


def test_constants_stay_constants() -> None:
    """What no column is part of is worked out at once."""
    express = table().express()
    folded = {"1 + 2 * 3": 7, "7 / 2": 3, "1 = 1": True, "NULL = 1": None, "'b' < 'a'": False, "2 IS NULL": False}
    for text, value in folded.items():
        found = express.term(node(text))
        assert isinstance(found, Fixed)
        assert found.value == value


def test_a_category_chosen_from_others_has_their_labels() -> None:
    """COALESCE and CASE of categories and constants are again categories."""
    found = table().express().cell(node("COALESCE(educ, 'none')"))
    assert found.kind.labels == ("none", "primary", "secondary", "tertiary")  # type: ignore[union-attr]
    mixed = table().express().cell(node("CASE WHEN age > 40 THEN sex ELSE 'none' END"))
    assert mixed.kind.labels == ("f", "m", "none")  # type: ignore[union-attr]
    assert same(fn("sex IS DISTINCT FROM 'f'"), fn("sex IS DISTINCT FROM 'f'"))


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("sex = 'x'", "unknown-category"),
        ("age > 'old'", "bad-literal"),
        ("age = sex", "wrong-kind"),
        ("age AND married", "wrong-kind"),
        ("name < 'b'", "sql-unsupported"),
        ("married > FALSE", "wrong-kind"),
        ("CASE WHEN age THEN 1 END", "wrong-kind"),
        ("CASE WHEN married THEN 1 ELSE 'a' END", "wrong-kind"),
        ("CASE WHEN married THEN name ELSE 'a' END", "sql-unsupported"),
        ("COALESCE(age, born)", "wrong-kind"),
        ("pid = 3", "unknown-column"),
        ("pid + 1", "unknown-column"),
        ("random()", "sql-unsupported"),
        ("COS(age)", "sql-unsupported"),
        ("age > (SELECT 1)", "sql-unsupported"),
        ("married OR age IN (SELECT 1)", "sql-unsupported"),
        ("COUNT(*) + 1", "sql-syntax"),
    ],
)
def test_what_has_no_meaning_on_a_row_is_refused(text: str, code: str) -> None:
    """With the code of the reason and the place of the expression."""
    express = table().express()
    lower = express.condition if " " in text else express.cell
    with pytest.raises((SqlRefused, QuestionError)) as caught:
        lower(node(text))
    assert caught.value.code == code


def test_the_person_is_a_value_only_where_it_is_declared() -> None:
    """The person is never missing; its declared column computes like any other."""
    assert table().express().term(node("pid IS NULL")) == Fixed(False, "bool")
    bills = table("bills")
    assert same(bills.express().cell(node("PID + 1", bills)).fn, Arith("+", Col("PID"), Lit(1)))
    assert bills.identifies(Arith("+", Col("PID"), Lit(1)))
    assert not bills.identifies(Col("due"))
