"""Exact sums of row functions over batches of rows: the path every engine shares.

Within a batch sums run in doubles, which are exact because a batch is cut so
that rows * |term| stays below 2^53 (SR16); between batches they run in 64-bit
integers that move to Python's own before they could wrap. So the order, the
number of batches and the number of threads change nothing.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final, cast

import numpy as np

from sulq.curator.engines import blas
from sulq.curator.engines.batch import Batch
from sulq.curator.engines.coordinates import Coordinates, Vectors
from sulq.curator.engines.needed import functions
from sulq.curator.engines.unite import unite
from sulq.terms.domain import Schema
from sulq.terms.engine import Block, Key, Tally
from sulq.terms.kinds import Floats, Integers, Objects, Truths
from sulq.terms.rowfn.scalar import Lit, evaluate, numbers, truths
from sulq.terms.rowfn.scaled import Scaled
from sulq.terms.rowfn.vectors import Lookup, Outer, Vector, WithinBall, to_grid, vector_cells

EXACT: Final = 2**53
SATURATED: Final = 2**62
ROOM: Final = 2**22  # so many doubles a vector's coordinates take at a time, however many it has
DENSE: Final = 2**20  # so many (cell, table row) pairs are counted before they meet the table


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
    return fold_all((tally,), schema, batches, workers=workers)[0]


def fold_all(
    tallies: Sequence[Tally], schema: Schema, batches: Iterable[Batch], *, workers: int = 1
) -> tuple[Integers, ...]:
    """Exact sums of several tallies over the same rows in one pass: what two of them need is worked out once."""
    most = EXACT // max([1, *(reach(block) for tally in tallies for block in tally.blocks)])
    if most == 0:
        raise OverflowError("a term leaves the exact integers")
    feed = _Feed(batches)
    united = unite(tallies)
    with blas.one_thread() as alone:
        if workers <= 1 or not alone:
            found = [_work(united, schema, feed, most)]
        else:
            with ThreadPoolExecutor(workers) as pool:
                jobs = [pool.submit(_work, united, schema, feed, most) for _ in range(workers)]
                found = [job.result() for job in jobs]
    for others in found[1:]:
        for one, other in zip(found[0], others, strict=True):
            one.merge(other)
    return tuple(one.sums() for one in found[0])


class _Feed:
    """Batches handed to whichever thread asks next."""

    def __init__(self, batches: Iterable[Batch]) -> None:
        self._batches: Iterator[Batch] = iter(batches)
        self._lock = threading.Lock()

    def next(self) -> Batch | None:
        with self._lock:
            return next(self._batches, None)


def _work(tallies: Sequence[Tally], schema: Schema, feed: _Feed, most: int) -> list[_Share]:
    vectors = Vectors(schema, [fn for tally in tallies for fn in functions(tally)])
    shares = [_Share(tally, schema, vectors) for tally in tallies]
    most = min(most, max(ROOM // (vectors.widest + 1), 256))
    with np.errstate(all="ignore"):  # a missing cell may hold anything; warnings must not tell of it
        while (batch := feed.next()) is not None:
            for start in range(0, batch.size, most):
                part = batch if batch.size <= most else batch.part(start, min(start + most, batch.size))
                vectors.prime(part)
                keys = Keys(part)
                for share in shares:
                    share.add(part, keys)
        for share in shares:
            share.finish()
    return shares


class _Share:
    """One thread's part of one tally's sums."""

    def __init__(self, tally: Tally, schema: Schema, vectors: Vectors) -> None:
        self.tally = tally
        self.totals = [Totals(tally.cells, block.width) for block in tally.blocks]
        self.kernels = [_kernel(block, schema, tally.cells, vectors) for block in tally.blocks]

    def add(self, batch: Batch, keys: Keys) -> None:
        """Add a batch's terms."""
        chosen = choose(self.tally, batch, keys)
        for kernel, total in zip(self.kernels, self.totals, strict=True):
            total.reserve(batch.size * kernel.most)
            kernel.add(batch, chosen, total.small)

    def finish(self) -> None:
        """Add what was put off until the last batch."""
        for kernel, total in zip(self.kernels, self.totals, strict=True):
            kernel.finish(total)

    def merge(self, other: _Share) -> None:
        """Add another thread's part."""
        for total, more in zip(self.totals, other.totals, strict=True):
            total.merge(more)

    def sums(self) -> Integers:
        """The sums of all blocks side by side, saturated."""
        return np.concatenate([total.saturated() for total in self.totals], axis=1)


class Keys:
    """The codes of keys on one batch, each worked out once for all tallies that have it."""

    def __init__(self, batch: Batch) -> None:
        self._batch = batch
        self._known: dict[int, tuple[Key, Integers, Truths | None]] = {}
        self._steps: dict[tuple[int, int], Integers] = {}

    def codes(self, key: Key) -> tuple[Integers, Truths | None]:
        """A key's code for each row, and the rows that have one (None: all)."""
        known = self._known.get(id(key.fn))
        if known is None or len(known[0].labels) != len(key.labels):
            cells = evaluate(key.fn, self._batch)
            codes = cast("Integers", cells.values)
            here = codes.view(np.uint64) < len(key.labels)  # without a sign: what is below 0 is far above
            here = here if cells.missing is None else here & ~cells.missing
            known = self._known[id(key.fn)] = (key, codes, None if here.all() else here)
        return known[1], known[2]

    def steps(self, key: Key, stride: int) -> Integers:
        """A key's part of each row's cell: its code times how many cells lie between one label and the next."""
        if stride == 1:
            return self.codes(key)[0]
        known = self._steps.get((id(key.fn), stride))
        if known is None:
            known = self._steps[id(key.fn), stride] = self.codes(key)[0] * stride
        return known


def choose(tally: Tally, batch: Batch, keys: Keys) -> Chosen:
    """Which rows count, and for which cell: the condition is true and every key is there."""
    counted: Truths | None = None
    if tally.where is not None:
        holds, unknown = truths(tally.where, batch)
        counted = holds if unknown is None else holds & ~unknown
    if not tally.by:
        return Chosen(None if counted is None else np.flatnonzero(counted), None, None, 1)
    steps: list[Integers] = []
    stride = 1
    for key in reversed(tally.by):
        _, here = keys.codes(key)
        if here is not None:
            counted = here if counted is None else counted & here
        steps.append(keys.steps(key, stride))
        stride *= len(key.labels)
    cells = steps[0] if len(steps) == 1 else steps[0] + steps[1]
    for more in steps[2:]:
        cells += more
    rows = None if counted is None or counted.all() else np.flatnonzero(counted)
    cells = cells if rows is None else cells[rows]
    if tally.cells <= 4 * len(cells):
        return Chosen(rows, cells, None, tally.cells)
    ids, places = np.unique(cells, return_inverse=True)
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
        if missing is not None:
            units[:, missing] = 0.0
        units = units if chosen.rows is None else units[:, chosen.rows]
        if chosen.cells is None:
            sums[0] += units.sum(axis=1).astype(np.int64)
            return
        for i, terms in enumerate(units):
            _into(sums, chosen, i, terms)

    def finish(self, total: Totals) -> None:
        """Add what was put off until the last batch."""


def _into(sums: Integers, chosen: Chosen, column: int, terms: Floats | None, times: int = 1) -> None:
    """Add the terms of the rows that count to their cells; None: so many times one."""
    cells = cast("Integers", chosen.cells)
    part = np.bincount(cells, weights=terms, minlength=chosen.count).astype(np.int64) * times
    if chosen.ids is None:
        sums[:, column] += part
    else:
        sums[chosen.ids, column] += part


class _Constant(_Kernel):
    """The same term for every row: how many rows there are, times that."""

    def __init__(self, block: Block, schema: Schema, value: float) -> None:
        super().__init__(block, schema)
        self.term = int(to_grid(np.array([value]), block.step, block.low[0], block.high[0])[0])

    def add(self, batch: Batch, chosen: Chosen, sums: Integers) -> None:
        if chosen.cells is None:
            sums[0] += self.term * (batch.size if chosen.rows is None else len(chosen.rows))
        else:
            _into(sums, chosen, 0, None, self.term)


def units_of(block: Block, schema: Schema, batch: Batch) -> tuple[Floats, Truths | None]:
    """A block's terms on a batch, one row of the matrix a coordinate, and where they are missing."""
    return _Kernel(block, schema).units(batch)


class _Shared(_Kernel):
    """Terms of a vector whose coordinates others may read too, so that they are only read."""

    def __init__(self, block: Block, schema: Schema, coordinates: Coordinates) -> None:
        super().__init__(block, schema)
        self.coordinates = coordinates

    def add(self, batch: Batch, chosen: Chosen, sums: Integers) -> None:
        matrix, _ = self.coordinates.matrix(batch)
        units = matrix[:-1]
        weights = self.weights(batch)
        if chosen.cells is None:  # one product with a column costs less than adding up, or than taking rows out
            weights = matrix[-1] if weights is None else weights
            if chosen.rows is not None:
                weights, given = np.zeros(batch.size), weights
                weights[chosen.rows] = given[chosen.rows]
            sums[0] += (units @ weights).astype(np.int64)
            return
        for i, terms in enumerate(units):
            weighted = terms if weights is None else terms * weights
            _into(sums, chosen, i, weighted if chosen.rows is None else weighted[chosen.rows])

    def weights(self, batch: Batch) -> Floats | None:
        """What each row's vector is taken times; None: once."""
        return None


class _Weighted(_Shared):
    """A vector times a number of each row: one product of the matrix with a column."""

    def __init__(self, block: Block, schema: Schema, fn: Scaled, coordinates: Coordinates) -> None:
        super().__init__(block, schema, coordinates)
        self.factor = fn.factor
        self.span = fn.span(schema)

    def weights(self, batch: Batch) -> Floats | None:
        values, missing = numbers(self.factor, batch)
        units = to_grid(values, *self.span).astype(np.float64)
        if missing is not None:
            units[missing] = 0.0
        return units


class _Products(_Shared):
    """All products of a vector's coordinates: one matrix product a cell."""

    def __init__(self, block: Block, schema: Schema, coordinates: Coordinates) -> None:
        super().__init__(block, schema, coordinates)
        self.triangle = np.triu_indices(coordinates.kind.width)

    def add(self, batch: Batch, chosen: Chosen, sums: Integers) -> None:
        units, _ = self.coordinates.units(batch)
        units = units if chosen.rows is None else units[:, chosen.rows]
        if chosen.cells is None:
            sums[0] += (units @ units.T)[self.triangle].astype(np.int64)
            return
        units = units[:, np.argsort(chosen.cells, kind="stable")]
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


def _kernel(block: Block, schema: Schema, cells: int, vectors: Vectors) -> _Kernel:
    fn = block.fn
    match fn:
        case Outer(vector):
            return _Products(block, schema, vectors.of(vector))
        case Vector() | WithinBall():
            return _Shared(block, schema, vectors.of(fn))
        case Scaled(vector):
            return _Weighted(block, schema, fn, vectors.of(vector))
        case Lookup() if block.vector and cells * len(fn.table) <= DENSE:
            return _Counted(block, schema, fn, cells)
        case Lit(value) if not isinstance(value, (bool, str)):
            return _Constant(block, schema, float(value))
    return _Kernel(block, schema)
