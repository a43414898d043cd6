"""Rows and noise for tests of SVD and PCA: what the papers' formulas give, on NumPy alone."""

from __future__ import annotations

import numpy as np

EPSILON, DELTA = 1.0, 1e-6
POSTERIOR, DP = 25.44, 17.85  # variance of the noise a query, for these [X3]


def theorem_1(queries: int) -> float:
    """The variance of Theorem 1 [X3]."""
    return 8 * queries * np.log(queries / DELTA) ** 2 / EPSILON**2


def cube(n: int, seed: int = 0, d: int = 10) -> np.ndarray:
    """Rows of the unit cube around its middle, most of them along three directions."""
    rng = np.random.default_rng(seed)
    along = np.linalg.qr(rng.normal(size=(d, 3)))[0].T
    return np.clip(0.5 + 0.19 * rng.normal(size=(n, 3)) @ along + 0.05 * rng.normal(size=(n, d)), 0, 1)


def mirrored(rng: np.random.Generator, d: int, variance: float) -> np.ndarray:
    """A symmetric matrix of independent normal noise."""
    upper = np.triu(rng.normal(0, np.sqrt(variance), (d, d)))
    return upper + np.triu(upper, 1).T


def top(matrix: np.ndarray, k: int) -> np.ndarray:
    """The first k eigenvectors, as rows."""
    return np.linalg.eigh(matrix)[1][:, ::-1][:, :k].T


def captured(components: np.ndarray, matrix: np.ndarray) -> float:
    """How much of the best projection's part the components hold."""
    best = np.linalg.eigvalsh(matrix)[::-1][: len(components)].sum()
    return float(np.trace(components @ matrix @ components.T) / best)


def same_space(one: np.ndarray, other: np.ndarray) -> float:
    """The sine of the largest angle between the spaces that two sets of orthonormal rows span."""
    return float(np.linalg.norm(one - (one @ other.T) @ other, 2))
