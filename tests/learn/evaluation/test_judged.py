"""What every fitted learner has: a prediction to ask by, free scores of ordinary rows, paid scores of private ones."""

from __future__ import annotations

import numpy as np
import pytest

import sulq
from sulq import Epsilon, Unit
from sulq.learn import ID3, KMeans, LinearRegression, LogisticRegression, StandardScaler
from sulq.learn.evaluation.judged import JudgedClassifier
from tests.learn.cases import exact, opened, refused
from tests.learn.evaluation.cases import rows_of

X = ["a", "b", "c"]


def people(rows: int = 800) -> tuple[sulq.Database, object]:
    frame, declared, _ = rows_of(Unit(), rows)
    return opened(declared, {name: frame[name].to_numpy() for name in declared}), frame


def test_a_prediction_is_a_key_or_a_number_of_any_ask() -> None:
    """Rows counted by the class, or cluster, they are told to have; the mean of the number they are told to have."""
    db, frame = people()
    with db:
        held = exact(db)
        tree = ID3().fit(held[X], held["kind"], spend=Epsilon(50))
        found = held.count(by=tree.prediction_row(), spend=Epsilon(1)).value
        labels, sizes = np.unique(tree.predict(frame[X]), return_counts=True)
        assert found == dict(zip(labels.tolist(), sizes.tolist(), strict=True))
        line = LinearRegression().fit(held[X], held["n"], spend=Epsilon(50))
        mean = held.mean(line.prediction_row(), spend=Epsilon(1)).value
        assert mean == pytest.approx(line.predict(frame[X]).mean(), abs=1e-3)
        groups = KMeans(3).fit(held[["a", "b"]], spend=Epsilon(50))
        counted = held.count(by=groups.prediction_row(), spend=Epsilon(1)).value
        assert [counted[i] for i in range(3)] == np.bincount(groups.predict(frame[["a", "b"]]), minlength=3).tolist()


def test_after_a_search_for_bounds_rows_are_clipped_as_the_fit_clipped_them() -> None:
    """By the score, and by the row function itself."""
    rng = np.random.default_rng(2)
    income = np.round(np.exp(rng.normal(9, 1, 3000))).astype(int)
    data = {"income": income, "rich": income > 12_000}
    with opened({"income": sulq.Int(0, 10**9), "rich": sulq.Bool()}, data) as db:
        held = exact(db)
        model = ID3(max_depth=3).fit(held[["income"]], held["rich"], spend=Epsilon(90), bounds="auto")
        told = model.score(income[:, None], data["rich"])
        assert model.score(held[["income"]], held["rich"], spend=Epsilon(1)).value == pytest.approx(told)
        said = model.predict(income[:, None])
        counted = held.count(by=model.prediction_row(), spend=Epsilon(1)).value
        assert counted == {label: int((said == label).sum()) for label in counted}


def test_ordinary_rows_cost_nothing_and_private_ones_do() -> None:
    """The kind of X says which; a spend beside ordinary rows is a mistake, and is said to be."""
    db, frame = people()
    with db:
        model = LogisticRegression(max_iter=0).fit(db[X], db["yes"], spend=Epsilon(1))
        spent = db.spent
        assert isinstance(model.score(frame[X], frame["yes"]), float)
        assert db.spent == spent
        answer = model.score(db[X], db["yes"], spend=Epsilon(1))
        low, high = answer.interval()
        assert 0 <= low <= float(answer.value) <= high <= 1
        assert answer.spent == Epsilon(1)
        assert float(db.spent.amount) == pytest.approx(2)
        refused("bad-question", model.score, frame[X], frame["yes"], spend=Epsilon(1))


def test_what_predicts_nothing_says_so() -> None:
    """A scaler, and a model before its fit."""
    db, _ = people(50)
    with db:
        scaler = StandardScaler(by="bounds").fit(db[["a"]])
        refused("wrong-kind", scaler.prediction_row)
        refused("not-fitted", ID3().prediction_row)
        refused("not-fitted", ID3().learned_columns)
        refused("not-fitted", ID3().confusion, db[X], db["yes"], spend=Epsilon(1))


def test_every_classifier_has_the_tables_and_curves() -> None:
    """By one class, whatever it learns by."""
    classifiers = [each for each in sulq.learn.LEARNERS if each.kind == "classifier"]
    assert classifiers
    assert all(issubclass(each, JudgedClassifier) for each in classifiers)
