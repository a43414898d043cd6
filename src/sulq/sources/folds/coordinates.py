"""Vectors column by column: each coordinate of a batch as one row of a matrix of whole doubles, ready for BLAS.

The same integers as the row functions' own cells, in fewer steps. All of them and
all sums of products below stay under 2^53 by the static checks of language/rowfn, so
no order of adding, no batch and no fused multiplication changes a bit (SR16).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from fractions import Fraction
from typing import Final, cast

import numpy as np

from sulq.language.domain import Bool, Category, Schema, Text, power_of_two
from sulq.language.kinds import Cells, Floats, Grid, Integers, Truths, union
from sulq.language.rowfn import Arith, Col, IsMissing, Lit, RowFn
from sulq.language.rowfn.base import Values, numbers
from sulq.language.rowfn.vectors import (
    EXACT,
    Dot,
    Nearest,
    Vector,
    WithinBall,
    grid_vector,
    reach,
    to_grid,
    vector_cells,
)
from sulq.sources.folds.batch import Batch

CACHED: Final = 2**14  # so many doubles of one coordinate stay near the core from one operation to the next
# And so many of a whole matrix: two threads that hand the interpreter's lock to and fro after each short operation are
# slower than one, so an operation is long, though its numbers leave the nearest cache.
BLOCK: Final = 2**20
NARROW: Final = 2**51  # integers below may be added to half a step without rounding
SPARSE: Final = 4  # where fewer than one row in so many lies outside a ball, those rows alone are shortened


class Vectors:
    """The vectors that one thread's folds read, each made once a batch, and what is read off them beside the sums."""

    def __init__(self, schema: Schema, functions: Iterable[RowFn]) -> None:
        self._schema = schema
        self._known: dict[int, Coordinates] = {}
        self._ready: list[tuple[RowFn, _Reading]] = []
        for fn in _inside_out(functions):
            match fn:
                case Dot(vector=vector):
                    self._ready.append((fn, _Dots(fn, self.of(vector), schema)))
                case Nearest(vector=vector):
                    self._ready.append((fn, _Codes(fn, self.of(vector), schema)))
                case IsMissing(item=Vector() | WithinBall() as vector):
                    self._ready.append((fn, _Gone(self.of(vector))))

    def of(self, vector: RowFn, *, by_rows: bool = False) -> Coordinates:
        """A vector's coordinates; by rows, if anyone wants them so."""
        known = self._known.get(id(vector))
        if known is None:
            known = self._known[id(vector)] = Coordinates(vector, self._schema)
        known.by_rows |= by_rows
        return known

    @property
    def widest(self) -> int:
        """The most coordinates any of them has."""
        return max((made.kind.width for made in self._known.values()), default=0)

    def prime(self, batch: Batch) -> None:
        """Leave on a batch what is read off its vectors, so that no row function works it out the long way."""
        for fn, reading in self._ready:
            batch.seen[id(fn)] = replace(reading.cells(batch), of=fn)


def _inside_out(functions: Iterable[RowFn]) -> list[RowFn]:
    """Every row function once, the parts of each before itself."""
    found: dict[int, RowFn] = {}
    front = list(functions)
    while front:
        fn = front.pop()
        found.pop(id(fn), None)
        found[id(fn)] = fn
        front.extend(fn.parts())
    return list(found.values())[::-1]


class Coordinates:
    """A vector's coordinates on its grid; rows where it is missing are zeros."""

    def __init__(self, vector: RowFn, schema: Schema) -> None:
        self.kind = grid_vector(vector, schema)
        self._ball: _Ball | None = None
        if isinstance(vector, WithinBall):
            vector = vector.vector
            self._ball = _Ball(grid_vector(vector, schema), cast("int", self.kind.ball))
        self._vector = vector
        self._items: list[_Coordinate] = []
        if isinstance(vector, Vector):
            kind = vector.kind(schema)
            self._items = [_Coordinate(item, kind, i, schema) for i, item in enumerate(vector.items)]
        # Kept from batch to batch: fresh pages cost more than the arithmetic.
        self._room: Floats = np.ones((self.kind.width + 1, 0))
        self.by_rows = False  # whether vectors lie side by side in memory, for what adds them up by cell
        self._narrow: Integers = np.empty(CACHED, dtype=np.int64)
        self._made: tuple[Batch, Floats, Truths | None] | None = None

    def units(self, batch: Batch) -> tuple[Floats, Truths | None]:
        """The coordinates, one row of the matrix each, and where the vector is missing."""
        matrix, missing = self.matrix(batch)
        return matrix[:-1], missing

    def matrix(self, batch: Batch) -> tuple[Floats, Truths | None]:
        """The coordinates with a row of ones below them, for what adds a constant."""
        if self._made is None or self._made[0] is not batch:
            self._made = (batch, *self._make(batch))
        return self._made[1], self._made[2]

    def _make(self, batch: Batch) -> tuple[Floats, Truths | None]:
        if self._room.shape[1] < batch.size:
            self._room = np.ones((self.kind.width + 1, batch.size), order="F" if self.by_rows else "C")
        out = self._room[:, : batch.size]
        return out, self._work_out(batch, out[:-1])

    def _work_out(self, batch: Batch, units: Floats) -> Truths | None:
        if self._items:
            missing = union(*(item.write(batch, self._narrow, units[i]) for i, item in enumerate(self._items)))
        else:
            rows, missing = vector_cells(self._vector, batch)
            units[:] = rows.T
        if missing is not None:
            units[:, missing] = 0.0
        if self._ball is not None:
            step = max(BLOCK // len(units), 256)
            for start in range(0, batch.size, step):
                self._ball.shorten(units[:, start : start + step])
        return missing


class _Ball:
    """Vectors shortened to an L2 norm: trunc(q * ball / norm), norm = |q| rounded up to a whole number.

    For whole a, b with a + b < 2^53 the double nearest a/b never reaches the whole
    number above: that is at least 1/b away, more than half a unit in the last place.
    """

    def __init__(self, inner: Grid, ball: int) -> None:
        self._ball = ball
        largest = reach(inner)
        # The norm, rounded up, is at most the root of the width, rounded up, times the largest coordinate.
        self._divides = largest * ball + (inner.width + 1) * largest + 1 < EXACT

    def shorten(self, units: Floats) -> None:
        """Shorten the vectors that lie outside the ball, in place."""
        squares = np.einsum("ij,ij->j", units, units)
        rows = np.flatnonzero(squares > self._ball * self._ball)
        if len(rows) * SPARSE < len(squares):
            units[:, rows] = self._shortened(units[:, rows], self._ball, _root_up(squares[rows]))
            return
        inside = squares <= self._ball * self._ball
        norm = _root_up(squares)
        norm[inside] = 1.0
        self._shortened(units, np.where(inside, 1.0, self._ball), norm)

    def _shortened(self, units: Floats, ball: Floats | int, norm: Floats) -> Floats:
        units *= ball
        if self._divides:
            units /= norm
            return np.trunc(units, out=units)
        whole = np.abs(units).astype(np.int64) // norm.astype(np.int64)
        units[:] = np.copysign(whole, units)
        return units


def _root_up(squares: Floats) -> Floats:
    """The root of whole numbers, rounded up to a whole number; a float root may be one short: it is looked at twice."""
    norm = np.floor(np.sqrt(squares))
    norm += norm * norm < squares
    norm += norm * norm < squares
    return norm


class _Coordinate:
    """One coordinate of a Vector on its grid: the same integers as Vector.cells gives, in fewer steps."""

    def __init__(self, item: RowFn, kind: Grid, place: int, schema: Schema) -> None:
        self.item = item
        self.step, self.low, self.high = kind.step, kind.low[place], kind.high[place]
        self.name: str | None = None
        self.shift = self.largest = 0
        self.affine = _affine(item, schema)
        name, over = (item.name, Fraction(1)) if isinstance(item, Col) else ("", Fraction(0))
        if self.affine is not None and self.affine[2] == 0:
            name, over = self.affine[0], Fraction(self.affine[3])
        column = schema.find(name)
        if column is None or isinstance(column, (Text, Category)) or over <= 0 or power_of_two(over) != over:
            return
        # A column over a power of two, put on another grid of a power of two: a shift with rounding.
        self.shift = _shift(column.step / over / kind.step)
        self.largest = max(abs(column.low), abs(column.high), 1)
        if self.largest < NARROW and abs(self.shift) < 50:
            self.name, self.affine = name, None

    def write(self, batch: Batch, room: Integers, out: Floats) -> Truths | None:
        """Write the units of a batch; says where they are missing."""
        if self.affine is not None:
            stored, missing = batch.stored(self.affine[0])
            for start in range(0, len(out), CACHED):
                self._centre(stored[start : start + CACHED], out[start : start + CACHED], *self.affine[1:])
            return missing
        if self.name is None:
            values, missing = numbers(self.item, batch)
            out[:] = to_grid(values, self.step, self.low, self.high)
            return missing
        stored, missing = batch.stored(self.name)
        if stored.dtype.kind == "i":
            for start in range(0, len(out), CACHED):
                _shifted(stored[start : start + CACHED], self.shift, self.largest, room, out[start : start + CACHED])
        else:  # whole doubles
            np.multiply(stored, 2.0**self.shift, out=out)
            out += 0.5
            np.floor(out, out=out)
        return missing

    def _centre(self, stored: Values, out: Floats, unit: float, middle: float, half: float) -> None:
        """The operations of (column - middle)/half and of its grid, one by one, in place."""
        np.multiply(stored, unit, out=out)
        out -= middle
        out /= half
        out *= float(1 / self.step)
        out += 0.5
        np.floor(out, out=out)
        np.clip(out, self.low, self.high, out=out)


def _affine(item: RowFn, schema: Schema) -> tuple[str, float, float, float] | None:
    """The column, its step and the constants of (column - middle)/half, the form of a centred number."""
    match item:
        case Arith("/", Arith("-", Col(name), Lit(middle)), Lit(half)):
            column = schema.find(name)
            if column is None or isinstance(column, (Bool, Category, Text)):
                return None
            if isinstance(middle, (int, float)) and isinstance(half, (int, float)) and half:
                return name, float(column.step), float(middle), float(half)
    return None


def _shift(ratio: Fraction) -> int:
    """The exponent of a power of two."""
    return ratio.numerator.bit_length() - ratio.denominator.bit_length()


def _shifted(stored: Values, shift: int, largest: int, room: Integers, out: Floats) -> None:
    """floor(c * 2^shift + 1/2) of stored integers: a shift with rounding, in the narrowest width that holds it."""
    most = largest << shift if shift > 0 else largest + (1 << max(-shift - 1, 0))
    units = room[: len(out)] if most >= 2**31 else room.view(np.int32)[: len(out)]
    if shift >= 0:
        np.left_shift(stored, shift, out=units, dtype=units.dtype)
    else:
        np.add(stored, 1 << (-shift - 1), out=units, dtype=units.dtype)
        units >>= -shift
    out[:] = units


class _Reading:
    """What is read off a vector for each row of a batch."""

    def __init__(self, coordinates: Coordinates) -> None:
        self._coordinates = coordinates

    def cells(self, batch: Batch) -> Cells:
        """The same cells as the row function's own."""
        raise NotImplementedError  # pragma: no cover - each reading has its own


class _Dots(_Reading):
    """Inner products with public weights: one product of a row with the matrix."""

    def __init__(self, fn: Dot, coordinates: Coordinates, schema: Schema) -> None:
        super().__init__(coordinates)
        weights, step = fn.units()
        self._weights = np.array(weights, dtype=np.float64)
        self._unit = float(grid_vector(fn.vector, schema).step * step)

    def cells(self, batch: Batch) -> Cells:
        units, missing = self._coordinates.units(batch)
        return Cells((self._weights @ units) * self._unit, missing)


class _Codes(_Reading):
    """Indices of nearest centres: scores |c|^2 - 2 x.c, each with its centre's number in its lowest bits.

    The least of such scores is the least score, of the lowest number where scores
    are equal, and says which: a minimum in place of a search.
    """

    def __init__(self, fn: Nearest, coordinates: Coordinates, schema: Schema) -> None:
        super().__init__(coordinates)
        centres = fn.units(schema)
        inner = coordinates.kind
        bits = max(len(centres) - 1, 1).bit_length()
        # |c|^2 - 2 x.c with |c_i| at most 4 and |x_i| at most 1 times the reach: within 24 of its squares a coordinate.
        self._mask = (1 << bits) - 1
        self._packed = inner.width * 36 * max(reach(inner), 1) ** 2 < EXACT >> bits
        scale = 1 << bits if self._packed else 1
        numbers_ = np.arange(len(centres)) if self._packed else 0
        constants = (centres * centres).sum(axis=1) * scale + numbers_
        self._scores = np.concatenate([-2 * scale * centres, constants[:, None]], axis=1).astype(np.float64)
        self._room = np.empty((len(centres), max(BLOCK // len(centres), 256)))

    def cells(self, batch: Batch) -> Cells:
        matrix, missing = self._coordinates.matrix(batch)
        codes = np.empty(batch.size, dtype=np.int64)
        step = self._room.shape[1]
        for start in range(0, batch.size, step):
            given = matrix[:, start : start + step]
            scores = np.matmul(self._scores, given, out=self._room[:, : given.shape[1]])
            codes[start : start + step] = scores.min(axis=0) if self._packed else scores.argmin(axis=0)
        if self._packed:
            codes &= self._mask
        return Cells(codes, missing)


class _Gone(_Reading):
    """Whether there is no vector."""

    def cells(self, batch: Batch) -> Cells:
        missing = self._coordinates.units(batch)[1]
        return Cells(np.zeros(batch.size, dtype=np.bool_) if missing is None else missing, None)
