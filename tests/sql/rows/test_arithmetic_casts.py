"""Tests of sulq.sql.rows.arithmetic."""

from __future__ import annotations

import datetime
from fractions import Fraction

import numpy as np
import pytest

from sulq.language.domain import Int, Schema
from sulq.language.kinds import Cells
from sulq.language.rowfn import Arith, Col, Compare, Each, Lit, Relabel, Round, RowFn, ToDate, ToTimestamp, Value
from sulq.language.rowfn.base import evaluate
from sulq.sql.parse.syntax import SqlRefused
from sulq.sql.rows.arithmetic import rounded
from sulq.sql.rows.values import Cell, Fixed, TrialRows
from tests.sql.asking import node, same, table

AGE = Col("age")


@pytest.mark.parametrize(
    ("text", "expected", "kind"),
    [
        ("CAST(age AS double precision)", AGE, "float"),
        ("CAST(age AS bigint)", AGE, "int"),
        ("CAST(income AS decimal(8, 1))", Round(Col("income"), 1), "float"),
        ("CAST(married AS int)", Arith("+", Col("married"), Lit(0)), "int"),
        ("CAST(age AS boolean)", Compare("!=", AGE, Lit(0)), "bool"),
        ("CAST(age AS varchar)", Relabel(Each(AGE), tuple(str(i) for i in range(121))), "text"),
        ("CAST(married AS text)", Relabel(Each(Col("married")), ("false", "true")), "text"),
        ("CAST(code AS text)", Relabel(Col("code"), ("7", "1", "3")), "text"),
        ("CAST(seen AS date)", ToDate(Col("seen")), "date"),
        ("born::timestamp", ToTimestamp(Col("born")), "timestamp"),
        ("CAST(CAST(code AS text) AS int)", Value(Relabel(Relabel(Col("code"), ("7", "1", "3")), (1, 3, 7))), "int"),
    ],
)  # fmt: skip
def test_casts_over_rows(text: str, expected: RowFn, kind: str) -> None:
    """Each cast is total on every row."""
    found = table().express().term(node(text))
    assert isinstance(found, Cell)
    assert found.type == kind
    assert same(found.fn, expected)


def test_a_number_becomes_whole_as_a_double_does() -> None:
    """Halves go to the even number, as in PostgreSQL and DuckDB; the control is rounding away from zero."""
    found = table().express().cell(node("CAST(age / 4.0 AS integer)"))
    frame = TrialRows(Schema("", (("age", Int(0, 120)),)), 121, lambda _: Cells(np.arange(121), None))
    values = evaluate(found.fn, frame).values
    assert np.array_equal(values, np.rint(np.arange(121) / 4))
    assert not np.array_equal(values, evaluate(Round(Arith("/", AGE, Lit(4.0)), 0), frame).values)


def test_casts_of_constants() -> None:
    """Constants are read exactly, or refused."""
    express = table().express()
    known = {
        "CAST('12' AS int)": 12,
        "CAST(2.5 AS int)": 3,
        "CAST(2.25 AS decimal(4, 1))": Fraction(23, 10),
        "CAST('2020-01-01' AS timestamp)": datetime.datetime(2020, 1, 1),  # noqa: DTZ001
        "CAST(DATE '2020-01-01' AS text)": "2020-01-01",
        "CAST('abc' AS varchar(2))": "ab",
        "CAST('t' AS boolean)": True,
        "CAST(NULL AS int)": None,
    }
    for text, value in known.items():
        found = express.term(node(text))
        assert isinstance(found, Fixed)
        assert found.value == value
    assert rounded(Fraction(-5, 2)) == -3


@pytest.mark.parametrize(
    "text", ["CAST('x' AS int)", "CAST(name AS int)", "CAST(income AS text)", "CAST(born AS int)", "CAST('x' AS date)"]
)
def test_casts_that_are_refused(text: str) -> None:
    """A constant that cannot be read, free text as a number, a number of many values as text."""
    with pytest.raises(SqlRefused):
        table().express().cell(node(text))
