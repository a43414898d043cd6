"""Chi-squared tests: the share of false rejections under the hypothesis, power beside it, and what is refused."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import sulq
from sulq import Epsilon, col
from sulq.errors import QuestionError
from sulq.inference.chi_squared import fit, independence
from tests.counts import count, generator

TABLES = {"2 x 2": ([0.3, 0.7], [0.4, 0.6]), "3 x 4": ([0.2, 0.3, 0.5], [0.05, 0.15, 0.3, 0.5])}


def rejected(parts: np.ndarray, epsilon: float, runs: int, rng: np.random.Generator, *, noise: float) -> float:
    """The share of runs whose p-value is below 5%; `noise`: of the variance of the noise, what the test is told."""
    found = 0
    for _ in range(runs):
        counts = rng.multinomial(5000, parts.ravel()).reshape(parts.shape) + rng.laplace(0, 1 / epsilon, parts.shape)
        found += independence(counts, noise=noise * 2 / epsilon**2, pure=True)[1] < 0.05
    return found / runs


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1, 4])
@pytest.mark.parametrize("name", TABLES)
def test_independent_keys_are_rejected_one_time_in_twenty(name: str, epsilon: float) -> None:
    """At 5% between 3.5% and 6.5% of independent tables are rejected, give or take chance."""
    runs = count(f"runs of the chi-squared test: {name} at epsilon {epsilon}", short=150, long=4_000)
    rng = np.random.default_rng(generator(f"chi2 {name} {epsilon}").getrandbits(64))
    parts = np.outer(*TABLES[name])
    slack = 5.3 * (0.05 * 0.95 / runs) ** 0.5
    assert 0.035 - slack <= rejected(parts, epsilon, runs, rng, noise=1.0) <= 0.065 + slack


def test_a_test_that_leaves_out_the_noise_rejects_too_often() -> None:
    """The control: at a small epsilon the classical test of noisy counts rejects what is independent."""
    rng = np.random.default_rng(1)
    assert rejected(np.outer(*TABLES["3 x 4"]), 0.05, 150, rng, noise=1e-9) > 0.4


def test_without_noise_it_is_pearsons_test() -> None:
    """Statistic and p-value are scipy's, of independence and of fit."""
    counts = np.array([[30.0, 50.0, 20.0], [45.0, 40.0, 60.0]])
    expected = stats.chi2_contingency(counts)
    statistic, p, _ = independence(counts, noise=0.0, pure=True)
    assert (statistic, p) == pytest.approx((expected.statistic, expected.pvalue), rel=1e-3)
    one = stats.chisquare([30, 50, 20], [40, 40, 20])
    statistic, p, _ = fit(np.array([30.0, 50.0, 20.0]), np.array([0.4, 0.4, 0.2]), noise=0.0, pure=True)
    assert (statistic, p) == pytest.approx((one.statistic, one.pvalue), rel=1e-3)


@pytest.fixture(name="db")
def database():
    """Where a is what b is, and c is neither."""
    rng = np.random.default_rng(0)
    a = rng.choice(list("xyz"), 4000)
    frame = pd.DataFrame({"a": a, "b": np.where(rng.random(4000) < 0.5, a, "x"), "c": rng.random(4000) < 0.5})
    columns = {"a": sulq.Category(["x", "y", "z"]), "b": sulq.Category(["x", "y", "z"]), "c": sulq.Bool()}
    with sulq.connect(frame, columns=columns, budget=Epsilon(50)) as db:
        yield db


def test_dependence_is_found_and_independence_is_not_rejected(db) -> None:
    """A strong dependence has the least p-value; the table has the noisy counts and what was expected."""
    found = db.chi2(["a", "b"], spend=Epsilon(1))
    assert found.p <= 1e-5
    assert found.df == 4
    assert found.spent == Epsilon(1)
    assert list(found.to_pandas().columns) == ["term", "coef", "df", "p"]
    assert found.counts().shape == (9, 4)
    assert "statistic" in repr(found)
    assert "<table>" in found._repr_html_()
    assert db.chi2(["a", "c"], spend=Epsilon(1)).p > 1e-4
    assert db.chi2("a", spend=Epsilon(1)).p > 1e-4
    assert db.chi2("a", expected={"x": 1, "y": 1, "z": 8}, spend=Epsilon(1)).p <= 1e-5
    assert db.chi2("a", expected=[1, 1, 1], spend=Epsilon(1)).df == 2


def test_where_noise_hides_all_rows_nothing_is_rejected_SR6(db) -> None:
    """No row satisfies the condition: a valid answer, a p-value of one."""
    found = db.chi2(["a", "b"], where=(col("a") == "x") & (col("a") == "y"), spend=Epsilon(0.5))
    assert found.p == 1.0
    assert any("hides" in note for note in found.notes)


@pytest.mark.parametrize(
    "ask",
    [
        lambda db: db.chi2(["a", "b", "c"], spend=Epsilon(1)),
        lambda db: db.chi2(["a", "b"], expected={"x": 1}, spend=Epsilon(1)),
        lambda db: db.chi2("a", expected={"x": 1}, spend=Epsilon(1)),
        lambda db: db.chi2("a", expected=[1, 2], spend=Epsilon(1)),
        lambda db: db.chi2("a", expected=[1, 2, 0], spend=Epsilon(1)),
        lambda db: db.chi2([], spend=Epsilon(1)),
    ],
)
def test_what_is_no_test_is_refused_free(db, ask) -> None:
    """Three columns, parts that fit no labels, parts that are nothing."""
    with pytest.raises(QuestionError):
        ask(db)
    assert db.spent == Epsilon.total(0)
