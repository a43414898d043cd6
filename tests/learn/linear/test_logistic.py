"""Logistic regression: the maximum of the likelihood without noise, a useful line at a price, and what it costs."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import sulq
from sulq import Epsilon, EpsilonDelta, Queries, Rho, SubLinear, Unit, learn
from sulq.answers.oracle import ColumnChoice
from sulq.learn import LogisticRegression
from sulq.learn.linear import logistic
from tests.learn.cases import exact, opened, refused
from tests.learn.sq.noisy import Arrays

COLUMNS = {
    "x": sulq.Real(-2, 3),
    "z": sulq.Int(0, 50),
    "city": ["Haifa", "Lod", "Yafo"],
    "ill": sulq.Bool(),
    "level": ["low", "mid", "high"],
    "word": sulq.Text(),
}
NAMES = ["x", "z", "city"]


def rows(n: int, seed: int = 0) -> dict[str, np.ndarray]:
    """Rows whose log-odds are linear: of two classes, and of three."""
    rng = np.random.default_rng(seed)
    x, z, city = rng.uniform(-2, 3, n), rng.integers(0, 51, n), rng.choice(["Haifa", "Lod", "Yafo"], n)
    odds = 1.5 * x - 0.05 * z + 2 * (city == "Lod") - 0.5 + rng.logistic(size=n)
    level = np.where(odds < -1, "low", np.where(odds < 1, "mid", "high"))
    return {"x": x, "z": z, "city": city, "ill": odds > 0, "level": level, "word": np.full(n, "a")}


def table(data: dict[str, np.ndarray], names: list[str] = NAMES) -> pd.DataFrame:
    return pd.DataFrame({name: data[name] for name in names})


def fitted(
    oracle: object, spend: object, label: str = "ill", names: list[str] = NAMES, **parameters: object
) -> LogisticRegression:
    learner = LogisticRegression(**parameters)
    return learner.fit(ColumnChoice(tuple(names), oracle), ColumnChoice((label,), oracle), spend=spend)


def scaled(data: dict[str, np.ndarray]) -> np.ndarray:
    """The columns as the learner sees them: numbers in [-1, 1], labels as indicators."""
    labels = [data["city"] == label for label in ("Haifa", "Lod", "Yafo")]
    return np.stack([(data["x"] - 0.5) / 2.5, (data["z"] - 25) / 25, *labels], axis=1).astype(float)


@pytest.mark.parametrize(("label", "rounds"), [("ill", 8), ("level", 8)])
@pytest.mark.parametrize("C", [1.0, 0.01])
def test_without_noise_it_is_scikit_learns(label: str, rounds: int, C: float) -> None:
    """The same probabilities, of two classes and of three, with the same penalty."""
    linear_model = pytest.importorskip("sklearn.linear_model")
    data = rows(2000)
    matrix = scaled(data)[:, :2]
    model = fitted(Arrays(COLUMNS, data), Epsilon(900), label, ["x", "z"], max_iter=rounds, C=C, narrow=False)
    theirs = linear_model.LogisticRegression(C=C, max_iter=5000).fit(matrix, data[label])
    order = [list(theirs.classes_).index(each) for each in model.classes_.tolist()]
    there = theirs.predict_proba(matrix)[:, order]
    assert model.n_iter_ == rounds
    assert np.abs(model.predict_proba(table(data, ["x", "z"])) - there).max() < 0.01
    other = linear_model.LogisticRegression(C=0.1 * C, max_iter=5000).fit(matrix, data[label])
    if C < 1:  # control: another penalty is told apart
        assert np.abs(other.predict_proba(matrix)[:, order] - there).max() > 0.02


def test_on_a_database_with_categories_it_is_scikit_learns() -> None:
    """In the columns' own units: the log-odds are those of `coef_` and `intercept_`."""
    linear_model = pytest.importorskip("sklearn.linear_model")
    data = rows(3000, seed=1)
    with opened(COLUMNS, data) as db:
        plain = exact(db)
        model = LogisticRegression(max_iter=10, narrow=False).fit(plain[NAMES], plain["ill"], spend=Epsilon(900))
    matrix = scaled(data)
    theirs = linear_model.LogisticRegression(max_iter=5000).fit(matrix, data["ill"])
    frame = table(data)
    assert np.abs(model.predict_proba(frame) - theirs.predict_proba(matrix)).max() < 0.01
    assert model.coef_names_ == ("x", "z", "city=Haifa", "city=Lod", "city=Yafo")
    own = np.hstack([data["x"][:, None], data["z"][:, None], matrix[:, 2:]])
    assert model.decision_function(frame) == pytest.approx(own @ model.coef_[0] + model.intercept_[0])
    assert model.coef_[0][:2] * [2.5, 25] == pytest.approx(theirs.coef_[0][:2], abs=0.05)


def test_without_rounds_it_is_a_discriminant() -> None:
    """Three questions alone, where noise is small: as good as scikit-learn's discriminant."""
    analysis = pytest.importorskip("sklearn.discriminant_analysis")
    data = rows(4000, seed=2)
    frame, matrix = table(data, ["x", "z"]), scaled(data)[:, :2]
    for label in ("ill", "level"):
        model = fitted(Arrays(COLUMNS, data), Epsilon(900), label, ["x", "z"], max_iter=0, narrow=False)
        theirs = analysis.LinearDiscriminantAnalysis().fit(matrix, data[label])
        assert model.n_iter_ == 0
        assert model.score(frame, data[label]) == pytest.approx(theirs.score(matrix, data[label]), abs=0.01)


@pytest.mark.parametrize("spend", [Epsilon(3), Rho(0.3)])
@pytest.mark.parametrize(("label", "near"), [("ill", 0.03), ("level", 0.06)])
def test_with_noise_it_is_near(spend: object, label: str, near: float) -> None:
    """6,000 rows at epsilon 3: nearly the accuracy of the noise-free fit; control: one of noise is far from it."""
    data = rows(6000, seed=3)
    frame = table(data)
    budget = Rho(1) if isinstance(spend, Rho) else spend
    best = fitted(Arrays(COLUMNS, data), Epsilon(900), label, max_iter=2).score(frame, data[label])
    model = fitted(Arrays(COLUMNS, data, seed=4, budget=budget), spend, label)
    assert model.score(frame, data[label]) > best - near
    assert 0 <= spend.exact - model.spent_.exact < 1e-14
    drowned = fitted(Arrays(COLUMNS, rows(20), seed=4, budget=budget), spend, label)
    assert drowned.score(frame, data[label]) < best - near


def test_rounds_are_made_where_noise_allows() -> None:
    """By itself: none for few rows, some for many; asked for, as many."""
    few, many = rows(300), rows(8000)
    assert fitted(Arrays(COLUMNS, few, seed=5), Epsilon(1)).n_iter_ == 0
    assert fitted(Arrays(COLUMNS, many, seed=5), Epsilon(60)).n_iter_ > 0
    oracle = Arrays(COLUMNS, few, seed=5)
    assert fitted(oracle, Epsilon(1), max_iter=2).n_iter_ == 2
    assert len(oracle.asked) == 4 + 2 * 2
    assert len(_asked(few, narrow=False)) == 3 + 2 * 2
    assert sum(spend.exact for _, spend in oracle.asked) == pytest.approx(1, abs=1e-12)


def _asked(data: dict[str, np.ndarray], **parameters: object) -> list[object]:
    oracle = Arrays(COLUMNS, data, seed=5)
    fitted(oracle, Epsilon(1), max_iter=2, **parameters)
    return oracle.asked


def test_a_window_is_found_where_the_rows_are() -> None:
    """Bounds a hundred times too wide: the window mends what they would cost."""
    data = rows(10_000, seed=6)
    wide = {**COLUMNS, "x": sulq.Real(-200, 300)}
    frame = table(data, ["x", "z"])
    scores = {
        narrow: fitted(Arrays(wide, data, seed=7), Epsilon(1), names=["x", "z"], narrow=narrow).score(
            frame, data["ill"]
        )
        for narrow in (True, False)
    }
    assert scores[True] > scores[False] + 0.05


def test_few_rows_far_within_their_bounds_are_seen_by_their_lengths(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tenth of the bounds, a thousand rows: windows would be noise, lengths are not; control: with windows, worse."""
    rng = np.random.default_rng(3)
    names = [f"x{j}" for j in range(5)]
    y = rng.random(1000) < 0.5
    mixed = rng.normal(size=(1000, 5)) @ (np.eye(5) + 0.6) + np.where(y, 1.0, -1.0)[:, None] * [1.5, -1.0, 0, 0.5, 0]
    data = {**{name: mixed[:, j] for j, name in enumerate(names)}, "ill": y}
    columns = {**dict.fromkeys(names, sulq.Real(-30, 30)), "ill": sulq.Bool()}
    frame = pd.DataFrame({name: data[name] for name in names})

    def mean() -> float:
        oracles = [Arrays(columns, data, seed=seed) for seed in range(12)]
        return float(np.mean([fitted(one, Epsilon(2), names=names).score(frame, y) for one in oracles]))

    seen = mean()
    monkeypatch.setattr(logistic, "stands_out", lambda *_: True)
    assert seen > mean() + 0.03


@pytest.mark.parametrize("spend", [1e-4, 1.0, 900.0])
def test_rows_of_no_length_are_learned_from(spend: float) -> None:
    """All in the middle of their bounds: the smallest ball, at any spend; a valid model."""
    data = {**rows(400), "x": np.full(400, 0.5), "z": np.full(400, 25)}
    oracle = Arrays(COLUMNS, data, seed=2)
    model = fitted(oracle, Epsilon(spend), names=["x", "z"])
    assert np.isfinite(model.coef_).all()
    assert 0 <= spend - model.spent_.exact < 1e-12


def test_facts_of_the_data_are_no_errors_SR6() -> None:
    """No rows, one class, a constant column, missing cells: a valid model at the full charge, saved and loaded."""
    frame = table(rows(5))
    empty = {name: column[:0] for name, column in rows(1).items()}
    constant = {**rows(800), "x": np.full(800, 1.0), "city": np.full(800, "Lod")}
    one = {**rows(800), "ill": np.ones(800, bool), "level": np.full(800, "mid")}
    missing = {name: np.array([None if i % 3 == 0 else v for i, v in enumerate(c)]) for name, c in rows(60).items()}
    for data, seed in ((empty, 8), (empty, None), (constant, 8), (one, 8), (missing, 8)):
        for label, rounds in (("ill", None), ("level", None), ("ill", 2)):
            model = fitted(Arrays(COLUMNS, data, seed=seed), Epsilon(1), label, max_iter=rounds)
            fields = (model.coef_, model.intercept_, model.windows_, model.class_count_)
            assert all(np.isfinite(part).all() for part in fields)
            assert model.predict_proba(frame).sum(axis=1) == pytest.approx(1)
            assert 0 <= 1 - model.spent_.exact < 1e-14
            assert np.array_equal(learn.load(model.to_json()).predict_proba(frame), model.predict_proba(frame))
    model = fitted(Arrays(COLUMNS, one, seed=8), Epsilon(10), "level")
    assert set(model.predict(frame)) == {"mid"}


def test_categories_alone_and_numbers_alone_will_do() -> None:
    """Neither is needed; keys have a weight for each label."""
    data = rows(5000, seed=9)
    for names in (["city"], ["x"]):
        model = fitted(Arrays(COLUMNS, data, seed=9), Epsilon(5), names=names)
        assert model.score(table(data, names), data["ill"]) > data["ill"].mean() - 0.5 + 0.55
    assert model.windows_.shape == (1, 2)


@pytest.mark.parametrize("budget", [Epsilon(77), EpsilonDelta(1, 1e-6), Rho(0.5)])
def test_what_it_spent_is_what_the_ledger_says(budget: object) -> None:
    """All of a budget, and not a hair more; then nothing is left."""
    columns = {name: column for name, column in COLUMNS.items() if name != "word"}
    data = rows(300)
    steps: list[tuple[int, int]] = []
    with opened(columns, {name: data[name] for name in columns}, budget) as db:
        own = db[NAMES], db["level"]
        model = LogisticRegression(max_iter=1).fit(*own, spend=budget, progress=lambda *at: steps.append(at))
        whole = db.facts.counted(budget).rho if isinstance(budget, EpsilonDelta) else budget.exact
        assert 0 <= whole - model.spent_.exact < 1e-12
        if not isinstance(budget, EpsilonDelta):
            assert db.spent.amount == model.spent_.exact
        refused("budget-exceeded", LogisticRegression().fit, *own, spend=budget)
    assert steps[0] == (0, 6)


def test_a_sublinear_budget_counts_queries() -> None:
    """All that may be asked fits, or nothing is asked."""
    data = rows(500)
    for queries in (200, 20):
        budget = SubLinear(1, 1e-6, queries=queries)
        with opened(COLUMNS, data, budget, unit=Unit(neighbors="zero_out")) as db:
            if queries == 20:
                refused("budget-exceeded", LogisticRegression().fit, db[["x", "z"]], db["ill"])
                assert db.spent == Queries(0)
                continue
            model = LogisticRegression().fit(db[["x", "z"]], db["ill"])
            assert model.spent_ == db.spent
            assert np.isfinite(model.coef_).all()


def test_bad_parameters_cost_nothing() -> None:
    """Told before the first ask, as is a spend of which a part is too small for any sampler."""
    with opened(COLUMNS, rows(20), Epsilon(1)) as db:
        own = db[NAMES], db["ill"]
        for wrong in ({"max_iter": -1}, {"max_iter": 201}, {"max_iter": 1.5}, {"C": 0}, {"C": "x"}, {"narrow": 1}):
            refused("bad-parameter", LogisticRegression(**wrong).fit, *own, spend=Epsilon(1))
        refused("wrong-kind", LogisticRegression().fit, db[["city"]], db["x"], spend=Epsilon(1))
        refused("wrong-kind", LogisticRegression().fit, db[["word"]], db["ill"], spend=Epsilon(1))
        refused("budget-exceeded", LogisticRegression().fit, *own, spend=Epsilon(2))
        for tiny in (1e-5, 1.5e-5):
            refused("too-little-noise", LogisticRegression(max_iter=3).fit, *own, spend=Epsilon(tiny))
            refused("too-little-noise", LogisticRegression().fit, *own, spend=Epsilon(tiny))
        refused("not-fitted", LogisticRegression().predict, [[0, 0, "Lod"]])
        assert db.spent.amount == 0


def test_a_pipeline_predicts() -> None:
    """scikit-learn's tools take the fitted model; arrays and frames give the same."""
    pipeline = pytest.importorskip("sklearn.pipeline")
    base = pytest.importorskip("sklearn.base")
    data = rows(2000)
    model = fitted(Arrays(COLUMNS, data, seed=1), Epsilon(5), "level", ["x", "z"])
    matrix = np.stack([data["x"], data["z"]], axis=1)
    assert np.array_equal(pipeline.Pipeline([("model", model)]).predict(matrix), model.predict(table(data)))
    assert base.is_classifier(model)
    assert base.clone(LogisticRegression(C=3)).get_params() == {"max_iter": None, "C": 3, "narrow": True}


def test_a_summary_is_refused_with_the_ask_that_has_one() -> None:
    """Shrunk coefficients have no honest standard errors; the database's own regression has."""
    with pytest.raises(sulq.errors.QuestionError, match="no honest standard errors") as refusal:
        LogisticRegression().summary()
    assert "db.logit" in str(refusal.value.remedy)
