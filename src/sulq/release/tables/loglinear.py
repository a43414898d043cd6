"""A table whose logarithm has few interactions, fitted to noisy coefficients: non-negative, and its marginals agree.

The table x = total exp(sum of theta_b u_b)/Z minimises, over all tables of this total, the squared gaps between its
coefficients c_b and the noisy y_b in units of their noise, plus a little of its distance from evenness (in the sense
of entropy): at the least point c_b = y_b - r_b theta_b, and theta is where the convex

    total log Z(theta) - sum theta_b y_b + 1/2 sum r_b theta_b^2

is least. The vectors u_b have the constant's length; r_b = EASE times the noise of y_b, so a theta of one moves a
coefficient by that part of its noise. What no coefficient tells is as even as the others allow, not zero.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from sulq.release.tables.basis import basis, lengths, norms, product
from sulq.release.tables.coefficients import own_sizes
from sulq.release.tables.descent import Valued, least
from sulq.release.tables.interactions import Places, cells
from sulq.terms.kinds import Floats, Integers

LARGEST: Final = 2**21  # cells
BLOCK: Final = 32  # cells of attributes that are turned at once
EASE: Final = 0.3
GAIN: Final = 0.01  # of the noise's own share in the loss: a step that gains less is too little
ROUND: Final = 40  # steps
ROUNDS: Final = 5  # of each order's fit at most


class Turned:
    """Sums against all products of the attributes' vectors at once, each scaled to the constant's length."""

    def __init__(self, sizes: Sequence[int]) -> None:
        self.sizes = tuple(sizes)
        self._blocks: list[Floats] = []
        for size in sizes:
            own = np.asarray(basis(size) * np.sqrt(size / norms(size))[:, None], dtype=np.float64)
            if self._blocks and len(self._blocks[-1]) * size <= BLOCK:
                self._blocks[-1] = np.asarray(np.kron(self._blocks[-1], own), dtype=np.float64)
            else:
                self._blocks.append(own)

    def forward(self, table: Floats) -> Floats:
        """All coefficients of a table; flat, as the table is."""
        for block in self._blocks:  # each turns the first axes and puts them last, so that all are in order again
            table = (table.reshape(len(block), -1).T @ block.T).ravel()
        return table

    def back(self, coefficients: Floats) -> Floats:
        """The sum of the vectors, each times its number."""
        for block in self._blocks:
            coefficients = (coefficients.reshape(len(block), -1).T @ block).ravel()
        return coefficients

    def places(self, part: Places) -> Integers:
        """Where an interaction's coefficients are."""
        found = np.zeros(1, dtype=np.int64)
        for place in part:
            step = math.prod(self.sizes[place + 1 :])
            found = (found[:, None] + step * np.arange(1, self.sizes[place])).ravel()
        return found


def scale(part: Places, sizes: Sequence[int]) -> Floats:
    """What an interaction's coefficients are multiplied by, so that their vectors have the constant's length."""
    return np.asarray(np.sqrt(cells(part, sizes) / lengths(own_sizes(part, sizes))))


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


def descended(
    turned: Turned, ready: dict[Places, tuple[Floats, Floats]], theta: dict[Places, Floats], flat: Floats
) -> tuple[dict[Places, Floats], Floats]:
    """The parameters, and the table flat; begins at the parameters of smaller interactions and their table.

    Steps are taken in units of the loss's own curvature, total var(u_b) + r_b, known anew every ROUND of them: where a
    table is nearly empty its parameters may move far.
    """
    total = float(flat.sum())
    places = np.concatenate([turned.places(part) for part in ready])
    target = np.concatenate([value for value, _ in ready.values()])
    noise = np.concatenate([own for _, own in ready.values()])
    ease = EASE * noise
    whole = np.zeros(math.prod(turned.sizes))
    ends = np.cumsum([len(value) for value, _ in ready.values()])[:-1]

    def tabled(own: Floats) -> tuple[Floats, float]:
        whole[places] = own
        return _exponential(turned.back(whole), total)

    def loss(own: Floats) -> tuple[float, Floats]:
        table, log = tabled(own)
        slope = turned.forward(table)[places] - target + ease * own
        return total * log - float(own @ target) + 0.5 * float(ease @ own**2), slope

    here = np.concatenate([theta.get(part, np.zeros(len(value))) for part, (value, _) in ready.items()])
    gain = GAIN * float((noise**2).sum()) / (2.0 * total)
    for _ in range(ROUNDS):
        unit = 1.0 / np.sqrt(_varied(turned, ready, flat) + ease)
        there, gained = least(_scaled(loss, unit), here / unit, gain=gain, steps=ROUND)
        here = there * unit
        flat, _ = tabled(here)
        if gained < ROUND * gain:
            break
    return dict(zip(ready, np.split(here, ends), strict=True)), flat


def _scaled(loss: Valued, unit: Floats) -> Valued:
    """The same function of parameters in other units."""

    def scaled(point: Floats) -> tuple[float, Floats]:
        value, slope = loss(point * unit)
        return value, slope * unit

    return scaled


def _varied(turned: Turned, parts: Iterable[Places], flat: Floats) -> Floats:
    """How much each vector varies over the rows of a table: the sum of its squares less the squared sum's share."""
    table = flat.reshape(turned.sizes)
    total = float(flat.sum())
    found = []
    for part in parts:
        others = tuple(i for i in range(len(turned.sizes)) if i not in part)
        own = table.sum(axis=others).ravel()
        vectors = product(own_sizes(part, turned.sizes)) * scale(part, turned.sizes)[:, None]
        found.append(vectors**2 @ own - (vectors @ own) ** 2 / total)
    return np.asarray(np.maximum(np.concatenate(found), 0.0), dtype=np.float64)
