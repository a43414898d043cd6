"""Vectors made of vectors: shortened to a public length, or times a number of the same row.

Coordinates of a shortened vector round toward zero, so the integer vector itself is no longer than the radius (SR16):
with c >= |q| whole and r the radius in units, |trunc(q r / c)| <= |q| r / c <= r, in either norm.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, cast

import numpy as np

from sulq.errors import QuestionError
from sulq.language.domain import Schema, grid_for
from sulq.language.kinds import Cells, Frame, Grid, Integers, Scalar, union
from sulq.language.rowfn.base import RowFn, figure, is_whole, numbers, per_schema
from sulq.language.rowfn.vectors import EXACT, MAX_BITS, bounded, grid_vector, reach, to_grid, vector_cells


@dataclass(frozen=True, slots=True, eq=False)
class _Within(RowFn, vector="The vector", radius=figure):
    """A vector shortened, if need be, to a norm of at most `radius`."""

    vector: RowFn
    radius: float | int

    def __post_init__(self) -> None:
        RowFn.__post_init__(self)
        if self.radius <= 0:
            raise QuestionError("bad-literal", "A radius is a positive number.")

    def _units(self, inner: Grid) -> int:
        """The radius in units of the vector's grid."""
        return math.floor(Fraction(self.radius) / inner.step)


@dataclass(frozen=True, slots=True, eq=False)
class WithinBall(_Within):
    """A vector shortened, if need be, to an L2 norm of at most `radius`."""

    @per_schema
    def kind(self, schema: Schema) -> Grid:
        inner = grid_vector(self.vector, schema)
        ball, largest = self._units(inner), reach(inner)
        if ball < 1 or inner.width * largest**2 >= EXACT or largest * ball >= EXACT:
            raise _unfit()
        corner = sum(max(a * a, b * b) for a, b in zip(inner.low, inner.high, strict=True))
        return Grid(inner.step, *_box(inner, ball, whole=corner <= ball * ball), ball, inner.nullable)

    def cells(self, frame: Frame) -> Cells:
        units, missing = vector_cells(self.vector, frame)
        ball = cast("int", self.kind(frame.schema).ball)
        squares = np.einsum("ij,ij->i", units, units)
        norm = np.floor(np.sqrt(squares.astype(np.float64))).astype(np.int64)
        norm += (norm * norm < squares).astype(np.int64)  # rounded up: a float root may be one short
        norm += (norm * norm < squares).astype(np.int64)
        return Cells(_shortened(units, norm, ball, squares > ball * ball), missing)


@dataclass(frozen=True, slots=True, eq=False)
class WithinL1(_Within):
    """A vector shortened, if need be, to an L1 norm, the sum of its absolute coordinates, of at most `radius`.

    The L1 norm of its sums is `radius`, and that of all products of its coordinates radius^2, however many
    coordinates there are.
    Source: DMNS06, section 3.2 [S4.10].
    """

    @per_schema
    def kind(self, schema: Schema) -> Grid:
        inner = grid_vector(self.vector, schema)
        l1, largest = self._units(inner), reach(inner)
        if l1 < 1 or largest * (l1 + inner.width) >= EXACT:
            raise _unfit()
        corner = sum(max(-a, b) for a, b in zip(inner.low, inner.high, strict=True))
        return Grid(inner.step, *_box(inner, l1, whole=corner <= l1), None, inner.nullable, l1)

    def cells(self, frame: Frame) -> Cells:
        units, missing = vector_cells(self.vector, frame)
        l1 = cast("int", self.kind(frame.schema).l1)
        norm = np.abs(units).sum(axis=1)
        return Cells(_shortened(units, norm, l1, norm > l1), missing)


def _unfit() -> QuestionError:
    return QuestionError("too-large", "The ball is too small or too large for the vector's grid.")


def _box(inner: Grid, length: int, *, whole: bool) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Where coordinates lie: as before if none is ever shortened, else anywhere between that and zero."""
    if whole:
        return inner.low, inner.high
    return tuple(max(min(a, 0), -length) for a in inner.low), tuple(min(max(b, 0), length) for b in inner.high)


def _shortened(units: Integers, norm: Integers, length: int, outside: np.ndarray) -> Integers:
    shrunk = np.sign(units) * (np.abs(units) * length // np.maximum(norm, 1)[:, None])
    return np.where(outside[:, None], shrunk, units)


MAX_TERM_UNITS: Final = 2 ** (2 * MAX_BITS)  # a product of two coordinates, as in an outer product (SR17)


@dataclass(frozen=True, slots=True, eq=False)
class Scaled(RowFn, vector="The vector", factor="The factor"):
    """Each coordinate of a vector times a bounded number, the number on a grid of at most 2^bits units.

    Both are whole before they meet (SR16): coordinate i is q_i * f with |f| at most
    F units, so it lies in the hull of the products of the ends, and a vector of L2 or
    L1 norm at most r has norm at most r * F. A number whose own lattice is no finer
    than the grid, as a sign or a label, keeps it and is exact. Missing if either is.
    """

    vector: RowFn
    factor: RowFn
    bits: int = 11

    def __post_init__(self) -> None:
        RowFn.__post_init__(self)
        if not is_whole(self.bits, 1, MAX_BITS):
            raise QuestionError("bad-literal", "A factor is a number on a grid of 1 to 15 bits.")

    def span(self, schema: Schema) -> tuple[Fraction, int, int]:
        """The grid of the factor and its bounds in units."""
        return self._span(*bounded(self.factor, schema))

    def _span(self, lo: Fraction, hi: Fraction, kind: Scalar) -> tuple[Fraction, int, int]:
        step = grid_for(max(abs(lo), abs(hi)), self.bits)
        if kind.step is not None and kind.step >= step:
            step = kind.step
        return step, math.floor(lo / step), math.ceil(hi / step)

    @per_schema
    def kind(self, schema: Schema) -> Grid:
        inner = grid_vector(self.vector, schema)
        lo, hi, factor = bounded(self.factor, schema)
        step, least, most = self._span(lo, hi, factor)
        largest = max(abs(least), abs(most))
        if reach(inner) * largest > MAX_TERM_UNITS:
            raise QuestionError(
                "too-large", "A coordinate times the factor would pass 2^30 units.", "Give either fewer bits."
            )
        corners = [(a * least, a * most, b * least, b * most) for a, b in zip(inner.low, inner.high, strict=True)]
        ball, l1 = (None if norm is None else norm * largest for norm in (inner.ball, inner.l1))
        low, high = tuple(map(min, corners)), tuple(map(max, corners))
        return Grid(inner.step * step, low, high, ball, inner.nullable or factor.nullable, l1)

    def cells(self, frame: Frame) -> Cells:
        units, missing = vector_cells(self.vector, frame)
        values, none = numbers(self.factor, frame)
        factor = to_grid(values, *self.span(frame.schema))
        with np.errstate(all="ignore"):  # of a missing cell: no warning may tell that there is one
            return Cells(units * factor[:, None], union(missing, none))
