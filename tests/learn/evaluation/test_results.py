"""What is told of a model: frozen, as tables, as text and as pictures, all from released numbers."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import sulq
from sulq import Epsilon, Unit
from sulq.learn import ID3, AdditiveClassifier, KMeans, LinearRegression, LogisticRegression, cross_validate, evaluate
from sulq.learn.evaluation.results import Evaluation
from tests.learn.cases import exact, opened, refused
from tests.learn.evaluation.cases import rows_of

X = ["a", "b", "c"]
PERSON = Unit("pid", 2)


@pytest.fixture(scope="module")
def people() -> sulq.Database:
    frame, declared, _ = rows_of(PERSON, 900)
    return opened(declared, {name: frame[name].to_numpy() for name in frame}, unit=PERSON)


@pytest.fixture(scope="module")
def judged(people: sulq.Database) -> Evaluation:
    """An evaluation with noise, of which every part is there."""
    model = AdditiveClassifier().fit(people[X], people["yes"], spend=Epsilon(3))
    return evaluate(model, people[X], people["yes"], spend=Epsilon(2))


def test_an_evaluation_is_a_table_of_measures(judged: Evaluation) -> None:
    """Value and interval of each, in a frame, as text and as HTML; nothing can be set."""
    table = judged.to_pandas()
    names = ["accuracy", "auc", *(f"{part} of {label}" for label in (False, True) for part in ("precision", "recall"))]
    assert table["measure"].tolist() == names
    assert (table["low"] <= table["value"]).all()
    assert (table["value"] <= table["high"]).all()
    assert all(name in repr(judged) for name in names)
    assert "epsilon 2" in repr(judged)
    assert "<table>" in judged._repr_html_()
    for part in (judged, judged.confusion, judged.roc, judged.calibration):
        with pytest.raises((dataclasses.FrozenInstanceError, TypeError)):
            part.answer = None


def test_a_matrix_is_shown_as_one(judged: Evaluation) -> None:
    """Its counts as a square, its cells with intervals in a frame, the spend below."""
    found = judged.confusion
    assert found.counts.shape == (2, 2)
    assert found.to_pandas().columns.tolist() == ["actual", "predicted", "value", "low", "high"]
    assert len(found.to_pandas()) == 4
    assert found.counts.sum() == pytest.approx(found.to_pandas()["value"].sum())
    assert repr(found).startswith("rows: actual, columns: predicted")
    assert "<table>" in found._repr_html_()
    low, high = found.accuracy().interval()
    assert low <= found.accuracy().value <= high
    assert repr(found.accuracy())
    refused("unknown-category", found.precision, "maybe")
    refused("unknown-category", found.recall, 7)


def test_a_class_that_is_never_predicted_has_a_column_of_none(people: sulq.Database) -> None:
    """It costs nothing and has no precision."""
    held = exact(people)
    model = ID3(max_depth=1).fit(held[["b"]], held["kind"], spend=Epsilon(50))
    found = model.confusion(held[["b"]], held["kind"], spend=Epsilon(1))
    missing = [i for i in range(3) if i not in set(model.prediction().places)]
    assert missing
    assert (found.counts[:, missing] == 0).all()
    label = model.classes_[missing[0]].item()
    assert found.precision(label).interval() == (0, 1)
    assert 0 <= found.recall(label).value <= 1
    assert repr(found)


def test_a_curve_never_falls(judged: Evaluation) -> None:
    """From nothing to everything, however noisy; its area is the answer's own, with an interval."""
    false, true = judged.roc.rates
    for rates in (false, true):
        assert (np.diff(rates) >= 0).all()
        assert (rates[0], rates[-1]) == (0, 1)
    assert len(judged.roc.thresholds) == len(true) - 1
    assert (np.diff(judged.roc.thresholds) < 0).all()
    low, high = judged.roc.auc.interval()
    assert 0 <= low <= judged.roc.auc.value <= high <= 1
    assert repr(judged.roc)
    assert "<table>" in judged.roc._repr_html_()
    assert judged.roc.spent == Epsilon(2)


def test_a_calibration_has_ten_parts(judged: Evaluation) -> None:
    """What is predicted there, what is observed, and how sure that is; a part without rows is unknown."""
    table = judged.calibration.to_pandas()
    assert len(table) == len(judged.calibration.predicted) == 10
    known = table["value"].notna()
    assert (table["low"][known] <= table["value"][known]).all()
    assert repr(judged.calibration)
    assert "<table>" in judged.calibration._repr_html_()


def test_folds_are_a_table_and_what_they_cost(people: sulq.Database) -> None:
    """A row a fold and one for all; the costs itemised."""
    found = cross_validate(LogisticRegression(max_iter=0), people[X], people["yes"], folds=3, spend=Epsilon(3))
    table = found.to_pandas()
    assert table["fold"].tolist() == [0, 1, 2, "all"]
    assert "fit without fold 2: epsilon 0.8" in repr(found)
    assert "scores: epsilon 0.6" in repr(found)
    assert "<table>" in found._repr_html_()
    assert found.plot()


def test_pictures_are_drawn(judged: Evaluation, people: sulq.Database) -> None:
    """Of each part by itself, of all side by side, and of a model that has a number alone."""
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("agg")
    for part in (judged.confusion, judged.roc, judged.calibration):
        assert part.plot().get_xlabel()
    assert len(judged.plot().axes) == 3
    line = LinearRegression().fit(people[X], people["n"], spend=Epsilon(1))
    found = evaluate(line, people[X], people["n"], spend=Epsilon(1))
    assert found.plot().axes
    assert "r2" in repr(found)
    groups = KMeans(2).fit(people[["a", "b"]], spend=Epsilon(1))
    assert evaluate(groups, people[["a", "b"]], spend=Epsilon(1)).plot().axes
    pyplot.close("all")
