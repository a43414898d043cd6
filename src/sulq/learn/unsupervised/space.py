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
from sulq.language.rowfn import Col, Dot, Least, Nearest, Power, RowFn, Vector, WithinBall, WithinL1, case, lit
from sulq.learn.evaluation.prediction import ClusterPrediction, HeldPart, added
from sulq.learn.features import Features
from sulq.learn.noisy_sums import deviations, divisor_of

BITS: Final = 15  # of a coordinate on the vector's grid (SR17)
MIN_RELATIVE_REACH: Final = 1 / 64  # a coordinate's reach in a weighted vector, at least this part of the largest
SHARES: Final = (Fraction(3), Fraction(17), Fraction(5))  # of the question: the number, the mean, the spread
SURE_DEVIATIONS: Final = 2.0  # deviations by which a spread stands out
SQUARE_VARIANCE: Final = 5.0  # of the square of Laplace noise of variance 1; of normal noise, less
CLEAR_DEVIATIONS: Final = 3.0  # deviations of its noise by which a number stands out from what was expected
CLOSE_SPREADS: Final = 1.0  # a squared radius, in spreads, that is large enough
MIN_TRUST: Final = 1 / 17  # a weight, that of noise four times the signal, below which there is none
MIN_RADIUS: Final = 2.0**-9  # a radius, as part of a side of the box, that the vector's grid is fine enough for
CLOSER_SHARES: Final = (Fraction(1), Fraction(1))  # of a closer look: the mean, the squares


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

    Everything is computed from noisy sums and public facts. Where the noise hides it, the mean moves towards the
    middle, and the spread is what the noise lets it be at most: a third of the box, or less.
    """

    count: float  # to divide by: no less than its noise
    least: float  # to rely on: the noisy number less two deviations
    mean: Floats
    doubt: Floats  # the variance of what is not known of each coordinate of the mean
    spread: float  # the sum of the coordinates' variances
    blur: float  # the deviation of that
    sure: bool  # whether the spread stands out from its noise
    variances: Floats  # of the coordinates: as the bounds let expect, or as a closer look found them
    seen: float = 0.0  # the spread as the noisy sums have it, no less than zero

    @property
    def most(self) -> float:
        """How far rows lie from the mean, squared, at most on average: the spread and what is not known of both."""
        return self.spread + self.blur + float(self.doubt.sum())


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
    return summed_squares(space.rows(centre))


def present_rows(space: ColumnSpace) -> tuple[RowFn, ...]:
    """The coordinates about the middle of the bounds; a missing one lies there, as in prediction."""
    return tuple(row.fill(0.0) for row in space.rows(space.middle))


def summed_squares(rows: Sequence[RowFn]) -> Dot:
    """The sum of the squares of some numbers."""
    return Dot(Vector(tuple(Power(row, 2) for row in rows), 15), (1,) * len(rows))


def to_centres(space: ColumnSpace, centres: Floats) -> ClusterPrediction:
    """The nearest centre of a row, and its squared distance from there."""
    rows, away = present_rows(space), (centres - space.middle).tolist()
    key = Nearest(Vector(rows, BITS), tuple(map(tuple, away)))
    several = tuple(summed_squares([row - at for row, at in zip(rows, centre, strict=True)]) for centre in away)
    return ClusterPrediction(key, Least(several))


def by_directions(space: ColumnSpace, mean: Floats, components: Floats) -> HeldPart:
    """What some directions hold of a row's squared distance from a point, and what they do not."""
    away = (mean - space.middle).tolist()
    rows = tuple(row - at for row, at in zip(present_rows(space), away, strict=True))
    vector, whole = Vector(rows, BITS), summed_squares(rows)
    held = added([Power(Dot(vector, tuple(direction), 20), 2) for direction in components.tolist()])
    most = float((space.away(mean) ** 2).sum())
    return HeldPart(held.clip(0, most), (whole - held).clip(0, most))


def locate(space: ColumnSpace, spending: SpendPlan, part: Fraction) -> Location:
    """Ask, and read off the answer what it tells beyond its noise.

    The mean m of the noisy sums is drawn towards the middle by t/(t + s^2), s the noise in it and t its own
    square as far as that stands out (James and Stein), at most that of a mean that is anywhere in the box. Where noise
    hides both, rows spread evenly by as much as they may be must lie within the box too, which leaves the mean less
    room: none where they may fill it.
    """
    released = spending.one(location_question(space, spending), part).released
    count, off, values, noise = read_count(spending, released)
    divisor = divisor_of(count, off)
    unit = space.even(pure=spending.pure)
    found, error = values[:-1] / divisor, float(noise[0]) / divisor
    away, errors = unit * found, unit * error
    seen = float(values[-1] / divisor - (away**2 - errors**2).sum())
    blur = math.sqrt((noise[-1] / divisor) ** 2 + float((4 * away**2 * errors**2 + 2 * errors**4).sum()))
    box = float((space.half**2).sum())
    sure = seen > SURE_DEVIATIONS * blur
    spread = min(seen, box) if sure else min(box / 3, max(seen, 0.0) + SURE_DEVIATIONS * blur)
    square = float((found**2).mean())
    clear = square > error**2 * (1 + SURE_DEVIATIONS * math.sqrt(SQUARE_VARIANCE / len(space)))
    room = 1.0 if sure or clear else (1 - math.sqrt(3 * spread / max(box, 1e-300))) ** 2
    flat = (space.half / unit) ** 2 / 3 * room
    signal = np.minimum(max(square - error**2, 0.0), flat)
    mean = space.inside(space.middle + unit * found * signal / np.maximum(signal + error**2, 1e-300))
    return Location(
        count=divisor,
        least=max(count - 2 * off, 1.0),
        mean=mean,
        doubt=unit**2 * np.minimum(error**2, flat),
        spread=spread,
        blur=min(blur, box),
        sure=sure,
        variances=spread * space.half**2 / max(box, 1e-300),
        seen=min(max(seen, 0.0), box),
    )


def closer_question(space: ColumnSpace, centre: Floats, reach: float) -> Sums:
    """The sums of the coordinates about a centre, and of their squares, of rows within a ball.

    The squares of a row within a ball of radius r sum to r^2, however many there are: their noise is that of one.
    """
    rows = tuple(row.clip(-reach, reach) for row in space.rows(centre))  # for the finer grid
    near = np.minimum(space.away(centre), reach)
    squares = l1_ball(Vector(tuple(Power(row, 2) for row in rows), BITS), reach**2, near**2)
    return Sums((ball(Vector(rows, BITS), reach, near), squares), shares=CLOSER_SHARES)


def close_reach(space: ColumnSpace, where: Location) -> float:
    """How far from the mean rows are looked at more closely."""
    return max(math.sqrt(CLOSE_SPREADS * where.most), float(space.away(where.mean).max()) * MIN_RADIUS)


def foreseen_most(space: ColumnSpace, spending: SpendPlan, where: Location, part: Fraction) -> tuple[float, float]:
    """What `most` would be after a closer look, of rows that spread by a deviation of noise more than was seen.

    And the noise of a column's variance. Free.
    """
    plan = spending.foresee(closer_question(space, where.mean, close_reach(space, where)), part)
    noise, d = deviations(plan)[0] / where.count, len(space)
    blur = float(np.linalg.norm(noise[d:]))
    doubt = where.doubt * noise[:d] ** 2 / np.maximum(where.doubt + noise[:d] ** 2, 1e-300)
    return where.seen + where.blur + blur + float(doubt.sum()), float(noise[d:].max())


def closer(space: ColumnSpace, spending: SpendPlan, where: Location, part: Fraction) -> Location:
    """Ask again, about the mean found and within what the rows spread at most: the mean, and each column's variance.

    A variance is drawn towards what the bounds let expect by as much as noise explains, unless it stands out.
    """
    d = len(space)
    reach = close_reach(space, where)
    released = spending.one(closer_question(space, where.mean, reach), part).released
    values, noise = released.values()[0] / where.count, released.deviations() / where.count
    off, error = values[:d], noise[:d]
    signal = np.minimum(max(float((off**2 - error**2).mean()), 0.0), where.doubt)
    weight = signal / np.maximum(signal + error**2, 1e-300)
    widest = space.half**2  # no variance is larger
    found = np.clip(values[d:] - off**2 + error**2, -widest, widest)
    errors = np.minimum(np.sqrt(noise[d:] ** 2 + 4 * off**2 * error**2 + 2 * error**4), widest)
    blur = float(np.linalg.norm(errors))
    spread = min(float(found.sum()), float((space.half**2).sum()))
    sure = spread > SURE_DEVIATIONS * blur
    prior = where.variances * (max(spread, blur) / max(float(where.variances.sum()), 1e-300))
    gap = np.maximum(found, 0.0) - prior
    clear = 1 - (CLEAR_DEVIATIONS * errors) ** 2 / np.maximum(gap**2, 1e-300)  # what stands out is kept
    return Location(
        count=where.count,
        least=where.least,
        mean=space.inside(where.mean + weight * off),
        doubt=where.doubt * error**2 / np.maximum(where.doubt + error**2, 1e-300),
        spread=spread if sure else min(where.spread, max(spread, 0.0) + SURE_DEVIATIONS * blur),
        blur=min(where.blur, blur),
        sure=sure,
        variances=prior + np.maximum(trust(prior**2, errors**2), clear) * gap,
        seen=max(spread, 0.0),
    )


def trust(signal: Floats, noise: Floats | float) -> Floats:
    """How much of a noisy gap to believe, from 0 to 1, by the variances of signal and noise: of a drowned one, 0."""
    weight = signal / np.maximum(signal + noise, 1e-300)
    return np.asarray(np.where(weight < MIN_TRUST, 0.0, weight))
