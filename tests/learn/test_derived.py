"""Columns that are others, and rows that are fewer: what is asked of them is asked of the database in other words."""

from __future__ import annotations

import numpy as np
import pytest

import sulq
from sulq import Epsilon, Sums, Together, col, lit
from sulq.answers.oracle import ColumnChoice
from sulq.language.question import Above, Choose, Holistic
from sulq.language.relation import Table, Where
from sulq.language.rowfn import Each
from sulq.language.score import Linear
from sulq.language.statistic import ToUnique
from sulq.learn.derived import DerivedOracle, RestrictedOracle, beside, database_of, substituted
from tests.learn.cases import exact, opened, refused

DATA = {"a": np.arange(100) % 10, "b": np.arange(100) < 30}
COLUMNS = {"a": sulq.Int(0, 9), "b": sulq.Bool()}
PAY = Epsilon(1)


@pytest.fixture
def held():
    with opened(COLUMNS, DATA) as db:
        yield exact(db)


def test_a_derived_column_is_what_it_is_declared_as(held) -> None:
    """Sums of it are sums of the expression, in values, conditions and keys; the others stay."""
    oracle = DerivedOracle(held._oracle, {"a": (col("a") * 2, sulq.Int(0, 18))})
    assert oracle.facts.schema.find("a") == sulq.Int(0, 18)
    assert oracle.facts.schema.find("b") == sulq.Bool()
    question = Sums((col("a"),), where=col("a") > 8, by=(col("b").fill(value=False) & col("b"),))
    assert oracle.ask(Sums((col("a"),)), spend=PAY).value == 2 * held.sum("a", spend=PAY).value
    asked = oracle.ask(Sums((lit(1),), where=col("a") > 8), spend=PAY)
    assert asked.value == held.count(col("a") * 2 > 8, spend=PAY).value
    assert oracle.foresee(Sums((col("a"),)), spend=PAY).spend == PAY
    both = oracle.ask(Together((Sums((col("a"),)), Sums((lit(1),), by=(Each(col("a")),)))), spend=PAY)
    assert len(both) == 2
    assert question.values[0] is not substituted(question, {"a": lit(1)}).values[0]


def test_what_occurs_twice_stays_one_object() -> None:
    """So that an engine works it out once; what holds no derived column is left as it is."""
    inner = col("a") + 1
    found = substituted(Sums((inner * 2, inner * 3)), {"a": col("b") * 5})
    assert found.values[0].left is found.values[1].left
    same = Sums((col("c"),))
    assert substituted(same, {"a": lit(1)}) is same


def test_restricted_rows_are_those_of_a_condition(held) -> None:
    """Of every kind of question, alone and together; beside a condition of its own."""
    oracle = RestrictedOracle(held._oracle, col("b"))
    count = Sums((lit(1),))
    assert oracle.ask(count, spend=PAY).value == 30
    assert oracle.ask(Sums((lit(1),), where=col("a") == 0), spend=PAY).value == 3
    assert [each.value for each in oracle.ask(Together((count, count)), spend=PAY)] == [30, 30]
    keyed = Sums((lit(1),), by=(Each(col("a")),))
    assert oracle.ask(Choose(keyed, Linear(((1,) + (0,) * 9, (0,) * 10))), spend=PAY).value == 0
    above = Above(count, 31)
    assert (oracle.ask(above, spend=PAY).value, held.ask(above, spend=PAY).value) == (1, 0)
    unique = Holistic(ToUnique(("a",)))
    assert oracle.ask(unique, spend=PAY).value < held.ask(unique, spend=PAY).value


def test_how_many_rows_are_left_is_secret_SR11() -> None:
    """A declared size is of all rows, and not of a part of them."""
    with opened(COLUMNS, DATA, unit=sulq.Unit(neighbors="replace_one"), size=100) as db:
        assert db.facts.size == 100
        assert RestrictedOracle(db._oracle, col("b")).facts.size is None


def test_derived_tables_are_not_restricted(held) -> None:
    """Their rows are others', and may have other columns."""
    oracle = RestrictedOracle(held._oracle, col("b"))
    derived = Where(Table(), col("a") > 3)
    refused("bad-question", oracle.ask, Sums((lit(1),), over=derived), spend=PAY)


def test_a_label_goes_with_the_columns_that_were_derived(held) -> None:
    """Of one database it becomes a column of X's Oracle; of another it stays what it is."""
    derived = DerivedOracle(held._oracle, {"a": (col("a") * 2, sulq.Int(0, 18))})
    X, y = ColumnChoice(("a",), derived), held["b"]
    assert beside(X, y).oracle is derived
    assert database_of(derived) is held._oracle
    with opened(COLUMNS, DATA) as other:
        assert beside(X, other["b"]).oracle is other._oracle
    assert beside(held[["a"]], y) is y
