"""Gradients, searches and rounds: the exact sums of the textbook, and a loss that falls."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import sulq
from sulq import Epsilon
from sulq.answers.oracle import ColumnChoice, SpendPlan
from sulq.language.rowfn import Col
from sulq.learn.linear.scores import (
    MAX_LOG_ODDS,
    SCORE_REACH,
    STEP_LENGTHS,
    ClassMoments,
    Descent,
    Scale,
    Scores,
    parts,
)
from sulq.learn.linear.windows import Design
from tests.learn.sq.noisy import Arrays

CLASSES = ["a", "b", "c"]


class Setting:
    """Rows of two numbers and a key, their classes, and the rounds that learn from them."""

    def __init__(self, classes: int, penalty: float = 1.0, n: int = 800) -> None:
        rng = np.random.default_rng(classes)
        key = rng.integers(0, 2, n)
        numbers = rng.uniform(-1, 1, (n, 2))
        self.matrix = np.hstack([numbers, np.eye(2)[key]])
        odds = (
            numbers @ rng.normal(0, 2, (2, classes)) + rng.gumbel(size=(n, classes)) + key[:, None] * np.arange(classes)
        )
        self.y = odds.argmax(axis=1)
        self.truth = np.eye(classes)[self.y]
        columns = {"u": sulq.Real(-1, 1), "v": sulq.Real(-1, 1), "k": ["p", "q"], "y": CLASSES[:classes]}
        data = {"u": numbers[:, 0], "v": numbers[:, 1], "k": np.array(["p", "q"])[key], "y": np.array(CLASSES)[self.y]}
        self.oracle = Arrays(columns, data)
        design = Design.of(ColumnChoice(("u", "v", "k"), self.oracle))
        second = numbers.T @ numbers / n
        sums = self.truth.T @ self.matrix
        moments = ClassMoments(self.truth.sum(axis=0), float(n), sums, np.full(4, 1e-3), second, 1e-6, 1 / 3)
        vector = design.vector()
        label = Col("y")
        self.penalty = penalty
        self.descent = Descent(design, moments, vector, vector, 2.0, label, ~label.is_missing(), penalty)
        self.scores = Scores(rng.normal(0, 0.5, (classes, 4)), rng.normal(0, 0.3, classes))

    def chances(self, scores: Scores) -> np.ndarray:
        said = self.matrix @ scores.weights.T + scores.intercepts
        said = np.exp(said - said.max(axis=1, keepdims=True))
        return said / said.sum(axis=1, keepdims=True)

    def loss(self, scores: Scores) -> float:
        own = scores.weights[[1]] - scores.weights[[0]] if len(scores.weights) == 2 else scores.weights
        fit = -np.log((self.chances(scores) * self.truth).sum(axis=1)).sum()
        return float(fit + self.penalty / 2 * (own**2).sum())

    def spending(self) -> SpendPlan:
        return SpendPlan(self.oracle, Epsilon(900))


@pytest.mark.parametrize("classes", [2, 3])
def test_a_gradient_is_the_textbooks(classes: int) -> None:
    """The sums of (p_k - 1/2) x, of numbers, of ones and by the key: of two classes the second's alone."""
    given = Setting(classes)
    first, by_key = given.oracle.ask(given.descent.gradient(given.scores, pure=True), spend=Epsilon(900)).answers
    curves = (given.chances(given.scores) - 0.5)[:, [1] if classes == 2 else range(classes)]
    told = first.released.values()[0]
    assert told[: 2 * curves.shape[1]] == pytest.approx((curves.T @ given.matrix[:, :2]).ravel(), abs=2)
    assert told[2 * curves.shape[1] :] == pytest.approx(curves.sum(axis=0), abs=2)
    keyed = by_key.released.values().T
    assert keyed == pytest.approx(curves.T @ given.matrix[:, 2:], abs=2)


@pytest.mark.parametrize("classes", [2, 3])
def test_a_search_tells_how_the_loss_changes(classes: int) -> None:
    """At each length the derivative, of two classes half of it; with the penalty's."""
    given = Setting(classes, penalty=30.0)
    rng = np.random.default_rng(9)
    way = Scores(rng.normal(0, 0.02, (classes, 4)), rng.normal(0, 0.02, classes))
    if classes == 2:  # as rounds make them: one opposite to the other
        way = Scores(np.stack([-way.weights[1], way.weights[1]]), np.array([-way.intercepts[1], way.intercepts[1]]))
    told = given.oracle.ask(given.descent.search(given.scores, way), spend=Epsilon(900)).released.values()[0]
    for length, slope in zip(STEP_LENGTHS, told, strict=True):
        ends = [
            given.loss(Scores(given.scores.weights + at * way.weights, given.scores.intercepts + at * way.intercepts))
            for at in (length - 0.01, length + 0.01)
        ]
        expected = (ends[1] - ends[0]) / 0.02 / (2 if classes == 2 else 1)
        found = slope + given.descent._penalised(given.scores, way, length)
        assert found == pytest.approx(expected, abs=0.3 + 0.02 * abs(expected))
    assert abs(given.descent._penalised(given.scores, way, STEP_LENGTHS[-1])) > 1  # control: it counts


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("penalty", [1.0, 100.0])
def test_rounds_lead_to_the_least_loss(classes: int, penalty: float) -> None:
    """Without noise each makes it smaller, down to what an optimiser finds; also where the penalty decides."""
    optimize = pytest.importorskip("scipy.optimize")
    given = Setting(classes, penalty)
    shape = given.scores.weights.shape

    def free(flat: np.ndarray) -> Scores:
        return Scores(flat[: 4 * classes].reshape(shape), flat[4 * classes :])

    best = optimize.minimize(lambda flat: given.loss(free(flat)), np.zeros(5 * classes)).fun
    scores = Scores(np.zeros(shape), np.zeros(classes))
    start = given.loss(scores)
    losses = [start]
    for _ in range(3):
        scores = given.descent.rounds(given.spending(), scores, 2, 1.0)
        losses.append(given.loss(scores))
    assert losses[1] < start
    assert losses[-1] - best < 0.01 * (start - best)


class Numbers(Setting):
    """Rows of four numbers, one with a tail, of two classes: `law` is how their score is distributed."""

    def __init__(self, n: int = 4000) -> None:
        rng = np.random.default_rng(8)
        numbers = np.clip(rng.normal(0.1, 0.3, (n, 4)) @ (np.eye(4) + 0.3), -1, 1)
        numbers[:, 0] = np.minimum(rng.exponential(0.3, n), 2) - 1
        self.matrix, self.penalty = numbers, 1.0
        self.y = (numbers @ [3.0, -2, 1, 2] + 2 + rng.logistic(size=n) > 0).astype(int)
        self.truth = np.eye(2)[self.y]
        names = ["a", "b", "c", "d"]
        columns = {**{name: sulq.Real(-1, 1) for name in names}, "y": CLASSES[:2]}
        data = {**dict(zip(names, numbers.T, strict=True)), "y": np.array(CLASSES)[self.y]}
        self.oracle = Arrays(columns, data)
        design = Design.of(ColumnChoice(tuple(names), self.oracle))
        sums, noise = self.truth.T @ numbers, np.full(4, 1e-3)
        moments = ClassMoments(self.truth.sum(axis=0), float(n), sums, noise, numbers.T @ numbers / n, 1e-6, 1 / 3)
        gap = np.linalg.solve(np.cov(numbers.T), numbers[self.y == 1].mean(axis=0) - numbers[self.y == 0].mean(axis=0))
        self.scores = Scores.of_gap(np.append(gap, 0.0))
        score = numbers @ gap
        counts = np.histogram((score - score.mean()) / score.std(), 32, (-SCORE_REACH, SCORE_REACH))[0][None].repeat(
            2, 0
        )
        vector, label = design.vector(), Col("y")
        law = Scale.law(counts.astype(float), 1e-9)
        self.descent = Descent(design, moments, vector, vector, 2.0, label, ~label.is_missing(), 1.0, law)


def test_the_curvature_is_the_losses() -> None:
    """From products and the score's histogram alone, of skewed rows; control: not that of scores without a spread."""
    given, spread = Numbers(), np.cov(Numbers().matrix.T)
    gap = np.append(*given.scores.gap)
    found = given.descent.curvature(gap, spread)
    chances, rows = given.chances(given.scores)[:, 1], np.hstack([given.matrix, np.ones((4000, 1))])
    true = (rows * (chances * (1 - chances))[:, None]).T @ rows
    assert np.abs(found - true).max() < 0.06 * np.abs(true).max()
    flat = 0.25 * rows.T @ rows
    assert np.abs(flat - true).max() > 0.3 * np.abs(true).max()


def test_rounds_of_known_curvature_need_no_search() -> None:
    """Three gradients find the least loss; control: rows that spread farther than products say are searched along."""
    optimize = pytest.importorskip("scipy.optimize")
    given = Numbers()
    best = optimize.minimize(lambda flat: given.loss(Scores.of_gap(flat)), np.zeros(5)).fun
    start = given.loss(given.scores)
    found = given.loss(given.descent.rounds(given.spending(), given.scores, 3, 1.0))
    assert len(given.oracle.asked) == 3
    assert found - best < 0.01 * (start - best)
    points, shares = given.descent.law
    replace(given.descent, law=(1.5 * points, shares)).rounds(given.spending(), given.scores, 3, 1.0)
    assert len(given.oracle.asked) == 3 + 6


def test_a_curve_ends_where_its_table_does() -> None:
    """Scores beyond the table count as its ends: a row moves a sum by one half at most."""
    given = Setting(2)
    far = Scores(np.array([[0, 0, 0, 0], [900.0, 0, 0, 0]]), np.zeros(2))
    told = given.oracle.ask(given.descent.gradient(far, pure=True), spend=Epsilon(900)).answers[0].released.values()[0]
    most = 1 / (1 + np.exp(-MAX_LOG_ODDS)) - 0.5
    assert abs(told[0]) <= 0.5 * np.abs(given.matrix[:, 0]).sum()
    assert told[0] == pytest.approx(most * np.abs(given.matrix[:, 0]).sum(), rel=0.02)


def test_the_last_round_has_the_most() -> None:
    """Parts grow, sum to one, and the first of many is not nothing."""
    for count in (1, 3, 30, 200):
        found = np.array(parts(count))
        assert found.sum() == pytest.approx(1)
        assert (np.diff(found) > 0).all()
        assert found[0] > 1e-5
    assert parts(3) == pytest.approx(np.array([1, 1.3, 1.69]) / 3.99)
