"""Models as JSON: what is written reads back as it was, and what was not written by us is refused."""

from __future__ import annotations

import datetime
import json
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import sulq
from sulq import Epsilon, learn
from sulq.errors import QuestionError, SetupError
from sulq.learn.model_json import plain, value_of
from tests.learn.averages import Averages, Majority, Round
from tests.learn.cases import opened

COLUMNS = {"age": sulq.Int(0, 100), "city": ["Haifa", "Lod"], "ill": sulq.Bool()}
DATA = {"age": [3, 40, 99, 7], "city": ["Lod", "Haifa", "Lod", "Lod"], "ill": [True, False, True, True]}


@pytest.fixture
def model() -> Averages:
    with opened(COLUMNS, DATA) as db:
        return Averages(rounds=2, shrink="auto").fit(db[["age", "city"]], spend=Epsilon(1))


@pytest.mark.parametrize(
    "value",
    [
        None, True, 3, 2.5, "x", float("inf"), [1, "a"], (1, (2.0, None)), {"a": 1}, {1: "a", (2, 3): "b"}, {"kind": 1},
        np.array([[1.0, 2.0], [3.0, 4.5]]), np.array([1, 2]), np.array([True, False]), np.array(["a", "bc"]),
        np.zeros((0, 3)), np.array([1.0, np.inf]), np.array([1, "a", None], dtype=object), Fraction(1, 3),
        datetime.date(2020, 1, 2), datetime.datetime(2020, 1, 2, 3, tzinfo=datetime.UTC),
        Epsilon(0.3), sulq.Real(0, 5), Round(1.0, (2.0,)),
    ],
    ids=repr,
)  # fmt: skip
def test_a_value_reads_back_as_it_was(value: object) -> None:
    """Its type, shape and content, through the text of its JSON."""
    found = value_of(json.loads(json.dumps(plain(value, [Round]), allow_nan=False)), [Round])
    assert type(found) is type(value)
    if isinstance(value, np.ndarray):
        assert (found.shape, found.dtype) == (value.shape, value.dtype)
        assert found.tolist() == value.tolist()
    else:
        assert found == value


def test_arrays_are_lists_for_whoever_reads_the_JSON() -> None:
    """No wrapping around the numbers that others look for."""
    assert plain(np.array([[1.5, 2.0]])) == [[1.5, 2.0]]
    assert plain({"a": np.array(["x"])}) == {"a": ["x"]}


def test_what_cannot_be_written_is_said() -> None:
    """An object, a function, an array of days, a dataclass that the learner does not name."""

    @dataclass
    class Other:
        x: int

    for value in (object(), len, np.array(["2020-01-01"], dtype="datetime64[D]"), Other(1), 1j, b"x"):
        with pytest.raises(QuestionError) as refused:
            plain(value)
        assert refused.value.code == "bad-model"


@pytest.mark.parametrize(
    "tree",
    [
        {"kind": "part", "part": "Path", "fields": {}}, {"kind": "part", "part": "Round", "fields": {"x": 1}},
        {"kind": "nothing"}, {"kind": ["tuple"]}, [1, "a"], [[1], [2, 3]], [{}], [None], {"kind": "array"},
        {"kind": "array", "type": "V", "shape": [1], "values": [1]}, {"kind": "term", "value": {"kind": "os"}},
        {"kind": "array", "type": "f", "shape": [2, 2], "values": [1]}, {"kind": "float", "value": "x"},
    ],
    ids=repr,
)  # fmt: skip
def test_what_we_did_not_write_is_refused(tree: object) -> None:
    """One refusal, whatever is wrong."""
    with pytest.raises(QuestionError) as refused:
        value_of(tree, [Round])
    assert refused.value.code == "bad-model"


def test_a_model_is_loaded_and_used_without_data(
    model: Averages, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Saved and loaded it is the same model: parameters, attributes, price, guarantee, and what it says of a frame."""
    monkeypatch.setattr(learn, "LEARNERS", (Averages, Majority))
    model.save(tmp_path / "model.json")
    found = learn.load(tmp_path / "model.json")
    assert isinstance(found, Averages)
    assert found.to_json() == model.to_json() == learn.load(model.to_json()).to_json()
    assert found.get_params() == model.get_params()
    assert (found.spent_, found.unit_, found.guarantee_) == (model.spent_, sulq.Unit(), "dp")
    assert found.feature_names_in_ == ("age", "city")
    frame = pd.DataFrame(DATA)
    assert (found.transform(frame) == model.transform(frame)).all()
    assert found._attributes.codes(frame).tolist() == model._attributes.codes(frame).tolist()
    with opened(COLUMNS, DATA) as db:
        label = Majority().fit(db[["age"]], db["ill"], spend=Epsilon(5))
    again = learn.load(label.to_json())
    assert again.predict([[1], [2]]).tolist() == label.predict([[1], [2]]).tolist()
    assert again._labels.classes.tolist() == [False, True]


def test_a_models_file_that_is_none_is_refused(
    model: Averages, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No such file, no JSON, another format, another learner, another field, a name that would hide a method."""
    monkeypatch.setattr(learn, "LEARNERS", (Averages,))
    with pytest.raises(SetupError):
        learn.load(tmp_path / "absent.json")
    with pytest.raises(SetupError):
        model.save(tmp_path / "absent" / "model.json")
    (tmp_path / "bad.json").write_bytes(b"\x80\x04pickle")
    with pytest.raises(QuestionError):
        learn.load(tmp_path / "bad.json")
    good = model.to_json()
    for change in (
        {"format": 2}, {"learner": "Majority"}, {"learner": ["Averages"]}, {"more": 1}, {"parameters": {"turns": 1}},
        {"spent": {"kind": "Unit"}}, {"guarantee": {}}, {"columns": "age"}, {"fitted": {"transform": 1}},
        {"state": {"__class__": 1}}, {"fitted": {"rounds": 1}}, {"fitted": {"a b_": 1}}, {"state": []},
    ):  # fmt: skip
        with pytest.raises(QuestionError) as refused:
            learn.load(good | change)
        assert refused.value.code == "bad-model", change
    with pytest.raises(QuestionError, match="of Averages, not of Majority"):
        Majority.from_json(good)
    learn.load(good)
    with pytest.raises(QuestionError) as early:
        Averages().to_json()
    assert early.value.code == "not-fitted"
