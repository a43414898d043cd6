"""Tests of sulq.sql.rows.values."""

from __future__ import annotations

import datetime
from fractions import Fraction

import pytest

from sulq.language.rowfn import Arith, Col, Lit, Moment, Value
from sulq.language.rowfn.base import walk
from sulq.sql.parse.syntax import Interval, SqlRefused
from sulq.sql.rows.values import (
    Cell,
    Fixed,
    as_number,
    both,
    cell,
    constant_fn,
    fitted,
    read_bool,
    read_moment,
    read_number,
)
from tests.sql.asking import same, table


def test_texts_are_read_as_what_they_stand_beside() -> None:
    """A text literal beside a typed value is of that type, as in PostgreSQL; what cannot be read is refused."""
    assert fitted(Fixed("40", "text"), "int", 0) == Fixed(40, "int")
    assert fitted(Fixed("2020-02-29", "text"), "date", 0) == Fixed(datetime.date(2020, 2, 29), "date")
    assert fitted(Fixed("yes", "text"), "bool", 0) == Fixed(True, "bool")
    assert fitted(Fixed(1, "int"), "float", 0) == Fixed(1, "int")
    for value, to in (("old", "int"), ("2021-02-29", "date"), ("maybe", "bool")):
        with pytest.raises(SqlRefused):
            fitted(Fixed(value, "text"), to, 0)
    with pytest.raises(SqlRefused):
        fitted(Fixed(1, "int"), "date", 0)


def test_numbers_moments_and_truths_in_text() -> None:
    """Whole numbers stay whole; anything else is None."""
    assert (read_number(" 12 "), read_number("1.5"), read_number("1/2"), read_number("x")) == (
        12,
        Fraction(3, 2),
        None,
        None,
    )
    assert read_number("1e99") is None
    assert read_moment("2020-01-01 12:00:00+02:00", "timestamp") == datetime.datetime(2020, 1, 1, 10)  # noqa: DTZ001
    assert read_moment("2020-01-01 12:00:00", "date") == datetime.date(2020, 1, 1)
    assert (read_bool("f"), read_bool("2")) == (False, None)


def test_constants_as_row_functions() -> None:
    """Dates become moments, NULL what is always missing; an interval stands alone nowhere."""
    assert same(constant_fn(Fixed(Fraction(1, 2), "float"), 0), Lit(0.5))
    assert same(constant_fn(Fixed(datetime.date(2020, 1, 1), "date"), 0), Moment("2020-01-01"))
    assert constant_fn(Fixed(None, "int"), 0).kind(table().schema).nullable
    for bad in (Fixed(Interval(1), "interval"), Fixed(10**30, "int")):
        with pytest.raises(SqlRefused):
            constant_fn(bad, 0)


def test_cells_as_numbers() -> None:
    """A category of numbers counts by its labels, a truth as 0 or 1, text not at all."""
    schema = table().schema
    assert same(as_number(cell(Col("code"), "int", schema, 0), schema, 0).fn, Value(Col("code")))
    truth = cell(Col("married"), "bool", schema, 0)
    assert same(as_number(Cell(truth.fn, "int", schema), schema, 0).fn, Arith("+", Col("married"), Lit(0)))
    with pytest.raises(SqlRefused):
        as_number(cell(Col("name"), "text", schema, 0), schema, 0)
    with pytest.raises(SqlRefused) as caught:
        cell(Col("nobody"), "int", schema, 7)
    assert (caught.value.code, caught.value.at) == ("unknown-column", 7)


def test_conditions_that_are_there_are_joined() -> None:
    """No condition is none, one is itself, several are joined by AND."""
    one, two = Col("married"), Col("age") > 3
    assert both(None, None) is None
    assert both(None, one) is one
    assert same(both(one, two), one & two)


def test_a_walk_meets_every_part() -> None:
    """A row function comes before its parts, nearer parts before farther ones."""
    fn = (Col("a") + 1) * Col("b")
    assert [item.name for item in walk(fn) if isinstance(item, Col)] == ["b", "a"]
