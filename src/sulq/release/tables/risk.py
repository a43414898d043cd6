"""How far a fit is expected to be from the truth, from the noisy coefficients alone: Stein's unbiased estimate.

A fit c(y) to y = truth + noise of deviation s has, for normal noise, the expected squared distance, each coefficient in
units of its noise,

    E sum (c_b - truth_b)^2/s_b^2 = E [ sum (c_b - y_b)^2/s_b^2 + 2 f - m ],   f = sum of dc_b/dy_b,

m the number of coefficients: what was told itself has f = m and the distance m. f is how many coefficients' worth of
noise the fit has taken in. The condition c + r (theta - base) = y of a log-linear fit (`loglinear.py`) gives, along any
change dy, (H + R) dtheta = dy + R dbase and dc = dy - R (dtheta - dbase), H the covariances of the vectors over the
fitted table's rows, R the diagonal of r. The sum of derivatives is the mean of z' dc for dy = z of random signs.
Linear fits need no normal noise, variances alone. Nothing is looked at but answers and the plan's noise [T6].
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from sulq.language.kinds import Floats
from sulq.release.tables.loglinear import FitTarget, varied

PROBED: Final = 1000  # signs of all probes together, about: of many coefficients one probe tells enough
MOST: Final = 8  # probes
STEPS: Final = 40  # of a solution at most
CLOSE: Final = 0.05  # of what is solved for: the gap that is left


def signs(count: int) -> Floats:
    """The probes, one a row; the same ones always, so that fits of different strength are compared by the same."""
    several = min(max(PROBED // max(count, 1), 1), MOST)
    return np.random.default_rng(0).choice((-1.0, 1.0), size=(several, count))


def moved(told: FitTarget, flat: Floats, probes: Floats, base: Floats, start: Floats) -> Floats:
    """How the parameters change, a row for each probe, where what was told changes by it in units of the noise.

    `base`: how the bases change. `start`: where to begin.
    """
    total, sums = float(flat.sum()), told.vectors.told(flat)
    unit = 1.0 / np.sqrt(varied(told.vectors, flat) + told.ease)

    def bent(point: Floats) -> Floats:
        """(H + R) times a vector, in units of its diagonal."""
        own = unit * point
        turned = told.vectors.told(flat * told.vectors.spread(own)) - sums * (float(sums @ own) / total)
        return unit * (turned + told.ease * own)

    goals = probes * told.noise + told.ease * base
    found = [unit * _solved(bent, unit * goal, first / unit) for goal, first in zip(goals, start, strict=True)]
    return np.stack(found)


def risk(told: FitTarget, flat: Floats, probes: Floats, base: Floats, turned: Floats) -> float:
    """The expected squared distance from the truth of the coefficients of a fitted table, in units of their noise."""
    gaps = (told.vectors.told(flat) - told.values) / told.noise
    return float(gaps @ gaps) + 2.0 * freedom(told, probes, base, turned) - len(gaps)


def freedom(told: FitTarget, probes: Floats, base: Floats, turned: Floats) -> float:
    """How many coefficients' worth of noise the fit has taken in: the sum of dc_b/dy_b."""
    left = probes * told.ease / told.noise * (turned - base)
    return float(probes.shape[1] - left.sum() / len(probes))


def _solved(bent: Callable[[Floats], Floats], goal: Floats, start: Floats) -> Floats:
    """Where a positive linear map gives the goal, by conjugate gradients."""
    found = start
    rest = goal - bent(start)
    way = rest
    square = float(rest @ rest)
    enough = CLOSE**2 * float(goal @ goal)
    for _ in range(STEPS):
        if square <= enough:
            break
        turned = bent(way)
        step = square / float(way @ turned)
        found, rest = found + step * way, rest - step * turned
        square, before = float(rest @ rest), square
        way = rest + (square / before) * way
    return found
