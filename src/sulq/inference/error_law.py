"""The law of an estimate's error: sampling, whose variance is itself estimated, and the noise of the release.

The noise of a pure spend is Laplace, and a normal quantile of its variance would be too short (a single Laplace draw
passes 1.96 deviations in 6.3% of cases). So probabilities come from the characteristic function of the whole error:
of Laplace noise 1/(1 + b^2 t^2), of Gaussian noise and of sampling exp(-v t^2/2), the latter averaged over the
chi-squared law of an estimated variance, which makes it Student's t.

Accuracy: the midpoint rule for P(|X| <= q) = (2/pi) int sin(tq) phi(t)/t dt, in units of the deviation; what it leaves
out is below 1e-4, measured in tests/inference/test_error_law.py.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from sulq.answers.released import Noise
from sulq.language.kinds import Floats
from sulq.language.law import LaplaceLaw

STEP: Final = 0.12  # of the midpoint rule: the law repeats after 2 pi/STEP = 52 deviations
POINTS: Final = 420  # up to t = 50
NODES: Final = 7  # of the average over an estimated variance
MIN_FREEDOM: Final = 3.0  # degrees of freedom that an estimated variance is taken to have at least
MAX_FREEDOM: Final = 1e9
FARTHEST: Final = 40.0  # deviations beyond which no quantile is looked for
HALVINGS: Final = 40
MIN_P: Final = 1e-6  # the least p-value that is told: the rule is not exact enough for less

_TIMES: Final = STEP * (np.arange(POINTS) + 0.5)


@dataclass(frozen=True, slots=True, eq=False)
class ErrorLaw:
    """Laws of the errors of several estimates; every field has their shape, `laplace` one axis more.

    `sampling`: the variance that a sample of a larger population has, `freedom`: the degrees of freedom it is
    estimated with; `gaussian`: the variance of Gaussian noise; `laplace`: the scales of independent Laplace noise.
    """

    sampling: Floats
    freedom: Floats
    gaussian: Floats
    laplace: Floats

    @property
    def variance(self) -> Floats:
        """The variance of the error."""
        noise: Floats = self.gaussian + 2 * (self.laplace**2).sum(axis=-1)
        return self.sampling + noise

    def within(self, distance: Floats) -> Floats:
        """The probability that the error is at most this far from zero."""
        deviation = np.sqrt(self.variance)
        with np.errstate(all="ignore"):
            return self._within(np.where(deviation > 0, distance / deviation, np.inf), self._waves(deviation))

    def p_value(self, distance: Floats) -> Floats:
        """The probability that the error is farther from zero; no less than `MIN_P`."""
        return np.clip(1.0 - self.within(distance), MIN_P, 1.0)

    def reach(self, level: float) -> Floats:
        """How far from zero the error is, except with probability 1 - level."""
        deviation = np.sqrt(self.variance)
        with np.errstate(all="ignore"):
            waves = self._waves(deviation)
            low, high = np.zeros_like(deviation), np.full_like(deviation, FARTHEST)
            for _ in range(HALVINGS):
                middle = (low + high) / 2
                enough = self._within(middle, waves) >= level
                low, high = np.where(enough, low, middle), np.where(enough, middle, high)
        return np.where(np.isfinite(deviation), high * deviation, np.inf)

    def _within(self, deviations: Floats, waves: Floats) -> Floats:
        near = np.minimum(deviations, FARTHEST)[..., None]
        found = (2 / math.pi) * (np.sin(_TIMES * near) * waves / (np.arange(POINTS) + 0.5)).sum(axis=-1)
        return np.where(deviations >= FARTHEST, 1.0, np.clip(found, 0.0, 1.0))

    def _waves(self, deviation: Floats) -> Floats:
        """The characteristic functions at the points of the rule, in units of the deviation."""
        unit = np.where(deviation > 0, deviation, 1.0)
        squares = _TIMES**2
        found = np.exp(-squares * (self.gaussian / unit**2)[..., None] / 2)
        for i in range(self.laplace.shape[-1]):
            found = found / (1 + squares * (self.laplace[..., i] / unit)[..., None] ** 2)
        share = (self.sampling / unit**2)[..., None]
        nodes, weights = np.polynomial.hermite_e.hermegauss(NODES)
        freedom = np.clip(self.freedom, MIN_FREEDOM, MAX_FREEDOM)[..., None]
        spread = np.sqrt(2 / (9 * freedom))
        total = np.zeros_like(found)
        for node, weight in zip(nodes, weights / weights.sum(), strict=True):
            # Wilson and Hilferty: the cube root of a chi-squared variable over its degrees of freedom is nearly normal.
            ratio = np.maximum(1 - 2 / (9 * freedom) + node * spread, 0.05) ** 3
            total += weight * np.exp(-squares * share / ratio / 2)
        return np.asarray(found * total)


def noise_law(noise: tuple[Noise, ...], weights: Floats) -> tuple[Floats, Floats]:
    """The Gaussian variance and the Laplace scales of weighted sums of released columns, the last axis of `weights`.

    Discrete noise is read as the continuous law of its kind that has its variance.
    """
    each = [one for one in noise for _ in range(one.width)]
    pure = np.array([isinstance(one.law, LaplaceLaw) for one in each])
    deviations = np.array([one.deviation for one in each]) * np.abs(weights)
    gaussian = (deviations[..., ~pure] ** 2).sum(axis=-1)
    return np.asarray(gaussian), np.asarray(deviations[..., pure] / math.sqrt(2))
