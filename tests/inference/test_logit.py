"""The parts of the logistic fit: start, modelled curvature, and the size of the table."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from sulq.answers.released import Noise
from sulq.inference.logit import cells, curvature, finish, started, step
from sulq.language.law import LaplaceLaw

RNG = np.random.default_rng(6)
ROWS = np.concatenate([np.ones((40_000, 1)), RNG.normal(0.1, 0.3, (40_000, 2))], axis=1)
TRUTH = np.array([-0.5, 2.0, -1.0])
Y = RNG.random(40_000) < 1 / (1 + np.exp(-ROWS @ TRUTH))
QUIET = (Noise(LaplaceLaw(Fraction(1)), Fraction(1, 100), 6), Noise(LaplaceLaw(Fraction(1)), Fraction(1, 100), 6))
PRODUCTS = (ROWS.T @ ROWS)[np.triu_indices(3)]


def test_of_normal_columns_the_start_is_near_and_a_step_nearer() -> None:
    """The start is within a tenth of the truth, a step within the sampling error."""
    start = started(PRODUCTS, ROWS.T @ (Y - 0.5), QUIET)
    assert start.clear
    assert start.scores == pytest.approx(TRUTH, abs=0.2)
    chance = 1 / (1 + np.exp(-ROWS @ start.scores))
    assert step(start, ROWS.T @ (Y - chance)) == pytest.approx(TRUTH, abs=0.12)


def test_of_normal_columns_the_modelled_curvature_is_the_exact_one() -> None:
    """Within 3% of the sum over the rows, entry by entry."""
    start = started(PRODUCTS, ROWS.T @ (Y - 0.5), QUIET)
    chance = 1 / (1 + np.exp(-ROWS @ TRUTH))
    expected = (ROWS * (chance * (1 - chance))[:, None]).T @ ROWS
    assert curvature(TRUTH, start) == pytest.approx(expected, rel=0.03, abs=15)


def test_a_curvature_that_is_mere_noise_leaves_the_modelled_one() -> None:
    """With endless noise in the asked curvature the coefficients follow from the model, and stay finite."""
    start = started(PRODUCTS, ROWS.T @ (Y - 0.5), QUIET)
    loud = (Noise(LaplaceLaw(Fraction(1)), Fraction(1), 3), Noise(LaplaceLaw(Fraction(10**6)), Fraction(1), 6))
    sums = ROWS.T @ (Y - 1 / (1 + np.exp(-ROWS @ TRUTH))), RNG.normal(0, 1e6, 6)
    found, law = finish(TRUTH, start, sums, loud, units=np.eye(3))
    assert found == pytest.approx(TRUTH, abs=0.15)
    assert np.isfinite(law.variance).all()


def test_the_table_grows_with_the_rows() -> None:
    """So that the rounding of a cell stays below the sampling error."""
    assert cells(100) == 4096
    assert cells(1e6) == 40_000
    assert cells(1e12) == 65_536
