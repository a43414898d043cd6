"""Row functions that give a vector of integers on one public grid, and what is read off such vectors.

No float decides about a row (SR16): coordinates, weights, centres and tables
are integers before they meet, products and sums of them stay below 2^53, so
float64 kernels are exact and a row's value cannot depend on its batch.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, cast

import numpy as np

from sulq.errors import QuestionError
from sulq.language.domain import TERM_BITS, Schema, grid_for
from sulq.language.kinds import Cells, Code, Floats, Frame, Grid, Integers, Scalar, Truths, entry, union
from sulq.language.rowfn.base import (
    RowFn,
    as_number,
    describe,
    evaluate,
    figure,
    figures,
    is_whole,
    numbers,
    per_schema,
)

EXACT: Final = 2**53  # every integer below is a double
EXACT_BITS: Final = 50  # as is every such integer with half a unit added
MAX_BITS: Final = 15
MAX_WIDTH: Final = 2**20
MAX_TABLE_NUMBERS: Final = 2**22
MAX_TABLE_ENTRY: Final = 1e15
_ROW: Final = frozenset({tuple})
_NUMBERS: Final = frozenset({int, float})


def bounded(fn: RowFn, schema: Schema) -> tuple[Fraction, Fraction, Scalar]:
    """The interval of a row function used as a number, or a refusal that names it."""
    kind = as_number(fn.kind(schema), fn)
    if kind.lo is None or kind.hi is None:
        raise QuestionError("unbounded", f"{describe(fn)} has no bounds.")
    return kind.lo, kind.hi, kind


def to_grid(values: Floats, step: Fraction, low: int, high: int) -> Integers:
    """Put doubles on a grid: floor(x/step + 1/2), the one rounding all engines share, then clamp."""
    traced = getattr(values, "on_grid", None)  # of a program that is being written: compile/statements/programs
    if traced is not None:
        return cast("Integers", traced(step, low, high))
    with np.errstate(all="ignore"):
        units = np.floor(values * float(1 / step) + 0.5)
    # fmax, unlike clip, turns a missing cell's NaN into a bound: no cast may warn and so tell of it.
    return np.fmin(np.fmax(units, low), high).astype(np.int64)


def rounding(lattice: Fraction | None, step: Fraction) -> Fraction:
    """How far a number may lie from the grid point that stands for it; nothing where it is on the grid already."""
    return Fraction(0) if lattice is not None and lattice >= step else step / 2


def grid_vector(fn: RowFn, schema: Schema) -> Grid:
    """The kind of a row function used as a vector."""
    kind = fn.kind(schema)
    if not isinstance(kind, Grid):
        raise QuestionError("wrong-kind", f"{describe(fn)} is not a vector.")
    return kind


def reach(kind: Grid) -> int:
    """Largest absolute coordinate."""
    return max((max(abs(a), abs(b)) for a, b in zip(kind.low, kind.high, strict=True)), default=0)


def vector_cells(fn: RowFn, frame: Frame) -> tuple[Integers, Truths | None]:
    """The meaning of a row function used as a vector."""
    cells = evaluate(fn, frame)
    return cast("Integers", cells.values), cells.missing


@dataclass(frozen=True, slots=True, eq=False)
class Vector(RowFn, items="A coordinate"):
    """Numbers side by side on one grid of at most 2^bits units; missing if any of them is."""

    items: tuple[RowFn, ...]
    bits: int = 11

    def __post_init__(self) -> None:
        if not 1 <= len(self.items) <= 4096 or not is_whole(self.bits, 1, MAX_BITS):
            raise QuestionError("too-large", "A vector has 1 to 4096 coordinates of 1 to 15 bits.")
        RowFn.__post_init__(self)

    @per_schema
    def kind(self, schema: Schema) -> Grid:
        spans = [bounded(item, schema) for item in self.items]
        step = grid_for(max(max(abs(lo), abs(hi)) for lo, hi, _ in spans), self.bits)
        low = tuple(math.floor(lo / step) for lo, _, _ in spans)
        high = tuple(math.ceil(hi / step) for _, hi, _ in spans)
        return Grid(step, low, high, nullable=any(kind.nullable for _, _, kind in spans))

    def cells(self, frame: Frame) -> Cells:
        kind = self.kind(frame.schema)
        out = np.empty((frame.size, kind.width), dtype=np.int64)
        missing: Truths | None = None
        for i, item in enumerate(self.items):
            values, none = numbers(item, frame)
            out[:, i] = to_grid(values, kind.step, kind.low[i], kind.high[i])
            missing = union(missing, none)
        return Cells(out, missing)


@dataclass(frozen=True, slots=True, eq=False)
class Dot(RowFn, vector="The vector", weights=figures):
    """The inner product of a vector with public weights on a grid of 2^bits units; exact."""

    vector: RowFn
    weights: tuple[float | int, ...]
    bits: int = 15

    def __post_init__(self) -> None:
        RowFn.__post_init__(self)
        if not is_whole(self.bits, 1, 20):
            raise QuestionError("bad-literal", "Weights are numbers on a grid of 1 to 20 bits.")

    @functools.lru_cache(maxsize=64)  # noqa: B019 - few, and every batch asks again
    def units(self) -> tuple[tuple[int, ...], Fraction]:
        """The weights in whole units, and the unit."""
        exact = [Fraction(w) for w in self.weights]
        step = grid_for(max((abs(w) for w in exact), default=Fraction(0)), self.bits)
        return tuple(math.floor(w / step + Fraction(1, 2)) for w in exact), step

    @per_schema
    def kind(self, schema: Schema) -> Scalar:
        inner = grid_vector(self.vector, schema)
        weights, step = self.units()
        if len(weights) != inner.width:
            raise QuestionError("bad-question", f"{inner.width} coordinates need as many weights.")
        if inner.width * reach(inner) * max((abs(w) for w in weights), default=0) >= EXACT:
            raise QuestionError("too-large", "The inner product would leave the exact integers.")
        low = sum(min(w * a, w * b) for w, a, b in zip(weights, inner.low, inner.high, strict=True))
        high = sum(max(w * a, w * b) for w, a, b in zip(weights, inner.low, inner.high, strict=True))
        unit = inner.step * step
        return Scalar(low * unit, high * unit, unit, inner.nullable)

    def cells(self, frame: Frame) -> Cells:
        units, missing = vector_cells(self.vector, frame)
        weights, step = self.units()
        unit = float(grid_vector(self.vector, frame.schema).step * step)
        total = units.astype(np.float64) @ np.array(weights, dtype=np.float64)
        return Cells(total * unit, missing)


@dataclass(frozen=True, slots=True, eq=False)
class Nearest(RowFn, vector="The vector", centres=lambda centres: tuple(map(figures, centres))):
    """The index of the nearest of public centres; ties go to the lowest index (S0.13)."""

    vector: RowFn
    centres: tuple[tuple[float | int, ...], ...]

    def __post_init__(self) -> None:
        if not 1 <= len(self.centres) <= 65_536:
            raise QuestionError("bad-literal", "Give 1 to 65,536 centres.")
        RowFn.__post_init__(self)

    def units(self, schema: Schema) -> Integers:
        """The centres on the vector's grid."""
        inner = grid_vector(self.vector, schema)
        limit = 4 * max(reach(inner), 1)
        return to_grid(np.array(self.centres, dtype=np.float64), inner.step, -limit, limit)

    def kind(self, schema: Schema) -> Code:
        inner = grid_vector(self.vector, schema)
        if any(len(centre) != inner.width for centre in self.centres):
            raise QuestionError("bad-question", f"Each centre needs {inner.width} coordinates.")
        if inner.width * (6 * max(reach(inner), 1)) ** 2 >= EXACT:
            raise QuestionError("too-large", "The distances would leave the exact integers.")
        return Code(tuple(range(len(self.centres))), inner.nullable)

    def cells(self, frame: Frame) -> Cells:
        units, missing = vector_cells(self.vector, frame)
        centres = self.units(frame.schema).astype(np.float64)
        # |x - c|^2 - |x|^2 = |c|^2 - 2 x.c, an exact integer: the smallest is the nearest.
        score = (centres**2).sum(axis=1) - 2.0 * (units.astype(np.float64) @ centres.T)
        return Cells(score.argmin(axis=1).astype(np.int64), missing)


@dataclass(frozen=True, slots=True, eq=False)
class Outer(RowFn, vector="The vector"):
    """All products x_i x_j, i <= j, of a vector's coordinates: the upper triangle, row by row."""

    vector: RowFn

    @functools.lru_cache(maxsize=64)  # noqa: B019 - likewise
    def kind(self, schema: Schema) -> Grid:
        inner = grid_vector(self.vector, schema)
        if inner.width * (inner.width + 1) // 2 > MAX_WIDTH:
            raise QuestionError("too-large", "At most 1,447 coordinates have an outer product here.")
        if reach(inner) > 2**MAX_BITS:
            raise QuestionError("too-large", "The coordinates of an outer product hold at most 15 bits (SR17).")
        low: list[int] = []
        high: list[int] = []
        for i in range(inner.width):
            for j in range(i, inner.width):
                corners = [a * b for a in (inner.low[i], inner.high[i]) for b in (inner.low[j], inner.high[j])]
                square = i == j and inner.low[i] <= 0 <= inner.high[i]
                low.append(0 if square else min(corners))
                high.append(max(corners))
        ball, l1 = (None if norm is None else norm**2 for norm in (inner.ball, inner.l1))
        return Grid(inner.step**2, tuple(low), tuple(high), ball, inner.nullable, l1)

    def cells(self, frame: Frame) -> Cells:
        units, missing = vector_cells(self.vector, frame)
        rows, columns = np.triu_indices(units.shape[1])
        return Cells(units[:, rows] * units[:, columns], missing)


@dataclass(frozen=True, slots=True, eq=False)
class Bernstein(RowFn, item="The item"):
    """The Bernstein terms of a number within [a, b]: C(m, i) (x - a)^i (b - x)^(m - i), i = m .. 0.

    They are non-negative and always sum to (b - a)^m, so one row's vector has L1
    norm exactly that and L2 norm at most that: all moments up to degree m for the
    price of one sum (SR18). Degree 1 is the pair of one-sided sums (x - a, b - x).
    With `missing` a row without a number has (b - a)^m in one more term, the last:
    its vector has the same norms, so the number of all rows comes at no more.
    """

    item: RowFn
    degree: int = 1
    missing: bool = False

    def __post_init__(self) -> None:
        RowFn.__post_init__(self)
        if not is_whole(self.degree, 1, 2):
            raise QuestionError("bad-question", "Bernstein terms are of degree 1 or 2.")
        if not isinstance(self.missing, bool):
            raise QuestionError("bad-question", "Whether missing numbers have a term is yes or no.")

    def span(self, schema: Schema) -> tuple[Fraction, int, int]:
        """The grid of the number and its bounds in units."""
        return self._span(*bounded(self.item, schema))

    def _span(self, lo: Fraction, hi: Fraction, kind: Scalar) -> tuple[Fraction, int, int]:
        # Of a narrow interval far from zero the ends, in units, must still be exact doubles.
        least = grid_for(max(abs(lo), abs(hi)), EXACT_BITS)
        step = max(grid_for(hi - lo, TERM_BITS if self.degree == 1 else MAX_BITS), least)
        if kind.step is not None and kind.step >= step:
            step = kind.step
        return step, math.floor(lo / step), math.ceil(hi / step)

    def kind(self, schema: Schema) -> Grid:
        lo, hi, kind = bounded(self.item, schema)
        step, low, high = self._span(lo, hi, kind)
        whole = (high - low) ** self.degree
        # The middle term of degree 2, 2uv with u + v = w, is at most w^2/2.
        tops = (whole, whole) if self.degree == 1 else (whole, whole // 2, whole)
        tops += (whole,) if self.missing else ()
        return Grid(step**self.degree, (0,) * len(tops), tops, nullable=kind.nullable and not self.missing)

    def cells(self, frame: Frame) -> Cells:
        terms, missing = self.terms(frame)
        return Cells(np.stack(terms, axis=1), missing)

    def terms(self, frame: Frame) -> tuple[list[Integers], Truths | None]:
        """Each term by itself, and where they are missing."""
        step, low, high = self.span(frame.schema)
        values, missing = numbers(self.item, frame)
        units = to_grid(values, step, low, high)
        above, below = units - low, high - units
        terms = [above, below] if self.degree == 1 else [above * above, 2 * above * below, below * below]
        if not self.missing:
            return terms, missing
        gone = np.zeros(frame.size, dtype=np.bool_) if missing is None else missing
        terms = [np.where(gone, 0, term) for term in terms]
        return [*terms, np.where(gone, (high - low) ** self.degree, 0)], None


def scalar_grid(lo: Fraction, hi: Fraction, lattice: Fraction | None) -> tuple[Fraction, int, int]:
    """The grid a bounded number is summed on: its own lattice where that fits, else 2^22 units (SR17)."""
    step = grid_for(max(abs(lo), abs(hi)), TERM_BITS)
    if lattice is not None and lattice >= step:
        step = lattice
    return step, math.floor(lo / step), math.ceil(hi / step)


@dataclass(frozen=True, slots=True, eq=False)
class Lookup(RowFn, keys="A key"):
    """A public table read at a row's keys: one number a row of the table, or a vector.

    The table is indexed by the keys' codes, the last key fastest. A number can
    be used in arithmetic; a vector is summed (parities of contingency tables).
    """

    keys: tuple[RowFn, ...]
    table: tuple[tuple[float | int, ...], ...]

    def __post_init__(self) -> None:
        RowFn.__post_init__(self)
        widths = {len(entry) for entry in self.table}
        if not self.keys or len(widths) != 1 or not 1 <= min(widths) <= MAX_WIDTH or len(self.table) > MAX_WIDTH:
            raise QuestionError("bad-question", "A table needs keys and rows of one width.")
        if len(self.table) * min(widths) > MAX_TABLE_NUMBERS:
            raise QuestionError("too-large", f"A table holds at most {MAX_TABLE_NUMBERS} numbers.")
        object.__setattr__(self, "table", _checked(self.table))

    def sizes(self, schema: Schema) -> tuple[list[int], bool]:
        """The number of labels of each key, and whether any key can be missing."""
        kinds = [key.kind(schema) for key in self.keys]
        codes = [kind for kind in kinds if isinstance(kind, Code)]
        if len(codes) != len(kinds):
            raise QuestionError("wrong-kind", "A table is read at keys: categories, bins, each(...).")
        if math.prod(kind.size for kind in codes) != len(self.table):
            raise QuestionError("bad-question", "The table needs one row for each combination of keys.")
        return [kind.size for kind in codes], any(kind.nullable for kind in codes)

    def units(self) -> tuple[Integers, Fraction]:
        """The table in whole units, and the unit."""
        return self._held()[0]

    def _held(self) -> tuple[tuple[Integers, Fraction], tuple[tuple[int, ...], tuple[int, ...]]]:
        """The units, and the least and the largest of each column: a plan asks for them again and again."""
        held = getattr(self, "held", None)
        if held is None:
            units, step = self._units()
            units.setflags(write=False)
            held = ((units, step), (tuple(units.min(axis=0).tolist()), tuple(units.max(axis=0).tolist())))
            object.__setattr__(self, "held", held)
        return cast("tuple[tuple[Integers, Fraction], tuple[tuple[int, ...], tuple[int, ...]]]", held)

    def _units(self) -> tuple[Integers, Fraction]:
        table = np.array(self.table, dtype=np.float64)
        limit = 2**TERM_BITS
        step = grid_for(Fraction(float(np.abs(table).max())), TERM_BITS)
        if np.array_equal(table, np.floor(table)):
            step = max(step, Fraction(1))
        return to_grid(table, step, -limit, limit), step

    def kind(self, schema: Schema) -> Scalar | Grid:
        _, nullable = self.sizes(schema)
        (_, step), (low, high) = self._held()
        if len(low) == 1:
            return Scalar(low[0] * step, high[0] * step, step, nullable)
        return Grid(step, low, high, nullable=nullable)

    def index(self, frame: Frame) -> tuple[Integers, Truths | None]:
        """Each row's place in the table."""
        sizes, _ = self.sizes(frame.schema)
        index, missing = vector_cells(self.keys[0], frame)
        for key, size in zip(self.keys[1:], sizes[1:], strict=True):
            more, none = vector_cells(key, frame)
            index, missing = index * size + more, union(missing, none)
        return index, missing

    def cells(self, frame: Frame) -> Cells:
        index, missing = self.index(frame)
        units, step = self.units()
        if units.shape[1] == 1:
            return Cells(entry(units[:, 0].astype(np.float64), index) * float(step), missing)
        return Cells(units.take(index, axis=0, mode="clip"), missing)


def _checked(table: tuple[tuple[float | int, ...], ...]) -> tuple[tuple[float | int, ...], ...]:
    """A table of numbers, or a refusal; one that holds plain numbers already is looked at as a whole and left as it is.

    Tables are most of what a question of many sums holds, and number by number they take longer than their rows.
    """
    plain = _ROW.issuperset(map(type, table)) and _NUMBERS.issuperset(map(type, itertools.chain.from_iterable(table)))
    if plain and _small(table):
        return table
    found = tuple(tuple(map(figure, entry)) for entry in table)
    if not all(abs(x) <= MAX_TABLE_ENTRY for entry in found for x in entry):
        raise QuestionError("bad-literal", "A table holds numbers up to 1e15.")
    return found


def _small(table: tuple[tuple[float | int, ...], ...]) -> bool:
    try:
        return bool((np.abs(np.array(table, dtype=np.float64)) <= MAX_TABLE_ENTRY).all())  # false for NaN too
    except OverflowError:  # a whole number that is no double
        return False


def entries(table: Iterable[object]) -> tuple[tuple[float | int, ...], ...]:
    """A lookup table from numbers or rows of numbers."""
    return tuple(
        tuple(figure(x) for x in (entry if isinstance(entry, (tuple, list, np.ndarray)) else (entry,)))
        for entry in table
    )
