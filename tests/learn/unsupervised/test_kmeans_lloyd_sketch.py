"""Where k-means begins: what a round of noise may not undo, and when cells are worth asking for."""

from __future__ import annotations

import numpy as np
import pytest

import sulq
from sulq import Epsilon
from sulq.answers.oracle import SpendPlan
from sulq.learn.features import Features
from sulq.learn.unsupervised.kmeans import LOOK_PART, KMeansTask, LloydRound, Shrink
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


@pytest.mark.parametrize(("epsilon", "n", "sketched"), [(5.0, 5000, True), (0.05, 200, False)])
def test_cells_are_asked_for_where_they_stand_out(epsilon: float, n: int, *, sketched: bool) -> None:
    """With rows enough, many cells and centres near the groups; else points over the box and all for one round."""
    points = groups(n)
    with opened(COLUMNS, {"a": points[:, 0], "b": points[:, 1]}) as db:
        oracle = Noised(db, 1)
        space = ColumnSpace(Features.of(columns(oracle, NAMES)), scale=False)
        rounds, centres, parts, shrink = KMeansTask(space, SpendPlan(oracle, Epsilon(epsilon)), 3).sketched(None)
    assert len(oracle.asked) == 1 + sketched
    assert sum(parts) == (1 - LOOK_PART) / (2 if sketched else 1)
    assert centres.shape == (3, 2)
    assert shrink is not None
    if sketched:
        assert oracle.asked[1][1].released.cells == 64
        found = sorted(map(tuple, np.round(centres, 1)))
        assert found == [(0.2, 0.2), (0.2, 0.8), (0.8, 0.5)]
        assert rounds.radius < np.inf
    else:
        assert len(parts) == 1
        assert np.ptp(centres, axis=0).max() > 0.3  # spread over what the rows may be
