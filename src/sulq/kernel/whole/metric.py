"""Spaces an answer may lie in: how far their points are from an exact value, and how far one person moves that.

Privacy: a distance that is a metric on whole vectors moves by no more than the value does, in that metric
[DMNS06, Theorem 2; S4.15]. Values are cut off at the farthest a point may be, which moves no two apart.
Source: docs/theory/metric.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from sulq.kernel.facts import Refused
from sulq.kernel.private import Integers
from sulq.kernel.whole.figure import Move, whole

FARTHEST: Final = 2**40  # in units of the statistic: distances of 2^21 coordinates fit 64 bits
DISTANCES: Final = ("l1", "linf", "hamming", "discrete", "circle")


@dataclass(frozen=True, slots=True)
class Cube:
    """All vectors of zeros and ones, how far apart by the number of places in which they differ [S4.16]."""


@dataclass(frozen=True, slots=True)
class Points:
    """Some points, in whole units of the statistic; `around`: of a "circle" of numbers, how long it is, else 0."""

    points: tuple[tuple[int, ...], ...]
    distance: str
    around: int = 0

    def __post_init__(self) -> None:
        if self.distance not in DISTANCES or not self.points or len({len(point) for point in self.points}) != 1:
            raise Refused("a space that is none")
        whole(self.width, 1, 1 if self.distance == "circle" else 2**21)
        whole(self.around, *((1, 4 * FARTHEST) if self.distance == "circle" else (0, 0)))
        numbers = [number for point in self.points for number in point]
        if set(map(type, numbers)) != {int} or max(map(abs, numbers)) > FARTHEST:
            raise Refused("a point that is none, or farther out than distances are reckoned")

    @property
    def width(self) -> int:
        """Numbers of a point."""
        return len(self.points[0])

    @property
    def even(self) -> bool:
        """Whether the weights of all points add up to the same whatever the value is: each place of a circle is one."""
        return self.around == len(self.points) == len({point[0] % self.around for point in self.points})

    def moved(self, move: Move) -> int:
        """How far one person moves a point's distance, in units; of a circle, no farther than half of it."""
        known = {"l1": move.l1, "linf": move.most, "hamming": move.bits, "discrete": min(move.l1, 1)}
        return known[self.distance] if self.distance in known else min(move.l1, self.around // 2)

    def distances(self, value: Integers) -> Integers:
        """Of each point the distance from the value, in units."""
        points = np.array(self.points, dtype=np.int64)
        apart: Integers = np.abs(points - np.clip(value, -FARTHEST, FARTHEST))
        if self.distance in ("hamming", "discrete"):
            apart = np.minimum(apart, 1)
        if self.distance == "circle":
            apart = np.minimum(apart % self.around, -apart % self.around)
        found: Integers = apart.sum(axis=1) if self.distance in ("l1", "hamming") else apart.max(axis=1)
        return found


@dataclass(frozen=True, slots=True)
class Candidates:
    """The numbers of a statistic as scores, one a candidate: who scores higher is likelier [S3.9, E29, S3.31].

    `weights`: a base measure; a candidate stands so many times among those that one is drawn from.
    Privacy: a score moves as its number does, and no weight does.
    """

    weights: tuple[int, ...]

    def __post_init__(self) -> None:
        for weight in (*self.weights, sum(self.weights)):
            whole(weight, 1, 2**20)


@dataclass(frozen=True, slots=True)
class Nearest:
    """A set of vectors that an owner has named: the answer is how far the value is from the nearest, in L1 [S4.28].

    Privacy: whatever the set is, as long as it follows from no row, that moves no farther than the value does [S4.11].
    """

    set: str


Space = Cube | Points | Candidates | Nearest
