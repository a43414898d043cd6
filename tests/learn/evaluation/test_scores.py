"""Scores of private rows: the textbook's without noise, near it with noise, one debit each, whatever the rows are."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom
from sklearn import metrics

import sulq
from sulq import Epsilon, EpsilonDelta, Rho, SubLinear, Unit
from sulq.api.database import Database
from sulq.language.privacy import Budget, Loss
from sulq.learn import (
    ID3,
    PCA,
    SVD,
    AdditiveClassifier,
    AdditiveRegressor,
    DecisionList,
    KMeans,
    LinearRegression,
    LogisticRegression,
    NaiveBayes,
    Perceptron,
    evaluate,
)
from sulq.learn.base import Learner
from tests.counts import count
from tests.learn.cases import exact, opened, refused
from tests.learn.evaluation.cases import rows_of
from tests.learn.noised import Noised, columns

X = ["a", "b", "c"]
MODELS: list[tuple[Learner, list[str], str | None]] = [
    (AdditiveClassifier(), X, "yes"),
    (AdditiveRegressor(), X, "n"),
    (ID3(), X, "kind"),
    (LinearRegression(narrow=False), X, "n"),
    (LogisticRegression(), X, "yes"),
    (LogisticRegression(max_iter=0), X, "kind"),
    (NaiveBayes(), X, "kind"),
    (Perceptron(), X, "yes"),
    (KMeans(3), ["a", "b"], None),
    (PCA(1), ["a", "b", "n"], None),
    (SVD(1), ["a", "b", "n"], None),
]


def database(unit: Unit = Unit(), budget: Budget | None = None, **data: object) -> tuple[Database, pd.DataFrame]:  # noqa: B008
    """The people of `rows_of`, and what they are."""
    frame, declared, unit = rows_of(unit, **data)
    held = {name: frame[name].to_numpy() for name in frame}
    return opened(declared, held, budget, unit=unit), frame


@pytest.mark.parametrize(("model", "names", "label"), MODELS, ids=lambda each: type(each).__name__)
def test_without_noise_a_score_is_that_of_the_rows(model: Learner, names: list[str], label: str | None) -> None:
    """Of private columns what `score` says of the same rows as an ordinary table, up to the grid."""
    db, frame = database()
    with db:
        held = exact(db)
        y = None if label is None else held[label]
        model.fit(held[names], y, spend=Epsilon(100))
        found = model.score(held[names], y, spend=Epsilon(1))
    told = model.score(frame[names]) if label is None else model.score(frame[names], frame[label])
    assert isinstance(told, float)
    assert float(found.value) == pytest.approx(told, abs=1e-3 * max(1, abs(told)))


def test_a_number_is_judged_where_the_model_knows_it_to_lie() -> None:
    """Bounds far wider than the rows do not drown the score: y is clipped, and the answer says to where."""
    frame, declared, _ = rows_of(Unit(), 4000)
    data = {name: frame[name].to_numpy() for name in declared}
    frame.loc[0, "n"] = 900.0
    with opened(declared | {"n": sulq.Real(0, 1000)}, data | {"n": frame["n"].to_numpy()}) as db:
        held = exact(db)
        for model in (AdditiveRegressor(), LinearRegression()):
            model.fit(held[X], held["n"], spend=Epsilon(100))
            low, high = model.prediction().window
            assert (low, high < 500) == (0, True)
            found = model.score(db[X], db["n"], spend=Epsilon(1))
            truth, said = np.clip(frame["n"], low, high), np.clip(model.predict(frame[X]), low, high)
            ends = found.interval(1 - 1e-9)
            assert ends[0] <= 1 - ((truth - said) ** 2).sum() / ((truth - truth.mean()) ** 2).sum() <= ends[1]
            assert any("judged is n clipped to [0, " in note for note in found.notes)
        searched = LinearRegression().fit(db[X], db["n"], spend=Epsilon(20), bounds="auto")
        assert searched.prediction().window[1] <= searched.bounds_["n"][1] < 100
    with opened(declared, data) as db:
        plain = LinearRegression(narrow=False).fit(db[X], db["n"], spend=Epsilon(1))
        assert not any("judged" in note for note in plain.score(db[X], db["n"], spend=Epsilon(1)).notes)


def test_every_part_of_an_evaluation_is_the_textbooks() -> None:
    """Matrix, precision, recall, area and calibration beside scikit-learn's on the same rows."""
    db, frame = database()
    with db:
        held = exact(db)
        model = LogisticRegression().fit(held[X], held["yes"], spend=Epsilon(100))
        found = evaluate(model, held[X], held["yes"], spend=Epsilon(1))
    said, truth = model.predict(frame[X]), frame["yes"]
    assert np.array_equal(found.confusion.counts, metrics.confusion_matrix(truth, said))
    assert found.score.value == metrics.accuracy_score(truth, said)
    measures = {name: answer.value for name, answer in found.measures().items()}
    assert measures["precision of True"] == pytest.approx(metrics.precision_score(truth, said))
    assert measures["recall of False"] == pytest.approx(metrics.recall_score(~truth, ~said))
    assert measures["auc"] == pytest.approx(metrics.roc_auc_score(truth, model.decision_function(frame[X])), abs=4e-3)
    chance = model.predict_proba(frame[X])[:, 1]
    part = np.minimum((chance * 10).astype(int), 9)
    for (low, _), value in found.calibration.answer.value.items():
        inside = truth[part == round(low * 10)]
        assert value is None or value == pytest.approx(inside.mean())
    assert found.spent == Epsilon(1)


def test_rows_without_a_label_count_nowhere() -> None:
    """A row whose label is missing is in no cell, and a missing feature is told as `predict` tells it."""
    frame = pd.DataFrame({"a": [0.1, 0.9, None, 0.9] * 50, "yes": [False, True, None, None] * 50}).astype(object)
    with opened({"a": sulq.Real(0, 1), "yes": sulq.Bool()}, {name: frame[name].to_numpy() for name in frame}) as db:
        held = exact(db)
        model = LogisticRegression().fit(held[["a"]], held["yes"], spend=Epsilon(100))
        assert model.confusion(held[["a"]], held["yes"], spend=Epsilon(1)).counts.sum() == 100
        assert model.score(held[["a"]], held["yes"], spend=Epsilon(1)).value == 1


@pytest.mark.parametrize("rows", ["none", "one class", "one row"])
def test_facts_of_the_data_are_no_errors_SR6(rows: str) -> None:
    """No rows, one class, one row: an evaluation at the full charge, of which unknown parts claim nothing."""
    frame, declared, _ = rows_of(Unit(), 400)
    some = {"none": frame[:0], "one class": frame[frame["yes"]], "one row": frame[:1]}[rows]
    with opened(declared, {name: frame[name].to_numpy() for name in declared}) as db:
        model = LogisticRegression().fit(db[X], db["yes"], spend=Epsilon(5))
        line = LinearRegression().fit(db[X], db["n"], spend=Epsilon(5))
    with opened(declared, {name: some[name].to_numpy() for name in declared}) as db:
        found = evaluate(model, db[X], db["yes"], spend=Epsilon(1))
        number = evaluate(line, db[X], db["n"], spend=Epsilon(1))
        assert (found.spent, number.spent, db.spent) == (Epsilon(1), Epsilon(1), Epsilon(2))
        low, high = found.roc.auc.interval()
        assert 0 <= low <= high <= 1
        assert repr(found)
        assert repr(number)
        assert number.score.interval()[0] <= number.score.value <= number.score.interval()[1]


PRICED: list[tuple[Budget, Loss, Unit]] = [
    (Epsilon(9), Epsilon(1), Unit()),
    (Rho(9), Rho(0.1), Unit("pid", 2)),
    (EpsilonDelta(9, 1e-6), EpsilonDelta(1, 1e-6), Unit("pid", 2, "replace_one")),
    (EpsilonDelta(9, 1e-6), Rho(0.1), Unit(neighbors="zero_out")),
    (Rho(9), Epsilon(1), Unit(neighbors="replace_one")),
]


@pytest.mark.parametrize(("budget", "spend", "unit"), PRICED, ids=str)
def test_every_ask_is_one_debit_of_its_spend(budget: Budget, spend: Loss, unit: Unit) -> None:
    """Under every kind of budget and relation; what is asked twice is paid twice (SR12)."""
    db, _ = database(unit, budget, rows=400)
    with db:
        held = exact(db)
        model = LogisticRegression(max_iter=0).fit(held[X], held["yes"], spend=spend)
        line = LinearRegression().fit(held[X], held["n"], spend=spend)
        before = len(db.transcript())
        for ask in (model.score, model.confusion, model.roc, model.calibration):
            found = ask(db[X], db["yes"], spend=spend)
            assert float(found.spent.exact) <= float(getattr(spend, "rho", spend.exact)) + 1e-12
        line.score(db[X], db["n"], spend=spend)
        evaluate(model, db[X], db["yes"], spend=spend)
        assert len(db.transcript()) == before + 6
        assert model.score(db[X], db["yes"], spend=spend).receipt != model.score(db[X], db["yes"], spend=spend).receipt


def test_under_a_sublinear_budget_sums_are_queries() -> None:
    """Two for an accuracy, one for each cell of a matrix; the guarantee is said."""
    db, _ = database(budget=SubLinear(1, 1e-6, 500), rows=400)
    free, _ = database(rows=400)
    with db, free:
        model = LogisticRegression().fit(free[X], free["yes"], spend=Epsilon(9))
        assert model.score(db[X], db["yes"]).spent == sulq.Queries(2)
        assert model.confusion(db[X], db["yes"]).spent == sulq.Queries(4)
        refused("spend-kind", model.score, db[X], db["yes"], spend=Epsilon(1))


def test_noisy_scores_of_real_plans_lie_in_their_intervals() -> None:
    """Accuracy and R^2 of one model asked again and again; the control reads them at a level of 50%."""
    db, frame = database(rows=1500)
    with db:
        held, noisy = exact(db), Noised(db, 5)
        model = ID3(max_depth=2).fit(held[X], held["yes"], spend=Epsilon(100))
        line = LinearRegression().fit(held[X], held["n"], spend=Epsilon(100))
        truths = model.score(frame[X], frame["yes"]), line.score(held[X], held["n"], spend=Epsilon(1)).value
        runs = count("noisy scores of real plans", short=24, long=4000)
        answers = [
            [one.score(columns(noisy, X), columns(noisy, [label]), spend=Epsilon(0.3)) for _ in range(runs)]
            for one, label in ((model, "yes"), (line, "n"))
        ]
    for level, enough in ((0.95, True), (0.5, False)):
        for truth, several in zip(truths, answers, strict=True):
            ends = [answer.interval(level) for answer in several]
            missed = sum(not low <= truth <= high for low, high in ends)
            most = int(binom.isf(1e-7, runs, 0.05))
            assert missed <= most if enough else missed > 0


def test_what_does_not_fit_is_refused_before_anything_is_paid() -> None:
    """Other columns, no label, another label's classes, a curve of three classes, of no probabilities, of numbers."""
    db, frame = database(rows=300)
    with db:
        held = exact(db)
        two = LogisticRegression(max_iter=0).fit(held[X], held["yes"], spend=Epsilon(9))
        three = ID3().fit(held[X], held["kind"], spend=Epsilon(9))
        line = LinearRegression().fit(held[X], held["n"], spend=Epsilon(9))
        plane = Perceptron().fit(held[X], held["yes"], spend=Epsilon(9))
        pay = Epsilon(1)
        refused("bad-question", two.score, db[["a", "b"]], db["yes"], spend=pay)
        refused("bad-question", two.score, db[X], None, spend=pay)
        refused("bad-question", two.score, db[X], frame["yes"], spend=pay)
        refused("bad-question", two.score, frame[X], db["yes"], spend=pay)
        refused("bad-question", two.score, db[X], held["yes"], spend=pay)
        refused("bad-question", two.score, frame[X], frame["yes"], spend=pay)
        refused("bad-question", two.confusion, frame[X], frame["yes"], spend=pay)
        refused("wrong-kind", two.score, db[X], db["kind"], spend=pay)
        refused("wrong-kind", two.score, db[X], db["n"], spend=pay)
        refused("wrong-kind", three.roc, db[X], db["kind"], spend=pay)
        refused("wrong-kind", three.calibration, db[X], db["kind"], spend=pay)
        refused("wrong-kind", plane.calibration, db[X], db["yes"], spend=pay)
        refused("spend-missing", two.score, db[X], db["yes"])
        refused("not-fitted", LogisticRegression().score, db[X], db["yes"], spend=pay)
        refused("not-fitted", evaluate, ID3(), db[X], db["yes"], spend=pay)
        refused("bad-question", evaluate, object(), db[X], db["yes"], spend=pay)
        refused("budget-exceeded", two.score, db[X], db["yes"], spend=Epsilon(950))
        refused("bad-question", line.score, db[X], None, spend=pay)
        assert db.spent.amount == 0


def test_a_rule_and_a_perceptron_have_the_curves_that_suit_them() -> None:
    """A list of rules has a curve of one point between the ends; a perceptron's scores order rows and are no odds."""
    frame = pd.DataFrame({"p": [True, False] * 100, "q": [True, True, False, False] * 50})
    frame["yes"] = frame["p"] & frame["q"]
    declared = {"p": sulq.Bool(), "q": sulq.Bool(), "yes": sulq.Bool()}
    with opened(declared, {name: frame[name].to_numpy() for name in frame}) as db:
        held = exact(db)
        rules = DecisionList().fit(held[["p", "q"]], held["yes"], spend=Epsilon(50))
        curve = rules.roc(held[["p", "q"]], held["yes"], spend=Epsilon(1))
        assert curve.auc.value == 1
        assert len(curve.thresholds) == 2
        plane = Perceptron().fit(held[["p", "q"]], held["yes"], spend=Epsilon(50))
        found = evaluate(plane, held[["p", "q"]], held["yes"], spend=Epsilon(1))
        assert found.calibration is None
        assert found.roc.auc.value > 0.99
