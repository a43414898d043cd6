"""Least squares with standard errors: one question for all products, one for the spread of the residuals.

The coefficients are those of the noisy sums of products of (1, x, y). Their sampling variance holds for residuals
whose spread depends on x, as White's does: a second question, of a tenth of the spend, asks for the sum of
(h'z)^2 (g'w)^2 of each coefficient, h and g as the first answer has them, all of a row's together clipped. Where
noise drowns that sum, the variance is nearer to the classical one, s^2 (X'X)^-1.
Source: White (1980) for the variance; docs/theory/standard-errors.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from sulq.answers.released import Noise
from sulq.inference.equations import Solution, mirrored, noise_weights, solve
from sulq.inference.error_law import ErrorLaw, noise_law
from sulq.language.kinds import Floats
from sulq.language.question import Sums
from sulq.language.rowfn import Dot, Power, RowFn, Vector, WithinL1
from sulq.language.rowfn.vectors import MAX_BITS

SQUARES_PART: Final = 0.1  # of the spend, for the spread of the residuals
PRIOR_RATIO: Final = 2.0  # deviation of the true sampling variance over the classical one, before it is measured
MIN_RATIO: Final = 0.25  # that the true sampling variance is taken for at least, of the classical one
CLIPS: Final = (12.0, 1000.0)  # of a squared score over its mean: where it is clipped, least and most
CLIP_NOISE: Final = 0.3  # the noise of the mean square that a clip may cause, where it lies between these
TAILS: Final = 8.0  # variance of a squared score over its squared mean: of a product of two normal numbers
NODE_BITS: Final = 20


@dataclass(frozen=True, slots=True, eq=False)
class ProductMoments:
    """What the first answer tells; the leading axes are those of the sums.

    `rows`: T A^-1, a row for each coefficient; `classical`: its sampling variance if residuals have one spread.
    """

    solution: Solution
    size: Floats
    rows: Floats
    classical: Floats
    noise: tuple[Noise, ...]


def moments_of(triangle: Floats, noise: tuple[Noise, ...], *, units: Floats, size: int | None = None) -> ProductMoments:
    """Read the sums of products; `units`: the matrix of coefficients in their own units."""
    m = len(units)
    each = np.array([one.deviation**2 for one in noise for _ in range(one.width)])
    if size is not None:  # public: no noise is in it
        triangle = np.concatenate([np.full_like(triangle[..., :1], size), triangle[..., 1:]], axis=-1)
        each[0] = 0.0
    matrix, variances = mirrored(triangle, m + 1), mirrored(each, m + 1)
    found = solve(matrix, variances)
    count = np.maximum(matrix[..., 0, 0], m + 2.0)
    floor = found.residual_noise / 4
    spread = np.maximum(found.residual, floor) / (count - m)
    rows = np.einsum("ij,...jk->...ik", units, found.inverse)
    classical = spread[..., None] * np.einsum("...ij,ij->...i", rows, units)
    return ProductMoments(found, count, rows, np.maximum(classical, 0.0), noise)


def clip_of(count: Floats, deviation: float) -> Floats:
    """Where squared scores are clipped: as far out as noise allows; `deviation`: of the noise at a clip of one."""
    return np.clip(CLIP_NOISE * count / max(deviation, 1e-12), *CLIPS)


def score_weights(found: ProductMoments) -> Floats:
    """The weights of the terms in each coefficient's score, in deviations of the score."""
    unit = np.sqrt(np.maximum(found.classical / found.size[..., None], 1e-300))
    return np.asarray(found.rows / unit[..., None])


def squares(vector: Vector, found: ProductMoments, clip: float, where: RowFn | None) -> Sums:
    """The question for the mean squares of the scores."""
    clip = round(clip, 6)
    residual = Dot(vector, _told(found.solution.slack), NODE_BITS)
    values = []
    for row in score_weights(found):
        score = Dot(vector, (*_told(row), 0.0), NODE_BITS) * residual
        values.append(Power(score.clip(-(clip**0.5), clip**0.5), 2))
    return Sums((WithinL1(Vector(tuple(values), MAX_BITS), clip),), where)


def _told(weights: Floats) -> tuple[float, ...]:
    """Weights in nine figures: the same on every machine, so that a stored answer is found again."""
    return tuple(float(f"{weight:.9g}") for weight in weights.tolist())


def trial_squares(vector: Vector, where: RowFn | None) -> Sums:
    """A question like `squares`, clipped at one: what its noise will be, and whether it may be asked."""
    flat = Dot(vector, (0.0,) * len(vector.items), NODE_BITS)
    values = (Power((flat * flat).clip(-1, 1), 2),) * (len(vector.items) - 1)
    return Sums((WithinL1(Vector(values, MAX_BITS), 1),), where)


def error_law(found: ProductMoments, sums: Floats | None, deviation: Floats, *, rows: int = 1) -> ErrorLaw:
    """The law of the coefficients' errors; `sums`: of squared scores, `deviation`: of their noise.

    `rows`: of one person at most; they may be alike, and a sum of k squares is at most k times as large.
    """
    ratio, doubt = np.ones_like(found.classical), np.full_like(found.classical, PRIOR_RATIO**2)
    if sums is not None:
        blur = (deviation / found.size[..., None]) ** 2
        believed = PRIOR_RATIO**2 / (PRIOR_RATIO**2 + blur)
        seen = sums / found.size[..., None]
        ratio = np.maximum(1 + believed * (seen - 1), MIN_RATIO)
        doubt = believed * blur
    relative = doubt / ratio**2 + TAILS / found.size[..., None]
    gaussian, laplace = noise_law(found.noise, noise_weights(found.rows, found.solution.slack))
    return ErrorLaw(rows * ratio * found.classical, 2 / relative, gaussian, laplace)
