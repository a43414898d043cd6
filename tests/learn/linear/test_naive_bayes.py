"""Naive Bayes: the textbook's probabilities without noise, useful ones with it, and their price."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import sulq
from sulq import Epsilon, EpsilonDelta, Queries, Rho, SubLinear, Unit, learn
from sulq.answers.oracle import ColumnChoice
from sulq.learn import NaiveBayes
from tests.learn.cases import exact, opened, refused
from tests.learn.sq.noisy import Arrays

COLUMNS = {
    "x": sulq.Real(-8, 8),
    "z": sulq.Real(-8, 8),
    "city": ["Haifa", "Lod", "Yafo"],
    "b": sulq.Bool(),
    "y": ["no", "perhaps", "yes"],
    "word": sulq.Text(),
}
NAMES = ["x", "z", "city", "b"]


def rows(n: int, seed: int = 0) -> dict[str, np.ndarray]:
    """Three classes whose numbers are normal and whose labels are independent, given the class."""
    rng = np.random.default_rng(seed)
    y = rng.choice(3, n, p=[0.5, 0.3, 0.2])
    x = rng.normal(np.array([-2.0, 0.0, 2.0])[y], np.array([1.0, 1.5, 1.0])[y])
    z = rng.normal(np.array([1.0, -1.0, 1.0])[y], 1.2)
    chances = np.array([[0.6, 0.3, 0.1], [0.2, 0.6, 0.2], [0.1, 0.2, 0.7]])
    city = np.array(COLUMNS["city"])[(rng.random(n)[:, None] > np.cumsum(chances[y], axis=1)[:, :2]).sum(axis=1)]
    b = rng.random(n) < np.array([0.2, 0.5, 0.8])[y]
    values = {"x": x, "z": z, "city": city, "b": b, "y": np.array(COLUMNS["y"])[y], "word": np.full(n, "a")}
    return {name: np.clip(column, -8, 8) if name in "xz" else column for name, column in values.items()}


def table(data: dict[str, np.ndarray], names: list[str] = NAMES) -> pd.DataFrame:
    return pd.DataFrame({name: data[name] for name in names})


def fitted(oracle: object, spend: object, names: list[str] = NAMES, **parameters: object) -> NaiveBayes:
    return NaiveBayes(**parameters).fit(ColumnChoice(tuple(names), oracle), ColumnChoice(("y",), oracle), spend=spend)


@pytest.mark.parametrize("alpha", [0.5, 5.0])
def test_without_noise_categories_are_the_textbooks(alpha: float) -> None:
    """(count + alpha)/(size + alpha labels), and the same probabilities as scikit-learn's."""
    naive_bayes = pytest.importorskip("sklearn.naive_bayes")
    data = rows(5000)
    names = ["city", "b"]
    with opened(COLUMNS, data) as db:
        plain = exact(db)
        model = NaiveBayes(alpha=alpha).fit(plain[names], plain["y"], spend=Epsilon(900))
    counts = pd.crosstab(data["y"], data["city"]).loc[COLUMNS["y"], COLUMNS["city"]].to_numpy()
    chance = (counts + alpha) / (counts.sum(axis=1, keepdims=True) + 3 * alpha)
    assert np.exp(model.feature_log_prob_[0]) == pytest.approx(chance, abs=1e-3)
    assert model.class_count_ == pytest.approx([(data["y"] == label).sum() for label in COLUMNS["y"]], abs=0.1)
    codes = np.stack([np.searchsorted(COLUMNS["city"], data["city"]), data["b"]], axis=1)
    theirs = naive_bayes.CategoricalNB(alpha=alpha).fit(codes, data["y"])
    there = theirs.predict_proba(codes)
    assert list(theirs.classes_) == model.classes_.tolist()
    assert model.predict_proba(table(data, names)) == pytest.approx(there, abs=2e-3)


def test_without_noise_numbers_are_near_the_normal_curves() -> None:
    """Means and variances of each class, and the accuracy of scikit-learn's normal model."""
    naive_bayes = pytest.importorskip("sklearn.naive_bayes")
    data = rows(5000, seed=1)
    matrix = np.stack([data["x"], data["z"]], axis=1)
    model = fitted(Arrays(COLUMNS, data), Epsilon(900), ["x", "z"])
    theirs = naive_bayes.GaussianNB().fit(matrix, data["y"])
    assert model.theta_ == pytest.approx(theirs.theta_, abs=0.05)
    assert model.var_ == pytest.approx(theirs.var_, rel=0.1)
    assert model.score(matrix, data["y"]) == pytest.approx(theirs.score(matrix, data["y"]), abs=0.01)


def test_another_shape_is_learned_where_noise_allows() -> None:
    """A class on both sides of another: a normal curve of each cannot tell, counts can."""
    rng = np.random.default_rng(2)
    y = rng.random(20_000) < 0.5
    x = np.where(y, rng.normal(0, 0.5, 20_000), rng.choice([-3, 3], 20_000) + rng.normal(0, 0.5, 20_000))
    x = np.where(rng.random(20_000) < 0.5, x, x * 1.4)
    data = {"x": x, "y": np.where(y, "yes", "no")}
    columns = {"x": sulq.Real(-8, 8), "y": ["no", "yes"]}
    assert fitted(Arrays(columns, data, seed=3), Epsilon(1), ["x"]).score(x[:, None], data["y"]) > 0.98


@pytest.mark.parametrize("spend", [Epsilon(1), Rho(0.05)])
def test_with_noise_it_is_near(spend: object) -> None:
    """5,000 rows: accuracy within .03 of the noise-free one; control: with 20 rows it is not."""
    data = rows(5000, seed=4)
    budget = Rho(1) if isinstance(spend, Rho) else Epsilon(1)
    best = fitted(Arrays(COLUMNS, data), Epsilon(900)).score(table(data), data["y"])
    model = fitted(Arrays(COLUMNS, data, seed=5, budget=budget), spend)
    assert model.score(table(data), data["y"]) > best - 0.03
    assert 0 <= spend.exact - model.spent_.exact < 1e-14
    assert fitted(Arrays(COLUMNS, rows(20), seed=5, budget=budget), spend).score(table(data), data["y"]) < best - 0.03


def test_intervals_are_as_many_as_the_noise_allows() -> None:
    """Few where it is strong, many where not; a number of them may be given."""
    sizes = {}
    for n, spend in ((200, 0.1), (5000, 1), (5000, 900)):
        model = fitted(Arrays(COLUMNS, rows(n), seed=6), Epsilon(spend))
        sizes[n, spend] = model.feature_log_prob_[0].shape[1]
    assert sizes == {(200, 0.1): 8, (5000, 1): 16, (5000, 900): 32}
    assert fitted(Arrays(COLUMNS, rows(50), seed=6), Epsilon(1), bins=5).feature_log_prob_[0].shape == (3, 5)


def test_the_noise_of_a_cell_does_not_grow_with_cells_or_classes_SR13() -> None:
    """A row lies in one cell of each column: scale q/epsilon for q of them, whatever their cells."""
    narrow = {"x": sulq.Int(0, 1), "z": sulq.Int(0, 1), "y": ["a", "b"]}
    wide = {"x": sulq.Int(0, 99), "z": sulq.Int(0, 99), "y": [str(i) for i in range(20)]}
    found = []
    for columns in (narrow, wide):
        oracle = Arrays(columns, {"x": [0], "z": [1], "y": [columns["y"][0]]}, seed=7)
        kept: list[object] = []
        oracle.ask = lambda question, ask=oracle.ask, kept=kept, **more: (kept.append(ask(question, **more)), kept[-1])[
            1
        ]
        fitted(oracle, Epsilon(1), ["x", "z"], bins=100)
        found.append([float(answer.released.deviations()[0]) for answer in kept[1].answers])
    assert found[0] == pytest.approx(found[1], rel=1e-3)
    assert found[0] == pytest.approx([np.sqrt(2) * 2 / 0.9] * 2, rel=0.01)


def test_facts_of_the_data_are_no_errors_SR6() -> None:
    """No rows, one class, constant columns, missing cells: a valid model at the full charge, saved and loaded."""
    frame = table(rows(5))
    empty = {name: column[:0] for name, column in rows(1).items()}
    constant = {**rows(500), "x": np.full(500, 1.0), "city": np.full(500, "Lod")}
    one = {**rows(500), "y": np.full(500, "perhaps")}
    missing = {name: np.array([None if i % 3 == 0 else v for i, v in enumerate(c)]) for name, c in rows(60).items()}
    for data, seed in ((empty, 8), (empty, None), (constant, 8), (one, 8), (missing, 8)):
        oracle = Arrays(COLUMNS, data, seed=seed)
        model = fitted(oracle, Epsilon(1))
        assert len(oracle.asked) == 2
        fields = (model.theta_, model.var_, model.class_prior_, *model.feature_log_prob_)
        assert all(np.isfinite(part).all() for part in fields)
        assert model.predict_proba(frame).sum(axis=1) == pytest.approx(1)
        assert 0 <= 1 - model.spent_.exact < 1e-14
        assert np.array_equal(learn.load(model.to_json()).predict_proba(frame), model.predict_proba(frame))
    assert set(fitted(Arrays(COLUMNS, one, seed=8), Epsilon(5)).predict(frame)) == {"perhaps"}


def test_missing_cells_say_nothing() -> None:
    """A row that misses all of them gets the classes' sizes; one far outside counts as at the bounds."""
    model = fitted(Arrays(COLUMNS, rows(3000)), Epsilon(900))
    blank = pd.DataFrame({"x": [np.nan], "z": [np.nan], "city": [None], "b": [np.nan]})
    assert model.predict_proba(blank)[0] == pytest.approx(model.class_prior_)
    frame = table(rows(3))
    assert model.predict_proba(frame.assign(x=1e6)) == pytest.approx(model.predict_proba(frame.assign(x=8.0)))


@pytest.mark.parametrize("budget", [Epsilon(77), EpsilonDelta(1, 1e-6), Rho(0.5)])
def test_what_it_spent_is_what_the_ledger_says(budget: object) -> None:
    """All of a budget, in two steps; then nothing is left."""
    columns = {name: column for name, column in COLUMNS.items() if name != "word"}
    data = rows(300)
    steps: list[tuple[int, int]] = []
    with opened(columns, {name: data[name] for name in columns}, budget) as db:
        own = db[NAMES], db["y"]
        model = NaiveBayes().fit(*own, spend=budget, progress=lambda *at: steps.append(at))
        whole = db.facts.counted(budget).rho if isinstance(budget, EpsilonDelta) else budget.exact
        assert 0 <= whole - model.spent_.exact < 1e-12
        if not isinstance(budget, EpsilonDelta):
            assert db.spent.amount == model.spent_.exact
        refused("budget-exceeded", NaiveBayes().fit, *own, spend=budget)
    assert steps == [(0, 2), (1, 2), (2, 2)]


def test_a_sublinear_budget_counts_queries() -> None:
    """A query for each class, and for each cell of each class."""
    data = rows(300)
    budget = SubLinear(1, 1e-6, queries=3 + 9 + 6)
    with opened(COLUMNS, data, budget, unit=Unit(neighbors="zero_out")) as db:
        model = NaiveBayes().fit(db[["city", "b"]], db["y"])
        assert model.spent_ == db.spent == Queries(18)
        refused("budget-exceeded", NaiveBayes().fit, db[["city", "b"]], db["y"])
        assert db.spent == Queries(18)


def test_bad_parameters_cost_nothing() -> None:
    """Told before the first ask."""
    with opened(COLUMNS, rows(20), Epsilon(1)) as db:
        for wrong in ({"alpha": 0}, {"alpha": "x"}, {"alpha": True}, {"bins": 1}, {"bins": 1001}, {"bins": 2.5}):
            refused("bad-parameter", NaiveBayes(**wrong).fit, db[NAMES], db["y"], spend=Epsilon(1))
        refused("wrong-kind", NaiveBayes().fit, db[["city"]], db["x"], spend=Epsilon(1))
        refused("wrong-kind", NaiveBayes().fit, db[["word"]], db["y"], spend=Epsilon(1))
        refused("budget-exceeded", NaiveBayes().fit, db[NAMES], db["y"], spend=Epsilon(2))
        refused("not-fitted", NaiveBayes().predict, [[0, 0, "Lod", True]])
        assert db.spent.amount == 0


def test_a_pipeline_predicts() -> None:
    """scikit-learn's tools take the fitted model; arrays and frames give the same."""
    pipeline = pytest.importorskip("sklearn.pipeline")
    base = pytest.importorskip("sklearn.base")
    data = rows(500)
    model = fitted(Arrays(COLUMNS, data, seed=1), Epsilon(5), ["x", "z"])
    matrix = np.stack([data["x"], data["z"]], axis=1)
    assert np.array_equal(pipeline.Pipeline([("model", model)]).predict(matrix), model.predict(table(data)))
    assert base.clone(NaiveBayes(bins=4)).get_params() == {"alpha": 0.5, "bins": 4}
