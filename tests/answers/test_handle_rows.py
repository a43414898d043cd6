"""An ask that is given handles of columns asks their rows, and is refused where they are of several."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import sulq
from sulq import Epsilon, Unit, col
from sulq.answers import wire
from sulq.errors import QuestionError
from sulq.language.question import Sums
from sulq.language.rowfn import Each, Lit
from sulq.testing import exact

PAY = Epsilon(1)
LAP = pd.DataFrame({"pid": range(8), "year": [1900] * 4 + [1901] * 4, "x": [1, 2, 3, 4, 5, 6, 7, 9]})
LEAP = pd.DataFrame(
    {"pid": range(8), "year": [2000] * 2 + [2003] * 6, "w": [0, 1, 2, 3, 4, 5, 6, 7], "u": [1, 0, 3, 2, 5, 4, 7, 6]}
)
ALIKE = {
    "a": {"year": (1900, 2010), "x": (0, 10)},
    "b": {"year": (1900, 2010), "w": (0, 10), "u": (0, 10)},
}


@pytest.fixture(scope="module")
def alike():
    """Two tables with a column of the same name."""
    with sulq.connect(
        {"a": LAP, "b": LEAP}, columns=ALIKE, unit=Unit("pid", rows=1), budget=Epsilon(900), synthetic=True
    ) as found:
        yield found


VIEW_OF_B = "SELECT year, w FROM b WHERE year > 2001"
GIVEN: dict[str, tuple[object, object]] = {
    "dotted": (lambda db: db.mean(db["b.year"], spend=PAY), 2002.25),
    "of a table": (lambda db: db.mean(db.table("b")["year"], spend=PAY), 2002.25),
    "of the first table": (lambda db: db.mean(db["a.year"], spend=PAY), 1900.5),
    "its own": (lambda db: db.table("b").mean(db["b.year"], spend=PAY), 2002.25),
    "named beside": (lambda db: db.mean(db["b.year"], table="b", spend=PAY), 2002.25),
    "a condition": (lambda db: db.count(db["b.year"] == 2000, spend=PAY), 2),
    "where": (lambda db: db.count(where=(db["b.year"] == 2000) & (col("w") > 0), spend=PAY), 1),
    "rows": (lambda db: db.where(db["b.year"] == 2000).count(spend=PAY), 2),
    "a histogram": (lambda db: db.histogram(db["b.year"], [2000, 2001, 2004], spend=PAY), [2, 6]),
    "a median": (lambda db: db.median(db["b.year"], spend=PAY), 2003),
    "an extreme": (lambda db: db.min(db["b.year"], spend=PAY), 2000),
    "values": (lambda db: db.count_distinct(db["b.w"], spend=PAY), 8),
    "a partition": (lambda db: db.sum("w", by=db["b.year"].isin([2000]), spend=PAY), [27, 1, 0]),
    "of a view": (lambda db: db.mean(db.view(VIEW_OF_B)["year"], spend=PAY), 2003),
    "of rows": (lambda db: db.mean(db["x"].where("year = 1900"), spend=PAY), 2.5),
    "of rows, asked there": (lambda db: db.where("year = 1900").mean(db["x"].where("year = 1900"), spend=PAY), 2.5),
    "a formula": (lambda db: db.sum(db["b.w"] * 2 + db["b.u"], spend=PAY), 84),
    "a text": (lambda db: db.mean("b.year", spend=PAY), 2002.25),
    "a text of the first table": (lambda db: db.mean("a.year", spend=PAY), 1900.5),
    "texts": (lambda db: db.covariance(["b.w", "b.u"], spend=PAY).matrix[0][0], 5.25),
    "several": (lambda db: db.covariance(db[["b.w", "b.u"]], spend=PAY).matrix[1][1], 5.25),
    "one passed over": (lambda db: db.covariance(iter([db["b.w"]]), spend=PAY), 5.25),
    "correlated": (lambda db: db.corr(db[["b.w", "b.u"]], spend=PAY).matrix[0][1], 19 / 21),
    "correlated texts": (lambda db: db.corr(["b.w", "b.u"], spend=PAY).matrix[0][1], 19 / 21),
}  # fmt: skip


@pytest.mark.parametrize("name", GIVEN)
def test_an_ask_that_is_given_handles_asks_their_rows(alike, name: str) -> None:
    """Two tables have the column: the handle's table, view or condition is asked, and not the first table of all."""
    ask, wanted = GIVEN[name]
    found = ask(exact(alike))
    found = getattr(found, "value", found)
    found = list(found.values()) if isinstance(found, dict) else found
    assert np.ravel(found) == pytest.approx(np.ravel(wanted), rel=1e-4)


def test_handles_of_a_part_are_asked_of_that_part(alike) -> None:
    """The two parts sum to the whole, and neither is the whole; a handle of the noisy database serves an exact one."""
    asks = exact(alike)
    train, test = asks.split(test=0.5)
    parts = [asks.sum(each["x"], spend=PAY).value for each in (train, test)]
    assert sum(parts) == 37
    assert all(part != 37 for part in parts)
    assert parts == [asks.sum(alike.split(test=0.5)[i]["x"], spend=PAY).value for i in range(2)]
    assert asks.mean(alike["b.year"], spend=PAY).value == pytest.approx(2002.25)


def test_regressions_and_descriptions_take_handles(alike) -> None:
    """What is learned of a handle's table is what that table says of the same names; several columns are a list."""
    there = alike.table("b")
    wanted = there.ols("w", ["year", "u"], spend=PAY)
    for found in (
        alike.ols(alike["b.w"], [alike["b.year"], alike["b.u"]], spend=PAY),
        alike.table("b").ols(alike["b.w"], [alike["b.year"], "u"], spend=PAY),
        alike.ols(alike["b.w"], alike[["b.year", "b.u"]], spend=PAY),
        alike.ols("b.w", ["b.year", "b.u"], spend=PAY),
        alike.ols("b.w", {"year": "b.year", "u": alike["b.u"]}, spend=PAY),
        there.ols(there["w"], there[["year", "u"]], spend=PAY),
    ):
        assert found.reused  # the same questions
        assert str(found.to_dict()) == str(wanted.to_dict())
    train = alike.split()[0]
    of_part = train.ols("x", ["year"], spend=PAY)
    found = alike.ols(train["x"], [train["year"]], spend=PAY)
    assert found.reused
    assert str(found.to_dict()) == str(of_part.to_dict())
    wanted_plan = there.describe_plan(["year", "w"], spend=PAY)
    for columns in (["b.year", "b.w"], alike[["b.year", "b.w"]], [alike["b.year"], alike["b.w"]]):
        assert str(alike.describe_plan(columns, spend=PAY)) == str(wanted_plan)
    assert str(alike.describe_plan("b.year", spend=PAY)) == str(there.describe_plan("year", spend=PAY))


APART: dict[str, tuple[object, str]] = {
    "another table's": (lambda db: db.table("b").mean(db["a.year"], spend=PAY), "of b and of a"),
    "two tables": (lambda db: db.mean(db["b.year"], where=db["a.year"] > 1, spend=PAY), "of b and of a"),
    "in a formula": (lambda db: db.sum(db["year"] + db["b.year"], spend=PAY), "of a and of b"),
    "in a list": (lambda db: db.covariance(["b.year", db["x"]], spend=PAY), "of b and of a"),
    "by another": (lambda db: db.count(db["x"] > 1, by=db["b.year"], spend=PAY), "of a and of b"),
    "two parts": (lambda db: db.ols(db.split()[0]["x"], [db.split()[1]["year"]], spend=PAY), "different rows of a"),
    "all of a part": (lambda db: db.split()[0].sum(db["x"], spend=PAY), "different rows of a"),
    "all of some": (lambda db: db.where("x > 3").sum(db["x"], spend=PAY), "different rows of a"),
    "a handle's condition": (lambda db: db["x"].where(db["b.year"] > 1), "of a and of b"),
    "a condition's": (lambda db: db.table("b").where(db["a.year"] > 1), "of b and of a"),
    "a whole table": (lambda db: db.distance_from_key("x", where=db["b.year"] > 1, spend=PAY), "of a and of b"),
    "a text of no table": (lambda db: db.mean("c.year", spend=PAY), "No column 'c.year' is declared"),
    "a text of no column": (lambda db: db.mean("b.x", spend=PAY), "No column 'x' in b; table a has it"),
}  # fmt: skip


@pytest.mark.parametrize("name", APART)
def test_handles_of_different_rows_are_refused_free(alike, name: str) -> None:
    """What is given is of more than one set of rows, or of others than are asked: said so, with what to do."""
    ask, said = APART[name]
    before = alike.spent
    with pytest.raises(QuestionError) as refused:
        ask(alike)
    assert said in f"{refused.value.message} {refused.value.remedy}"
    assert alike.spent == before


def test_a_handle_of_another_database_is_refused(alike) -> None:
    """Its names may be declared here too, and would be asked of other people."""
    with sulq.connect(LAP, columns=ALIKE["a"], unit=Unit("pid", rows=1), budget=Epsilon(9), synthetic=True) as other:
        for ask in (lambda: alike.mean(other["x"], spend=PAY), lambda: alike["x"].where(other["x"] > 1)):
            with pytest.raises(QuestionError, match="another database"):
                ask()


def test_a_question_of_a_handle_is_that_of_the_column_SR12(alike) -> None:
    """The same wire form, and a stored answer serves both."""
    pairs = [(alike["year"].as_row(), col("year")), ((alike["year"] > 1900) & (alike["x"] < 3), None)]
    pairs[1] = (pairs[1][0], (col("year") > 1900) & (col("x") < 3))
    for made, plain in pairs:
        assert wire.encode(Sums((Lit(1),), by=(Each(made),))) == wire.encode(Sums((Lit(1),), by=(Each(plain),)))
        assert repr(made) == repr(plain)
    assert not alike.mean("year", where="x > 4", spend=PAY).reused
    assert alike.mean(alike["year"], where=alike["x"] > 4, spend=PAY).reused
    assert not alike.mean(alike["b.year"], where=alike["b.w"] > 4, spend=PAY).reused
    assert alike.mean("year", where=col("w") > 4, table="b", spend=PAY).reused
