"""A score's histogram gives its log-odds back, and its best cut where noise hides them."""

from __future__ import annotations

import numpy as np
import pytest

import sulq
from sulq import Epsilon
from sulq.language.rowfn import Col
from sulq.learn.linear import scores
from sulq.learn.linear.scores import SCORE_BINS, Scale
from tests.learn.sq.noisy import Arrays


def counted(
    score: np.ndarray, label: np.ndarray, scale: Scale, seed: int | None, spend: float
) -> tuple[np.ndarray, float]:
    columns = {"s": sulq.Real(-50, 50), "y": ["no", "yes"]}
    oracle = Arrays(columns, {"s": score, "y": np.where(label, "yes", "no")}, seed=seed)
    released = oracle.ask(scale.question(Col("s"), Col("y")), spend=Epsilon(spend)).released
    return released.values().reshape(2, -1), float(released.deviations()[0])


def data(n: int, slope: float, intercept: float) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    score = rng.normal(2, 3, n)
    return score, rng.random(n) < 1 / (1 + np.exp(-slope * score - intercept))


def test_the_histogram_counts_every_row_once() -> None:
    """In its class and part; what is beyond the ends is in the last ones."""
    score, label = data(5000, 1.0, 0.0)
    scale = Scale(2.0, 6.0)
    counts, _ = counted(score, label, scale, None, 1)
    there = np.clip((score - 2) / 6, -1, 1)
    for row, of in enumerate((~label, label)):
        assert np.array_equal(counts[row], np.histogram(there[of], bins=SCORE_BINS, range=(-1, 1))[0])


@pytest.mark.parametrize(("seed", "spend", "near"), [(None, 900, 0.15), (2, 1, 0.25)])
def test_the_log_odds_come_back(seed: int | None, spend: float, near: float) -> None:
    """Slope and intercept of the true logistic curve, in terms of the score, without and with noise."""
    score, label = data(50_000, 0.8, -1.0)
    scale = Scale(2.0, 12.0)
    counts, deviation = counted(score, label, scale, seed, spend)
    slope, intercept = scale.line(counts, deviation, cut=False)
    assert slope == pytest.approx(0.8, abs=near / 2)
    assert intercept == pytest.approx(-1.0, abs=near)


def test_the_cut_is_where_the_fewest_are_wrong() -> None:
    """Also where the log-odds do not say so: a class with rows on the far side of the other."""
    rng = np.random.default_rng(3)
    score = np.concatenate([rng.normal(0, 1, 9000), rng.normal(-40, 1, 1000), rng.normal(6, 1, 3000)])
    label = np.arange(13_000) >= 9000
    label[9000:10_000] = True
    scale = Scale(-10.0, 40.0)
    counts, deviation = counted(score, label, scale, 4, 1)
    right = {}
    for cut in (True, False):
        slope, intercept = scale.line(counts, deviation, cut=cut)
        right[cut] = np.mean((slope * score + intercept > 0) == label)
    assert right[True] > 0.9 > right[False]


@pytest.mark.parametrize(
    "counts", [np.zeros((2, SCORE_BINS)), np.full((2, SCORE_BINS), -30.0), np.eye(2, SCORE_BINS) * 1e9]
)
def test_any_histogram_has_a_line(counts: np.ndarray) -> None:
    """No rows, noise alone, classes far apart: numbers, and no infinite ones."""
    for cut in (True, False):
        assert np.isfinite(Scale(0.0, 1.0).line(counts, 5.0, cut=cut)).all()


def test_noise_alone_moves_the_cut_less(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cut must be better by the noise between it and the score's own; control: without that rule, and with rows."""
    scale = Scale(3.0, 10.0)
    moved = {}
    for doubt in (scores.MIN_CUT_DEVIATIONS, 0.0):
        monkeypatch.setattr(scores, "MIN_CUT_DEVIATIONS", doubt)
        rng = np.random.default_rng(5)
        lines = [scale.line(rng.laplace(0, 100, (2, SCORE_BINS)), 100 * np.sqrt(2), cut=True) for _ in range(300)]
        moved[doubt] = sum(abs(intercept / slope) > 1.5 for slope, intercept in lines)
    assert moved[1.0] < 0.75 * moved[0.0]
    monkeypatch.undo()
    counts = np.zeros((2, SCORE_BINS))
    counts[0, :24], counts[1, 24:] = 1000, 1000
    slope, intercept = scale.line(counts, 10.0, cut=True)
    assert -intercept / slope == pytest.approx(3.0 + 10.0 * 0.5)
