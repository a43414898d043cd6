"""Classifiers by scores: probabilities that sum to one, the class of the highest, nothing before a fit."""

from __future__ import annotations

import numpy as np
import pytest

from sulq import Epsilon
from sulq.learn.base import ScoreClassifier
from tests.learn.cases import refused


class Given(ScoreClassifier):
    """Scores that are the table itself."""

    def __init__(self, *, classes: tuple[object, ...] = ("a", "b", "c")) -> None:
        self.classes = classes

    def ready(self) -> Given:
        self.spent_ = Epsilon(1)
        self.classes_ = np.array(self.classes)
        return self

    def _scores(self, X: object) -> np.ndarray:
        return np.asarray(X, dtype=float)


def test_probabilities_are_proportional_to_the_exponentials() -> None:
    """Also of scores so large that their exponentials are not numbers."""
    model = Given().ready()
    scores = np.array([[0.0, np.log(2), np.log(5)], [5000.0, -5000.0, 5000.0]])
    assert model.predict_proba(scores) == pytest.approx(np.array([[1 / 8, 2 / 8, 5 / 8], [0.5, 0, 0.5]]))
    assert model.predict_log_proba(scores)[0] == pytest.approx(np.log([1 / 8, 2 / 8, 5 / 8]))
    assert model.predict(scores).tolist() == ["c", "a"]
    assert np.array_equal(model.decision_function(scores), scores)
    assert model.score(scores, ["c", "b"]) == 0.5


def test_of_two_classes_the_decision_is_a_gap() -> None:
    """As in scikit-learn: positive for the second; classes may be truth values, and y of any kind of list."""
    model = Given(classes=(False, True)).ready()
    scores = np.array([[1.0, 3.0], [2.0, -1.0]])
    assert model.decision_function(scores).tolist() == [2, -3]
    assert model.predict(scores).tolist() == [True, False]
    assert model.score(scores, np.array([[True], [True]])) == 0.5


def test_before_a_fit_nothing_is_predicted() -> None:
    """By any way."""
    for act in ("predict", "predict_proba", "predict_log_proba", "decision_function"):
        refused("not-fitted", getattr(Given(), act), [[0, 1, 2]])
    refused("not-fitted", Given().score, [[0, 1, 2]], ["a"])
