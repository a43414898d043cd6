"""Explanations: every relation, question and law has its words."""

from __future__ import annotations

import math

from sulq.compile.plan import draw
from sulq.language.domain import Bool, Category, Int, Schema, Text
from sulq.language.privacy import Epsilon, EpsilonDelta, Rho, Unit
from sulq.language.question import Choose, OpenSums, Sums, Together
from sulq.language.relation import Distinct, Join, PerPerson, Select, Table, Union, Where
from sulq.language.rowfn import Bernstein, Case, Col, Each, IsMissing, Lit, Not, Outer, Vector
from sulq.language.score import Rank
from sulq.sql.explain import Explanation, Foretold, words
from tests.stub import facts

SCHEMA = Schema.of("people", {"age": Int(0, 60), "flag": Bool(), "city": Category(["Lod", "Yafo"]), "name": Text()})
TOLD = facts(SCHEMA, Unit("pid", 3), EpsilonDelta(50, 1e-6))
ROWS = Select(Table(), (("t1.age", Col("age")), ("t1.city", Col("city"))))


def told(question: object, spend: object) -> str:
    return str(Explanation("SELECT", draw(question, TOLD, spend), TOLD, (Foretold("n", (5.0, 5.0, 5.0)),)))


def test_relations_have_words():
    """A reader sees what is joined, grouped by the person, united and kept."""
    other = Select(Table(), (("t2.age", Col("age")),))
    for relation, expected in (
        (Table(), "people"),
        (Table("visits"), "visits"),
        (Where(Table(), Col("flag")), "some rows of people"),
        (Join(ROWS, other, (("t1.age", "t2.age"),), "left", person=True),
         "people left joined with people on age = age and the same person"),
        (PerPerson(ROWS, ("t1.city",), (("n", "count", None),)), "one row for each person and city of people"),
        (Distinct(ROWS), "different rows of people"),
        (Union((ROWS, ROWS)), "people and people"),
    ):  # fmt: skip
        assert words(relation, TOLD) == expected


def test_questions_have_words():
    """Sums, shares, bounds, one-sided sums, products, filters, keys and conditions are told; one line a value."""
    values = (
        Lit(1), Col("age"), Not(IsMissing(Col("age"))), Bernstein(Col("age"), 2), Case(((Col("flag"), Col("age")),)),
        Outer(Vector((Col("age"), Col("flag")))),
    )  # fmt: skip
    question = Together(
        (Sums(values, Col("flag"), (Col("city"), Each(IsMissing(Col("age"))))), Sums((Lit(1),))), (3, 1)
    )
    text = told(question, Epsilon(1))
    for expected in (
        "price epsilon 1", "question 1 of 2, 75% of the spend", "where a condition holds",
        "city, whether age is missing (4 cells)", "a person has at most 3 rows here", "rows: l1 sensitivity 3",
        "age in [0, 60]: l1 sensitivity 180", "rows with age",
        "as 3 one-sided sums", "products of age and flag", "age where a filter holds",
        "discrete Laplace noise", "question 2 of 2, 25%", "n  +- 5",
    ):  # fmt: skip
        assert expected in text, (expected, text)
    assert "discrete Gaussian noise" in told(question, Rho(0.1))


def test_open_keys_and_choices_have_words():
    """The threshold on people, and how near the best a choice comes, are told."""
    text = told(OpenSums((Col("age"),), None, (Col("name"),)), EpsilonDelta(1, 1e-7))
    assert "groups are found in the data" in text
    assert "is above" in text
    text = told(Choose(Sums((Lit(1),), None, (Col("city"), Each(Col("age")))), Rank(1, 2)), Epsilon(1))
    assert "a choice of one of 61 candidates" in text
    assert "of the best at 95%" in text


def test_an_accuracy_is_told_once_where_rows_do_not_matter():
    """What is sure has one bar, what depends on the number of rows has one for each; nothing asked, nothing paid."""
    plan = draw(Sums((Lit(1),)), TOLD, Epsilon(1))
    columns = (Foretold("n", (5.0, 5.2, 5.4)), Foretold("mean", (90.0, 9.0, 0.9)), Foretold("odd", (math.inf,) * 3))
    assert [column.sure for column in columns[:2]] == [True, False]
    found = Explanation("SELECT", plan, TOLD, columns, notes=("a note",))
    text = str(found)
    assert "n     +- 5.4\n" in text
    assert "+- 90 if 100, +- 9 if 1,000, +- 0.9 if 10,000 rows a group" in text
    assert text.endswith("a note")
    assert found.to_dict()["at 100 rows"][1] == 90.0
    assert "<pre>" in found._repr_html_()
    nothing = Explanation("SELECT", None, TOLD, ())
    assert (nothing.price, str(nothing)) == (None, "nothing private is asked: the answer costs nothing")
