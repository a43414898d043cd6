"""A model's prediction as row functions: as `predict` where tables and trees decide, nearly where weights do."""

from __future__ import annotations

import numpy as np
import pytest

import sulq
from sulq import Epsilon
from sulq.errors import QuestionError
from sulq.language.kinds import Code, Scalar
from sulq.language.rowfn import Col, Lit
from sulq.language.rowfn.base import evaluate
from sulq.learn import (
    ID3,
    LEARNERS,
    AdditiveClassifier,
    AdditiveRegressor,
    DecisionList,
    HillClimbing,
    KMeans,
    LinearRegression,
    LogisticRegression,
    MonotoneConjunction,
    NaiveBayes,
    Perceptron,
)
from sulq.learn.base import Learner
from sulq.learn.evaluation.prediction import ClassPrediction, ClusterPrediction, NumberPrediction, added, two_classes
from tests.counts import count
from tests.frames import Frame
from tests.learn.cases import opened, refused
from tests.learn.evaluation.cases import SCHEMA, fitted, table
from tests.learn.programs import people

EXACT = (AdditiveClassifier, DecisionList, HillClimbing, ID3, MonotoneConjunction)
NEARLY = {LogisticRegression: 1e-3, Perceptron: 1e-3, NaiveBayes: 4e-3, KMeans: 1e-3}  # rows that may differ
PREDICTING = [learner for learner in LEARNERS if hasattr(learner, "predict")]


def told(model: Learner, frame: Frame) -> np.ndarray:
    """What the row functions say of each row, as `predict` would."""
    prediction = model.prediction()
    if isinstance(prediction, NumberPrediction):
        cells = evaluate(prediction.value, frame)
    else:
        cells = evaluate(prediction.key, frame)
    assert cells.missing is None or not cells.missing.any()  # every row is told something
    if isinstance(prediction, ClassPrediction):
        return np.asarray(model.classes_)[np.array(prediction.places)[cells.values]]
    return cells.values


def test_every_learner_that_predicts_is_held_to_a_bar() -> None:
    """A learner that joins LEARNERS names how far its row functions may be from `predict`."""
    assert set(PREDICTING) == {*EXACT, *NEARLY, AdditiveRegressor, LinearRegression}


@pytest.mark.parametrize("learner", PREDICTING)
def test_rows_are_told_as_predict_tells_them(learner: type[Learner]) -> None:
    """Random rows over all declared values, a tenth of the cells missing: equal, or in nearly all rows."""
    for turn in range(count(f"models told by rows, {learner.__name__}", short=1, long=20)):
        model, names, _ = fitted(learner, turn)
        ordinary, frame = table(6000, turn)
        said, found = model.predict(ordinary[list(names)]), told(model, frame)
        if learner is LinearRegression:
            assert np.abs(said - found).max() < 1e-4 * 500  # of the width of y's bounds
        elif learner is AdditiveRegressor:
            assert np.array_equal(said, found)
        else:
            assert np.mean(said != found) <= NEARLY.get(learner, 0.0)


@pytest.mark.parametrize("bins", [2, 100, 1000])
def test_naive_bayes_is_told_by_tables_no_coarser_than_its_own(bins: int) -> None:
    """However finely a number is divided by the model itself."""
    with people() as db:
        model = NaiveBayes(bins=bins).fit(db[["age", "income"]], db["ill"], spend=Epsilon(50))
    ordinary, frame = table(3000, bins)
    assert np.mean(model.predict(ordinary[["age", "income"]]) != told(model, frame)) <= 0.01


def test_many_classes_and_columns_make_a_question_that_can_be_asked() -> None:
    """Twenty-six classes by sixteen columns: one score, at its price."""
    rng = np.random.default_rng(0)
    names = [f"x{i}" for i in range(16)]
    data = {name: rng.random(200) for name in names} | {"y": rng.integers(0, 26, 200)}
    with opened(dict.fromkeys(names, sulq.Real(0, 1)) | {"y": sulq.Int(0, 25)}, data) as db:
        for learner in (NaiveBayes(), LogisticRegression(max_iter=0)):
            many = learner.fit(db[names], db["y"], spend=Epsilon(50))
            assert many.score(db[names], db["y"], spend=Epsilon(1)).spent == Epsilon(1)


def test_control_other_weights_tell_other_rows() -> None:
    """Were the weights told with the other sign, nearly every row would be told otherwise."""
    model, names, _ = fitted(LogisticRegression)
    ordinary, frame = table(6000, 0)
    said = model.predict(ordinary[list(names)])
    turned = type(model).from_json(model.to_json())
    turned.coef_, turned.intercept_ = -model.coef_, -model.intercept_
    assert np.mean(said != told(turned, frame)) > 0.9


def test_kinds_follow_from_public_numbers() -> None:
    """A class is a key of declared labels, a number is bounded, and no row is in no cell."""
    model, *_ = fitted(ID3)
    assert model.prediction_row().kind(SCHEMA) == Code((False, True), nullable=False)
    number, *_ = fitted(LinearRegression)
    kind = number.prediction_row().kind(SCHEMA)
    assert isinstance(kind, Scalar)
    assert kind.bounded
    assert kind.limits[0] >= 0
    assert kind.limits[1] <= 500


def test_the_first_of_equal_scores_wins() -> None:
    """As NumPy's argmax has it, of any number of scores."""
    rng = np.random.default_rng(4)
    frame = Frame(SCHEMA, [dict.fromkeys(SCHEMA.names, 0)])
    for several in (1, 2, 3, 5):
        scores = rng.integers(0, 3, (60, several)).tolist()
        told = [ClassPrediction.of_scores([Lit(score) for score in given]) for given in scores]
        found = [int(evaluate(one.key, frame).values[0]) for one in told]
        assert found == [int(np.argmax(given)) for given in scores]


def test_grades_rise_and_their_middles_are_probabilities() -> None:
    """Many fine grades for a curve, ten equal ones for calibration; a tree has its leaves, a rule two."""
    fine, chance = ClassPrediction.of_odds(Col("age") - 50).grades("odds")
    assert len(chance) == fine.kind(SCHEMA).size > 40
    assert (np.diff(chance) > 0).all()
    parts, tenths = ClassPrediction.of_odds(Col("age") - 50).grades("parts")
    assert tenths == pytest.approx(np.arange(10) / 10 + 0.05)
    assert parts.kind(SCHEMA).size == 10
    tree = ClassPrediction(Col("city"), (0, 1, 0), shares=(0.2, 0.9, 0.2))
    key, shares = tree.grades("odds")
    assert shares.tolist() == [0.2, 0.9]
    assert key.kind(SCHEMA).size == 2
    rule, certain = ClassPrediction.of_rule(Col("smoker")).grades("odds")
    assert certain.tolist() == [0.0, 1.0]
    assert rule.kind(SCHEMA).size == 2


def test_a_curve_of_three_classes_is_refused() -> None:
    """What is told of two classes says so, and names the matrix."""
    scores = ClassPrediction.of_scores([Lit(1), Lit(2), Lit(3)])
    refused("wrong-kind", two_classes, scores, ["a", "b", "c"], "A ROC curve")
    with pytest.raises(QuestionError, match="confusion"):
        two_classes(scores, ["a", "b", "c"], "A ROC curve")
    two_classes(ClassPrediction.of_odds(Lit(1)), ["a", "b"], "A ROC curve")


def test_long_sums_are_not_deep() -> None:
    """A thousand terms are ten deep."""
    found, depth, front = added([Col("age")] * 1000), 0, [added([Col("age")] * 1000)]
    while front := [part for fn in front for part in fn.parts()]:
        depth += 1
    assert depth <= 11
    assert isinstance(found.kind(SCHEMA), Scalar)


def test_distances_are_those_of_the_nearest_centre() -> None:
    """Summed, they are the inertia of the rows up to their grid."""
    model, names, _ = fitted(KMeans)
    ordinary, frame = table(3000, 9)
    prediction = model.prediction()
    assert isinstance(prediction, ClusterPrediction)
    found = float(evaluate(prediction.distance, frame).values.sum())
    assert found == pytest.approx(-model.score(ordinary[list(names)]), rel=2e-3)
