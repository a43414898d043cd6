"""Exact sums of row functions over batches of rows: the path every engine shares.

Within a batch sums run in doubles, which are exact because a batch is cut so
that rows * |term| stays below 2^53 (SR16); between batches they run in 64-bit
integers that move to Python's own before they could wrap. So the order, the
number of batches and the number of threads change nothing.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, cast

import numpy as np

from sulq.curator.engines import blas
from sulq.curator.engines.batch import Batch
from sulq.terms.domain import Bool, Category, Schema, Text, power_of_two
from sulq.terms.engine import Block, Tally
from sulq.terms.kinds import Floats, Grid, Integers, Objects, Truths, union
from sulq.terms.rowfn.scalar import Arith, Col, IsMissing, Lit, Not, RowFn, Values, evaluate, numbers, truths
from sulq.terms.rowfn.vectors import Lookup, Outer, Vector, to_grid, vector_cells

EXACT: Final = 2**53
SATURATED: Final = 2**62
DENSE: Final = 2**20  # so many (cell, table row) pairs are counted before they meet the table
CACHED: Final = 2**13  # so many doubles stay near the core from one operation to the next
NARROW: Final = 2**51  # integers below may be added to half a step without rounding


class Totals:
    """Exact running sums of one block, by cell: int64 as long as nothing can wrap, else Python integers."""

    __slots__ = ("large", "small", "used")

    def __init__(self, cells: int, width: int) -> None:
        self.small: Integers = np.zeros((cells, width), dtype=np.int64)
        self.large: Objects | None = None
        self.used = 0

    def reserve(self, most: int) -> None:
        """Make sure that sums of at most this size can be added."""
        if self.used + most >= SATURATED:
            self.large = self.small.astype(object) if self.large is None else self.large + self.small
            self.small[:] = 0
            self.used = 0
        self.used += most

    def merge(self, other: Totals) -> None:
        """Add another thread's sums."""
        self.reserve(other.used)
        self.small += other.small
        if other.large is not None:
            self.large = other.large if self.large is None else self.large + other.large

    def saturated(self) -> Integers:
        """The sums as int64, clamped to +-2^62: a 1-Lipschitz step (T5)."""
        return saturate(self.small if self.large is None else self.large + self.small)


def saturate(sums: Integers | Objects) -> Integers:
    """Clamp exact sums of any size to +-2^62."""
    return np.clip(sums, -SATURATED, SATURATED).astype(np.int64)


@dataclass(frozen=True, slots=True)
class Chosen:
    """The rows of a batch that count (None: all), and the cell of each (None: there is one cell)."""

    rows: Integers | None
    cells: Integers | None
    ids: Integers | None  # where many cells are empty: the cells that occur, which `cells` then numbers
    count: int  # how many cells `cells` runs over


def reach(block: Block) -> int:
    """The largest term of a block."""
    return max(max(abs(a), abs(b)) for a, b in zip(block.low, block.high, strict=True))


def fold(tally: Tally, schema: Schema, batches: Iterable[Batch], *, workers: int = 1) -> Integers:
    """Exact sums of a tally over batches, shape (cells, width), saturated at +-2^62."""
    most = EXACT // max(1, *(reach(block) for block in tally.blocks))
    if most == 0:
        raise OverflowError("a term leaves the exact integers")
    feed = _Feed(batches)
    with blas.one_thread() as alone:
        if workers <= 1 or not alone:
            found = [_work(tally, schema, feed, most)]
        else:
            with ThreadPoolExecutor(workers) as pool:
                jobs = [pool.submit(_work, tally, schema, feed, most) for _ in range(workers)]
                found = [job.result() for job in jobs]
    for other in found[1:]:
        for total, more in zip(found[0], other, strict=True):
            total.merge(more)
    return np.concatenate([total.saturated() for total in found[0]], axis=1)


class _Feed:
    """Batches handed to whichever thread asks next."""

    def __init__(self, batches: Iterable[Batch]) -> None:
        self._batches: Iterator[Batch] = iter(batches)
        self._lock = threading.Lock()

    def next(self) -> Batch | None:
        with self._lock:
            return next(self._batches, None)


def _work(tally: Tally, schema: Schema, feed: _Feed, most: int) -> list[Totals]:
    totals = [Totals(tally.cells, block.width) for block in tally.blocks]
    vectors: dict[int, _Coordinates] = {}
    kernels = [_kernel(block, schema, tally.cells, vectors) for block in tally.blocks]
    with np.errstate(all="ignore"):  # a missing cell may hold anything; warnings must not tell of it
        while (batch := feed.next()) is not None:
            for start in range(0, batch.size, most):
                part = batch if batch.size <= most else batch.part(start, min(start + most, batch.size))
                chosen = choose(tally, part)
                for kernel, total in zip(kernels, totals, strict=True):
                    total.reserve(part.size * kernel.most)
                    kernel.add(part, chosen, total.small)
        for kernel, total in zip(kernels, totals, strict=True):
            kernel.finish(total)
    return totals


def choose(tally: Tally, batch: Batch) -> Chosen:
    """Which rows count, and for which cell: the condition is true and every key is there."""
    counted: Truths | None = None
    if tally.where is not None:
        holds, unknown = truths(tally.where, batch)
        counted = holds if unknown is None else holds & ~unknown
    if not tally.by:
        return Chosen(None if counted is None else np.flatnonzero(counted), None, None, 1)
    index = np.zeros(batch.size, dtype=np.int64)
    for key in tally.by:
        cells = evaluate(key.fn, batch)
        code = cast("Integers", cells.values)
        here = (code >= 0) & (code < len(key.labels))
        here = here if cells.missing is None else here & ~cells.missing
        counted = here if counted is None else counted & here
        index = index * len(key.labels) + code
    rows = None if counted is None or counted.all() else np.flatnonzero(counted)
    index = index if rows is None else index[rows]
    if tally.cells <= 4 * len(index):
        return Chosen(rows, index, None, tally.cells)
    ids, places = np.unique(index, return_inverse=True)
    return Chosen(rows, places.reshape(-1), ids, len(ids))


class _Kernel:
    """How one block's terms of a batch are added up."""

    def __init__(self, block: Block, schema: Schema) -> None:
        self.block = block
        self.schema = schema
        self.most = reach(block)

    def units(self, batch: Batch) -> tuple[Floats, Truths | None]:
        """The block's terms, one row of the matrix a coordinate, and where they are missing."""
        block = self.block
        if block.vector:
            rows, missing = vector_cells(block.fn, batch)
            return np.ascontiguousarray(rows.T, dtype=np.float64), missing
        values, missing = numbers(block.fn, batch)
        return to_grid(values, block.step, block.low[0], block.high[0]).astype(np.float64)[None, :], missing

    def add(self, batch: Batch, chosen: Chosen, sums: Integers) -> None:
        """Add a batch's terms."""
        units, missing = self.units(batch)
        units, missing = _taken(units, missing, chosen)
        if chosen.cells is None:
            sums[0] += units.sum(axis=1).astype(np.int64)
            return
        for i, terms in enumerate(units):
            part = np.bincount(chosen.cells, weights=terms, minlength=chosen.count).astype(np.int64)
            _into(sums, chosen, part, i)

    def finish(self, total: Totals) -> None:
        """Add what was put off until the last batch."""


def _taken(units: Floats, missing: Truths | None, chosen: Chosen) -> tuple[Floats, Truths | None]:
    """The terms of the rows that count; missing ones are zero."""
    if chosen.rows is not None:
        units = units[:, chosen.rows]
        missing = None if missing is None else missing[chosen.rows]
    if missing is not None:
        units[:, missing] = 0.0
    return units, missing


def _into(sums: Integers, chosen: Chosen, part: Integers, column: int | slice) -> None:
    if chosen.ids is None:
        sums[:, column] += part
    else:
        sums[chosen.ids, column] += part


def units_of(block: Block, schema: Schema, batch: Batch) -> tuple[Floats, Truths | None]:
    """A block's terms on a batch, one row of the matrix a coordinate, and where they are missing."""
    return _Kernel(block, schema).units(batch)


class _Coordinates:
    """A vector's coordinates on its grid, made once a batch for all blocks that read them."""

    def __init__(self, vector: RowFn, schema: Schema) -> None:
        self.vector = vector
        self.items: list[_Coordinate] = []
        if isinstance(vector, Vector):
            kind = vector.kind(schema)
            self.items = [_Coordinate(item, kind, i, schema) for i, item in enumerate(vector.items)]
        self.room: Floats = np.empty((0, 0))  # kept from batch to batch: fresh pages cost more than the arithmetic
        self.narrow: Integers = np.empty(0, dtype=np.int64)
        self.made: tuple[Batch, Floats, Truths | None] | None = None

    def units(self, batch: Batch) -> tuple[Floats, Truths | None]:
        """The coordinates, one row of the matrix each, and where the vector is missing."""
        if self.made is None or self.made[0] is not batch:
            self.made = (batch, *self._make(batch))
        return self.made[1], self.made[2]

    def _make(self, batch: Batch) -> tuple[Floats, Truths | None]:
        if not self.items:
            rows, missing = vector_cells(self.vector, batch)
            return np.ascontiguousarray(rows.T, dtype=np.float64), missing
        if self.room.shape[1] < batch.size:
            self.room = np.empty((len(self.items), batch.size))
            self.narrow = np.empty(batch.size, dtype=np.int64)
        out = self.room[:, : batch.size]
        return out, union(*(item.write(batch, self.narrow, out[i]) for i, item in enumerate(self.items)))


class _Shared(_Kernel):
    """Terms of a vector that other blocks may read too."""

    def __init__(self, block: Block, schema: Schema, coordinates: _Coordinates) -> None:
        super().__init__(block, schema)
        self.coordinates = coordinates

    def units(self, batch: Batch) -> tuple[Floats, Truths | None]:
        return self.coordinates.units(batch)


class _Present(_Shared):
    """How many rows have a vector at all."""

    def units(self, batch: Batch) -> tuple[Floats, Truths | None]:
        return np.ones((1, batch.size)), self.coordinates.units(batch)[1]


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
            _shifted(stored, self.shift, self.largest, room, out)
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


class _Products(_Shared):
    """All products of a vector's coordinates: one matrix product a cell."""

    def __init__(self, block: Block, schema: Schema, coordinates: _Coordinates) -> None:
        super().__init__(block, schema, coordinates)
        width = (math.isqrt(8 * block.width + 1) - 1) // 2
        self.triangle = np.triu_indices(width)

    def add(self, batch: Batch, chosen: Chosen, sums: Integers) -> None:
        units, missing = self.units(batch)
        units, missing = _taken(units, missing, chosen)
        if chosen.cells is None:
            sums[0] += (units @ units.T)[self.triangle].astype(np.int64)
            return
        order = np.argsort(chosen.cells, kind="stable")
        units = units[:, order]
        ends = np.cumsum(np.bincount(chosen.cells, minlength=chosen.count))
        start = 0
        for cell, end in enumerate(ends.tolist()):
            if end > start:
                mine = units[:, start:end]
                place = cell if chosen.ids is None else int(chosen.ids[cell])
                sums[place] += (mine @ mine.T)[self.triangle].astype(np.int64)
            start = end


class _Counted(_Kernel):
    """A public table read at the rows' keys: the rows of each entry are counted, and the counts meet the table once."""

    def __init__(self, block: Block, schema: Schema, lookup: Lookup, cells: int) -> None:
        super().__init__(block, schema)
        self.lookup = lookup
        self.counts = np.zeros((cells, len(lookup.table)), dtype=np.int64)

    def add(self, batch: Batch, chosen: Chosen, sums: Integers) -> None:
        index, missing = self.lookup.index(batch)
        if chosen.rows is not None:
            index = index[chosen.rows]
            missing = None if missing is None else missing[chosen.rows]
        cells = np.zeros(len(index), dtype=np.int64) if chosen.cells is None else chosen.cells
        cells = cells if chosen.ids is None else chosen.ids[cells]
        place = cells * self.counts.shape[1] + index
        place = place if missing is None else place[~missing]
        self.counts += np.bincount(place, minlength=self.counts.size).reshape(self.counts.shape)

    def finish(self, total: Totals) -> None:
        total.small += weighed(self.counts, self.lookup.units()[0])


def weighed(counts: Integers, units: Integers) -> Integers:
    """Counts times a public table, in whole numbers; the caller has made room for the sums."""
    return cast("Integers", counts @ units)


def _kernel(block: Block, schema: Schema, cells: int, vectors: dict[int, _Coordinates]) -> _Kernel:
    fn = block.fn

    def shared(vector: RowFn) -> _Coordinates:
        return vectors.setdefault(id(vector), _Coordinates(vector, schema))

    match fn:
        case Outer(vector):
            return _Products(block, schema, shared(vector))
        case Vector():
            return _Shared(block, schema, shared(fn))
        case Not(IsMissing(Vector() as vector)):
            return _Present(block, schema, shared(vector))
        case Lookup() if block.vector and cells * len(fn.table) <= DENSE:
            return _Counted(block, schema, fn, cells)
    return _Kernel(block, schema)
