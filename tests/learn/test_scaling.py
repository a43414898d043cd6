"""Columns brought to one scale: handles and ordinary tables alike, alone and as a step of scikit-learn's Pipeline."""

from __future__ import annotations

import importlib

import numpy as np
import pandas as pd
import pytest

import sulq
from sulq import Epsilon, EpsilonDelta, Rho
from sulq.errors import QuestionError
from sulq.language.privacy import Budget, Loss
from sulq.learn import ID3, PCA, KMeans, LogisticRegression, StandardScaler, cross_validate, evaluate, load
from tests.learn.cases import exact, opened, refused

RNG = np.random.default_rng(12)
N = 4000
A, B = RNG.normal(30, 4, N), RNG.normal(5000, 900, N)
DATA = {
    "a": np.clip(A, 0, 100),
    "b": np.clip(B, 0, 20_000),
    "c": np.where(A + B / 225 > 52, "x", "y"),
    "yes": A + RNG.normal(0, 3, N) > 31,
    "none": np.zeros(N, dtype=int),
}
COLUMNS = {
    "a": sulq.Real(0, 100),
    "b": sulq.Real(0, 20_000),
    "c": ["x", "y"],
    "yes": sulq.Bool(),
    "none": sulq.Int(0, 9),
}
X = ["a", "b", "c"]
FRAME = pd.DataFrame(DATA)


def test_without_noise_these_are_mean_and_deviation() -> None:
    """Of numbers; a category stays as it is, in handles and in frames."""
    with opened(COLUMNS, DATA) as db:
        held = exact(db)
        scaler = StandardScaler().fit(held[X], spend=Epsilon(50))
        assert scaler.mean_ == pytest.approx([FRAME["a"].mean(), FRAME["b"].mean(), 0], rel=1e-3)
        assert scaler.scale_ == pytest.approx([FRAME["a"].std(), FRAME["b"].std(), 1], rel=1e-3)
        assert scaler.var_ == pytest.approx(scaler.scale_**2)
        columns = scaler.transform(held[X])
        assert columns.domain[2] == sulq.Category(["x", "y"])
        assert columns.domain[0].lo == pytest.approx((0 - scaler.mean_[0]) / scaler.scale_[0], rel=1e-3)
        mean = columns.oracle.ask(sulq.Sums((sulq.col("a"),)), spend=Epsilon(50)).value / N
    assert mean == pytest.approx(0, abs=1e-2)
    ordinary = scaler.transform(FRAME[X])
    assert isinstance(ordinary, pd.DataFrame)
    assert ordinary["a"].mean() == pytest.approx(0, abs=1e-2)
    assert ordinary["b"].std() == pytest.approx(1, rel=1e-2)
    assert ordinary["c"].tolist() == FRAME["c"].tolist()
    assert np.array_equal(scaler.transform(FRAME[X].to_numpy())[:, 0].astype(float), ordinary["a"])


def test_missing_cells_stay_missing() -> None:
    """In an ordinary table as in a handle; the way back is there for numbers."""
    with opened(COLUMNS, DATA) as db:
        scaler = StandardScaler(by="bounds").fit(db[["a", "b"]])
        assert np.isnan(scaler.transform(np.array([[np.nan, 1.0]]))[0, 0])
        back = scaler.inverse_transform(scaler.transform(np.array([[3.0, 4.0]])))
        assert back == pytest.approx(np.array([[3.0, 4.0]]))
        refused("bad-table", scaler.inverse_transform, [[1.0]])
        refused("bad-table", scaler.transform, FRAME[["a"]])


def test_declared_bounds_cost_nothing() -> None:
    """The middle and the deviation of an even spread; a spend beside them is refused, and nothing is asked."""
    with opened(COLUMNS, DATA) as db:
        scaler = StandardScaler(by="bounds").fit(db[X])
        assert scaler.mean_.tolist() == [50, 10_000, 0]
        assert scaler.scale_ == pytest.approx([100 / 12**0.5, 20_000 / 12**0.5, 1])
        assert (float(scaler.spent_.amount), float(db.spent.amount), db.transcript()) == (0, 0, [])
        refused("bad-parameter", StandardScaler(by="bounds").fit, db[X], spend=Epsilon(1))
        refused("spend-missing", StandardScaler().fit, db[X])
        refused("bad-parameter", StandardScaler(by="range").fit, db[X], spend=Epsilon(1))
        refused("wrong-kind", StandardScaler().fit, db[["c", "yes"]], spend=Epsilon(1))
        refused("bad-question", StandardScaler(by="bounds").fit, FRAME[X])
        assert db.spent.amount == 0
        again = load(scaler.to_json())
        assert again.transform(FRAME[X]).equals(scaler.transform(FRAME[X]))


@pytest.mark.parametrize(
    ("budget", "spend"),
    [(Epsilon(9), Epsilon(1)), (Rho(9), Rho(0.1)), (EpsilonDelta(9, 1e-6), EpsilonDelta(1, 1e-6))],
    ids=str,
)
def test_moments_are_one_debit(budget: Budget, spend: Loss) -> None:
    """Near the truth with noise; a constant column and one drowned by noise have a deviation all the same."""
    with opened(COLUMNS, DATA, budget) as db:
        scaler = StandardScaler().fit(db[["a", "b", "none"]], spend=spend)
        assert len(db.transcript()) == 1
        assert scaler.mean_[:2] == pytest.approx([30, 5000], rel=0.2)
        assert (scaler.scale_ > 0).all()
    with opened(COLUMNS, {name: values[:3] for name, values in DATA.items()}, budget) as db:
        few = StandardScaler().fit(
            db[["a", "b"]], spend=type(spend)(0.01) if not isinstance(spend, EpsilonDelta) else spend
        )
        assert np.isfinite(few.scale_).all()
        assert (few.scale_ > 0).all()


def test_scaled_handles_go_into_any_fit_score_and_fold() -> None:
    """Components of scaled columns are those of the correlation matrix; clusters, scores and folds take them too."""
    with opened(COLUMNS | {"pid": sulq.Text()}, DATA | {"pid": np.arange(N).astype(str)}, unit=sulq.Unit("pid")) as db:
        held = exact(db)
        scaled = StandardScaler().fit(held[["a", "b"]], spend=Epsilon(50)).transform(held[["a", "b"]])
        parts = PCA(2).fit(scaled, spend=Epsilon(100))
        assert np.abs(parts.components_) == pytest.approx(np.full((2, 2), 0.5**0.5), abs=0.2)
        own = PCA(2).fit(held[["a", "b"]], spend=Epsilon(100))
        assert np.abs(own.components_[0]) == pytest.approx([0, 1], abs=0.02)  # control: unscaled, one column is all
        assert 0 < parts.score(scaled, spend=Epsilon(1)).value <= 1
        groups = KMeans(2).fit(scaled, spend=Epsilon(50))
        assert np.abs(groups.cluster_centers_).max() < 5
        found = cross_validate(LogisticRegression(max_iter=0), scaled, held["yes"], folds=2, spend=Epsilon(20))
        assert found.score.value > 0.6


def test_handles_of_other_columns_are_refused() -> None:
    """It scales the columns that it was fitted to, declared as they were."""
    with opened(COLUMNS, DATA) as db:
        scaler = StandardScaler(by="bounds").fit(db[["a", "b"]])
        refused("bad-question", scaler.transform, db[["b", "a"]])
        refused("not-fitted", StandardScaler().transform, db[["a"]])
    with opened(COLUMNS | {"b": sulq.Int(0, 9)}, DATA | {"b": DATA["none"]}) as db:
        refused("wrong-kind", scaler.transform, db[["a", "b"]])


def pipeline(*steps: object) -> object:
    """A Pipeline of scikit-learn."""
    made = pytest.importorskip("sklearn.pipeline")
    return made.Pipeline([(f"step{i}", step) for i, step in enumerate(steps)])


def test_a_pipeline_of_ours_fits_predicts_and_is_judged() -> None:
    """Each step with its own spend, as scikit-learn hands it on; prediction on ordinary tables goes through both."""
    with opened(COLUMNS, DATA) as db:
        held = exact(db)
        steps = pipeline(StandardScaler(), LogisticRegression())
        steps.fit(held[["a", "b"]], held["yes"], step0__spend=Epsilon(50), step1__spend=Epsilon(50))
        told = steps.score(FRAME[["a", "b"]], FRAME["yes"])
        assert told > 0.6
        found = evaluate(steps, held[["a", "b"]], held["yes"], spend=Epsilon(1))
        assert found.score.value == pytest.approx(told, abs=2e-3)
        free = pipeline(StandardScaler(by="bounds"), ID3(max_depth=2))
        free.fit(held[["a", "b"]], held["yes"], step1__spend=Epsilon(20))
        assert free.predict(FRAME[["a", "b"]]).shape == (N,)
        refused("spend-missing", steps.score, held[["a", "b"]], held["yes"])
        refused("bad-question", cross_validate, steps, db[["a", "b"]], db["yes"], spend=Epsilon(1))


FOREIGN = {
    "a scaler": lambda X, _: module("preprocessing").StandardScaler().fit(X),
    "a scaler in a Pipeline": lambda X, y: pipeline(module("preprocessing").MinMaxScaler(), ID3()).fit(X, y),
    "an estimator after our scaler": lambda X, y: pipeline(
        StandardScaler(by="bounds"), module("linear_model").LogisticRegression()
    ).fit(X, y),
    "cross_val_score": lambda X, y: module("model_selection").cross_val_score(ID3(), X, y),
    "cross_validate": lambda X, y: module("model_selection").cross_validate(ID3(), X, y),
    "GridSearchCV": lambda X, y: module("model_selection").GridSearchCV(ID3(), {"max_depth": [1, 2]}).fit(X, y),
    "train_test_split": lambda X, y: module("model_selection").train_test_split(X, y),
    "a metric": lambda _, y: module("metrics").accuracy_score(y, y),
    "numpy": lambda X, _: np.asarray(X),
}


def module(name: str) -> object:
    """A part of scikit-learn."""
    pytest.importorskip("sklearn")
    return importlib.import_module(f"sklearn.{name}")


@pytest.mark.parametrize("name", FOREIGN)
def test_what_would_see_rows_is_refused_and_says_what_to_use(name: str) -> None:
    """Transformers, searches, splits and metrics of scikit-learn get no array, and nothing is spent."""
    with opened(COLUMNS, DATA) as db:
        with pytest.raises(QuestionError) as refusal:
            FOREIGN[name](db[["a", "b"]], db["yes"])
        assert refusal.value.code == "raw-rows"
        for ours in ("sulq.learn.StandardScaler", "sulq.learn.cross_validate", "sulq.learn.evaluate"):
            assert ours in refusal.value.remedy
        assert db.spent.amount == 0
