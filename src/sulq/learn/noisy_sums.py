"""Noisy sums: how large their noise will be, how to divide a spend among them, what they say beyond their noise.

Shrinkage is linear, towards something safer, by as much as the noise explains of what is seen (empirical Bayes, as
James and Stein do it). It reads released numbers and public noise alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Final

import numpy as np

from sulq.answers.plan import Plan
from sulq.language.kinds import Floats

Chance = np.random.Generator
SAFE_DEVIATIONS: Final = 3.0  # deviations of its noise that a number is at least, where something is divided by it
PUBLIC_START: Final = 20_050_613


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
    return matrix + np.triu(matrix, 1).T


def divisor_of(count: float, off: float) -> float:
    """What sums are divided by: a number of rows, no less than its noise."""
    return max(count, SAFE_DEVIATIONS * off, 1.0)


def sizes(counts: Floats, deviation: float) -> tuple[Floats, float]:
    """Sizes of groups from noisy counts, all positive, and their sum.

    Where the counts differ by no more than noise they are taken for equal; a total that
    noise alone could be is no less than the noise, so that nothing is divided by chance.
    """
    groups = len(counts)
    total = max(float(counts.sum()), deviation * np.sqrt(groups), 1.0)
    equal = total / groups
    signal = max(float(counts.var(ddof=1)) - deviation**2 if groups > 1 else 0.0, (equal / 8) ** 2)
    kept = signal / (signal + deviation**2)
    found = np.maximum(equal + kept * (counts - counts.mean()), min(deviation / 2 + 0.5, equal / 2))
    return found * (total / found.sum()), total


def apart(gaps: Floats, variances: Floats, weights: Floats, least: float) -> Floats:
    """How much of each group's gaps from the common mean to believe, from 0 to 1.

    `gaps`: a row a group. `variances`: of the noise in each group's gaps. `least`: a variance that true
    gaps have at least, as far as anybody can say beforehand.
    """
    signal = max(float(np.average((gaps**2).mean(axis=1) - variances, weights=weights)), least)
    return signal / (signal + variances)


def covariance(matrix: Floats, deviation: float) -> Floats:
    """A noisy covariance matrix moved towards a multiple of the identity, by the part of its spread that is noise."""
    d = len(matrix)
    level = max(float(np.trace(matrix)) / d, 1e-6)
    round_ = level * np.eye(d)
    spread = float(((matrix - round_) ** 2).sum())
    kept = 1 - min(1.0, deviation**2 * d**2 / max(spread, 1e-12))
    values, vectors = np.linalg.eigh(kept * matrix + (1 - kept) * round_)
    return np.asarray((vectors * np.maximum(values, 0.02 * level)) @ vectors.T)


def public(*about: int) -> Chance:
    """The same choices for everybody; others where `about`, a turn or a released number, is another."""
    return np.random.default_rng((PUBLIC_START, *about))
