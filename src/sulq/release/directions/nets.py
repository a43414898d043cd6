"""Nets: finitely many directions such that every direction is near one of them, or near the opposite of one.

Near is by the angle (E33): the sine alone takes y for -y, whose halfspaces are complementary. A halfspace and its
opposite are one count, so a net holds one direction of each opposite pair. `cosine` is proved for every net here:
no direction of the space has a smaller largest cosine, up to sign, with the net's own.
"""

from __future__ import annotations

import functools
import itertools
import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from sulq.errors import QuestionError
from sulq.language.kinds import Floats, Integers

MOST: Final = 4000  # directions of one net
MOST_RELAXED: Final = 250
LEAST: Final = 1.1  # times the sphere's area that caps must have to cover it; about, a start for the search
TRIAL: Final = 3000  # points by which a net is relaxed
ROUNDS: Final = 25
SIGNS: Final = 8  # dimensions up to which a net of signs is small enough
SLACK: Final = 1e-9  # for the rounding of cosines


@dataclass(frozen=True, slots=True, eq=False)
class Net:
    """Unit vectors, one a row, and the cosine of the covering radius."""

    vectors: Floats
    cosine: float

    @property
    def sine(self) -> float:
        """The covering radius as the papers measure distance."""
        return math.sqrt(max(1.0 - self.cosine**2, 0.0))

    def nearest(self, points: Floats) -> tuple[Integers, Floats]:
        """For each point the nearest direction's place, and its cosine: negative where the opposite is the nearest."""
        length = np.linalg.norm(points, axis=1)
        cosines = points @ self.vectors.T / np.maximum(length, 1e-300)[:, None]
        place = np.abs(cosines).argmax(axis=1)
        found: Floats = cosines[np.arange(len(points)), place]
        return place.astype(np.int64), found


def net(dimension: int, sine: float) -> Net:
    """A net of unit vectors within which every direction lies at an angle of at most arcsin(sine), up to sign.

    Two dimensions: angles spaced 2 arcsin(sine) [S3.26]. Three: a relaxed spiral whose radius is verified. More: all
    vectors of signs -1, 0, 1, whose radius is known.

    Raises:
        QuestionError: `too-large`: the net would be too large; the message names what fits.
    """
    if dimension == 1:
        return Net(np.ones((1, 1)), 1.0)
    if dimension == 2:
        return _angles(sine)
    if dimension == 3:
        return _relaxed(sine)
    return _signs(dimension, sine)


def _angles(sine: float) -> Net:
    """Directions in the plane: half a turn divided evenly, no further apart than twice the radius."""
    wish = math.ceil(math.pi / (2 * math.asin(min(sine, 1.0))) - SLACK)
    if wish > MOST:
        raise _large(wish, math.sin(math.pi / (2 * MOST)))
    number = max(wish, 2)
    turns = np.arange(number) * (math.pi / number)
    return Net(np.stack([np.cos(turns), np.sin(turns)], axis=1), math.cos(math.pi / (2 * number)))


@functools.lru_cache(maxsize=32)
def _relaxed(sine: float) -> Net:
    """The smallest number of relaxed points whose caps are verified to cover the sphere."""
    wanted = math.sqrt(1.0 - min(sine, 1.0) ** 2)
    number = max(3, math.floor(LEAST / max(1.0 - wanted, 1e-12)))  # 1/(1 - cos) caps have half the sphere's area
    while number <= MOST_RELAXED:
        vectors = relaxed(number)
        if covers(vectors, wanted):
            return Net(vectors, wanted)
        number += 1 + number // 50
    raise _large(number, 0.12)


def spiral(number: int) -> Floats:
    """Points on the upper half of the sphere, evenly by area, a golden turn from one to the next (Fibonacci)."""
    place = np.arange(number) + 0.5
    height = 1.0 - place / number
    turn = place * (math.pi * (1.0 + math.sqrt(5.0)))
    ring = np.sqrt(1.0 - height**2)
    found: Floats = np.stack([ring * np.cos(turn), ring * np.sin(turn), height], axis=1)
    return found


def relaxed(number: int) -> Floats:
    """A spiral's points moved apart: each again and again to the middle of the trial points that are nearest to it."""
    trial = spiral(TRIAL)
    vectors = spiral(number)
    for _ in range(ROUNDS):
        cosines = trial @ vectors.T
        place = np.abs(cosines).argmax(axis=1)
        sign = np.where(cosines[np.arange(TRIAL), place] < 0, -1.0, 1.0)
        moved = trial * sign[:, None]
        middle = np.stack([np.bincount(place, moved[:, i], number) for i in range(3)], axis=1)
        length = np.linalg.norm(middle, axis=1)[:, None]
        vectors = np.where(length > SLACK, middle / np.maximum(length, SLACK), vectors)
    return vectors


def covers(vectors: Floats, cosine: float) -> bool:
    """Whether caps of this angular radius r about unit vectors and their opposites cover the sphere.

    They do if the rim of each cap lies within the others: what is left uncovered would have a rim as its border. On
    the rim of c, another centre at an angle t < 2r covers an arc of half-width arccos(tan(t/2)/tan r) about its own
    direction. Arcs are shortened a little: rounding never
    makes it yes.
    """
    points = np.concatenate([vectors, -vectors])
    tangent = math.sqrt(max(1.0 - cosine**2, 0.0)) / max(cosine, SLACK)
    for place, centre in enumerate(vectors):
        others = np.delete(points, place, axis=0)
        near = others @ centre
        ratio = np.sqrt(np.maximum(1.0 - near, 0.0) / np.maximum(1.0 + near, SLACK)) / tangent
        inside = ratio < 1.0
        half = np.arccos(ratio[inside]) - SLACK
        aside = np.linalg.svd(centre[None, :])[2][1:]  # two directions across the centre
        along = others[inside] @ aside.T
        start = np.mod(np.arctan2(along[:, 1], along[:, 0]) - half, 2 * math.pi)
        if not _full(start, start + 2 * half):
            return False
    return True


def _full(starts: Floats, ends: Floats) -> bool:
    """Whether arcs cover a whole turn."""
    reach = float((ends - 2 * math.pi).max(initial=0.0))  # arcs that pass the end begin at the start again
    for i in np.argsort(starts):
        if starts[i] > reach:
            return False
        reach = max(reach, float(ends[i]))
    return reach >= 2 * math.pi


def _signs(dimension: int, sine: float) -> Net:
    """All directions of signs -1, 0, 1.

    For a unit y with y_1 >= y_2 >= .. >= 0 the best of them has a cosine of max_j (y_1 + .. + y_j)/sqrt(j).
    That is least where all are equal, at y_j in proportion to sqrt(j) - sqrt(j - 1): the cosine of the covering radius
    is the sum of (sqrt(j) - sqrt(j - 1))^2 to the power -1/2. (docs/theory/halfspaces.md)
    """
    if dimension > SIGNS:
        raise QuestionError(
            "too-large",
            f"A net in {dimension} dimensions would have {(3**dimension - 1) // 2:,} directions.",
            f"Project to fewer: dimension=2, 3, or up to {SIGNS}.",
        )
    cosine = signs_cosine(dimension)
    if math.sqrt(1.0 - cosine**2) > sine + SLACK:
        raise _large(0, math.sqrt(1.0 - cosine**2))
    every = np.array(list(itertools.product((-1.0, 0.0, 1.0), repeat=dimension)))
    half = every[len(every) // 2 + 1 :]  # in this order the second half are the opposites of the first
    return Net(half / np.linalg.norm(half, axis=1)[:, None], cosine)


def signs_cosine(dimension: int) -> float:
    """The cosine of the covering radius of all directions of signs."""
    roots = np.sqrt(np.arange(dimension + 1))
    return float(1.0 / np.linalg.norm(np.diff(roots)))


def _large(number: int, sine: float) -> QuestionError:
    wish = f" of {number:,} directions" if number else ""
    return QuestionError(
        "too-large",
        f"A net{wish} for so small a distance is not made in this many dimensions.",
        f"Allow a distance (sine) of {math.ceil(sine * 1000) / 1000} or more, or project to fewer dimensions.",
    )
