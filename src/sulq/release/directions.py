"""Halfspaces: nets of directions, the planes that are asked, and the sizes that the papers prove, with their errata.

A net is finitely many directions such that every direction is near one of them, or near the opposite of one. Near is by
the angle (E33): the sine alone takes y for -y, whose halfspaces are complementary. A halfspace and its opposite are one
count, so a net holds one direction of each opposite pair. `cosine` is proved for every net here: no direction of the
space has a smaller largest cosine, up to sign, with the net's own. Planes are public whole numbers: no float decides
about a row.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from statistics import NormalDist
from typing import Final

import numpy as np

from sulq.answers.oracle import SpendPlan
from sulq.answers.plan import Plan
from sulq.answers.released import Noise
from sulq.errors import QuestionError
from sulq.forms.parameters import between, checked, whole
from sulq.language.domain import Bool, Column, Int, Real, Schema
from sulq.language.kinds import Floats, Integers
from sulq.language.privacy import Epsilon, EpsilonDelta, Loss, Rho
from sulq.language.question import Sums
from sulq.language.rowfn import Col, Dot, RowFn, Vector
from sulq.release.space import COLUMNS, domain_of, listed

MAX_DIRECTIONS: Final = 4000  # directions of one net
MAX_RELAXED_DIRECTIONS: Final = 250
FIRST_AREA: Final = 1.1  # times the sphere's area that caps must have to cover it; about, a start for the search
TRIAL_POINTS: Final = 3000  # points by which a net is relaxed
RELAXING_ROUNDS: Final = 25
MAX_SIGN_DIMENSIONS: Final = 8  # dimensions up to which a net of signs is small enough
SLACK: Final = 1e-9  # for the rounding of cosines
BITS: Final = 15  # of a coordinate on the vector's grid (SR17)
WEIGHT_UNITS: Final = 2**14  # units of the largest weight of a plane
ROUNDING_SINE: Final = 1e-4  # by how much of a distance that may move it
WORDS: Final = replace(COLUMNS, most=256, limit="At most 256 columns.")

Scale = tuple[str, Fraction, Fraction]
MAX_NUMBER: Final = 10**15


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
    if wish > MAX_DIRECTIONS:
        raise _large(wish, math.sin(math.pi / (2 * MAX_DIRECTIONS)))
    number = max(wish, 2)
    turns = np.arange(number) * (math.pi / number)
    return Net(np.stack([np.cos(turns), np.sin(turns)], axis=1), math.cos(math.pi / (2 * number)))


@functools.lru_cache(maxsize=32)
def _relaxed(sine: float) -> Net:
    """The smallest number of relaxed points whose caps are verified to cover the sphere."""
    wanted = math.sqrt(1.0 - min(sine, 1.0) ** 2)
    number = max(3, math.floor(FIRST_AREA / max(1.0 - wanted, 1e-12)))  # 1/(1 - cos) caps have half the sphere's area
    while number <= MAX_RELAXED_DIRECTIONS:
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
    return np.stack([ring * np.cos(turn), ring * np.sin(turn), height], axis=1)


def relaxed(number: int) -> Floats:
    """A spiral's points moved apart: each again and again to the middle of the trial points that are nearest to it."""
    trial = spiral(TRIAL_POINTS)
    vectors = spiral(number)
    for _ in range(RELAXING_ROUNDS):
        cosines = trial @ vectors.T
        place = np.abs(cosines).argmax(axis=1)
        sign = np.where(cosines[np.arange(TRIAL_POINTS), place] < 0, -1.0, 1.0)
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
    if dimension > MAX_SIGN_DIMENSIONS:
        raise QuestionError(
            "too-large",
            f"A net in {dimension} dimensions would have {(3**dimension - 1) // 2:,} directions.",
            f"Project to fewer: dimension=2, 3, or up to {MAX_SIGN_DIMENSIONS}.",
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


def scales_of(columns: Sequence[str], schema: Schema) -> list[Scale]:
    """Names with the middle and half the width of their declared bounds."""
    names = listed(columns, WORDS)
    return [(name, *_bounds(name, domain_of(name, schema))) for name in names]


def _bounds(name: str, domain: Column) -> tuple[Fraction, Fraction]:
    if isinstance(domain, Bool):
        return Fraction(1, 2), Fraction(1, 2)
    if not isinstance(domain, (Int, Real)):
        raise QuestionError("wrong-kind", f"{name} is neither a number nor a truth value.")
    low, high = domain.low * domain.step, domain.high * domain.step
    return Fraction(low + high) / 2, Fraction(high - low) / 2 or Fraction(1)


def sides(scales: Sequence[Scale], planes: Integers) -> Sums:
    """How many rows are complete, and how many of them are on the asked side of each plane; equal noise.

    Any cell may be missing, so that the rows that a side and its opposite share are counted even where a size is
    declared. Weights and coordinates are whole numbers before they meet: no float decides about a row (SR16). Lengths
    do not matter to a side, so that rows need no renormalising: a direction v of a projection M is the plane M v (E34).
    """
    point = Vector(tuple((Col(name) - float(middle)) / float(half) for name, middle, half in scales), BITS)
    sides: tuple[RowFn, ...] = tuple(Dot(point, tuple(int(w) for w in plane), BITS) >= 0 for plane in planes)
    return Sums((~point.is_missing(), Vector(sides, 1)), shares=(Fraction(1), Fraction(len(planes))))


def needed(noise: Noise, accuracy: float, beta: float) -> int:
    """How many rows there must be for all counts to be within `accuracy` of them, but for beta; by the noise's law.

    For one row a person and Epsilon E37's N ln(N/beta)/(a accuracy).
    """
    return math.ceil(float(noise.law.accuracy(beta / noise.width) * noise.step) / accuracy)


def enough(spending: SpendPlan, plan: Plan, accuracy: float, beta: float) -> None:
    """Refuse a declared size at which the noise foreseen is larger than the accuracy wished for; free."""
    if spending.facts.size is None:
        return
    noise = plan.parts[0].noise[-1]
    rows = needed(noise, accuracy, beta)
    if spending.facts.size < rows:
        raise QuestionError(
            "too-few-rows",
            f"{noise.width:,} counts within {accuracy} of the rows need {rows:,} rows; "
            f"{spending.facts.size:,} are declared.",
            "Take a larger g, fewer projections or directions, a wider accuracy, or spend more.",
        )


def told(noise: Noise, size: float, accuracy: float, beta: float) -> str:
    """The same where the number of rows is known after noise alone: a word, never a refusal (SR6)."""
    rows = needed(noise, accuracy, beta)
    seen = f"there are about {max(round(size), 0):,}"
    if size >= rows:
        verdict = f"{seen}: enough."
    else:
        verdict = f"{seen}: too few, so read `bound`. A larger g, fewer planes or a larger spend need fewer."
    return f"{noise.width:,} counts within {accuracy:g} of the rows need {rows:,} complete rows; {verdict}"


def signs(number: int, columns: int, dimension: int) -> Integers:
    """Random d x k matrices of +1 and -1 of full rank; public, and nothing to do with the rows."""
    rng = np.random.default_rng()  # the release shows the matrices themselves, so nobody needs to draw them again
    found: list[Integers] = []
    while len(found) < number:
        matrix = 2 * rng.integers(0, 2, (columns, dimension)) - 1
        if np.linalg.matrix_rank(matrix) == dimension:
            found.append(matrix)
    return np.array(found, dtype=np.int64)


def planes_of(normals: Floats) -> Integers:
    """Normals in whole numbers: their directions, moved by less than `ROUNDED`."""
    return np.asarray(np.rint(normals / np.abs(normals).max(axis=1)[:, None] * WEIGHT_UNITS).astype(np.int64))


def direction(y: object, d: int, what: str) -> Floats:
    """A normal from whatever was given for one, its largest weight 1; or a refusal."""
    message = f"{what} is a finite weight for each of {d} columns, not all 0."
    try:
        found = np.asarray(y, dtype=np.float64)
    except (TypeError, ValueError):
        found = np.zeros(0)
    checked(found.shape == (d,) and bool(np.isfinite(found).all()) and bool(found.any()), message)
    return found / float(np.abs(found).max())


def projection_failure(g: float, dimension: int) -> float:
    """With what probability, at most, a random projection changes a cosine by g/4 or more [S3.25].

    2 exp(-((g/16)^2 - (g/16)^3) k/4) (Johnson and Lindenstrauss); at dimensions that have a net it is no bound at all.
    """
    return 2.0 * math.exp(-_room(g) * whole(dimension, "dimension", 1, MAX_NUMBER) / 4.0)


def projection_dimension(g: float, failure: float) -> int:
    """The dimension at which that is a quarter of `failure`: 4 ln(8/failure)/((g/16)^2 - (g/16)^3) [S3.25]."""
    return math.ceil(4.0 * math.log(8.0 / between(failure, "failure")) / _room(g))


def _room(g: float) -> float:
    part = between(g, "g") / 16
    return part**2 - part**3


def projections_for(beta: float, *, queries: int | None = None, bits: int | None = None, columns: int = 1) -> int:
    """How many projections a median over them needs: 8 ln(q/beta) for q intended queries [S3.26].

    For all directions of `bits` bits a coordinate, of which there are 2^(bd) [S3.24], 8 (ln(1/beta) + bd ln 2): the
    paper's ln(bd) is too small for a union bound over them (E36). Directions are brought there by `discretise`.

    Args:
        beta: With what probability the median may fail for one of them, if each projection is good for each with
            probability 3/4.
        queries: How many directions will be asked for.
        bits: Of a coordinate, where any direction may be.
        columns: How many coordinates.

    Raises:
        QuestionError: `bad-parameter`: a number out of range, or both queries and bits.
    """
    rate = between(beta, "beta")
    checked((queries is None) != (bits is None), "Give the number of queries, or the bits of a coordinate.")
    if queries is not None:
        return math.ceil(8.0 * math.log(whole(queries, "queries", 1, MAX_NUMBER) / rate))
    several = whole(bits, "bits", 1, 64) * whole(columns, "columns", 1, MAX_NUMBER)
    return math.ceil(8.0 * (math.log(1.0 / rate) + several * math.log(2.0)))


def discretise(y: Sequence[float], bits: int) -> Integers:
    """A direction with each coordinate in so many bits, as whole numbers from -2^(b-1) to 2^(b-1) - 1 [S3.24]."""
    try:
        values = np.asarray(y, dtype=np.float64)
    except (TypeError, ValueError):
        values = np.array(math.nan)
    checked(values.ndim == 1 and bool(np.isfinite(values).all()), "A direction is a finite weight for each column.")
    top = float(np.abs(values).max(initial=0.0)) or 1.0
    half = 2 ** (whole(bits, "bits", 1, 53) - 1)
    return np.asarray(np.clip(np.rint(values / top * half), -half, half - 1).astype(np.int64))


def halfspace_n(directions: int, accuracy: float = 0.1, beta: float = 0.05, *, spend: Loss) -> int:
    """How many rows put every published count within `accuracy` times the rows, all at once but for probability beta.

    Of N counts at Epsilon(a): N ln(N/beta)/(a accuracy) (E37: the numerator that Theorem 6 prints is a sum, too small
    as soon as ln(N/beta) exceeds 1/accuracy). At Rho(r): sqrt(N/(2r)) z/accuracy, z the normal quantile of
    1 - beta/(2N). One row a person; the number of complete rows is one count more. It is noisy too, so that the bound
    of a fraction may be up to about twice `accuracy`.

    Args:
        directions: N, the counts asked: projections times directions of a net.
        accuracy: How far a count may be off, as a fraction of the rows.
        beta: With what probability one of them may be further off.
        spend: What the counts may cost together.

    Raises:
        QuestionError: `bad-parameter`: a number out of range.
    """
    count = whole(directions, "directions", 1, MAX_NUMBER)
    far, rate = between(accuracy, "accuracy"), between(beta, "beta")
    if isinstance(spend, Epsilon):
        return math.ceil(count * math.log(count / rate) / (float(spend.exact) * far))
    if not isinstance(spend, (Rho, EpsilonDelta)):
        raise QuestionError("bad-loss", "spend is a loss such as Epsilon(1) or Rho(0.05).")
    rho = float(spend.rho)
    tail = -NormalDist().inv_cdf(rate / (2 * count))
    return math.ceil(math.sqrt(count / (2 * rho)) * tail / far)
