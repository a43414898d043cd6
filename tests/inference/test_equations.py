"""Normal equations: exact where there is no noise, and the weights of noise beside a small change of each sum."""

from __future__ import annotations

import numpy as np
import pytest

from sulq.inference.equations import mirrored, noise_weights, solve

RNG = np.random.default_rng(11)
ROWS = np.concatenate([np.ones((500, 1)), RNG.uniform(-1, 1, (500, 3))], axis=1)
MATRIX = ROWS.T @ ROWS


def test_without_noise_the_equations_are_solved_exactly() -> None:
    """Coefficients and the sum of squared residuals are least squares'."""
    found = solve(MATRIX, np.zeros((4, 4)))
    expected, squares, *_ = np.linalg.lstsq(ROWS[:, :3], ROWS[:, 3], rcond=None)
    assert found.coefficients == pytest.approx(expected)
    assert float(found.residual) == pytest.approx(float(squares[0]))
    assert found.clear


def test_each_weight_is_how_a_sum_moves_a_coefficient() -> None:
    """A small change of each entry of the matrix moves the coefficients by its weight."""
    found = solve(MATRIX, np.zeros((4, 4)))
    weights = noise_weights(found.inverse, found.slack)
    for place, (k, j) in enumerate(zip(*np.triu_indices(4), strict=True)):
        moved = MATRIX.copy()
        moved[k, j] += 1e-4
        moved[j, k] = moved[k, j]
        change = (solve(moved, np.zeros((4, 4))).coefficients - found.coefficients) / 1e-4
        assert weights[:, place] == pytest.approx(change, rel=1e-4, abs=1e-9)


def test_the_mean_of_noisy_coefficients_is_the_truth() -> None:
    """To second order noise moves the mean of the coefficients; what is taken away is that."""
    deviation, many = 12.0, 30_000
    places = np.triu_indices(4)
    triangles = MATRIX[places] + RNG.normal(0, deviation, (many, 10))
    noisy = mirrored(triangles, 4)
    plain = solve(noisy, np.zeros((4, 4)))
    corrected = solve(noisy, np.full((4, 4), deviation**2))
    truth = np.linalg.solve(MATRIX[:3, :3], MATRIX[:3, 3])
    slope = int(np.abs(truth).argmax())
    off = abs(float(plain.coefficients[corrected.clear][:, slope].mean()) - truth[slope])
    left = abs(float(corrected.coefficients[corrected.clear][:, slope].mean()) - truth[slope])
    error = float(corrected.coefficients[:, slope].std()) / many**0.5
    assert left < max(off / 2, 6 * error)


def test_a_matrix_of_mere_noise_is_not_clear() -> None:
    """Where the noise is as large as the products the coefficients are not told; nor where columns are collinear."""
    assert not solve(MATRIX, np.full((4, 4), 200.0**2)).clear
    twice = np.concatenate([ROWS[:, :2], ROWS[:, 1:2], ROWS[:, 3:]], axis=1)
    assert not solve(twice.T @ twice, np.full((4, 4), 1.0)).clear
    assert not solve(np.zeros((4, 4)), np.full((4, 4), 1.0)).clear
