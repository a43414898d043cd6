"""A form says what a signature says: every parameter a form can hold, with its kind, default and help."""

from __future__ import annotations

import json

import pytest

from sulq.errors import QuestionError
from sulq.forms.signature import Field
from sulq.learn import LEARNERS
from sulq.learn.base import Learner, form
from tests.learn.averages import Averages, Majority

FIELDS = {field.name: field for field in form(Averages).fields}


def test_a_form_is_read_off_the_signature() -> None:
    """Annotations give kinds, defaults are filled in, docstring lines help; what no form holds is left out."""
    found = form(Averages)
    assert (found.name, found.title, found.supervised) == (
        "Averages",
        "The mean of every column, asked in rounds",
        False,
    )
    assert found.words == "Each round asks for a count and for the sum of every feature."
    assert [(field.name, field.kind, field.default) for field in found.fields] == [
        ("rounds", "whole", 3),
        ("weight", "number", 1.0),
        ("shrink", "number", None),
        ("scale", "choice", "own"),
        ("note", "text", ""),
        ("loud", "flag", False),
    ]
    assert FIELDS["rounds"].help == "how often it is asked, at a part of the spend each."
    assert FIELDS["shrink"].takes == "a number or auto or nothing"
    assert FIELDS["scale"].choices == ("own", "unit")
    assert form(Majority).supervised
    json.dumps(found.to_json(), allow_nan=False)


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("rounds", "7", 7),
        ("weight", "2", 2),
        ("weight", "2.5e-1", 0.25),
        ("shrink", "auto", "auto"),
        ("shrink", "none", None),
        ("shrink", "", None),
        ("scale", "unit", "unit"),
        ("note", "a b", "a b"),
        ("loud", "yes", True),
        ("loud", "False", False),
    ],
)
def test_a_word_is_read_as_its_kind(name: str, text: str, value: object) -> None:
    """What is typed becomes a value of the parameter's own type."""
    found = FIELDS[name].read(text)
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize(
    ("name", "text"),
    [("rounds", "2.5"), ("rounds", "many"), ("rounds", ""), ("weight", "nan"), ("weight", "inf"), ("scale", "other"),
     ("loud", "maybe"), ("note", "x" * 1001), ("weight", "none")],
)  # fmt: skip
def test_a_word_of_another_kind_is_refused(name: str, text: str) -> None:
    """With a code, and with what would be right."""
    with pytest.raises(QuestionError) as refused:
        FIELDS[name].read(text)
    assert refused.value.code == "bad-parameter"
    assert name in refused.value.message


@pytest.mark.parametrize("value", [True, None, [1], {"a": 1}, 2.0, "3"])
def test_JSON_of_another_kind_is_refused(value: object) -> None:
    """A whole number is a whole number: no truth value, no text, no number with a point."""
    with pytest.raises(QuestionError):
        FIELDS["rounds"].check(value)


def test_a_default_without_annotation_says_its_kind() -> None:
    """A name that only the type checker knows leaves the defaults to go by."""

    class Odd(Learner):
        def __init__(self, *, size: "Unheard" = 5, other: "Unheard" = None) -> None:  # noqa: F821, UP037
            self.size, self.other = size, other

    assert form(Odd).fields == (Field("size", "whole", 5),)


@pytest.mark.parametrize("learner", LEARNERS, ids=lambda learner: learner.__name__)
def test_every_learner_has_a_form(learner: type[Learner]) -> None:
    """It has a title, and each of its fields takes its own default and says what it does."""
    found = form(learner)
    assert found.title
    for field in found.fields:
        assert field.required or field.check(field.default) == field.default
        assert field.help, f"{learner.__name__} does not say what {field.name} does: a line '{field.name}: ...'"
