"""Where k-means begins: what a round of noise may not undo, and when cells are worth asking for."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import sulq
from sulq import Epsilon
from sulq.answers.oracle import SpendPlan
from sulq.learn import KMeans
from sulq.learn.features import Features
from sulq.learn.unsupervised import kmeans
from sulq.learn.unsupervised.kmeans import LOOK_PART, KMeansTask, LloydRound, Rounds, Shrink
from sulq.learn.unsupervised.quantizer import distances
from sulq.learn.unsupervised.space import ColumnSpace
from tests.learn.cases import opened
from tests.learn.noised import Noised, columns

NAMES = ["a", "b"]
COLUMNS = {"a": sulq.Real(0, 1), "b": sulq.Real(0, 1)}


def groups(n: int) -> np.ndarray:
    rng = np.random.default_rng(7)
    centres = np.array([[0.2, 0.2], [0.2, 0.8], [0.8, 0.5]])
    return np.clip(centres[rng.integers(3, size=n)] + 0.05 * rng.normal(size=(n, 2)), 0, 1)


def test_means_are_drawn_to_the_old_centres_by_the_noise() -> None:
    """A cell of many rows moves to its mean, one of few stays; more rows than there are count no more."""
    shrink = Shrink(np.zeros(1), np.ones(1), 1e6)
    found = LloydRound(np.array([1e5, 5.0, -3.0]), np.array([[2e5], [10.0], [1e3]]), 2.0, np.array([100.0]))
    moved = shrink.means(found, np.zeros((3, 1)), np.zeros(1))[:, 0]
    assert moved[0] == pytest.approx(2, rel=1e-3)
    assert abs(moved[1]) < 0.01
    assert moved[2] == 0
    few = Shrink(np.zeros(1), np.ones(1), 10.0)
    assert abs(few.means(found, np.zeros((3, 1)), np.zeros(1))[0, 0]) < 0.05


def begun(epsilon: float, n: int) -> tuple[Noised, tuple[Rounds, np.ndarray, list[Fraction], Shrink | None]]:
    """Where three centres begin, and what was asked until then."""
    points = groups(n)
    with opened(COLUMNS, {"a": points[:, 0], "b": points[:, 1]}) as db:
        oracle = Noised(db, 1)
        space = ColumnSpace(Features.of(columns(oracle, NAMES)), scale=False)
        return oracle, KMeansTask(space, SpendPlan(oracle, Epsilon(epsilon)), 3).sketched(None)


def test_cells_are_asked_for_where_they_stand_out() -> None:
    """With rows enough, many cells and centres near the groups."""
    oracle, (rounds, centres, parts, shrink) = begun(5.0, 5000)
    assert len(oracle.asked) == 2
    assert oracle.asked[1][1].released.cells == 64
    assert sum(parts) == (1 - LOOK_PART) / 2
    assert sorted(map(tuple, np.round(centres, 1))) == [(0.2, 0.2), (0.2, 0.8), (0.8, 0.5)]
    assert rounds.radius < np.inf
    assert shrink is not None


def test_where_clusters_drown_in_tight_bounds_nothing_is_bought_but_a_round() -> None:
    """A first look alone, no closer one: the mean is among the centres, and all that is left is one round's."""
    oracle, (_, centres, parts, shrink) = begun(0.05, 200)
    assert len(oracle.asked) == 1
    assert parts == [1 - LOOK_PART]
    assert centres.shape == (3, 2)
    assert shrink is not None
    assert (centres == shrink.mean).all(axis=1).any()


def test_what_all_centres_share_is_believed_before_what_one_does() -> None:
    """Noise as large as any cell's move hides it, and not the move of all; without doubt of the mean none moves.

    A cell that is not kept moves with the others alone.
    """
    sizes, centres = np.full(100, 100.0), np.linspace(-1, 1, 100)[:, None]
    found = LloydRound(sizes, sizes[:, None] * (centres + 3.0), 1.0, np.array([300.0]))
    still = Shrink(np.zeros(1), np.full(1, 0.01), 1e6)
    assert np.abs(still.means(found, centres, np.zeros(1)) - centres).max() < 0.01
    moved = Shrink(np.zeros(1), np.full(1, 0.01), 1e6, np.ones(1)).means(found, centres, np.zeros(1))
    assert np.abs(moved - centres - 3.0).max() < 0.4
    sharp = LloydRound(sizes, sizes[:, None] * (centres + 3.0), 1.0, np.array([1e-6]))
    kept = np.arange(100) > 0
    gone = Shrink(np.zeros(1), np.ones(1), 1e6).means(sharp, centres, np.zeros(1), kept)
    assert gone[0] == centres[0]
    assert gone[1:] == pytest.approx(centres[1:] + 3.0)


def test_drowned_clusters_are_no_worse_than_one_mean(monkeypatch: pytest.MonkeyPatch) -> None:
    """Five clusters of 300 rows in wide bounds, epsilon .1: little more than one mean for the same spend.

    Control: without the mean among the centres they are farther off.
    """
    rng = np.random.default_rng(9)
    points = rng.uniform(-1, 1, (5, 6))[rng.integers(5, size=300)] + 0.3 * rng.normal(size=(300, 6))
    names = [f"c{i}" for i in range(6)]
    with opened(dict.fromkeys(names, sulq.Real(-6, 6)), dict(zip(names, points.T, strict=True))) as db:

        def left(k: int) -> float:
            runs = [KMeans(k).fit(columns(Noised(db, i), names), spend=Epsilon(0.1)) for i in range(10)]
            return float(np.mean([distances(points, run.cluster_centers_).min(axis=1).mean() for run in runs]))

        several, one = left(5), left(1)
        monkeypatch.setattr(kmeans, "MIN_SIGNAL", 0.0)
        assert several <= 1.25 * one
        assert left(5) > 1.1 * several
