"""A round of Lloyd's iteration: sizes and sums by the nearest centre, and the noise that is foreseen."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import sulq
from sulq import Epsilon, EpsilonDelta, Rho
from sulq.answers.oracle import SpendPlan
from sulq.learn.features import Features
from sulq.learn.unsupervised.kmeans import Rounds
from sulq.learn.unsupervised.quantizer import nearest_of
from sulq.learn.unsupervised.space import ColumnSpace
from tests.learn.cases import exact, opened

COLUMNS = {"a": sulq.Real(0, 1), "b": sulq.Real(0, 8), "c": sulq.Real(-50, 50)}
NAMES = list(COLUMNS)


def rows(n: int) -> np.ndarray:
    rng = np.random.default_rng(6)
    return np.stack([rng.random(n), 8 * rng.random(n), rng.uniform(-50, 50, n)], axis=1)


@pytest.mark.parametrize("scale", [False, True])
def test_without_noise_a_round_is_lloyds_S0_13(*, scale: bool) -> None:
    """Sizes, means and squared distances by the nearest centre, in the model's units, about any origin."""
    points = rows(400)
    with opened(COLUMNS, dict(zip(NAMES, points.T, strict=True))) as db:
        X = exact(db)[NAMES]
        space = ColumnSpace(Features.of(X), scale=scale)
        told = space.transform(points)
        centres = told[:5]
        rounds = Rounds(space, SpendPlan(X.oracle, Epsilon(1)), space.middle + 0.1 * space.half, np.inf, 1.0)
        found = rounds.ask(centres, Fraction(1), inertia=True)
        place = nearest_of(told, centres)
        assert found.sizes.tolist() == np.bincount(place, minlength=5).tolist()
        means = np.stack([told[place == i].mean(axis=0) for i in range(5)])
        assert np.allclose(rounds.origin + found.means, means, atol=2e-3 * space.half.max())
        squares = [((told[place == i] - rounds.origin) ** 2).sum() for i in range(5)]
        assert np.allclose(found.squares, squares, rtol=1e-3)


def test_a_row_counts_for_the_cell_it_lies_in_and_its_sum_is_shortened() -> None:
    """With a radius the sizes stay, the sums lie within it."""
    points = rows(400)
    with opened(COLUMNS, dict(zip(NAMES, points.T, strict=True))) as db:
        X = exact(db)[NAMES]
        space = ColumnSpace(Features.of(X), scale=True)
        told = space.transform(points)
        far = Rounds(space, SpendPlan(X.oracle, Epsilon(1)), space.middle, np.inf, 1.0).ask(told[:4], Fraction(1))
        near = Rounds(space, SpendPlan(X.oracle, Epsilon(1)), space.middle, 0.5, 1.0).ask(told[:4], Fraction(1))
        assert near.sizes.tolist() == far.sizes.tolist()
        assert (np.linalg.norm(near.means, axis=1) <= 0.5).all()
        assert near.errors.max() < far.errors.max()


def test_means_of_nothing_are_finite() -> None:
    """A noisy size of nothing or less divides nothing; a guarded mean is never larger than its noise allows."""
    with opened(COLUMNS, {name: np.zeros(0) for name in NAMES}) as db:
        X = exact(db)[NAMES]
        space = ColumnSpace(Features.of(X), scale=True)
        found = Rounds(space, SpendPlan(X.oracle, Epsilon(1)), space.middle, np.inf, 1.0).ask(np.eye(3), Fraction(1))
        assert found.means.tolist() == found.guarded.tolist() == np.zeros((3, 3)).tolist()


@pytest.mark.parametrize("spend", [Epsilon(1), Rho(0.1)])
def test_the_foreseen_noise_is_the_rounds_own(spend: object) -> None:
    """For any number of centres: a row lies in one cell, so the noise does not grow with them."""
    points = rows(50)
    with opened(COLUMNS, dict(zip(NAMES, points.T, strict=True)), EpsilonDelta(9, 1e-6)) as db:
        X = exact(db)[NAMES]
        space = ColumnSpace(Features.of(X), scale=False)
        rounds = Rounds(space, SpendPlan(X.oracle, spend), space.middle, 3.0, 1.0)
        for k in (1, 7):
            found = rounds.ask(points[:k], Fraction(1, 2))
            assert np.linalg.norm(found.errors) == pytest.approx(rounds.noise(Fraction(1, 2)), rel=1e-9)
