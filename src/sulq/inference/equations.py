"""Normal equations from noisy sums: coefficients, and how the noise of every sum enters each of them.

With M = [A, c; c', q] the noisy sums of products of (z, y), b = A^-1 c, and N the noise in M: for the coefficients b0
that the exact sums of the population have, b - b0 = A^-1 (Z'e + N g), g = (-b0, 1), exactly. So the noise of the
entry kl enters coefficient j with the weight h_k g_l + h_l g_k, h the row j of A^-1; of a diagonal entry h_k g_k.

Accuracy: A^-1 is as it was released, and g is taken at b. To second order the noise also moves the mean of b, by
A^-1 E[N A^-1 N g]; that is taken away.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from sulq.language.kinds import Floats, Truths

CLEAR: Final = 2.0  # how far the least eigenvalue must stand out of the noise of the matrix


@dataclass(frozen=True, slots=True, eq=False)
class Solution:
    """Solved equations; the leading axes are those of the sums.

    `coefficients`: b. `inverse`: A^-1. `slack`: g = (-b, 1). `residual`: the sum of squared residuals, corrected for
    noise, and `residual_noise`: its deviation by noise. `clear`: where the matrix stands out of its noise.
    """

    coefficients: Floats
    inverse: Floats
    slack: Floats
    residual: Floats
    residual_noise: Floats
    clear: Truths


def mirrored(triangle: Floats, size: int) -> Floats:
    """Symmetric matrices from their upper triangles, row by row, on the last axis."""
    matrix = np.zeros((*triangle.shape[:-1], size, size))
    rows, columns = np.triu_indices(size)
    matrix[..., rows, columns] = triangle
    matrix[..., columns, rows] = triangle
    return matrix


def solve(matrix: Floats, variances: Floats) -> Solution:
    """Solve for the last row in terms of the others; `variances`: of the noise of each entry, a matrix."""
    m = matrix.shape[-1] - 1
    left, right, noise = matrix[..., :m, :m], matrix[..., :m, m], variances[:m, :m]
    clear = np.linalg.eigvalsh(left)[..., 0] > CLEAR * np.sqrt(noise.sum(axis=-1).max())
    safe = np.where(clear[..., None, None], left, np.eye(m))
    inverse = np.linalg.inv(safe)
    found = np.einsum("...ij,...j->...i", inverse, right)
    slack = np.concatenate([-found, np.ones((*found.shape[:-1], 1))], axis=-1)
    moved = _second_order(inverse, slack, variances)
    found = found + np.einsum("...ij,...j->...i", inverse, moved)
    slack = np.concatenate([-found, np.ones((*found.shape[:-1], 1))], axis=-1)
    spread = equation_noise(slack, variances)
    # The least of noisy squares is too small by the noise that it fits.
    fitted = np.einsum("...ij,...ij->...", inverse, spread)
    residual = np.einsum("...i,...ij,...j->...", slack, matrix, slack) + fitted
    pairs = slack[..., :, None] * slack[..., None, :]
    rows, columns = np.triu_indices(m + 1)
    weights = pairs[..., rows, columns] * np.where(rows == columns, 1.0, 2.0)
    residual_noise = np.sqrt((weights**2 * variances[rows, columns]).sum(axis=-1))
    return Solution(found, inverse, slack, residual, residual_noise, clear)


def _second_order(inverse: Floats, slack: Floats, variances: Floats) -> Floats:
    """The mean of N A^-1 N g: products of noise with itself, entry by entry."""
    m = inverse.shape[-1]
    noise, g = variances[:m, :m], slack[..., :m]
    own = np.einsum("...ii->...i", inverse)
    across = inverse * noise * (1 - np.eye(m))
    return np.asarray(np.einsum("ik,...k->...i", noise, own) * g + np.einsum("...ik,...k->...i", across, g))


def equation_noise(slack: Floats, variances: Floats) -> Floats:
    """The covariance of N g, for the equations but the last."""
    m = slack.shape[-1] - 1
    own = np.einsum("ik,...k->...i", variances[:m], slack**2)
    across = variances[:m, :m] * slack[..., :m, None] * slack[..., None, :m] * (1 - np.eye(m))
    return np.asarray(own[..., None] * np.eye(m) + across)


def noise_weights(rows: Floats, slack: Floats) -> Floats:
    """How the noise of each entry of the upper triangle enters linear functions of the coefficients.

    `rows`: for each function its row of T A^-1, one axis before the last more than `slack`.
    """
    h = np.concatenate([rows, np.zeros((*rows.shape[:-1], 1))], axis=-1)
    g = slack[..., None, :]
    k, j = np.triu_indices(h.shape[-1])
    weights = h[..., k] * g[..., j] + np.where(k == j, 0.0, h[..., j] * g[..., k])
    return np.asarray(weights)
