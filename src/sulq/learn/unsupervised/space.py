"""The columns of X as coordinates of a point: in their own units, or each from -1 to 1.

Distances and principal directions depend on units, so these are the columns' own unless
scaling by the declared bounds is asked for, as with scikit-learn. A category is an indicator
for each of its values, 0 or 1. Bounds and lists are public: nothing here is read off the data (T21).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from sulq.language.domain import Bool
from sulq.language.kinds import Floats
from sulq.language.rowfn import Col, RowFn, Vector, WithinBall, case, lit
from sulq.learn.features import Feature, Features

BITS: Final = 15  # of a coordinate on the vector's grid (SR17)
LEAST: Final = 1 / 64  # a coordinate's reach in a weighted vector, at least this part of the largest


class Space:
    """A box of public bounds, one side a coordinate: its middle and half its width, in the units of the model."""

    def __init__(self, features: Features, *, scale: bool) -> None:
        self.features = features
        self.scale = scale
        told = np.array([(0.0, 1.0) if scale else _own(item) for item in features.items])
        self.middle: Floats = told[:, 0]
        self.half: Floats = told[:, 1]

    def __len__(self) -> int:
        return len(self.features)

    def away(self, centre: Floats) -> Floats:
        """How far a point of the box may be from a centre, in each coordinate."""
        found: Floats = self.half + np.abs(centre - self.middle)
        return found

    def inside(self, points: Floats) -> Floats:
        """Points moved into the box."""
        return np.clip(points, self.middle - self.half, self.middle + self.half)

    def rows(self, centre: Floats, unit: Floats | None = None) -> tuple[RowFn, ...]:
        """The coordinates about a centre, each in a unit of its own (one where none is given)."""
        units = np.ones(len(self)) if unit is None else unit
        return tuple(self._row(i, float(centre[i]), float(units[i])) for i in range(len(self)))

    def _row(self, place: int, centre: float, unit: float) -> RowFn:
        item, middle, half = self.features.items[place], float(self.middle[place]), float(self.half[place])
        column = Col(item.column)
        if item.label is not None or isinstance(item.domain, Bool):
            holds = column if item.label is None else column == lit(item.label)
            return case((holds, (middle + half - centre) / unit), otherwise=(middle - half - centre) / unit)
        factor = float(item.half) / half
        return (column - (float(item.middle) - (middle - centre) * factor)) / (unit * factor)

    def vector(self, centre: Floats, unit: Floats | None = None, keep: Sequence[int] | None = None) -> Vector:
        """The coordinates side by side, all or some of them; missing where one of them is."""
        rows = self.rows(centre, unit)
        return Vector(rows if keep is None else tuple(rows[i] for i in keep), BITS)

    def even(self, *, pure: bool) -> Floats:
        """Units in which equal noise on all coordinates of a sum makes the sum of their squared errors smallest.

        A coordinate of half width h in units of u moves by h/u. With Laplace noise on the sum of all
        moves the squared errors are (sum h/u)^2 sum u^2, least at u = h^(1/3); with Gaussian noise
        sum (h/u)^2 sum u^2, least at u = h^(1/2). No coordinate falls below a part of the grid.
        """
        reach = self.half ** (2 / 3 if pure else 1 / 2)
        found: Floats = self.half / np.maximum(reach, reach.max() * LEAST)
        return found

    def transform(self, X: object) -> Floats:
        """An ordinary array or frame as points; outside its bounds a number is clamped, missing it is the middle."""
        found: Floats = self.middle + self.half * self.features.transform(X)
        return found


def _own(item: Feature) -> tuple[float, float]:
    """The middle and half the width of a coordinate in its own units; an indicator is 0 or 1."""
    return (0.5, 0.5) if item.label is not None else (float(item.middle), float(item.half))


def ball(vector: Vector, radius: float, away: Floats) -> Vector | WithinBall:
    """A vector shortened to a radius; as it is where its box lies within."""
    return vector if radius >= float(np.linalg.norm(away)) else WithinBall(vector, radius)


def moved(away: Floats, radius: float, *, pure: bool) -> float:
    """The norm one row's shortened vector has at most, in the norm that counts for the noise."""
    norm = min(float(np.linalg.norm(away)), radius)
    return min(float(away.sum()), norm * float(np.sqrt(len(away)))) if pure else norm
