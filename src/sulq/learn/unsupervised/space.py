"""The columns of X as coordinates of a point, and where the rows lie: number, mean and spread from one question.

Coordinates are in the columns' own units, or each from -1 to 1. Distances and principal directions depend on units,
so scaling by the declared bounds is by request, as with scikit-learn. A category is an indicator for each of its
values, 0 or 1. Bounds and lists are public: nothing here is read off the data (T21).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np

from sulq.answers.oracle import SpendPlan
from sulq.answers.released import Released
from sulq.language.domain import Bool
from sulq.language.kinds import Floats
from sulq.language.question import Sums
from sulq.language.rowfn import Col, Dot, Power, RowFn, Vector, WithinBall, WithinL1, case, lit
from sulq.learn.features import Features
from sulq.learn.noisy_sums import divisor_of

BITS: Final = 15  # of a coordinate on the vector's grid (SR17)
MIN_RELATIVE_REACH: Final = 1 / 64  # a coordinate's reach in a weighted vector, at least this part of the largest
SHARES: Final = (Fraction(3), Fraction(17), Fraction(5))  # of the question: the number, the mean, the spread
SURE_DEVIATIONS: Final = 2.0  # deviations by which a spread stands out


class ColumnSpace:
    """A box of public bounds, one side a coordinate: its middle and half its width, in the units of the model."""

    def __init__(self, features: Features, *, scale: bool) -> None:
        self.features = features
        self.scale = scale
        # The middle and half the width of a coordinate in its own units; an indicator is 0 or 1.
        items = features.items
        own = [(0.5, 0.5) if item.label is not None else (float(item.middle), float(item.half)) for item in items]
        self._own = own
        told = np.array([(0.0, 1.0)] * len(items) if scale else own)
        self.middle: Floats = told[:, 0]
        self.half: Floats = told[:, 1]

    def __len__(self) -> int:
        return len(self.half)

    def away(self, centre: Floats) -> Floats:
        """How far a point of the box may be from a centre, in each coordinate."""
        return self.half + np.abs(centre - self.middle)

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
        own_middle, own_half = self._own[place]
        factor = own_half / half
        return (column - (own_middle - (middle - centre) * factor)) / (unit * factor)

    def vector(self, centre: Floats, unit: Floats | None = None, keep: Sequence[int] | None = None) -> Vector:
        """The coordinates side by side, all or some of them; missing where one of them is."""
        rows = self.rows(centre, unit)
        return Vector(rows if keep is None else tuple(rows[i] for i in keep), BITS)

    @property
    def longest(self) -> float:
        """The largest L1 norm of a row, by public facts: of a category's indicators, where they are 0 or 1, one is 1.

        With a unit of the grid for each coordinate, so that rounding takes no row past it.
        """
        away = self.away(np.zeros(len(self)))
        whole = np.array([self.scale or item.label is None for item in self.features.items])
        lists = {item.column for item in self.features.items if not self.scale and item.label is not None}
        return float(away[whole].sum()) + len(lists) + len(self) * float(away.max()) / 2**BITS

    @property
    def even_spread(self) -> float:
        """The sum of the variances of rows spread evenly over the bounds, and over the values of each category."""
        labels = Counter(item.column for item in self.features.items if item.label is not None)
        numbers = [half for half, item in zip(self.half, self.features.items, strict=True) if item.label is None]
        return float(sum(half**2 for half in numbers)) / 3 + sum(1 - 1 / size for size in labels.values())

    def even(self, *, pure: bool) -> Floats:
        """Units in which equal noise on all coordinates of a sum makes the sum of their squared errors smallest.

        A coordinate of half width h in units of u moves by h/u. With Laplace noise on the sum of all
        moves the squared errors are (sum h/u)^2 sum u^2, least at u = h^(1/3); with Gaussian noise
        sum (h/u)^2 sum u^2, least at u = h^(1/2). No coordinate falls below a part of the grid.
        """
        reach = self.half ** (2 / 3 if pure else 1 / 2)
        return np.asarray(self.half / np.maximum(reach, reach.max() * MIN_RELATIVE_REACH))

    def transform(self, X: object) -> Floats:
        """An ordinary array or frame as points; outside its bounds a number is clamped, missing it is the middle."""
        return self.middle + self.half * self.features.transform(X)


def ball(vector: Vector, radius: float, away: Floats) -> Vector | WithinBall:
    """A vector shortened to a radius; as it is where its box lies within."""
    return vector if radius >= float(np.linalg.norm(away)) else WithinBall(vector, radius)


def l1_ball(vector: Vector, bound: float, away: Floats) -> Vector | WithinL1:
    """A vector shortened to an L1 norm; as it is where its box lies within."""
    return vector if bound >= float(away.sum()) else WithinL1(vector, bound)


def moved(away: Floats, radius: float, *, pure: bool) -> float:
    """The norm one row's shortened vector has at most, in the norm that counts for the noise."""
    norm = min(float(np.linalg.norm(away)), radius)
    return min(float(away.sum()), norm * float(np.sqrt(len(away)))) if pure else norm


@dataclass(frozen=True, slots=True)
class Location:
    """What a first look tells, with what is not known of it.

    Everything is computed from noisy sums and public facts. Where the noise hides it, the rows are
    taken to lie as if spread evenly over the box: the mean moves towards the middle, the spread is a third.
    """

    count: float  # to divide by: no less than its noise
    least: float  # to rely on: the noisy number less two deviations
    mean: Floats
    doubt: Floats  # the variance of what is not known of each coordinate of the mean
    spread: float  # the sum of the coordinates' variances
    blur: float  # the deviation of that
    sure: bool  # whether the spread stands out from its noise


def location_question(space: ColumnSpace, spending: SpendPlan) -> Sums:
    """The number of rows that have all coordinates, unless it is public; their sums; their squared distances."""
    vector = space.vector(space.middle, space.even(pure=spending.pure))
    return with_count(spending, SHARES, vector, squared(space, space.middle), counted=vector)


def with_count(spending: SpendPlan, shares: tuple[Fraction, ...], *values: RowFn, counted: Vector) -> Sums:
    """Sums of some values and, before them, the number of rows that have all coordinates, unless it is public."""
    count = () if spending.facts.size is not None else (present(counted),)
    return Sums((*count, *values), shares=shares[1 - len(count) :])


def read_count(spending: SpendPlan, released: Released) -> tuple[float, float, Floats, Floats]:
    """The number of rows with the deviation of its noise, then the other values with theirs."""
    values, noise = released.values()[0], released.deviations()
    if spending.facts.size is not None:
        return float(spending.facts.size), 0.0, values, noise
    return float(values[0]), float(noise[0]), values[1:], noise[1:]


def present(vector: Vector) -> RowFn:
    """That a row has all coordinates."""
    return ~vector.is_missing()


def squared(space: ColumnSpace, centre: Floats) -> Dot:
    """The squared distance from a centre."""
    return Dot(Vector(tuple(Power(row, 2) for row in space.rows(centre)), 15), (1,) * len(space))


def locate(space: ColumnSpace, spending: SpendPlan, part: Fraction) -> Location:
    """Ask, and read off the answer what it tells beyond its noise.

    The mean m of the noisy sums is drawn towards the middle by t/(t + s^2), s the noise in it and t its own
    square as far as that stands out (James and Stein), at most that of rows spread over the box.
    """
    released = spending.one(location_question(space, spending), part).released
    count, off, values, noise = read_count(spending, released)
    divisor = divisor_of(count, off)
    unit = space.even(pure=spending.pure)
    flat = (space.half / unit) ** 2 / 3
    found, error = values[:-1] / divisor, float(noise[0]) / divisor
    signal = np.minimum(max(float((found**2).mean()) - error**2, 0.0), flat)
    mean = space.inside(space.middle + unit * found * signal / np.maximum(signal + error**2, 1e-300))
    away, errors = unit * found, unit * error
    spread = values[-1] / divisor - float((away**2 - errors**2).sum())
    blur = math.sqrt((noise[-1] / divisor) ** 2 + float((4 * away**2 * errors**2 + 2 * errors**4).sum()))
    box = float((space.half**2).sum())
    sure = spread > SURE_DEVIATIONS * blur
    return Location(
        count=divisor,
        least=max(count - 2 * off, 1.0),
        mean=mean,
        doubt=unit**2 * np.minimum(error**2, flat),
        spread=min(spread, box) if sure else box / 3,
        blur=min(blur, box) if sure else box,
        sure=sure,
    )
