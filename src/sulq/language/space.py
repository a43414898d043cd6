"""Metric spaces an answer may lie in: finite, or a grid between bounds, with one of a closed list of distances [S4.15].

A point y is drawn with probability proportional to exp(-d(y, exact)/scale): the minus sign is
what makes near points likely (E42). On an infinite space that need not add up to anything; such a
space is refused, whatever the exact value is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, Literal

import numpy as np

from sulq.errors import QuestionError
from sulq.language.kinds import Floats, Integers
from sulq.language.rowfn.base import figure

DistanceName = Literal["l1", "linf", "hamming", "discrete", "circle"]
DISTANCES: Final = ("l1", "linf", "hamming", "discrete", "circle")
MAX_POINTS: Final = 2**20
MAX_POINT_NUMBERS: Final = 2**22  # of all points of a space together
MAX_DISTANCE_UNITS: Final = 2**40  # in units of the statistic: so that distances of 2^12 coordinates fit 64 bits


@dataclass(frozen=True, slots=True)
class Cube:
    """All vectors of zeros and ones, how far apart by the number of places in which they differ [S4.16].

    Each bit is flipped by itself with probability 1/(1 + e^(epsilon/S)), S being how
    many bits one person moves; not 1/2 - epsilon/(2S), which costs twice as much (E43).
    """


@dataclass(frozen=True, slots=True)
class Points:
    """Some points, each as many numbers as the statistic has; `distance` says how far they are from its value.

    "l1": the differences together; "linf": the largest; "hamming": how many coordinates
    differ; "discrete": 0 if equal, else 1.
    """

    points: tuple[tuple[int | float, ...], ...]
    distance: DistanceName = "l1"

    def __post_init__(self) -> None:
        _known(self.distance)
        if self.distance == "circle":
            raise QuestionError("bad-question", "A circle is a Box of one number, from one end to the other.")
        several = isinstance(self.points, tuple) and all(isinstance(point, tuple) and point for point in self.points)
        if not several or not self.points or len({len(point) for point in self.points}) != 1:
            raise QuestionError("bad-question", "Points are tuples of numbers, all of one length.")
        if len(self.points) > MAX_POINTS or len(self.points) * len(self.points[0]) > MAX_POINT_NUMBERS:
            raise QuestionError("too-large", f"A space has at most {MAX_POINTS:,} points.")
        object.__setattr__(self, "points", tuple(tuple(map(figure, point)) for point in self.points))
        if len(set(self.points)) != len(self.points):
            raise QuestionError("bad-question", "The points of a space are different ones.")

    @property
    def width(self) -> int:
        """Numbers of a point."""
        return len(self.points[0])

    @property
    def size(self) -> int:
        """How many points there are."""
        return len(self.points)

    def exact(self, index: int) -> tuple[Fraction, ...]:
        """A point's coordinates."""
        return tuple(Fraction(number) for number in self.points[index])


@dataclass(frozen=True, slots=True)
class Box:
    """The numbers low, low + step, ... up to high, for a statistic that is one number.

    "circle": the ends meet, as hours of a day do: one step past `high` is `low`. Without
    `low` and `high` there is no end: then only distances that make far points unlikely
    fast enough can be had, and that is what noise without a space is.
    """

    low: int | float | None = None
    high: int | float | None = None
    step: int | float = 1
    distance: DistanceName = "l1"

    def __post_init__(self) -> None:
        _known(self.distance)
        for name in ("low", "high", "step"):
            if name == "step" or getattr(self, name) is not None:
                object.__setattr__(self, name, figure(getattr(self, name)))
        if self.step <= 0:
            raise QuestionError("bad-literal", "A step is a positive number.")
        if (self.low is None) != (self.high is None):
            raise QuestionError("not-normalisable", "A space without one end has infinitely many points.")
        if self.low is None or self.high is None:
            if self.distance in ("hamming", "discrete", "circle"):
                raise QuestionError(
                    "not-normalisable",
                    f"Infinitely many points are equally near by the distance {self.distance!r}: no law has them all.",
                )
            return
        if not self.low < self.high:
            raise QuestionError("bad-literal", "A space goes from one number to a higher one.")
        if self.size > MAX_POINTS:
            raise QuestionError("too-large", f"A space has at most {MAX_POINTS:,} points; take a wider step.")

    @property
    def bounded(self) -> bool:
        """Whether it has ends."""
        return self.low is not None

    @property
    def width(self) -> int:
        """Numbers of a point."""
        return 1

    @property
    def size(self) -> int:
        """How many points there are."""
        if self.low is None or self.high is None:
            return 0
        return math.floor((Fraction(self.high) - Fraction(self.low)) / Fraction(self.step)) + 1

    def exact(self, index: int) -> tuple[Fraction, ...]:
        """A point's coordinates."""
        return (Fraction(self.low or 0) + index * Fraction(self.step),)


@dataclass(frozen=True, slots=True)
class Candidates:
    """The candidates of a utility that the owner has declared: one is drawn, the likelier the better it is [S3.31]."""


def units(space: Points | Box, step: Fraction) -> Integers:
    """The points as whole units of the statistic; refuses what lies between them or too far out."""
    if isinstance(space, Box):
        start, stride = Fraction(space.low or 0) / step, Fraction(space.step) / step
        given = [start, stride]
    else:
        given = [number / step for i in range(space.size) for number in space.exact(i)]
    if any(number.denominator != 1 for number in given):
        raise QuestionError("bad-literal", f"The points must be whole multiples of the statistic's unit, {step}.")
    last = given[0] + (space.size - 1) * given[1] if isinstance(space, Box) else Fraction(0)
    if max(map(abs, (*given, last))) > MAX_DISTANCE_UNITS:
        raise QuestionError("too-large", "A point is farther out than distances are reckoned.")
    if isinstance(space, Box):
        return (int(given[0]) + int(given[1]) * np.arange(space.size, dtype=np.int64))[:, None]
    return np.array([int(number) for number in given], dtype=np.int64).reshape(space.size, space.width)


def values(space: Points | Box, indices: Integers) -> Floats:
    """The points of some places, a row each."""
    return np.array([[float(number) for number in space.exact(int(i))] for i in indices.ravel()])


def _known(distance: str) -> None:
    if not isinstance(distance, str) or distance not in DISTANCES:
        raise QuestionError("bad-question", f"A distance is one of {', '.join(DISTANCES)}.")


Space = Cube | Points | Box | Candidates
SPACES: Final = (Cube, Points, Box, Candidates)
