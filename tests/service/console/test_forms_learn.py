"""A learner's page: its form is its signature, what comes back is a job's parameters, what is wrong is said."""

from __future__ import annotations

import pyarrow as pa
import pytest

import sulq
from sulq.learn.base import form
from sulq.service.console.api import Refusal
from sulq.service.console.forms import LearnForm
from sulq.service.console.guard import Fields
from tests.learn.averages import Averages, Majority
from tests.learn.programs import people


def told(learner: type) -> dict[str, object]:
    """What the API says of a learner."""
    found = form(learner)
    return {"name": found.name, "title": found.title, "form": found.to_json()}


MEANS, CLASS = LearnForm.of(told(Averages)), LearnForm.of(told(Majority))
USUAL = [(f"p-{field.name}", field.value) for field in MEANS.fields if field.widget != "check"]


def sent(*pairs: tuple[str, str], x: tuple[str, ...] = ("age", "income")) -> Fields:
    """A form as the browser sends it, with some fields changed."""
    return Fields([*(("x", name) for name in x), *USUAL, *pairs])


def test_the_page_asks_what_the_signature_asks() -> None:
    """Every field with its default, words and choices; a kind that is no learner's has no such form."""
    assert [(field.name, field.value) for field in MEANS.fields] == [
        ("rounds", "3"), ("weight", "1.0"), ("shrink", ""), ("scale", "own"), ("note", ""), ("loud", "False"),
    ]  # fmt: skip
    assert MEANS.fields[3].choices == ("own", "unit")
    assert not MEANS.supervised
    assert CLASS.supervised
    assert LearnForm.of({"name": "queries", "form": None}) is None


def test_columns_and_labels_are_those_that_can_be() -> None:
    """Free text is not offered; a class is a category, a truth value or a small whole number."""
    with people() as db:
        assert [name for name, _ in MEANS.columns(db.facts)] == [name for name, _ in db.facts.schema.columns]
        assert [name for name, _ in CLASS.labels(db.facts)] == ["city", "smoker", "active", "ill"]
    columns = {"few": sulq.Int(0, 9), "words": sulq.Text()}
    with sulq.connect(pa.table({"few": [1], "words": ["x"]}), columns=columns, budget=sulq.Epsilon(1)) as db:
        assert [name for name, _ in MEANS.columns(db.facts)] == ["few"]
        assert [name for name, _ in CLASS.labels(db.facts)] == ["few"]


def test_what_was_not_changed_keeps_its_default() -> None:
    """Only changed parameters are named, each of its own kind."""
    assert MEANS.parameters(sent()) == {"x": ["age", "income"], "loud": False}
    assert MEANS.parameters(sent(("bounds", "auto"))) == {"x": ["age", "income"], "loud": False, "bounds": "auto"}
    changed = sent(("p-rounds", "7"), ("p-weight", "2.5"), ("p-shrink", "auto"), ("p-scale", "unit"), ("p-loud", "yes"))
    assert MEANS.parameters(changed) == {
        "x": ["age", "income"], "rounds": 7, "weight": 2.5, "shrink": "auto", "scale": "unit", "loud": True,
    }  # fmt: skip
    assert CLASS.parameters(Fields([("x", "age"), ("y", "ill")])) == {"x": ["age"], "y": "ill"}


@pytest.mark.parametrize(
    ("which", "fields"),
    [
        (MEANS, sent(("p-rounds", "many"))),
        (MEANS, sent(("p-rounds", "2.5"))),
        (MEANS, sent(("p-rounds", ""))),
        (MEANS, sent(("p-weight", "nan"))),
        (MEANS, sent(x=())),
        (CLASS, Fields([("x", "age")])),
        (CLASS, Fields([("y", "ill")])),
        (CLASS, Fields([("x", "age"), ("x", "ill"), ("y", "ill")])),
    ],
)
def test_what_is_wrong_is_said_before_a_job_starts(which: LearnForm, fields: Fields) -> None:
    """With what to do next."""
    with pytest.raises(Refusal) as refused:
        which.parameters(fields)
    assert (refused.value.status, refused.value.code) == (400, "bad-parameter")
    assert refused.value.remedy
