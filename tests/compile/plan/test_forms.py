"""Questions that differ in the numbers of a condition have one plan, with their own condition in its place."""

from __future__ import annotations

import pytest

from sulq.answers import wire
from sulq.compile.plan import draw
from sulq.compile.plan.forms import filled, form_of
from sulq.errors import QuestionError
from sulq.language.domain import Bool, Category, Date, Int, Real, Schema
from sulq.language.privacy import Epsilon, Rho
from sulq.language.question import Sums
from sulq.language.relation import Table, Where
from sulq.language.rowfn import RowFn, col, each, lit
from tests.stub import facts

SCHEMA = Schema.of(
    "t",
    {
        "n": Int(-3, 40),
        "r": Real(0, 9),
        "f": Bool(),
        "c": Category(["a", "b"]),
        "d": Date("2020-01-01", "2020-12-31"),
    },
)


def asked(where: RowFn | None) -> Sums:
    return Sums((lit(1), col("r")), where, (each("n"),))


@pytest.mark.parametrize(
    "where",
    [
        col("n") > 3,
        (col("r") <= 2.5) & ~(col("n") == 7),
        lit(3) < col("n"),
        (col("c") == "b") | (col("n") != -1),
        (col("d") >= "2020-05-01") & (col("f") == True),  # noqa: E712 - a row function
        (col("n") > 10**9),
    ],
)
@pytest.mark.parametrize("spend", [Epsilon(0.5), Rho(0.01)])
def test_a_filled_plan_is_the_one_that_would_be_drawn(where: RowFn, spend: Epsilon | Rho) -> None:
    """To the last character of its canonical text; the form itself has another condition."""
    question, known = asked(where), facts(SCHEMA, budget=Rho(1))
    form = form_of(question)
    assert form is not None
    drawn = draw(form, known, spend)
    assert wire.encode(filled(drawn, question, known)) == wire.encode(draw(question, known, spend))
    numbers = wire.encode(form) != wire.encode(question)
    assert numbers is (wire.encode(drawn) != wire.encode(draw(question, known, spend)))


@pytest.mark.parametrize(
    "question",
    [
        asked(None),
        asked(col("n") > col("r")),
        asked((col("n") + 1) > 3),
        asked(col("n").isin([1, 2])),
        asked(col("f")),
        Sums((lit(1),), col("n") > 3, over=Where(Table(), col("n") > 1)),
    ],
)
def test_other_conditions_have_no_form(question: Sums) -> None:
    """What is computed, listed or of a derived table is planned as it is."""
    assert form_of(question) is None


def test_what_a_plan_refuses_is_refused_in_its_words() -> None:
    """A number compared with a category is an error of the question's own, whatever number the form has."""
    known = facts(SCHEMA, budget=Rho(1))
    with pytest.raises(QuestionError, match="7") as drawn:
        draw(asked(col("c") == 7), known, Epsilon(0.5))
    with pytest.raises(QuestionError) as found:
        filled(draw(asked(col("n") > 0), known, Epsilon(0.5)), asked(col("c") == 7), known)
    assert (found.value.code, found.value.message) == (drawn.value.code, drawn.value.message)
