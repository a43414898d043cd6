"""Weighted k-means on points that are public or already released: the k points that stand for many."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from sulq.language.kinds import Floats
from sulq.learn.noisy_sums import Chance, public

Places = npt.NDArray[np.intp]

QUANTIZER_STARTS: Final = 8
QUANTIZER_STEPS: Final = 30


def nearest_of(points: Floats, centres: Floats) -> Places:
    """The index of the nearest centre of each point; ties go to the lowest (S0.13)."""
    return np.asarray((np.square(centres).sum(axis=1) - 2.0 * (points @ centres.T)).argmin(axis=1))


def distances(points: Floats, centres: Floats) -> Floats:
    """The squared distances of points from centres, a row a point."""
    squares = np.square(points).sum(axis=1)[:, None] + np.square(centres).sum(axis=1)
    return np.asarray(np.maximum(squares - 2.0 * (points @ centres.T), 0.0))


def quantize(points: Floats, weights: Floats, k: int, *, starts: int = QUANTIZER_STARTS) -> Floats:
    """The best of several runs of weighted k-means from spread starts (k-means++)."""
    rng = public()
    runs = [_run(points, weights, _spread(points, weights, k, rng)) for _ in range(starts)]
    return min(runs, key=lambda run: run[0])[1]


def cover(middle: Floats, half: Floats, k: int) -> Floats:
    """K points that stand for a box about whose inside nothing is known: those of points spread evenly over it."""
    rng = public()
    points = middle + half * rng.uniform(-1.0, 1.0, (max(1000, 20 * k), len(half)))
    return quantize(points, np.ones(len(points)), k, starts=2)


def _spread(points: Floats, weights: Floats, k: int, rng: Chance) -> Floats:
    """Start points, each drawn by weight and squared distance from those before it."""
    chosen = [points[_draw(weights, rng)]]
    away = distances(points, chosen[0][None])[:, 0]
    while len(chosen) < k:
        chosen.append(points[_draw(weights * away, rng)])
        away = np.minimum(away, distances(points, chosen[-1][None])[:, 0])
    return np.array(chosen)


def _draw(weights: Floats, rng: Chance) -> int:
    total = float(weights.sum())
    return int(rng.choice(len(weights), p=weights / total if total > 0 else None))


def _run(points: Floats, weights: Floats, centres: Floats) -> tuple[float, Floats]:
    """Lloyd's iteration; gives what is left of the weighted squared distances, and the centres."""
    for _ in range(QUANTIZER_STEPS):
        place = nearest_of(points, centres)
        mass = np.bincount(place, weights=weights, minlength=len(centres))
        sums = np.zeros_like(centres)
        np.add.at(sums, place, points * weights[:, None])
        moved = np.where(mass[:, None] > 0, sums / np.where(mass > 0, mass, 1.0)[:, None], centres)
        if np.allclose(moved, centres, rtol=0, atol=1e-9 * float(np.abs(points).max() or 1.0)):
            break
        centres = moved
    return float((weights * distances(points, centres).min(axis=1)).sum()), centres
