"""The terms of a regression: names, scales, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from sulq import col
from sulq.errors import QuestionError
from sulq.inference.design import labels_of, regressors, term
from sulq.language.domain import Bool, Category, Date, Real, Schema, Text
from sulq.language.kinds import Cells
from sulq.language.rowfn import Each, Relabel, named
from sulq.language.rowfn.base import evaluate
from sulq.sql.rows.values import TrialRows
from tests.stub import facts

COLUMNS = (
    ("x", Real(0, 10)), ("b", Bool()), ("c", Category(["u", "v", "w"])), ("d", Date("2020-01-01", "2021-01-01")),
    ("t", Text()), ("k", Real(3, 3)),
)  # fmt: skip
FACTS = facts(Schema("t", COLUMNS))


def test_numbers_truths_and_categories_are_terms() -> None:
    """A category is an indicator for each label but the first; a mapping names what has no name."""
    found = regressors(FACTS, ["x", "b", "c"])
    assert found.names == ("intercept", "x", "b", "c=v", "c=w")
    assert regressors(FACTS, {"x": "x", "x squared": col("x") ** 2}).names == ("intercept", "x", "x squared")
    assert regressors(FACTS, "x").names == ("intercept", "x")
    assert labels_of(FACTS, named("c")) is not None
    assert labels_of(FACTS, named("x")) is None


def test_a_key_of_truth_values_is_one_term() -> None:
    """As the predicted class of a model: 1 where it is true; keys of the numbers 0 and 1 are as other labels."""
    told = Relabel(Each(~col("b")), (False, True))
    found = regressors(FACTS, {"p": told, "q": Each(col("b")), "n": Relabel(Each(col("b")), (0, 1))})
    assert found.names == ("intercept", "p=True", "q=True", "n=1")
    frame = TrialRows(FACTS.schema, 4, lambda _: Cells(np.array([0, 1, 0, 1]), None))
    row = found.terms[0].row
    assert evaluate(row, frame).values.tolist() == [1.0, -1.0, 1.0, -1.0]


def test_coefficients_are_told_in_the_columns_own_units() -> None:
    """A line through scaled terms is the same line through the columns."""
    found, y = regressors(FACTS, ["x", "b"]), term(FACTS, named("x"))
    matrix, constant = found.units(100.0, 20.0)
    own = matrix @ np.array([0.1, 0.5, -0.2]) + constant
    x, b = 7.0, 1.0
    scaled = 0.1 + 0.5 * (x - 5) / 5 - 0.2 * (b - 0.5) / 0.5
    assert own @ [1, x, b] == pytest.approx(100 + 20 * scaled)
    assert (y.middle, y.half) == (5.0, 5.0)


@pytest.mark.parametrize("items", [[], ["x", "x"], ["t"], ["d"], ["k"], ["nowhere"], [col("x") ** 2, col("x") ** 3]])
def test_what_is_no_term_is_refused(items: list[object]) -> None:
    """Nothing, a column twice, text, a date, a constant, a column that is not declared, two terms of one name."""
    with pytest.raises(QuestionError):
        regressors(FACTS, items)


def test_too_many_terms_are_refused() -> None:
    """Noise would hide them all."""
    many = facts(Schema("t", (("c", Category([f"{i}" for i in range(150)])),)))
    with pytest.raises(QuestionError, match="more than"):
        regressors(many, ["c"])
