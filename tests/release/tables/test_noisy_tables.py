"""Coefficients from noisy cells and marginals: the truth without noise, least squares with it."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from sulq.release.tables.interactions import closure, width
from sulq.release.tables.noisy_tables import Coefficients, NoisyCells, NoisyMarginals, NoisyTable, variance

SIZES = (2, 3, 4)
PAIRS = tuple(itertools.combinations(range(3), 2))


def answered(table: np.ndarray, rng: np.random.Generator | None) -> list[NoisyTable]:
    """The table told as cells and as pairs, with noise of deviation 2 and 3."""
    cells = NoisyCells(table + (rng.normal(0, 2, SIZES) if rng else 0), 2.0, "gaussian")
    exact = {pair: table.sum(axis=3 - sum(pair)) for pair in PAIRS}
    noisy = {pair: own + (rng.normal(0, 3, own.shape) if rng else 0) for pair, own in exact.items()}
    return [cells, NoisyMarginals(SIZES, noisy, dict.fromkeys(PAIRS, 3.0), "gaussian")]


def test_without_noise_they_give_the_marginals() -> None:
    """Of cells and of pairs alike; and no interaction is told that the pairs do not need."""
    table = np.random.default_rng(1).integers(0, 50, SIZES).astype(float)
    for noisy in answered(table, None):
        found = noisy.coefficients(PAIRS)
        assert set(found.values) == {part for part in closure(PAIRS) if width(part, SIZES)}
        for pair in PAIRS:
            assert found.marginal(pair) == pytest.approx(table.sum(axis=3 - sum(pair)))


def test_they_are_least_squares() -> None:
    """Against NumPy's solution for the same noisy pairs; the pairs themselves, the control, disagree."""
    table = np.random.default_rng(1).integers(0, 50, SIZES).astype(float)
    noisy = answered(table, np.random.default_rng(2))[1]
    cells = np.arange(24).reshape(SIZES)
    rows = [
        np.isin(np.arange(24), np.moveaxis(cells, pair, (0, 1))[i, j]).astype(float)
        for pair in PAIRS
        for i, j in np.ndindex(SIZES[pair[0]], SIZES[pair[1]])
    ]
    told = np.concatenate([noisy.values[pair].ravel() for pair in PAIRS])
    best = np.linalg.lstsq(np.array(rows), told, rcond=None)[0].reshape(SIZES)
    found = noisy.coefficients(PAIRS)
    for pair in PAIRS:
        assert found.marginal(pair) == pytest.approx(best.sum(axis=3 - sum(pair)))
        assert np.abs(noisy.values[pair] - found.marginal(pair)).max() > 0.1


def test_their_noise_is_the_one_told() -> None:
    """Over many draws each coefficient's deviation is what it says, and what answers of zeros foresaw."""
    table = np.zeros(SIZES)
    rng = np.random.default_rng(3)
    runs = [[noisy.coefficients(PAIRS) for noisy in answered(table, rng)] for _ in range(600)]
    for i in range(2):
        told = runs[0][i]
        foreseen = answered(table, None)[i].coefficients(PAIRS)
        for part, deviations in told.deviations.items():
            seen = np.std([run[i].values[part] for run in runs], axis=0)
            assert seen == pytest.approx(deviations, rel=6 / np.sqrt(2 * 600))
            assert foreseen.deviations[part] == pytest.approx(deviations)
            assert not foreseen.values[part].any()


def test_coefficients_stay_as_they_are() -> None:
    """What was asked as coefficients is not averaged again."""
    found = Coefficients(SIZES, PAIRS, {(): np.ones(1)}, {(): np.ones(1)}, "laplace")
    assert found.coefficients(((0,),)).values is found.values


def test_a_number_of_rows_told_apart_is_averaged_in() -> None:
    """By the inverse of the variances, and the mean's own is less than both; nothing else changes, and none is 0/0."""
    found = answered(np.ones(SIZES), np.random.default_rng(2))[0].coefficients(PAIRS)
    value, deviation = float(found.values[()][0]), float(found.deviations[()][0])
    both = found.counted(value + 30.0, deviation / 2)
    assert float(both.values[()][0]) == pytest.approx(value + 24.0)
    assert float(both.deviations[()][0]) == pytest.approx(deviation / 5**0.5)
    assert all(both.values[part] is found.values[part] for part in found.values if part)
    assert float(found.counted(value + 30.0, 1e9).values[()][0]) == pytest.approx(
        value
    )  # the control: it tells nothing
    assert float(found.counted(7.0, 0.0).values[()][0]) == pytest.approx(7.0)


def test_hardly_any_noise_counts_as_some() -> None:
    """A deviation whose square is zero in doubles divides nothing by zero."""
    table = np.ones(SIZES)
    found = NoisyCells(table, 1e-200, "laplace").coefficients(PAIRS)
    assert found.marginal((0, 1)) == pytest.approx(table.sum(axis=2))
    assert np.isfinite(variance(found, (0, 1))).all()
