"""A form says what a signature says; lists are written as people write them, and read back as they were meant."""

from __future__ import annotations

import json
from typing import Literal

import numpy as np
import pytest

from sulq.answers.oracle import Oracle
from sulq.errors import QuestionError
from sulq.forms.signature import MAX_ITEM_CHARACTERS, MAX_ITEMS, MAX_TEXT_CHARACTERS, Field, form_of, signed
from sulq.release.contingency import contingency
from sulq.select.selection import choose


def tried(  # noqa: D417 - some parameters have no line
    db: Oracle,
    columns: list[str],
    questions: list[str],
    marginals: list[list[str]] | None = None,
    *,
    grid: list[float] | None = None,
    directions: list[list[float]] | None = None,
    sizes: list[int] | np.ndarray | None = None,
    labels: str | np.ndarray = "a",
    method: Literal["auto", "cells"] = "auto",
    flags: list[bool] | None = None,
    deep: list[list[list[str]]] | None = None,
    start: np.ndarray | None = None,
    spend: object = None,
    progress: object = None,
) -> None:
    """Try a signature.

    It does nothing.
    Privacy: nothing is asked.

    Args:
        columns: which ones.
        method: how,
            in two lines.
    """


FORM = form_of(tried, "release")
FIELDS = {field.name: field for field in FORM.fields}


def test_a_function_is_a_form() -> None:
    """What a door brings itself is not asked for, nor what no form can hold; columns are known by their names."""
    assert (FORM.name, FORM.title, FORM.words, FORM.kind) == ("tried", "Try a signature", "It does nothing.", "release")
    assert not FORM.supervised
    assert [(field.name, field.kind, field.depth, field.required) for field in FORM.fields] == [
        ("columns", "column", 1, True),
        ("questions", "text", 1, True),
        ("marginals", "column", 2, False),
        ("grid", "number", 1, False),
        ("directions", "number", 2, False),
        ("sizes", "whole", 1, False),
        ("labels", "column", 0, False),
        ("method", "choice", 0, False),
    ]
    assert FIELDS["method"].help == "how, in two lines."
    assert FIELDS["labels"].default == "a"


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("columns", "age, city", ["age", "city"]),
        ("columns", "age", ["age"]),
        ("marginals", "a,b; b , c;", [["a", "b"], ["b", "c"]]),
        ("marginals", "a\nb,c", [["a"], ["b", "c"]]),
        ("marginals", "", None),
        ("grid", "0.5, 1,2", [0.5, 1, 2]),
        ("directions", "1,0; 0.5,-2", [[1, 0], [0.5, -2]]),
        ("sizes", "1, 2", [1, 2]),
        ("questions", "SELECT a, COUNT(*) FROM t", ["SELECT a, COUNT(*) FROM t"]),
        ("questions", "SELECT 1;\nSELECT 2;", ["SELECT 1", "SELECT 2"]),
        ("questions", "SELECT\n1\n\nSELECT 2", ["SELECT\n1", "SELECT 2"]),
        ("questions", "SELECT ';' ; SELECT 'it''s; x'", ["SELECT ';'", "SELECT 'it''s; x'"]),
        ("questions", "SELECT 'open; SELECT 2", ["SELECT 'open", "SELECT 2"]),
    ],
)
def test_a_list_is_read_as_it_is_written(name: str, text: str, value: object) -> None:
    """Commas inside a list, semicolons between lists and queries; a semicolon in quotes is text."""
    assert FIELDS[name].read(text) == value


@pytest.mark.parametrize(
    ("name", "text"),
    [("grid", "1, many"), ("grid", "nan"), ("sizes", "1.5"), ("directions", "1,x"),
     ("columns", "x" * (MAX_TEXT_CHARACTERS + 1)),
     ("questions", "x" * (MAX_ITEM_CHARACTERS + 1)), ("sizes", ",".join("1" * (MAX_ITEMS + 1)))],
)  # fmt: skip
def test_a_list_of_another_kind_is_refused(name: str, text: str) -> None:
    """With a code, and with how it is written."""
    with pytest.raises(QuestionError) as refused:
        FIELDS[name].read(text)
    assert refused.value.code == "bad-parameter"
    assert FIELDS[name].takes in refused.value.message


@pytest.mark.parametrize("value", ["a", [1], [["a"]], {"a": 1}, None, ["a", None]])
def test_JSON_of_another_shape_is_refused(value: object) -> None:
    """A list of texts is no text and no list of lists. Control: a list of texts is one."""
    with pytest.raises(QuestionError):
        FIELDS["columns"].check(value)
    assert FIELDS["columns"].check(["a"]) == ["a"]
    assert FIELDS["marginals"].check([["a"], []]) == [["a"], []]


def test_a_field_comes_back_from_its_JSON() -> None:
    """What the API tells of a field is all that a page needs."""
    for field in FORM.fields:
        assert Field.from_json(json.loads(json.dumps(field.to_json()))) == field


def test_a_decorated_functions_names_are_those_of_its_own_module() -> None:
    """Releases and selections are decorated: their annotations mean what they mean where they are written."""
    fields = {field.name: field for field in signed("contingency", "release", contingency, [""]).fields}
    assert set(fields["weights"].choices) == {"best", "variance", "worst", "even"}
    assert [field.name for field in signed("choose", "selection", choose, [""]).fields if field.required]
