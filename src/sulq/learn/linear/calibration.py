"""Where to cut a score of two classes and how steeply: one noisy histogram of it, by class.

However many columns a score is made of, a row lies in one bin of it: the question costs as a
count does, and mends what noise did to the intercept and to the scale of the weights.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from sulq.language.kinds import Floats
from sulq.language.question import Sums
from sulq.language.rowfn import Bins, Lit, RowFn

BINS: Final = 32
STANDS_OUT: Final = 2.0  # deviations above which a cell of the histogram holds rows
STEPS: Final = 50
DOUBT: Final = 1.0  # deviations that another cut than the score's own must be better by


@dataclass(frozen=True, slots=True)
class Scale:
    """A histogram of a score: `centre` give or take `reach`, in equal parts; what is farther out is at the end."""

    centre: float
    reach: float

    def question(self, score: RowFn, label: RowFn) -> Sums:
        """How many rows of each class have their score in each part."""
        edges = tuple(float(edge) for edge in np.linspace(-1, 1, BINS + 1))
        return Sums((Lit(1),), by=(label, Bins(((score - self.centre) / self.reach).clip(-1, 1), edges)))

    def line(self, counts: Floats, deviation: float, *, cut: bool) -> tuple[float, float]:
        """The slope and intercept, in terms of the score, of the log-odds of the second class.

        They are those of a logistic regression on the histogram, cells of mere noise left out; with `cut` the
        log-odds are zero where the fewest rows are on the wrong side, which needs no cell to stand out; another cut
        than the score's own must be better by the noise between the two.
        """
        middles = (np.linspace(-1, 1, BINS + 1)[:-1] + np.linspace(-1, 1, BINS + 1)[1:]) / 2
        slope, intercept = _logistic(middles, _cleared(counts, deviation), deviation * np.sqrt(counts.size))
        if cut:
            slope = max(slope, 1e-3)
            below = np.concatenate([[0.0], np.cumsum(counts[0])]) - np.concatenate([[0.0], np.cumsum(counts[1])])
            # Right are those of the first class below a cut and of the second above; cells between two cuts are noisy.
            own = int(np.clip(round((1 - self.centre / self.reach) * BINS / 2), 0, BINS))
            between = np.abs(np.arange(BINS + 1) - own)
            best = int(np.argmax(below - DOUBT * deviation * np.sqrt(2 * between)))
            if 0 < best < BINS:
                intercept = -slope * (2 * best / BINS - 1)
        slope /= self.reach
        return slope, intercept - slope * self.centre


def _cleared(counts: Floats, deviation: float) -> Floats:
    """The cells that stand out from the noise, each class with its own total."""
    found = np.where(counts > STANDS_OUT * deviation, counts, 0.0)
    found = np.where(found.sum(axis=1, keepdims=True) > 0, found, np.maximum(counts, 0.0))
    total = np.maximum(counts.sum(axis=1, keepdims=True), 1.0)
    cleared: Floats = found * total / np.maximum(found.sum(axis=1, keepdims=True), 1e-9)
    return cleared


def _logistic(points: Floats, counts: Floats, noise: float) -> tuple[float, float]:
    """Slope and intercept of a logistic regression of two classes counted at points, by damped Newton steps."""
    total = max(float(counts.sum()), 1.0)
    penalty = (1 + 0.005 * noise) / total
    found = np.array([0.0, np.log((counts[1].sum() + 0.5) / (counts[0].sum() + 0.5))])
    terms = np.stack([points, np.ones_like(points)])
    for _ in range(STEPS):
        p = 1 / (1 + np.exp(-np.clip(found @ terms, -30, 30)))
        gradient = terms @ (counts.sum(axis=0) * p - counts[1]) / total + [2 * penalty * found[0], 0]
        hessian = (terms * (counts.sum(axis=0) * p * (1 - p) / total)) @ terms.T + np.diag([2 * penalty, 1e-6])
        step = np.linalg.solve(hessian, gradient)
        found = found - step / max(1.0, float(np.abs(step).max()) / 2)
    return float(np.clip(found[0], -80, 80)), float(np.clip(found[1], -80, 80))
