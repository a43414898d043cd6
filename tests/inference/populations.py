"""People of three kinds, drawn by the thousand, with the declared bounds of their columns: normal, skewed, clipped."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

SIZE = 5000


@dataclass(frozen=True)
class Population:
    """`x` and `y` of many samples at once, within their bounds; beyond a bound a value counts as the bound."""

    x: np.ndarray  # samples, rows, columns
    y: np.ndarray
    bounds: tuple[float, float]
    y_bounds: tuple[float, float]


KINDS = ("normal", "skewed", "clipped")


def lines(kind: str, rng: np.random.Generator, *, samples: int, rows: int = SIZE, width: int = 2) -> Population:
    """Samples of a linear relation; of the skewed the spread of the residuals grows with the first column."""
    shape = (samples, rows)
    if kind == "skewed":
        x = rng.gamma(2.0, 1.0, (*shape, width))
        noise = (rng.gamma(1.5, 1.0, shape) - 1.5) * (0.6 + 0.2 * x[..., 0])
        bounds, y_bounds = (0.0, 12.0), (-4.0, 24.0)
    else:
        x = rng.normal(0.0, 1.0, (*shape, width))
        noise = rng.normal(0.0, 1.0, shape)
        bounds, y_bounds = ((-4.0, 4.0), (-8.0, 8.0)) if kind == "normal" else ((-1.5, 1.5), (-2.5, 2.5))
    y = 0.5 + 0.8 * x.sum(axis=-1) + noise
    return Population(np.clip(x, *bounds), np.clip(y, *y_bounds), bounds, y_bounds)


def odds(kind: str, rng: np.random.Generator, *, samples: int, rows: int = SIZE, width: int = 2) -> Population:
    """Samples of a logistic relation with the columns before they are clipped."""
    shape = (samples, rows, width)
    if kind == "skewed":
        x, bounds = rng.gamma(2.0, 1.0, shape), (0.0, 12.0)
        scores = -2.0 + 0.6 * x.sum(axis=-1) / width * 1.5
    else:
        x = rng.normal(0.0, 1.0, shape)
        bounds = (-4.0, 4.0) if kind == "normal" else (-1.5, 1.5)
        scores = -0.5 + 0.8 * x.sum(axis=-1)
    y = rng.random(shape[:2]) < 1 / (1 + np.exp(-scores))
    return Population(np.clip(x, *bounds), y.astype(float), bounds, (0.0, 1.0))


def numbers(
    kind: str, rng: np.random.Generator, *, samples: int, rows: int = SIZE
) -> tuple[np.ndarray, tuple[float, float]]:
    """Samples of one number, and its bounds."""
    shape = (samples, rows)
    if kind == "skewed":
        return np.clip(rng.lognormal(0.0, 0.75, shape), 0.0, 20.0), (0.0, 20.0)
    bounds = (-4.0, 4.0) if kind == "normal" else (-1.0, 1.5)
    return np.clip(rng.normal(0.0, 1.0, shape), *bounds), bounds


def least_squares(people: Population) -> np.ndarray:
    """The coefficients of all samples taken as one, the intercept first."""
    rows = np.concatenate([np.ones((*people.y.shape, 1)), people.x], axis=-1).reshape(-1, people.x.shape[-1] + 1)
    return np.linalg.solve(rows.T @ rows, rows.T @ people.y.ravel())


def maximum_likelihood(people: Population) -> np.ndarray:
    """The logistic coefficients of all samples taken as one, the intercept first."""
    rows = np.concatenate([np.ones((*people.y.shape, 1)), people.x], axis=-1).reshape(-1, people.x.shape[-1] + 1)
    found, y = np.zeros(rows.shape[1]), people.y.ravel()
    for _ in range(25):
        chance = 1 / (1 + np.exp(-(rows @ found)))
        found = found + np.linalg.solve((rows * (chance * (1 - chance))[:, None]).T @ rows, rows.T @ (y - chance))
    return found
