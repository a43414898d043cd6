"""Where the rows lie: their number, their mean and their spread, from one question."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np

from sulq.answers.spend_plan import Purse
from sulq.language.kinds import Floats
from sulq.language.question import Sums
from sulq.language.rowfn import Dot, Power, RowFn, Vector
from sulq.learn.unsupervised.space import Space

SHARES: Final = (Fraction(3), Fraction(17), Fraction(5))  # of the question: the number, the mean, the spread
SAFE: Final = 3.0  # deviations of its noise that a number is at least, where something is divided by it
SURE: Final = 2.0  # deviations by which a spread stands out


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


def question(space: Space, purse: Purse) -> Sums:
    """The number of rows that have all coordinates, unless it is public; their sums; their squared distances."""
    vector = space.vector(space.middle, space.even(pure=purse.pure))
    count = () if purse.facts.size is not None else (present(vector),)
    shares = SHARES[0 if count else 1 :]
    return Sums((*count, vector, squared(space, space.middle)), shares=shares)


def present(vector: Vector) -> RowFn:
    """That a row has all coordinates."""
    return ~vector.is_missing()


def squared(space: Space, centre: Floats) -> Dot:
    """The squared distance from a centre."""
    return Dot(Vector(tuple(Power(row, 2) for row in space.rows(centre)), 15), (1,) * len(space))


def locate(space: Space, purse: Purse, part: Fraction) -> Location:
    """Ask, and read off the answer what it tells beyond its noise.

    The mean m of the noisy sums is drawn towards the middle by t/(t + s^2), s the noise in it and t its own
    square as far as that stands out (James and Stein), at most that of rows spread over the box.
    """
    released = purse.one(question(space, purse), part).released
    values, noise = released.values()[0], released.deviations()
    size = purse.facts.size
    if size is None:
        count, off, values, noise = float(values[0]), float(noise[0]), values[1:], noise[1:]
    else:
        count, off = float(size), 0.0
    divisor = max(count, SAFE * off, 1.0)
    unit = space.even(pure=purse.pure)
    flat = (space.half / unit) ** 2 / 3
    found, error = values[:-1] / divisor, float(noise[0]) / divisor
    signal = np.minimum(max(float((found**2).mean()) - error**2, 0.0), flat)
    mean = space.inside(space.middle + unit * found * signal / np.maximum(signal + error**2, 1e-300))
    away, errors = unit * found, unit * error
    spread = values[-1] / divisor - float((away**2 - errors**2).sum())
    blur = math.sqrt((noise[-1] / divisor) ** 2 + float((4 * away**2 * errors**2 + 2 * errors**4).sum()))
    box = float((space.half**2).sum())
    sure = spread > SURE * blur
    return Location(
        count=divisor,
        least=max(count - 2 * off, 1.0),
        mean=mean,
        doubt=unit**2 * np.minimum(error**2, flat),
        spread=min(spread, box) if sure else box / 3,
        blur=min(blur, box) if sure else box,
        sure=sure,
    )
