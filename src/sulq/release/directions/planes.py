"""What a release of halfspaces asks: how many rows are on one side of each of many public planes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Final

import numpy as np

from sulq.answers.oracle import SpendPlan
from sulq.answers.plan import Plan
from sulq.answers.released import Noise
from sulq.errors import QuestionError
from sulq.forms.parameters import checked
from sulq.language.domain import Bool, Column, Int, Real, Schema
from sulq.language.kinds import Floats, Integers
from sulq.language.question import Sums
from sulq.language.rowfn import Col, Dot, RowFn, Vector
from sulq.release.space import COLUMNS, domain_of, listed

BITS: Final = 15  # of a coordinate on the vector's grid (SR17)
FINE: Final = 2**14  # units of the largest weight of a plane
ROUNDED: Final = 1e-4  # by how much of a distance that may move it
WORDS: Final = replace(COLUMNS, most=256, limit="At most 256 columns.")

Scale = tuple[str, Fraction, Fraction]


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
    found: Integers = np.rint(normals / np.abs(normals).max(axis=1)[:, None] * FINE).astype(np.int64)
    return found


def direction(y: object, d: int, what: str) -> Floats:
    """A normal from whatever was given for one, its largest weight 1; or a refusal."""
    message = f"{what} is a finite weight for each of {d} columns, not all 0."
    try:
        found = np.asarray(y, dtype=np.float64)
    except (TypeError, ValueError):
        found = np.zeros(0)
    checked(found.shape == (d,) and bool(np.isfinite(found).all()) and bool(found.any()), message)
    return found / float(np.abs(found).max())
