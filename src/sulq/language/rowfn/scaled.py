"""A vector times a number of the same row, exactly: the term of a gradient, or a row with its label's sign."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np

from sulq.errors import QuestionError
from sulq.language.domain import Schema, grid_for
from sulq.language.kinds import Cells, Frame, Grid, Scalar, union
from sulq.language.rowfn.base import RowFn, is_whole, numbers
from sulq.language.rowfn.vectors import MAX_BITS, bounded, grid_vector, reach, to_grid, vector_cells

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
