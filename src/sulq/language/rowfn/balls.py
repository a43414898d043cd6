"""Vectors shortened to a public length: to an L2 norm (`WithinBall`) or to an L1 norm (`WithinL1`).

Coordinates round toward zero, so the integer vector itself is no longer than the radius (SR16): with c >= |q| whole
and r the radius in units, |trunc(q r / c)| <= |q| r / c <= r, in either norm.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import cast

import numpy as np

from sulq.errors import QuestionError
from sulq.language.domain import Schema
from sulq.language.kinds import Cells, Frame, Grid, Integers
from sulq.language.rowfn.base import RowFn, figure
from sulq.language.rowfn.vectors import EXACT, grid_vector, reach, vector_cells


@dataclass(frozen=True, slots=True, eq=False)
class WithinBall(RowFn, vector="The vector", radius=figure):
    """A vector shortened, if need be, to an L2 norm of at most `radius`."""

    vector: RowFn
    radius: float | int

    def __post_init__(self) -> None:
        RowFn.__post_init__(self)
        _check(self.radius)

    def kind(self, schema: Schema) -> Grid:
        inner = grid_vector(self.vector, schema)
        ball, largest = math.floor(Fraction(self.radius) / inner.step), reach(inner)
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
class WithinL1(RowFn, vector="The vector", radius=figure):
    """A vector shortened, if need be, to an L1 norm, the sum of its absolute coordinates, of at most `radius`.

    The L1 norm of its sums is `radius`, and that of all products of its coordinates radius^2, however many
    coordinates there are.
    Source: DMNS06, section 3.2 [S4.10].
    """

    vector: RowFn
    radius: float | int

    def __post_init__(self) -> None:
        RowFn.__post_init__(self)
        _check(self.radius)

    def kind(self, schema: Schema) -> Grid:
        inner = grid_vector(self.vector, schema)
        l1, largest = math.floor(Fraction(self.radius) / inner.step), reach(inner)
        if l1 < 1 or largest * (l1 + inner.width) >= EXACT:
            raise _unfit()
        corner = sum(max(-a, b) for a, b in zip(inner.low, inner.high, strict=True))
        return Grid(inner.step, *_box(inner, l1, whole=corner <= l1), None, inner.nullable, l1)

    def cells(self, frame: Frame) -> Cells:
        units, missing = vector_cells(self.vector, frame)
        l1 = cast("int", self.kind(frame.schema).l1)
        norm = np.abs(units).sum(axis=1)
        return Cells(_shortened(units, norm, l1, norm > l1), missing)


def _check(radius: float) -> None:
    if radius <= 0:
        raise QuestionError("bad-literal", "A radius is a positive number.")


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
