"""Scores from sums: scikit-learn's discriminant for numbers, naive Bayes for keys, the classes' sizes for noise."""

from __future__ import annotations

import numpy as np
import pytest

import sulq
from sulq.answers.oracle import ColumnChoice
from sulq.learn.linear.scores import ClassMoments, discriminant, metric
from sulq.learn.linear.windows import Design
from tests.learn.sq.noisy import Arrays

COLUMNS = {"u": sulq.Real(-1, 1), "v": sulq.Real(-1, 1), "c": ["a", "b", "d"]}


def design(*names: str) -> Design:
    return Design.of(ColumnChoice(names, Arrays(COLUMNS, {name: [] for name in COLUMNS})))


def moments(matrix: np.ndarray, y: np.ndarray, d: int, noise: float = 1e-6, *, second: bool = True) -> ClassMoments:
    """What the questions would tell of rows; the first d places are numbers."""
    counts = np.bincount(y).astype(float)
    sums = np.stack([matrix[y == k].sum(axis=0) for k in range(len(counts))])
    products = matrix[:, :d].T @ matrix[:, :d] / len(y) if second and d else None
    return ClassMoments(counts, float(len(y)), sums, np.full(matrix.shape[1], noise), products, 1e-9, 1 / 3)


def numbers(n: int = 6000) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    y = rng.choice(3, n, p=[0.5, 0.3, 0.2])
    mix = np.array([[0.15, 0.1], [0.0, 0.1]])
    middles = np.array([[-0.2, 0.0], [0.1, 0.1], [0.2, -0.2]])
    return np.clip(middles[y] + rng.normal(size=(n, 2)) @ mix, -1, 1), y


def test_numbers_have_scikit_learns_scores() -> None:
    """Without noise the discriminant's own log-odds."""
    analysis = pytest.importorskip("sklearn.discriminant_analysis")
    matrix, y = numbers()
    found = discriminant(moments(matrix, y, 2), design("u", "v"))
    scores = matrix @ found.weights.T + found.intercepts
    theirs = analysis.LinearDiscriminantAnalysis().fit(matrix, y)
    there = theirs.decision_function(matrix)
    gaps, expected = scores - scores[:, :1], there - there[:, :1]
    assert gaps == pytest.approx(expected, abs=0.02 * np.abs(expected).max())


def test_keys_have_naive_bayes_scores() -> None:
    """How much likelier a label is in the class than among all."""
    rng = np.random.default_rng(2)
    y = rng.integers(0, 2, 5000)
    code = (rng.random(5000)[:, None] > np.array([[0.5, 0.8], [0.2, 0.4]])[y]).sum(axis=1)
    indicators = np.eye(3)[code]
    found = discriminant(moments(indicators, y, 0), design("c"))
    frequent = np.stack([indicators[y == k].mean(axis=0) for k in (0, 1)])
    assert found.weights == pytest.approx(np.log(frequent / indicators.mean(axis=0)), abs=1e-3)
    assert found.intercepts == pytest.approx(np.log(np.bincount(y) / 5000))


@pytest.mark.parametrize("second", [True, False])
def test_noise_alone_leaves_the_classes_sizes(*, second: bool) -> None:
    """Noise larger than the sums: hardly any weight, and no number that is not finite."""
    matrix, y = numbers(300)
    both = np.hstack([matrix, np.eye(3)[y]])
    for noise in (1e3, 1e6):
        told = moments(both, y, 2, noise, second=second)
        found = discriminant(told, design("u", "v", "c"))
        assert np.abs(found.weights).max() < 0.05
        assert found.intercepts == pytest.approx(np.log(np.bincount(y) / 300), abs=0.05)
        assert np.isfinite(metric(told, design("u", "v", "c"))).all()
    assert np.abs(discriminant(moments(both, y, 2), design("u", "v", "c")).weights).max() > 0.5  # control


def test_the_metric_is_the_covariance() -> None:
    """Of numbers; a label has its frequency; where products were not asked, the level."""
    matrix, y = numbers()
    code = np.eye(3)[np.arange(6000) % 3]
    found = metric(moments(np.hstack([matrix, code]), y, 2), design("u", "v", "c"))
    assert found[:2, :2] == pytest.approx(np.cov(matrix.T, bias=True), abs=1e-6)
    assert np.diag(found)[2:] == pytest.approx(1 / 3, abs=1e-3)
    flat = metric(moments(matrix, y, 2, second=False), design("u", "v"))
    assert flat == pytest.approx(np.eye(2) / 3)
