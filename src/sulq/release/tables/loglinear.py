"""A table whose logarithm has few interactions, fitted to noisy coefficients: non-negative, and its marginals agree.

The table x = total exp(sum of theta_b u_b)/Z has the coefficients c_b = y_b - r_b (theta_b - base_b) where the convex

    total log Z(theta) - sum theta_b y_b + 1/2 sum r_b (theta_b - base_b)^2

is least. The vectors u_b have the constant's length. Of all tables of this total it is the one with the least of half
the sum of (c_b - y_b)^2/r_b and the divergence from the table of the base, for 0 the even one: r_b says how much of the
noisy y_b is believed (`fitting.py`), and what no coefficient tells is as even as the others allow, not zero.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from sulq.language.kinds import Floats
from sulq.release.tables.descent import Valued, least
from sulq.release.tables.interactions import Places
from sulq.release.tables.vectors import BasisVectors, Turned

LARGEST: Final = 2**21  # cells
GAIN: Final = 0.002  # of the noise's own share in the loss: a step that gains less is too little
ROUND: Final = 40  # steps
ROUNDS: Final = 5  # of each fit at most


@dataclass(frozen=True, slots=True, eq=False)
class LogLinear:
    """The fitted table, by its total and the parameters of each interaction."""

    total: float
    parameters: dict[Places, Floats]

    def table(self, sizes: Sequence[int]) -> Floats:
        """All cells."""
        turned = Turned(sizes)
        flat = np.zeros(math.prod(sizes))
        for part, own in self.parameters.items():
            flat[turned.places(part)] = own
        return _exponential(turned.back(flat), self.total)[0].reshape(tuple(sizes))


def _exponential(energy: Floats, total: float) -> tuple[Floats, float]:
    """A table of this total in proportion to the exponential, and the logarithm of what it was divided by."""
    top = float(energy.max())
    raised = np.exp(energy - top)
    whole = float(raised.sum())
    return raised * (total / whole), top + math.log(whole)


@dataclass(frozen=True, slots=True, eq=False)
class FitTarget:
    """Noisy coefficients and their noise; how far a parameter moves each from what was told, by its gap from `base`."""

    vectors: BasisVectors
    values: Floats
    noise: Floats
    ease: Floats
    base: Floats


def descended(told: FitTarget, theta: Floats, flat: Floats) -> tuple[Floats, Floats]:
    """The parameters, and the table flat; begins at some parameters and their table.

    Steps are taken in units of the loss's own curvature, total var(u_b) + r_b, known anew every ROUND of them: where a
    table is nearly empty its parameters may move far.
    """
    total = float(flat.sum())

    def loss(own: Floats) -> tuple[float, Floats]:
        table, log = _exponential(told.vectors.spread(own), total)
        moved = own - told.base
        slope = told.vectors.told(table) - told.values + told.ease * moved
        return total * log - float(own @ told.values) + 0.5 * float(told.ease @ moved**2), slope

    gain = GAIN * float((told.noise**2).sum()) / (2.0 * total)
    for _ in range(ROUNDS):
        unit = 1.0 / np.sqrt(varied(told.vectors, flat) + told.ease)
        there, gained = least(_scaled(loss, unit), theta / unit, gain=gain, steps=ROUND)
        theta = there * unit
        flat, _ = _exponential(told.vectors.spread(theta), total)
        if gained < ROUND * gain:
            break
    return theta, flat


def _scaled(loss: Valued, unit: Floats) -> Valued:
    """The same function of parameters in other units."""

    def scaled(point: Floats) -> tuple[float, Floats]:
        value, slope = loss(point * unit)
        return value, slope * unit

    return scaled


def varied(vectors: BasisVectors, flat: Floats) -> Floats:
    """How much each vector varies over the rows of a table: the sum of its squares less the squared sum's share."""
    found = vectors.squares(flat) - vectors.told(flat) ** 2 / float(flat.sum())
    return np.asarray(np.maximum(found, 0.0), dtype=np.float64)
