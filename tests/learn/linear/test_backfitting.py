"""Linear regression by steps: least squares without noise, far better than products where these drown, mean below."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import sulq
from sulq import Epsilon
from sulq.learn import LinearRegression
from sulq.learn.linear import backfitting, regression
from sulq.learn.linear.windows import BINS, Window
from tests.learn.cases import exact, opened
from tests.learn.linear.test_regression import COLUMNS as MIXED
from tests.learn.linear.test_regression import NAMES as MIXED_NAMES
from tests.learn.linear.test_regression import normal_equations
from tests.learn.linear.test_regression import rows as mixed
from tests.learn.noised import Noised, Replayed, columns

NAMES = [f"x{j}" for j in range(8)] + ["kind"]
COLUMNS = {name: sulq.Real(-5, 5) for name in NAMES[:-1]} | {"kind": list("abcdef"), "y": sulq.Real(-20, 20)}


def rows(seed: int, n: int = 4000) -> dict[str, np.ndarray]:
    """Numbers that go together, a key of six labels, and y linear in them."""
    rng = np.random.default_rng(seed)
    common = rng.normal(size=(n, 1))
    x = np.clip(0.7 * common + 0.7 * rng.normal(size=(n, 8)), -5, 5)
    kind = rng.integers(0, 6, n)
    y = x @ np.array([1.5, -0.5, 1, 0, 0, 0.5, 0, 1]) + kind - 2.5 + rng.normal(size=n)
    return {f"x{j}": x[:, j] for j in range(8)} | {"kind": np.array(list("abcdef"))[kind], "y": np.clip(y, -20, 20)}


def scored(epsilon: float) -> float:
    """The mean R^2 on other rows of fits with seeded noise."""
    held, found = rows(99), []
    for seed in range(3):
        with opened(COLUMNS, rows(seed)) as db:
            oracle = Noised(db, seed)
            model = LinearRegression().fit(columns(oracle, NAMES), columns(oracle, ["y"]), spend=Epsilon(epsilon))
        found.append(model.score(pd.DataFrame(held), held["y"]))
    return float(np.mean(found))


def test_steps_explain_where_products_drown(monkeypatch: pytest.MonkeyPatch) -> None:
    """9 columns and 4,000 rows at epsilon .5: R^2 above .65 by steps; control: by products, as before, below .4."""
    assert scored(0.5) > 0.65
    monkeypatch.setattr(regression, "CLEAR", 1e9)
    assert scored(0.5) < 0.4


def test_without_noise_steps_lead_to_the_normal_equations(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many rounds, no residual clipped: the textbook's coefficients, first labels left out; one is not enough."""
    monkeypatch.setattr(regression, "CLEAR", 0.0)
    monkeypatch.setattr(backfitting, "CLIP", 40.0)
    data, off = mixed(5000), []
    for rounds in (15, 1):
        monkeypatch.setattr(backfitting, "ROUNDS", (rounds, rounds))
        with opened(MIXED, data) as db:
            plain = exact(db)
            model = LinearRegression().fit(plain[MIXED_NAMES], plain["y"], spend=Epsilon(900))
        found = np.array([model.intercept_, *model.coef_[[0, 1, 3, 4, 6]]])
        assert np.array_equal(model.coef_[[2, 5]], [0, 0])
        off.append(float(np.abs(found - normal_equations(data)).max()))
    assert 3 * off[0] < off[1]


def test_a_step_moves_less_the_more_noise_it_has() -> None:
    """By the formula of a posterior mean; the intercept keeps the prediction at the column's mean where it was."""
    with opened(COLUMNS, rows(0, 50)) as db:
        oracle = exact(db)
        design = regression.Design.of(oracle[NAMES])
        window = Window.declared("y", oracle["y"].domain[0])
    for noise in (0.0, 3.0, 1e9):
        answer = SimpleNamespace(values=lambda: np.array([[30.0]]), deviations=lambda noise=noise: np.array([noise]))
        spending = SimpleNamespace(one=lambda _question, _part, answer=answer: SimpleNamespace(released=answer))
        fit = backfitting.Backfitting(design, window, sulq.lit(True), spending, [], np.zeros(design.size), total=400.0)
        fit._slope(2, 0.25, 0.1, 0.5, 0.1)
        assert fit.weights[2] == pytest.approx(30 * 40 / (40**2 + (noise / 0.5) ** 2))
        assert fit.intercept + 0.25 * fit.weights[2] == pytest.approx(0)


def test_a_histogram_tells_mean_and_variance() -> None:
    """Without noise those of the bins within the window; where noise is all, those of a number anywhere in it."""
    whole = Window.declared("x", sulq.Real(0, 16))
    narrow = Window("x", sulq.Real(0, 16), 4.0, 12.0)
    counts = np.zeros((BINS, 1))
    counts[[5, 9, 15], 0] = 100, 300, 7  # middles 5.5 and 9.5, and one outside
    found = []
    for noise in (0.0, 30.0, 1e6):
        histogram = SimpleNamespace(values=lambda: counts, deviations=lambda noise=noise: np.array([noise]))
        found.append(whole.moments(histogram, narrow))
    mean = (100 * (5.5 - 8) / 4 + 300 * (9.5 - 8) / 4) / 400
    assert found[0] == (pytest.approx(mean), pytest.approx(0.25 * 0.75))
    assert 0 < found[1][0] < mean
    assert found[2] == (pytest.approx(0, abs=0.02), pytest.approx(1 / 3, abs=0.1))


def test_what_is_asked_depends_on_answers_alone_SR6() -> None:
    """Replayed without any data the model is the same; few rows buy y's mean, none as well, at the full charge."""
    with opened(COLUMNS, rows(3)) as db:
        oracle = Noised(db, 5)
        model = LinearRegression().fit(columns(oracle, NAMES), columns(oracle, ["y"]), spend=Epsilon(1))
        again = Replayed(oracle)
        other = LinearRegression().fit(columns(again, NAMES), columns(again, ["y"]), spend=Epsilon(1))
        assert not again.answers
        assert other.to_json() == model.to_json()
        assert len(oracle.asked) > 10
    for n in (0, 30):
        with opened(COLUMNS, {name: values[:n] for name, values in rows(4).items()}) as db:
            oracle = Noised(db, 6)
            model = LinearRegression().fit(columns(oracle, NAMES), columns(oracle, ["y"]), spend=Epsilon(1))
        assert len(oracle.asked) == 2
        assert not model.coef_.any()
        assert 0 <= 1 - model.spent_.exact < 1e-14
