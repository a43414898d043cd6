"""Noise, bounds and foresight of the methods' marginals, against what they measure."""

from __future__ import annotations

import math

import numpy as np
import pytest

from sulq.errors import QuestionError
from sulq.release.space import Marginal
from sulq.release.tables.contents import FittedTable
from sulq.release.tables.interactions import closure
from sulq.release.tables.noisy_tables import Coefficients, NoisyCells, NoisyMarginals, bound, mean_distances, variance


def coefficients(k: int, size: int, scale: float, law: str = "laplace") -> Coefficients:
    """Coefficients of all 2-way marginals, all zero, with noise of one scale."""
    marginals = tuple((i, j) for i in range(k) for j in range(i + 1, k))
    closed = closure(marginals)
    assert len(closed) == size
    return Coefficients(
        (2,) * k,
        marginals,
        {part: np.zeros(1) for part in closed},
        {part: np.full(1, scale * math.sqrt(2)) for part in closed},
        law,
    )


def test_bound_S3_19() -> None:
    """K = 5, all 2-way, epsilon 1, beta .05: 2^|a| 2|B| ln(|B|/beta) + |B| = 754.3; half of it for one attribute."""
    found = coefficients(5, 16, 16.0)
    assert bound(found, (0, 1), 0.05) == pytest.approx(754.3, rel=1e-3)
    assert bound(found, (3,), 0.05) - 16 == pytest.approx((754.3 - 16) / 2, rel=1e-3)  # [S3.20]
    assert bound(coefficients(5, 16, 16.0, "gaussian"), (0, 1), 0.05) < 754.3


def test_rounding_is_within_the_bound_without_noise() -> None:
    """With next to no noise only the rounding of |B| cells is left of the bound."""
    assert bound(coefficients(5, 16, 1e-9), (0, 1), 0.05) == pytest.approx(16)


def test_variance_of_a_one_way_marginal_E30() -> None:
    """[S3.13] 2^(k-1) cells of variance 2/epsilon^2 each: 2^k/epsilon^2 = 256, not the printed 128."""
    rng = np.random.default_rng(30)
    foreseen = variance(NoisyCells(np.zeros((2,) * 8), math.sqrt(2.0), "laplace"), (3,))
    assert foreseen == pytest.approx(np.full(2, 256.0))
    runs = rng.laplace(0, 1, (4000, 128)).sum(axis=1)
    assert runs.var() == pytest.approx(256, rel=0.13)  # 5 standard errors
    assert abs(runs.var() - 128) > 5 * 128 * math.sqrt(2 / 4000)


@pytest.mark.parametrize("draws", [1, 2, 8, 64])
def test_foreseen_distance(draws: int) -> None:
    """The expected distance of sums of Laplace noise is foreseen within 2%; as normal noise, one draw is 13% off."""
    rng = np.random.default_rng(draws)
    runs = np.abs(rng.laplace(0, 1, (200_000, draws)).sum(axis=1)).mean()
    second, fourth = np.array([[2.0 * draws]]), np.array([[4.0 * draws]])
    assert mean_distances(second, fourth, "laplace") == pytest.approx(runs, rel=0.02)
    if draws == 1:
        assert mean_distances(second, fourth, "gaussian") > runs * 1.1


def test_a_smaller_marginal_is_summed_from_the_smallest() -> None:
    """Measured apart, one within two others is summed from the one with fewer cells, and has its noise."""
    values = {(0, 2): np.ones((2, 5)), (0, 1): np.full((2, 3), 7.0)}
    noisy = NoisyMarginals((2, 3, 5), values, {(0, 2): 1.0, (0, 1): 1.0}, "laplace")
    assert noisy.marginal((0,)).tolist() == [21.0, 21.0]
    assert variance(noisy, (0,)).tolist() == [3.0, 3.0]
    assert noisy.moments([(0, 2)])[1].tolist() == np.ones((1, 2, 5)).tolist()


def test_a_fit_is_rounded_to_whole_counts() -> None:
    """What is nearer to one is one; only cells that are not zero are kept."""
    found = FittedTable.to(coefficients(3, 7, 1.0), np.array([0.4, 0.6, 0, 0, 3.2, 0, 0, 0.5]))
    assert found.table().ravel().tolist() == [0, 1, 0, 0, 3, 0, 0, 0]
    assert found.marginal((0,)).tolist() == [1, 3]
    assert found.places.tolist() == [1, 4]


def test_a_marginal_tells_its_cells() -> None:
    """Labels, columns beside attributes of any name, shares of the whole and error bars."""
    made = Marginal(
        ("value", "b"), ((1, 2), (("a", "b"), ("b", "c"))), np.array([[1.0, 2], [-3, 4]]), np.ones((2, 2)), 3.0
    )
    table = made.to_dict()
    assert list(table) == ["value", "b", "value_", "standard_error"]
    assert table["b"] == ["a..b", "b..c", "a..b", "b..c"]
    assert made.to_arrow().num_rows == 4
    assert made.percent.sum() == pytest.approx(100)
    assert made.percent.min() == 0
    assert made.accuracy(0.05).max() == pytest.approx(math.log(20) / math.sqrt(2))
    assert made.accuracy(0.5).max() == pytest.approx(0.6745, rel=1e-3)
    assert "1 / a..b: 1 ± 1" in repr(made)
    with pytest.raises(QuestionError):
        made.accuracy(2.0)
    empty = Marginal(("a",), ((1, 2),), np.zeros(2), np.ones(2))
    assert empty.percent.tolist() == [0, 0]
