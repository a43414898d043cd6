"""Logistic regression by two Newton steps from a start that moments give.

The first answer has the products of (1, x), and with y. Read as if x were normal they give a start, and at any point
the curvature of the likelihood. Then a noisy gradient leads near the maximum; and there a second gradient, with the
curvature itself, makes the step whose error is told: for scores b before it and b + d after it,
b + d - b0 = A^-1 (g(b0) + N + (H - A) d), with g(b0) the score at the truth, of variance H, and A the curvature as it
is known: the asked one and the modelled one, weighted by how exact each is.

Accuracy: as for any Newton step, up to the square of d; (H - A) d is counted as MODEL_ERROR of the part that is
modelled. The variance of the score is Fisher's, as the model has it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from sulq.answers.released import Noise
from sulq.inference.equations import mirrored, noise_weights
from sulq.inference.error_law import ErrorLaw, noise_law
from sulq.language.kinds import Floats, Truths

PARTS: Final = (0.4, 0.15, 0.45)  # of the spend: moments, a gradient, a gradient with the curvature
MOMENT_SHARE: Final = 0.75  # of the first question, for products of x; the rest for products with y
GRADIENT_SHARE: Final = 0.75  # of the last question
MODEL_ERROR: Final = 0.25  # of the modelled curvature, as part of it: what it weighs beside the asked one
STEP_ERROR: Final = 0.11  # of the step, that the modelled curvature may be off by
CLEAR: Final = 2.5  # how far the least eigenvalue of the products must stand out of their noise
MAX_SCORE: Final = 12.0  # the sum of coefficients within [-1, 1]: past it every row's class is certain
MAX_FREEDOM: Final = 1e6
PLACES: Final = 9  # of scores that are asked at: the same on every machine, so that a stored answer is found again
STARTS: Final = 20  # rounds in which the start is found
RATES: Final = (0.02, 0.98)  # between which the mean of y is taken to lie, for the start
CELLS: Final = (4096, 65536)  # of the table of the logistic curve, least and most
CELLS_ROOT: Final = 40.0  # times the root of the number of rows: a cell's rounding then hides in the sampling

_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(15)
_CHANCES: Final[Floats] = _WEIGHTS / _WEIGHTS.sum()


@dataclass(frozen=True, slots=True, eq=False)
class Start:
    """What the first answer tells of the rows: how many, mean and covariance of the terms, and where to begin.

    `deviation`: of the noise in a product.
    """

    size: Floats
    means: Floats
    covariance: Floats
    scores: Floats
    clear: Truths
    deviation: float


def started(triangle: Floats, gradient: Floats, noise: Sequence[Noise]) -> Start:
    """Read the products of (1, x), the upper triangle, and the sums of (y - 1/2)(1, x)."""
    m = gradient.shape[-1]
    matrix, deviation = mirrored(triangle, m), noise[0].deviation
    size = np.maximum(matrix[..., 0, 0], 10.0)
    means = np.clip(matrix[..., 0, 1:] / size[..., None], -1.0, 1.0)
    spread = matrix[..., 1:, 1:] / size[..., None, None] - means[..., :, None] * means[..., None, :]
    values, vectors = np.linalg.eigh(spread)
    clear = np.linalg.eigvalsh(matrix)[..., 0] > CLEAR * deviation * np.sqrt(m)
    values = np.maximum(values, (2 * deviation / size)[..., None])
    covariance = np.einsum("...ij,...j,...kj->...ik", vectors, values, vectors)
    rate = np.clip(gradient[..., 0] / size + 0.5, *RATES)
    joint = (gradient[..., 1:] - means * gradient[..., :1]) / size[..., None]
    return Start(size, means, covariance, _begin(means, covariance, rate, joint), clear, deviation)


def _begin(means: Floats, covariance: Floats, rate: Floats, joint: Floats) -> Floats:
    """The scores whose mean of y and covariances with y these are, were the terms normal."""
    line = np.linalg.solve(covariance, joint[..., None])[..., 0]
    flat = rate * (1 - rate)
    slopes, centre = line / flat[..., None], np.log(rate / (1 - rate))
    for _ in range(STARTS):
        slopes = _limited(slopes)
        centre = np.clip(centre, -MAX_SCORE, MAX_SCORE)
        spread = np.sqrt(np.maximum(np.einsum("...i,...ij,...j->...", slopes, covariance, slopes), 0.0))
        chances = _logistic(centre[..., None] + spread[..., None] * _NODES)
        flat = np.maximum((chances * (1 - chances) * _CHANCES).sum(axis=-1), 1e-4)
        slopes = (slopes + line / flat[..., None]) / 2
        centre = centre + (rate - (chances * _CHANCES).sum(axis=-1)) / flat
    intercept = centre - (slopes * means).sum(axis=-1)
    return np.round(_limited(np.concatenate([intercept[..., None], slopes], axis=-1)), PLACES)


def curvature(scores: Floats, start: Start) -> Floats:
    """Of the likelihood, were the terms normal: the sum of p(1 - p)(1, x)(1, x)'."""
    slopes, means, covariance = scores[..., 1:], start.means, start.covariance
    spread = np.sqrt(np.maximum(np.einsum("...i,...ij,...j->...", slopes, covariance, slopes), 1e-12))
    along = np.einsum("...ij,...j->...i", covariance, slopes) / spread[..., None]
    centre = scores[..., 0] + (slopes * means).sum(axis=-1)
    chances = _logistic(centre[..., None] + spread[..., None] * _NODES)
    steep = chances * (1 - chances) * _CHANCES
    flat, tilt, bent = (np.asarray((steep * power).sum(axis=-1)) for power in (1.0, _NODES, _NODES**2))
    found = np.empty((*scores.shape, scores.shape[-1]))
    found[..., 0, 0] = flat
    found[..., 0, 1:] = found[..., 1:, 0] = flat[..., None] * means + tilt[..., None] * along
    cross = along[..., :, None] * means[..., None, :]
    inner = flat[..., None, None] * (covariance + means[..., :, None] * means[..., None, :])
    inner += (bent - flat)[..., None, None] * along[..., :, None] * along[..., None, :]
    found[..., 1:, 1:] = inner + tilt[..., None, None] * (cross + np.swapaxes(cross, -1, -2))
    return found * start.size[..., None, None]


def step(start: Start, gradient: Floats) -> Floats:
    """The scores after a Newton step by the modelled curvature."""
    change = np.linalg.solve(curvature(start.scores, start), gradient[..., None])[..., 0]
    return np.round(_limited(start.scores + change), PLACES)


def finish(
    scores: Floats,
    start: Start,
    released: tuple[Floats, Floats],
    noise: Sequence[Noise],
    *,
    units: Floats,
    rows: int = 1,
) -> tuple[Floats, ErrorLaw]:
    """The coefficients in their own units but for the constant, and the law of their errors.

    `released`: the last gradient, and the curvature's upper triangle; `noise`: of each.
    """
    gradient, triangle = released
    m = gradient.shape[-1]
    modelled = curvature(scores, start)
    least = np.linalg.eigvalsh(modelled)[..., 0]
    trusted = (MODEL_ERROR * least) ** 2
    asked = trusted / (trusted + m * noise[1].deviation ** 2)
    known = asked[..., None, None] * mirrored(triangle, m) + (1 - asked)[..., None, None] * modelled
    values, vectors = np.linalg.eigh(known)
    values = np.maximum(values, least[..., None] / 4)
    inverse = np.einsum("...ij,...j,...kj->...ik", vectors, 1 / values, vectors)
    change = np.einsum("...ij,...j->...i", inverse, gradient)
    own = np.einsum("ij,...jk->...ik", units, inverse)
    weights = noise_weights(own, np.concatenate([-change, np.ones((*change.shape[:-1], 1))], axis=-1))
    across, down = np.triu_indices(m + 1)
    ordered = np.concatenate(
        [weights[..., (down == m) & (across < m)], weights[..., down < m] * asked[..., None, None]], axis=-1
    )
    gaussian, laplace = noise_law(tuple(noise), ordered)
    # The modelled curvature has the noise of the moments, as far as rows bear on it.
    borne = (1 - asked) * modelled[..., 0, 0] / start.size * start.deviation
    gaussian = gaussian + borne[..., None] ** 2 * (weights[..., down < m] ** 2).sum(axis=-1)
    slip = STEP_ERROR * (1 - asked)[..., None] * np.einsum("ij,...j->...i", units, change)
    sampling = rows * np.maximum(np.einsum("...ij,ij->...i", own, units), 0.0)
    law = ErrorLaw(sampling, np.full_like(sampling, MAX_FREEDOM), gaussian + slip**2, laplace)
    return np.asarray(np.einsum("ij,...j->...i", units, scores + change)), law


def cells(size: float) -> int:
    """How many cells the table of the logistic curve has."""
    return int(min(max(CELLS_ROOT * size**0.5, CELLS[0]), CELLS[1]))


def _logistic(scores: Floats) -> Floats:
    return np.asarray(1 / (1 + np.exp(-scores)))


def _limited(scores: Floats) -> Floats:
    total = np.abs(scores).sum(axis=-1, keepdims=True)
    return np.asarray(scores * np.minimum(1.0, MAX_SCORE / np.maximum(total, 1e-9)))
