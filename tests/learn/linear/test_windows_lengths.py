"""Lengths: counted as they are, a radius that holds most rows, and less noise than a window for each number."""

from __future__ import annotations

import numpy as np
import pytest

import sulq
from sulq import Epsilon
from sulq.answers.oracle import ColumnChoice, SpendPlan
from sulq.answers.released import Released
from sulq.learn.linear.windows import RADII, WITHIN, Design, lengths, radius
from sulq.learn.noisy_sums import deviations
from tests.learn.sq.noisy import Arrays


def oracle(points: np.ndarray, seed: int | None = None) -> tuple[Arrays, Design]:
    """Points within [-8, 8] in each coordinate, and how they are seen."""
    names = tuple(f"x{j}" for j in range(points.shape[1]))
    asked = Arrays(dict.fromkeys(names, sulq.Real(-8, 8)), {n: points[:, j] for j, n in enumerate(names)}, seed=seed)
    return asked, Design.of(ColumnChoice(names, asked))


def released(points: np.ndarray, spend: float = 900, seed: int | None = None) -> Released:
    asked, design = oracle(points, seed)
    return asked.ask(lengths(design), spend=Epsilon(spend)).released


def points(n: int, far: float, d: int = 4) -> np.ndarray:
    """Rows in all directions, half of them no longer than `far` of the way to a corner."""
    rng = np.random.default_rng(1)
    found = rng.normal(size=(n, d))
    found /= np.linalg.norm(found, axis=1, keepdims=True)
    return np.clip(found * rng.uniform(0, 2 * far, (n, 1)) * 8 * d**0.5, -8, 8)


def test_every_row_is_counted_at_its_length() -> None:
    """As a part of the way from the middle to a corner; the corner itself and a missing row are counted too."""
    rows = np.vstack([points(3000, 0.15), np.full((1, 4), 8.0), np.full((1, 4), np.nan)])
    there = np.linalg.norm(np.nan_to_num(rows) / 8, axis=1) / 2
    counts = released(rows).values()[:, 0]
    expected = np.histogram(there, bins=[0, *RADII[:-1], 1.001])[0]
    assert counts.sum() == len(rows)
    assert np.abs(counts - expected).max() <= 2  # the grid moves a row at an edge
    assert counts[-1] == expected[-1] >= 1


@pytest.mark.parametrize(("spend", "seed"), [(900, None), (0.05, 3)])
@pytest.mark.parametrize("far", [0.02, 0.1, 0.3])
def test_the_radius_holds_most_rows_and_little_more(far: float, spend: float, seed: int | None) -> None:
    """WITHIN of them, to a part of the histogram; control: a radius two parts smaller does not."""
    rows = points(5000, far)
    there = np.linalg.norm(rows / 8, axis=1) / 2
    found = radius(released(rows, spend, seed), 5000.0)
    assert np.mean(there <= found * 1.001) >= WITHIN - 0.05
    assert np.mean(there <= found / 2) < WITHIN


def test_noise_alone_gives_a_radius() -> None:
    """One of those there are, whatever the counts; without a row that is seen, that of all."""
    assert {radius(released(points(3, 0.1), 0.001, seed), 5.0) for seed in range(50)} <= set(RADII)
    assert radius(released(points(10, 0.1)), 1000.0) in RADII
    counts = released(np.full((50, 4), 8.0))
    assert radius(counts, 50.0) == 1.0
    assert radius(released(np.zeros((50, 4))), 50.0) == RADII[0]  # control: short rows, the smallest


def test_it_costs_the_same_however_many_numbers_there_are() -> None:
    """A row lies in one part; control: histograms of each number have the more noise the more there are."""
    noise, each = [], []
    for d in (2, 20):
        asked, design = oracle(np.zeros((2, d)))
        spending = SpendPlan(asked, Epsilon(1))
        noise.append(float(deviations(spending.foresee(lengths(design)))[0][0]))
        each.append(float(deviations(spending.foresee(design.numbers[0].histogram, 1 / d))[0][0]))
    assert noise[0] == pytest.approx(noise[1])
    assert each[1] > 5 * each[0]
