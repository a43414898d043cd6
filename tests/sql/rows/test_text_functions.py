"""Tests of sulq.sql.rows.text_functions."""

from __future__ import annotations

import pytest

from sulq.language.kinds import Code
from sulq.language.rowfn import Col, Concat, IsIn, Length, Like, Lit, Lowered, Relabel, RowFn, Substring, Trimmed, Value
from sulq.sql.parse.syntax import SqlRefused
from sulq.sql.rows.values import Cell, Fixed
from tests.sql.asking import node, same, table

EDUC, NAME = Col("educ"), Col("name")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("UPPER(educ)", Relabel(EDUC, ("PRIMARY", "SECONDARY", "TERTIARY"))),
        ("SUBSTRING(educ FROM 1 FOR 2)", Relabel(EDUC, ("pr", "se", "te"))),
        ("SUBSTRING(educ, 0, 2)", Relabel(EDUC, ("p", "s", "t"))),
        ("RIGHT(educ, 3)", Relabel(EDUC, ("ary", "ary", "ary"))),
        ("REPLACE(educ, 'ary', '')", Relabel(EDUC, ("prim", "second", "terti"))),
        ("'x' || educ", Relabel(EDUC, ("xprimary", "xsecondary", "xtertiary"))),
        ("LENGTH(educ)", Value(Relabel(EDUC, (7, 9, 8)))),
        ("POSITION('r' IN educ)", Value(Relabel(EDUC, (2, 8, 3)))),
        ("educ LIKE '%on%'", IsIn(EDUC, ("secondary",))),
        ("STARTS_WITH(educ, 'p')", IsIn(EDUC, ("primary",))),
        ("LOWER(name)", Lowered(NAME)),
        ("LENGTH(name)", Length(NAME)),
        ("LEFT(name, 2)", Substring(NAME, 1, 2)),
        ("TRIM(name)", Trimmed(NAME, "both", " ")),
        ("name LIKE 'a_%'", Like(NAME, "a_%")),
        ("name ILIKE 'A%'", Like(Lowered(NAME), "a%")),
        ("name || '!'", Concat((NAME, Lit("!")))),
    ],
)
def test_text_functions(text: str, expected: RowFn) -> None:
    """On a category by renaming its public labels, on free text by a row function."""
    found = table().express().term(node(text))
    assert isinstance(found, Cell)
    assert same(found.fn, expected)


def test_two_categories_side_by_side() -> None:
    """Every pair of labels is a label; missing where either is."""
    found = table().express().cell(node("sex || '-' || educ"))
    assert isinstance(found.kind, Code)
    assert found.kind.size == 6
    assert "f-primary" in found.kind.labels


def test_constants_are_worked_out() -> None:
    """Functions of constants are constants; of NULL they are NULL."""
    express = table().express()
    assert express.term(node("UPPER('a') || 'b'")) == Fixed("Ab".upper()[0] + "b", "text")
    assert express.term(node("LENGTH(NULL)")) == Fixed(None, "int")
    assert express.term(node("CONCAT('a', NULL, 'b')")) == Fixed("ab", "text")


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("RIGHT(name, 2)", "sql-unsupported"),
        ("REPLACE(name, 'a', 'b')", "sql-unsupported"),
        ("name LIKE sex", "sql-unsupported"),
        ("LOWER(age)", "wrong-kind"),
        ("name || educ", "sql-unsupported"),
        ("SUBSTRING(educ, age)", "sql-unsupported"),
        ("SUBSTRING(educ, 1, -1)", "bad-literal"),
    ],
)
def test_texts_that_are_refused(text: str, code: str) -> None:
    """What free text cannot do, and what is no text."""
    with pytest.raises(SqlRefused) as caught:
        table().express().cell(node(text))
    assert caught.value.code == code
