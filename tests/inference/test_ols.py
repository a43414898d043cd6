"""The parts of least squares: public sizes, clips, and how far the measured spread of residuals is believed."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from sulq.answers.released import Noise
from sulq.inference.ols import CLIPS, clip_of, error_law, moments_of
from sulq.language.law import LaplaceLaw

RNG = np.random.default_rng(9)
ROWS = np.concatenate([np.ones((4000, 1)), RNG.uniform(-1, 1, (4000, 1)), np.zeros((4000, 1))], axis=1)
ROWS[:, 2] = 0.3 * ROWS[:, 1] + RNG.normal(0, 0.1, 4000)
TRIANGLE = (ROWS.T @ ROWS)[np.triu_indices(3)]


def noise(scale: int) -> tuple[Noise, ...]:
    """Laplace noise of six sums."""
    return (Noise(LaplaceLaw(Fraction(scale)), Fraction(1), 6),)


def test_a_public_size_has_no_noise() -> None:
    """The first sum is replaced by it, and its noise is none."""
    off = TRIANGLE.copy()
    off[0] += 50
    found = moments_of(off, noise(5), units=np.eye(2), size=4000)
    assert float(found.size) == 4000
    assert found.solution.coefficients == pytest.approx(
        np.linalg.lstsq(ROWS[:, :2], ROWS[:, 2], rcond=None)[0], abs=1e-3
    )


def test_a_clip_follows_the_noise() -> None:
    """Little noise lets squares count as far as they go, much noise clips them near."""
    assert float(clip_of(np.array(5000.0), 1e-6)) == CLIPS[1]
    assert float(clip_of(np.array(50.0), 100.0)) == CLIPS[0]


def test_a_measured_spread_is_believed_as_far_as_it_is_clear() -> None:
    """A ratio of two is taken for two with little noise, for nearly one with much; no measure leaves the classical."""
    found = moments_of(TRIANGLE, noise(1), units=np.eye(2))
    sums = 2.0 * found.size * np.ones(2)
    clear = error_law(found, sums, np.array(1.0)).sampling / found.classical
    drowned = error_law(found, sums, np.array(40_000.0)).sampling / found.classical
    assert clear == pytest.approx(2.0, rel=1e-3)
    assert (drowned < 1.05).all()
    assert error_law(found, None, np.array(0.0)).sampling == pytest.approx(found.classical)
    assert error_law(found, sums, np.array(1.0), rows=3).sampling == pytest.approx(6 * found.classical, rel=1e-3)
