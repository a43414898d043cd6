"""The law of chi-squared statistics: scipy's without noise, that of draws with it."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special, stats

from sulq.inference.quadratic_law import exponentials, gamma_tail, tail


def test_the_tail_of_a_gamma_law_is_scipys() -> None:
    """Series and continued fraction agree with scipy to twelve digits."""
    shapes, points = np.array([0.5, 0.5, 1, 3, 50, 50, 200]), np.array([0.01, 9, 3, 2, 40, 70, 150])
    assert gamma_tail(shapes, points) == pytest.approx(special.gammaincc(shapes, points), rel=1e-9)
    assert gamma_tail(np.array([2.0]), np.array([0.0]))[0] == pytest.approx(1.0)


def test_without_noise_it_is_the_chi_squared_law() -> None:
    """A projection of independent errors of variance one has the chi-squared law of its rank."""
    parts = np.array([0.2, 0.3, 0.5])
    form = np.eye(3) - np.outer(np.sqrt(parts), np.sqrt(parts))
    for statistic in (0.5, 3.0, 9.0):
        found = tail(statistic, form, sampling=np.ones(3), noise=0.0, pure=True)
        assert found == pytest.approx(float(stats.chi2.sf(statistic, 2)), rel=1e-6)


@pytest.mark.parametrize("pure", [True, False])
def test_with_noise_it_is_the_law_of_draws(pure: bool) -> None:  # noqa: FBT001
    """Laplace and Gaussian noise as large as the sampling, beside 400,000 draws."""
    rng, many, sampling, noise = np.random.default_rng(2), 400_000, np.array([1.0, 2.0, 1.0, 0.5]), 2.0
    form = np.diag([1.0, 0.5, 0.8, 1.2]) + 0.1
    blur = rng.laplace(0, (noise / 2) ** 0.5, (many, 4)) if pure else rng.normal(0, noise**0.5, (many, 4))
    errors = rng.normal(0, 1, (many, 4)) * np.sqrt(sampling) + blur
    draws = np.einsum("ni,ij,nj->n", errors, form, errors)
    for share in (0.5, 0.8, 0.95, 0.99):
        at = float(np.quantile(draws, share))
        assert tail(at, form, sampling=sampling, noise=noise, pure=pure) == pytest.approx(1 - share, rel=0.12)


def test_the_public_points_are_spread_as_exponential_variables() -> None:
    """Mean one and variance near one in every coordinate, whatever their number; the same points each time."""
    for width in (2, 6, 40):
        points = exponentials(width, 256)
        assert points.mean(axis=0) == pytest.approx(np.ones(width))
        assert points.var(axis=0) == pytest.approx(np.ones(width), rel=0.35 if width < 40 else 0.6)
        assert (points == exponentials(width, 256)).all()
