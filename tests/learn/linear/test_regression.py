"""Linear regression: the normal equations without noise, the mean where noise is all, and its price."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import sulq
from sulq import Epsilon, EpsilonDelta, Queries, Rho, SubLinear, Unit, learn
from sulq.answers.oracle import ColumnChoice
from sulq.learn import LinearRegression
from sulq.learn.linear.regression import ridge
from tests.learn.cases import exact, opened, refused
from tests.learn.sq.noisy import Arrays

COLUMNS = {
    "x": sulq.Real(-2, 3),
    "z": sulq.Int(0, 50),
    "city": ["Haifa", "Lod", "Yafo"],
    "b": sulq.Bool(),
    "y": sulq.Real(-10, 10),
    "word": sulq.Text(),
}
NAMES = ["x", "z", "city", "b"]


def rows(n: int, seed: int = 0, noise: float = 0.3) -> dict[str, np.ndarray]:
    """Rows whose y is linear in them, and noise."""
    rng = np.random.default_rng(seed)
    x, z = rng.uniform(-2, 3, n), rng.integers(0, 51, n)
    city, b = rng.choice(["Haifa", "Lod", "Yafo"], n), rng.random(n) < 0.4
    y = 1.5 * x - 0.04 * z + 2 * (city == "Lod") - 1.0 * (city == "Yafo") - 1.0 * b + noise * rng.normal(size=n)
    return {"x": x, "z": z, "city": city, "b": b, "y": np.clip(y, -10, 10), "word": np.full(n, "a")}


def fitted(oracle: object, spend: object, names: list[str] = NAMES, **parameters: object) -> LinearRegression:
    return LinearRegression(**parameters).fit(
        ColumnChoice(tuple(names), oracle), ColumnChoice(("y",), oracle), spend=spend
    )


def normal_equations(data: dict[str, np.ndarray]) -> np.ndarray:
    """The intercept, and the slopes in the order of `coef_`, first labels left out."""
    parts = [np.ones(len(data["y"])), data["x"], data["z"], data["city"] == "Lod", data["city"] == "Yafo", data["b"]]
    matrix = np.stack([part.astype(float) for part in parts], axis=1)
    return np.linalg.solve(matrix.T @ matrix, matrix.T @ data["y"])


@pytest.mark.parametrize("narrow", [True, False])
def test_without_noise_it_solves_the_normal_equations(*, narrow: bool) -> None:
    """The textbook's coefficients, in the columns' own units, up to the ridge that the planned noise calls for."""
    data = rows(20_000)
    with opened(COLUMNS, data) as db:
        plain = exact(db)
        model = LinearRegression(narrow=narrow).fit(plain[NAMES], plain["y"], spend=Epsilon(900))
    truth = normal_equations(data)
    assert model.coef_names_ == ("x", "z", "city=Haifa", "city=Lod", "city=Yafo", "b=False", "b=True")
    found = np.array([model.intercept_, *model.coef_[[0, 1, 3, 4, 6]]])
    assert found == pytest.approx(truth, abs=0.02)
    assert np.array_equal(model.coef_[[2, 5]], [0, 0])  # the first labels have no column
    frame = pd.DataFrame({name: data[name] for name in NAMES})
    assert model.score(frame, data["y"]) == pytest.approx(1 - 0.3**2 / data["y"].var(), abs=2e-3)


def test_it_predicts_as_scikit_learns() -> None:
    """The same predictions on numbers, where windows are the bounds."""
    linear_model = pytest.importorskip("sklearn.linear_model")
    data = rows(20_000, seed=1)
    matrix = np.stack([data["x"], data["z"]], axis=1)
    model = fitted(Arrays(COLUMNS, data), Epsilon(900), ["x", "z"], narrow=False)
    theirs = linear_model.LinearRegression().fit(matrix, data["y"])
    assert model.predict(matrix) == pytest.approx(theirs.predict(matrix), abs=0.05)
    assert model.score(matrix, data["y"]) == pytest.approx(theirs.score(matrix, data["y"]), abs=1e-3)


@pytest.mark.parametrize("spend", [Epsilon(1), Rho(0.05)])
def test_with_noise_it_is_near(spend: object) -> None:
    """20,000 rows at epsilon 1: R^2 within .05 of the best; where noise drowns the rows it says the mean of y."""
    data = rows(20_000, seed=2)
    budget = Rho(1) if isinstance(spend, Rho) else Epsilon(1)
    model = fitted(Arrays(COLUMNS, data, seed=3, budget=budget), spend)
    frame = pd.DataFrame({name: data[name] for name in NAMES})
    best = 1 - 0.3**2 / data["y"].var()
    assert model.score(frame, data["y"]) > best - 0.05
    assert 0 <= spend.exact - model.spent_.exact < 1e-14
    few = rows(50, seed=4)
    model = fitted(Arrays(COLUMNS, few, seed=5, budget=budget), spend)
    assert not model.coef_.any()
    assert abs(model.intercept_) <= 10


def test_a_window_is_found_where_the_rows_are() -> None:
    """Bounds a hundred times too wide cost little: noise is as wide as the window, not as the bounds."""
    data = rows(20_000, seed=6)
    wide = {**COLUMNS, "x": sulq.Real(-200, 300)}
    scores = {}
    for narrow in (True, False):
        model = fitted(Arrays(wide, data, seed=7), Epsilon(1), ["x", "z"], narrow=narrow)
        scores[narrow] = model.score(np.stack([data["x"], data["z"]], axis=1), data["y"])
        low, high = model.windows_[0]
        assert (low, high) == (-200, 300) or (narrow and high - low < 100 and low <= -1 and high >= 2)
    assert scores[True] > 0.5 > scores[False]


def test_facts_of_the_data_are_no_errors_SR6() -> None:
    """No rows, no y at all, a constant column, constant y: a valid model at the full charge, saved and loaded."""
    empty = {name: column[:0] for name, column in rows(1).items()}
    constant = {**rows(2000), "x": np.full(2000, 1.0), "y": np.full(2000, 4.0)}
    missing = rows(60)
    missing = {name: np.array([None if i % 3 == 0 else v for i, v in enumerate(c)]) for name, c in missing.items()}
    gone = {**rows(60), "y": np.full(60, None)}
    frame = pd.DataFrame({name: rows(5)[name] for name in NAMES})
    for data, seed in ((empty, 8), (empty, None), (constant, 8), (missing, 8), (gone, 8)):
        model = fitted(Arrays(COLUMNS, data, seed=seed), Epsilon(1))
        assert np.isfinite([*model.coef_, model.intercept_, *model.windows_.ravel()]).all()
        assert np.abs(model.predict(frame)).max() <= 10
        assert 0 <= 1 - model.spent_.exact < 1e-14
        assert np.array_equal(learn.load(model.to_json()).predict(frame), model.predict(frame))
    assert fitted(Arrays(COLUMNS, constant, seed=9), Epsilon(10)).predict(frame) == pytest.approx(4, abs=0.5)


def test_missing_cells_lie_in_the_middle() -> None:
    """In prediction as in learning; a label that is on no list has no weight."""
    model = fitted(Arrays(COLUMNS, rows(5000)), Epsilon(900), narrow=False)
    frame = pd.DataFrame({"x": [np.nan, 0.5], "z": [25, 25], "city": ["Lod", "Lod"], "b": [True, True]})
    first, second = model.predict(frame)
    assert first == pytest.approx(second)
    assert model.predict(frame.assign(x=99.0))[0] == pytest.approx(model.predict(frame.assign(x=3.0))[0])
    off = model.predict(frame.assign(city="Eilat"))[0]
    assert off == pytest.approx(model.predict(frame.assign(city="Haifa"))[0])


@pytest.mark.parametrize("budget", [Epsilon(77), EpsilonDelta(1, 1e-6), Rho(0.5)])
def test_what_it_spent_is_what_the_ledger_says(budget: object) -> None:
    """A fit that takes all of a budget is not refused its last question by a rounding; then nothing is left."""
    data = rows(300)
    columns = {name: column for name, column in COLUMNS.items() if name != "word"}
    steps: list[tuple[int, int]] = []
    with opened(columns, {name: data[name] for name in columns}, budget) as db:
        data_of = db[NAMES], db["y"]
        model = LinearRegression().fit(*data_of, spend=budget, progress=lambda *at: steps.append(at))
        whole = db.facts.counted(budget).rho if isinstance(budget, EpsilonDelta) else budget.exact
        assert 0 <= whole - model.spent_.exact < 1e-12
        if not isinstance(budget, EpsilonDelta):
            assert db.spent.amount == model.spent_.exact
        refused("budget-exceeded", LinearRegression().fit, *data_of, spend=budget)
    assert steps[0] == (0, 3)


def test_a_sublinear_budget_counts_queries() -> None:
    """One for the rows, two for y, a column's sum each, their products; all of them fit, or nothing is asked."""
    data = rows(500)
    unit = Unit(neighbors="zero_out")
    for queries in (100, 10):
        budget = SubLinear(1, 1e-6, queries=queries)
        with opened(COLUMNS, data, budget, unit=unit) as db:
            if queries == 10:
                refused("budget-exceeded", LinearRegression().fit, db[["x", "z"]], db["y"])
                assert db.spent == Queries(0)
                continue
            model = LinearRegression().fit(db[["x", "z"]], db["y"])
            assert model.spent_ == db.spent
            assert 3 <= model.spent_.queries <= 1 + 2 + 3 + 3 + 6
            assert np.isfinite(model.coef_).all()


def test_bad_parameters_cost_nothing() -> None:
    """Told before the first ask, as is a spend that no sampler holds."""
    with opened(COLUMNS, rows(20), Epsilon(1)) as db:
        refused("bad-parameter", LinearRegression(narrow="yes").fit, db[NAMES], db["y"], spend=Epsilon(1))
        refused("wrong-kind", LinearRegression().fit, db[["x"]], db["b"], spend=Epsilon(1))
        refused("wrong-kind", LinearRegression().fit, db[["x"]], db["city"], spend=Epsilon(1))
        refused("wrong-kind", LinearRegression().fit, db[["word"]], db["y"], spend=Epsilon(1))
        refused("budget-exceeded", LinearRegression().fit, db[NAMES], db["y"], spend=Epsilon(2))
        for tiny in (1e-5, 1.5e-5):
            refused("too-little-noise", LinearRegression().fit, db[NAMES], db["y"], spend=Epsilon(tiny))
        refused("not-fitted", LinearRegression().predict, [[0, 0, "Lod", True]])
        refused("not-fitted", LinearRegression().score, [[0, 0, "Lod", True]], [1])
        assert db.spent.amount == 0


def test_a_pipeline_predicts() -> None:
    """scikit-learn's tools take the fitted model."""
    pipeline = pytest.importorskip("sklearn.pipeline")
    base = pytest.importorskip("sklearn.base")
    data = rows(2000)
    model = fitted(Arrays(COLUMNS, data, seed=1), Epsilon(5), ["x", "z"])
    matrix = np.stack([data["x"], data["z"]], axis=1)
    assert np.array_equal(pipeline.Pipeline([("model", model)]).predict(matrix), model.predict(matrix))
    assert base.is_regressor(model)
    assert base.clone(LinearRegression(narrow=False)).get_params() == {"narrow": False}


def test_the_ridge_is_the_mean_of_a_posterior() -> None:
    """Without noise least squares; with products that are all noise nothing; shorter in between."""
    rng = np.random.default_rng(10)
    half = rng.normal(size=(6, 4))
    matrix, slopes = half.T @ half / 6, np.array([0.5, -0.3, 0.2, 0.1])
    products = matrix @ slopes
    assert ridge(matrix, products, 1e-9, 0.0) == pytest.approx(slopes, abs=1e-5)
    noise = float(np.abs(products).max())
    assert not ridge(matrix, products, 10 * noise, 0.0).any()
    between = ridge(matrix, products, noise / 10, 0.0)
    assert 0 < np.linalg.norm(between) < np.linalg.norm(slopes)
    assert len(ridge(np.zeros((0, 0)), np.zeros(0), 1.0, 0.0)) == 0


def test_the_ridge_of_noise_alone_is_nothing() -> None:
    """Laplace noise is taken for more in at most a hundredth of cases; control: what stands out never is not."""
    rng = np.random.default_rng(11)
    eye, runs = np.eye(5), 2000
    noise = rng.laplace(0, 1 / np.sqrt(2), (runs, 5))
    wrong = sum(ridge(eye, each, 1.0, 0.0).any() for each in noise)
    assert wrong <= 0.01 * runs + 5.2 * np.sqrt(0.01 * runs)
    assert all(ridge(eye, each + 20, 1.0, 0.0).any() for each in noise[:100])


def test_a_summary_is_refused_with_the_ask_that_has_one() -> None:
    """Shrunk coefficients have no honest standard errors; the database's own regression has."""
    with pytest.raises(sulq.errors.QuestionError, match="no honest standard errors") as refusal:
        LinearRegression().summary()
    assert "db.ols" in str(refusal.value.remedy)
