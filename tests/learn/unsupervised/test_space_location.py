"""A first look at the rows: what it tells where there is little noise, and what it does where there is nothing else."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import sulq
from sulq import Epsilon, EpsilonDelta, Rho
from sulq.answers.oracle import SpendPlan
from sulq.learn.features import Features
from sulq.learn.unsupervised.space import ColumnSpace, Location, locate, location_question
from tests.learn.cases import opened
from tests.learn.noised import Noised, columns

NAMES = ["a", "b", "c"]
COLUMNS = {"a": sulq.Real(0, 1), "b": sulq.Real(-10, 10), "c": sulq.Real(0, 100)}


def data(n: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(3)
    return {"a": rng.beta(2, 5, n), "b": rng.normal(4, 1, n), "c": np.clip(rng.normal(20, 6, n), 0, 100)}


def looked(spend: object, n: int = 2000, *, scale: bool = True, **options: object) -> tuple[Location, np.ndarray]:
    with opened(COLUMNS, data(n), **options) as db:
        oracle = Noised(db, seed=1)
        space = ColumnSpace(Features.of(columns(oracle, NAMES)), scale=scale)
        return locate(space, SpendPlan(oracle, spend), Fraction(1)), space.transform(
            np.stack(list(data(n).values()), 1)
        )


@pytest.mark.parametrize("spend", [Epsilon(500), Rho(300)])
@pytest.mark.parametrize("scale", [False, True])
def test_without_much_noise_it_tells_where_the_rows_lie(spend: object, *, scale: bool) -> None:
    """Number, mean and spread are the rows' own."""
    found, points = looked(spend, scale=scale, budget=EpsilonDelta(900, 1e-6))
    assert found.count == pytest.approx(2000, abs=5)
    assert found.mean == pytest.approx(points.mean(axis=0), rel=0.01, abs=0.01)
    assert found.spread == pytest.approx(points.var(axis=0).sum(), rel=0.02)
    assert found.sure


def test_where_noise_is_all_there_is_the_rows_are_taken_for_spread_over_the_box() -> None:
    """The mean stays near the middle, the spread is a third; divided by the true number it would be at the bounds."""
    means, plain = [], []
    for seed in range(20):
        with opened(COLUMNS, data(30)) as db:
            oracle = Noised(db, seed)
            space = ColumnSpace(Features.of(columns(oracle, NAMES)), scale=True)
            found = locate(space, SpendPlan(oracle, Epsilon(0.001)), Fraction(1))
            means.append(np.linalg.norm(found.mean))
            plain.append(np.linalg.norm(np.clip(oracle.asked[0][1].released.values()[0, 1:4] / 30, -1, 1)))
            assert found.spread <= 3
            assert found.count >= 1000  # three deviations of its noise
            assert np.isfinite(found.doubt).all()
    assert np.mean(means) < 0.4
    assert np.mean(plain) > 1.5


def test_a_public_number_of_rows_is_not_asked_for_SR6() -> None:
    """A declared size takes the place of the noisy count, and the whole question goes to the rest."""
    found, _ = looked(Epsilon(500), size=2000)
    assert (found.count, found.least) == (2000, 2000)
    with opened(COLUMNS, data(10)) as db, opened(COLUMNS, data(10), size=10) as known:
        for base, values in ((db, 3), (known, 2)):
            space = ColumnSpace(Features.of(base[NAMES]), scale=True)
            assert len(location_question(space, SpendPlan(Noised(base, 0), Epsilon(1))).values) == values
