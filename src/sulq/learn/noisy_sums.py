"""Noisy sums: how large their noise will be, how to divide a spend among them, and how to read products."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from sulq.answers.plan import Plan
from sulq.language.kinds import Floats


def deviations(plan: Plan) -> list[Floats]:
    """The standard deviation of each column's noise, for each question of a plan."""
    return [
        np.array([noise.law.variance() ** 0.5 * float(noise.step) for noise in part.noise for _ in range(noise.width)])
        for part in plan.parts
    ]


def divided(widths: Sequence[int], reaches: Sequence[float], *, pure: bool) -> tuple[Fraction, ...]:
    """Shares of a spend for vectors of these widths, of which one row moves each by its reach.

    A reach is in L1 where `pure`, else in L2. The shares make the sum of all variances smallest: Laplace noise has a
    variance of (reach/share)^2 a coordinate, Gaussian of reach^2/share, so the shares are as width^(1/3) reach^(2/3) or
    width^(1/2) reach.
    """
    power, root = (2 / 3, 1 / 3) if pure else (1.0, 1 / 2)
    found = np.array([width**root * reach**power for width, reach in zip(widths, reaches, strict=True)])
    return tuple(Fraction(float(share)) for share in found / found.sum())


def symmetric(triangle: Floats, d: int) -> Floats:
    """The matrix whose upper triangle, row by row, is given: its noise is mirrored too."""
    matrix = np.zeros((d, d))
    matrix[np.triu_indices(d)] = triangle
    found: Floats = matrix + np.triu(matrix, 1).T
    return found
