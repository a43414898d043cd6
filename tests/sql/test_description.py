"""What a description asks: by the declared columns alone, each part for its share of the spend."""

from __future__ import annotations

import pytest

from sulq.errors import QuestionError
from sulq.language.domain import Bool, Category, Date, Int, Real, Schema, Text
from sulq.language.privacy import Epsilon, Unit
from sulq.language.question import Choose, Sums
from sulq.sql.description import MAX_CATEGORIES, DescriptionWish, description, wished_columns
from tests.stub import Stub, facts

SCHEMA = Schema(
    "t",
    (
        ("n", Int(0, 100, missing=False, default=0)),
        ("r", Real(0, 1)),
        ("c", Category(("a", "b"))),
        ("wide", Category(tuple(f"w{i}" for i in range(MAX_CATEGORIES + 1)))),
        ("b", Bool()),
        ("d", Date("2020-01-01", "2020-12-31")),
        ("t", Text()),
    ),
)
STUB = Stub(SCHEMA, [])


def asked(columns, **more):
    wish = DescriptionWish(tuple(columns), **more)
    return description(STUB.facts, wish, Epsilon(1), lambda question, spend: STUB.foresee(question, spend=spend))


def test_each_kind_of_column_asks_for_its_own_statistics():
    """Numbers have moments, quartiles and a chart, dates quartiles, categories counts, texts only what is there."""
    found = asked(SCHEMA.names)
    assert {one.name: set(one.stats) for one in found.columns} == {
        "n": {"count", "mean", "std", "q25", "median", "q75"},
        "r": {"count", "missing", "mean", "std", "q25", "median", "q75"},
        "c": {"count", "missing"}, "wide": {"count", "missing"}, "b": {"count", "missing"},
        "d": {"count", "missing", "q25", "median", "q75"}, "t": {"count", "missing"},
    }  # fmt: skip
    assert {one.name for one in found.columns if one.counts is not None} == {"n", "r", "c", "b"}
    assert sum(part for _, _, part in found.parts) == pytest.approx(1)
    assert sum(found.question.shares) == pytest.approx(1 / min(part for _, _, part in found.parts))
    kinds = {type(one) for one in found.question.questions}
    assert kinds == {Sums, Choose}


def test_less_is_asked_where_it_is_not_wished_for():
    """Without intervals quartiles are three choices and nothing else; without charts no bins are counted."""
    all_of_it, few = asked(["r"]), asked(["r"], interval=False, charts=False)
    kinds = [type(one) for one in few.question.questions]
    assert kinds == [Sums, Choose, Choose, Choose]
    assert len(all_of_it.question.questions) > len(kinds) + 1
    assert few.columns[0].counts is None


def test_the_columns_are_those_declared_but_the_persons():
    """All where none are named, but the person's, in their order; a name alone is one column."""
    known = facts(SCHEMA, Unit("n", rows=2))
    assert wished_columns(known, None) == tuple(SCHEMA.names[1:])
    assert wished_columns(known, "r") == ("r",)
    for bad in ([], ["r", "r"], [3], 3):
        with pytest.raises(QuestionError):
            wished_columns(known, bad)
