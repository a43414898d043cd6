"""A first look at the rows: what it tells where there is little noise, and what it does where there is nothing else."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import sulq
from sulq import Epsilon, EpsilonDelta, Rho
from sulq.answers.oracle import SpendPlan
from sulq.learn.features import Features
from sulq.learn.unsupervised.space import ColumnSpace, Location, closer, locate, location_question, trust
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


def wide(seed: int) -> tuple[Location, Location, np.ndarray]:
    """A first look and a closer one at rows of deviation 1 in bounds of a hundred times that."""
    rng = np.random.default_rng(2)
    points = rng.normal([30.0, -20.0, 5.0], [1.0, 0.5, 0.1], (4000, 3))
    with opened(dict.fromkeys(NAMES, sulq.Real(-100, 100)), dict(zip(NAMES, points.T, strict=True))) as db:
        oracle = Noised(db, seed)
        space = ColumnSpace(Features.of(columns(oracle, NAMES)), scale=False)
        spending = SpendPlan(oracle, Epsilon(4))
        first = locate(space, spending, Fraction(1, 2))
        return first, closer(space, spending, first, Fraction(1, 2)), points


def test_a_spread_that_noise_hides_is_small() -> None:
    """It is taken for what the noise lets it be at most. Control: a third of the box, as before, is 40 times that."""
    found = [wide(seed)[0] for seed in range(8)]
    hidden = [each for each in found if not each.sure]
    assert len(hidden) >= 4
    assert all(each.spread < 30_000 / 3 / 40 for each in hidden)
    assert np.mean([each.spread > 1.26 for each in hidden]) > 0.8  # the true one, mostly


def test_a_closer_look_tells_the_mean_and_the_variances() -> None:
    """The mean is nearer than the first look's, which is the control; the columns are in the order of their spread."""
    looks = [wide(seed) for seed in range(8)]
    before = [np.linalg.norm(first.mean - points.mean(axis=0)) for first, _, points in looks]
    after = [np.linalg.norm(second.mean - points.mean(axis=0)) for _, second, points in looks]
    assert np.mean(after) < np.mean(before) / 2
    assert np.median([second.spread for _, second, _ in looks]) == pytest.approx(1.26, rel=0.5)
    assert np.mean([np.argmax(second.variances) == 0 for _, second, _ in looks]) > 0.8
    assert all((second.variances >= 0).all() for _, second, _ in looks)


def test_what_noise_drowns_is_not_trusted_at_all() -> None:
    """Half where noise is as large as the signal, nothing where it is four times it, all without noise."""
    assert trust(np.array([1.0, 1.0, 1.0]), np.array([1.0, 16.1, 0.0])).tolist() == [0.5, 0.0, 1.0]
