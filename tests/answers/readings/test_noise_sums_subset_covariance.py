"""Covariances of sums over subsets: what they are of, and how far off."""

from __future__ import annotations

import numpy as np
import pytest

from sulq.answers.readings.noise_sums import covariance, covariance_errors


def test_it_is_the_covariance_whatever_is_added_to_a_column() -> None:
    """As NumPy's; a constant, such as half of a noisy total, changes nothing."""
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=(50, 2)), rng.normal(size=(50, 3))
    found = covariance(a, b)
    assert np.allclose(found, np.cov(a.T, b.T)[:2, 2:])
    assert np.allclose(found, covariance(a + np.array([3.0, -1e3]), b + 7.0))
    assert covariance_errors(np.array([4.0]), np.array([9.0]), np.array([[8.0]]), 101)[0, 0] == pytest.approx(1.0)
