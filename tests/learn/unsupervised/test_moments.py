"""Noisy covariance matrices: what is foreseen of their noise, what is left out, and why means stay in the box."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import sulq
from sulq import Epsilon, EpsilonDelta, Sums, Unit, col
from sulq.answers.oracle import SpendPlan
from sulq.language.rowfn import Outer, Vector
from sulq.learn.features import Features
from sulq.learn.noisy_sums import deviations
from sulq.learn.unsupervised.components import directions
from sulq.learn.unsupervised.moments import LOOK_PART, Blur, believed, kept, products, symmetric
from sulq.learn.unsupervised.space import ColumnSpace, Location
from tests.learn.cases import opened

ROWS = Location(1000.0, 1000.0, np.zeros(1), np.zeros(1), 1.0, 0.1, sure=True, variances=np.ones(1))


def test_a_triangle_is_mirrored() -> None:
    """Row by row, the diagonal once."""
    assert symmetric(np.array([1.0, 2, 3, 4, 5, 6]), 3).tolist() == [[1, 2, 3], [2, 4, 5], [3, 5, 6]]


@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
@pytest.mark.parametrize("spend", [Epsilon(1), EpsilonDelta(1, 1e-6)])
def test_noise_is_foreseen_from_one_coordinate(relation: str, spend: object) -> None:
    """2 sqrt(m) times the deviation that the whole question will have, for every number of coordinates."""
    names = [f"x{i}" for i in range(8)]
    data = {name: [0.5] for name in names}
    unit = Unit(neighbors=relation)
    with opened(dict.fromkeys(names, sulq.Real(0, 1)), data, EpsilonDelta(2, 1e-6), unit=unit) as db:
        space, spending = ColumnSpace(Features.of(db[names]), scale=False), SpendPlan(db[names].oracle, spend)
        blur = Blur.of(space, spending, ROWS, 1 - LOOK_PART)
        for m in (2, 3, 8):
            plan = spending.foresee(products(space, space.middle, np.arange(m), 0.3), 1 - LOOK_PART)
            whole = 2 * np.sqrt(m) * deviations(plan)[0][-1] / 0.3**2 / 1000
            assert blur.relative(m) == pytest.approx(whole, rel=0.02)


def test_what_noise_would_drown_is_left_out() -> None:
    """All columns are kept while noise is small; in much noise those that vary most, never fewer than components."""
    variances = np.array([1.0, 2500.0, 10000.0, 4.0])
    assert kept(variances, Blur(1e-6, pure=True), 2).tolist() == [0, 1, 2, 3]
    assert kept(variances, Blur(1.0, pure=True), 1).tolist() == [2]
    assert kept(variances, Blur(1.0, pure=True), 3).tolist() == [1, 2, 3]
    assert kept(np.ones(4), Blur(0.02, pure=True), 2).tolist() == [0, 1, 2, 3]


def test_products_about_a_mean_outside_the_box_move_too_far_E47() -> None:
    """Within the box one product moves by at most 1, as Theorem 1 needs; about a mean at 3, by 5."""

    def move(mean: float) -> Fraction:
        question = Sums((Outer(Vector((col("x") - mean, col("y") - mean), 15)),))
        block = db.foresee(question, spend=Epsilon(1)).parts[0].tally.blocks[0]
        return max(high - low for high, low in zip(block.high, block.low, strict=True)) * block.step

    with opened({"x": sulq.Real(0, 1), "y": sulq.Real(0, 1)}, {"x": [0.5], "y": [0.5]}) as db:
        assert all(move(mean) <= 1 for mean in (0.0, 0.25, 0.5, 1.0))
        assert move(3.0) == 5  # from (1-3)^2 = 4 to (0-3)^2 = 9


def test_noise_in_narrow_columns_takes_no_direction() -> None:
    """A third direction among columns of unlike bounds: the one that may vary. Control: of the matrix as it is, noise.

    Without noise the matrix stays what it is.
    """
    half = np.array([200.0, 100.0, 30.0, 1.0, 1.0, 1.0, 1.0])
    truth, rng = np.diag(half**2 / 25), np.random.default_rng(5)
    right, plain = [], []
    for _ in range(40):
        drawn = rng.laplace(0, 20, truth.shape)
        noisy = truth + np.triu(drawn) + np.triu(drawn, 1).T
        found = directions(believed(noisy, 20 * np.sqrt(2), half**2 / 25, half), 3)[1]
        right.append(np.abs(found[2, 2]) > 0.99)
        plain.append(np.abs(directions(noisy, 3)[1][2, 2]) > 0.99)
    assert np.mean(right) > 0.9
    assert np.mean(plain) < 0.5
    assert np.allclose(believed(noisy, 0.0, half**2 / 25, np.full(7, 1e3)), noisy)
