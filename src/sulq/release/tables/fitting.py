"""The table that a model publishes: fitted order by order, interactions believed as far as they stand out of the noise.

The fit to interactions of fewer attributes foretells the next. If the gaps' mean square is g^2 and the noise's s^2,
then interactions of that order differ from the foretold by about t^2 = g^2 - s^2, and the mean of what is measured and
what is foretold, weighted by 1/s^2 and 1/t^2, is nearer to the truth than either. t is taken of each interaction with
many coefficients, and of all of its order otherwise. All of it is made from noisy answers and the plan's noise [T6].
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from sulq.release.tables.basis import product
from sulq.release.tables.coefficients import Coefficients, own_sizes
from sulq.release.tables.interactions import Places, inside, width
from sulq.release.tables.loglinear import LogLinear, Turned, descended, scale
from sulq.release.tables.proportional import nearest, scaled
from sulq.terms.kinds import Floats

POOL: Final = 8.0  # coefficients that the whole order counts as, beside an interaction's own
LEAST: Final = 1e-3  # part of an interaction that is worth fitting
FEW: Final = 2  # values of an attribute up to which steps in all parameters at once are better

Told = dict[Places, tuple[Floats, Floats]]  # coefficients of vectors of the constant's length, and their noise


def fit(found: Coefficients) -> LogLinear:
    """The table for these noisy coefficients."""
    sizes = found.sizes
    total = max(float(found.values[()][0]), 1.0)
    table = np.full(sizes, total / math.prod(sizes))
    few = max(sizes) <= FEW
    turned = Turned(sizes)
    ready: Told = {}
    kept: dict[Places, Floats] = {(): np.array([total])}
    theta: dict[Places, Floats] = {}
    for order in range(1, 1 + max(map(len, found.values))):
        told = {
            part: (found.values[part] * scale(part, sizes), found.deviations[part] * scale(part, sizes))
            for part in found.values
            if len(part) == order
        }
        foretold = {part: _of(table, part) for part in told}
        new = believed(told, foretold)
        kept |= {part: new.get(part, (foretold[part],))[0] for part in told}
        ready |= new
        if new and few:
            theta, flat = descended(turned, ready, theta, table.ravel())
            table = flat.reshape(sizes)
        elif new:
            targets = {part: nearest(_marginal(kept, part, sizes), total) for part in told}
            table, logs = scaled(table, targets)
            for marginal, own in logs.items():
                _added(theta, marginal, own, sizes)
    return LogLinear(total, theta)


def believed(told: Told, foretold: dict[Places, Floats]) -> Told:
    """Each interaction of one order moved towards what is foretold; left out where nothing stands out."""
    gaps = {part: value - foretold[part] for part, (value, _) in told.items()}
    over = {part: float((gap**2 - told[part][1] ** 2).sum()) for part, gap in gaps.items()}
    whole = sum(over.values()) / max(sum(len(gap) for gap in gaps.values()), 1)
    found = {}
    for part, gap in gaps.items():
        spread = max((over[part] + POOL * whole) / (len(gap) + POOL), 0.0)
        value, noise = told[part]
        share = spread / (spread + noise**2)
        if float(share.max(initial=0.0)) > LEAST:
            found[part] = (value - (1.0 - share) * gap, noise * np.sqrt(share))
    return found


def _added(theta: dict[Places, Floats], marginal: Places, logs: Floats, sizes: tuple[int, ...]) -> None:
    """The parameters of a marginal's factors, beside those that are there; the constant is the total's."""
    for part in inside(marginal):
        if part and width(part, sizes):
            others = tuple(i for i, place in enumerate(marginal) if place not in part)
            mean = logs.sum(axis=others).ravel() / logs.size
            own = (product(own_sizes(part, sizes)) @ mean) * scale(part, sizes)
            theta[part] = theta.get(part, np.zeros(len(own))) + own


def _of(table: Floats, part: Places) -> Floats:
    """An interaction's coefficients of a table."""
    own = table.sum(axis=tuple(i for i in range(table.ndim) if i not in part)).ravel()
    return np.asarray((product(own_sizes(part, table.shape)) @ own) * scale(part, table.shape))


def _marginal(kept: dict[Places, Floats], places: Places, sizes: tuple[int, ...]) -> Floats:
    """A marginal from its coefficients."""
    values = {part: own / scale(part, sizes) for part, own in kept.items() if set(part) <= set(places)}
    silent = {part: np.zeros(len(own)) for part, own in values.items()}
    return Coefficients(sizes, (places,), values, silent, "laplace").marginal(places)
