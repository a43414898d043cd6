"""Tests of sulq.language.rowfn.operators: what operators make of row functions, handles and constants."""

from __future__ import annotations

import datetime
import math
import operator
from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest

from sulq.answers.oracle import ColumnChoice
from sulq.errors import QuestionError
from sulq.language.domain import Bool, Category, Date, Int, Schema
from sulq.language.privacy import Epsilon
from sulq.language.rowfn import Lit, RowFn, col
from sulq.language.rowfn.operators import operand
from tests.sql.asking import same
from tests.stub import Stub

SCHEMA = Schema.of(
    "t", {"age": Int(0, 120), "old": Bool(), "city": Category(["Lod"]), "day": Date("2020-01-01", "2021-01-01")}
)
ORACLE = Stub(SCHEMA, [], budget=Epsilon(1))


def handle(*names: str) -> ColumnChoice:
    return ColumnChoice(names, ORACLE)


@pytest.mark.parametrize(
    "sign", ["add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "eq", "ne", "lt", "le", "gt", "ge"]
)
def test_a_handle_of_one_column_is_computed_with_as_the_column_is(sign: str) -> None:
    """On either side of a number, and beside a column or another handle."""
    act = getattr(operator, sign)
    assert same(act(handle("age"), 3), act(col("age"), 3))
    assert same(act(handle("age"), np.int64(3)), act(col("age"), 3))
    if sign not in ("mod", "pow"):
        assert same(act(3, handle("age")), act(3, col("age")))
        assert same(act(handle("age"), handle("age")), act(col("age"), col("age")))
        assert same(act(col("age"), handle("age")), act(col("age"), col("age")))


@pytest.mark.parametrize(
    "make",
    [
        lambda x, y: (x > 3) & y, lambda x, y: y | (x > 3), lambda _, y: ~y, lambda x, y: y ^ (x == 3),
        lambda x, _: -x, lambda x, _: +x, lambda x, _: abs(x), lambda x, _: round(x, 1), lambda x, _: x.between(1, 2),
        lambda x, _: x.isin([1, 2]), lambda x, _: x.is_missing(), lambda x, _: x.fill(0), lambda x, _: x.clip(0, 9),
        lambda x, _: math.floor(x), lambda x, _: math.ceil(x), lambda x, _: math.trunc(x),
    ],
)  # fmt: skip
def test_conditions_and_methods_of_handles_are_those_of_columns(make: Callable[[object, object], RowFn]) -> None:
    """Each gives the same row function of `db["x"]` as of `col("x")`."""
    assert same(make(handle("age"), handle("old")), make(col("age"), col("old")))


def test_dates_of_any_library_are_compared_with_days() -> None:
    """A moment at which a day begins is that day."""
    expected = col("day") >= "2020-06-01"
    for day in (datetime.date(2020, 6, 1), pd.Timestamp("2020-06-01"), np.datetime64("2020-06-01")):
        found = handle("day") >= day
        assert found.kind(SCHEMA) == expected.kind(SCHEMA)


def test_several_columns_have_no_value_of_a_row() -> None:
    """Two columns are what a learner takes, and no side of an operator."""
    for make in (lambda x: x > 3, lambda x: 3 + x, lambda x: x.is_missing(), lambda x: col("age") == x, lambda x: ~x):
        with pytest.raises(QuestionError, match="2 columns are no value") as caught:
            make(handle("age", "old"))
        assert "one by one" in caught.value.remedy


def test_a_condition_has_no_truth_value() -> None:
    """if, and, or, not and chained comparisons would ask for one; the refusal names what to write."""
    age = handle("age")
    acts: list[Callable[[], object]] = [
        lambda: bool(age > 3),
        lambda: (age > 3) and (age < 9),
        lambda: (age > 3) or (age < 9),
        lambda: not (age > 3),
        lambda: 3 < age < 9,
        lambda: 1 if col("age") == 3 else 2,
    ]
    for act in acts:
        with pytest.raises(QuestionError, match="no truth value") as caught:
            act()
        assert "& | ~" in caught.value.remedy


def test_other_operators_are_refused_in_our_words() -> None:
    """Neither a matrix product nor a shift of bits is asked of a row, and no column is what it is divided by."""
    for act in (lambda x: x @ x, lambda x: x << 1, lambda x: divmod(x, 2), lambda x: 3 in x):
        with pytest.raises(QuestionError):
            act(handle("age"))
    with pytest.raises(QuestionError, match="by a constant"):
        _ = col("age") % handle("age")


def test_handles_stay_what_learners_take() -> None:
    """Their number of columns and their names; two are told apart as objects, since == makes a condition."""
    both = handle("age", "old")
    assert (len(both), both.names, hash(both)) == (2, ("age", "old"), id(both))
    assert same(operand(3), Lit(3))
    assert same(operand(handle("age")), col("age"))
