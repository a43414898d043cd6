"""How the terms of one block of a batch are added up: by cell, by BLAS, or counted before they meet a public table."""

from __future__ import annotations

from typing import Final, cast

import numpy as np

from sulq.language.domain import Schema
from sulq.language.kinds import Floats, Integers, Truths
from sulq.language.rowfn import Lit
from sulq.language.rowfn.base import numbers
from sulq.language.rowfn.scaled import Scaled
from sulq.language.rowfn.vectors import Lookup, Outer, Vector, WithinBall, to_grid, vector_cells
from sulq.language.tally import Block
from sulq.sources.folds import by_cell
from sulq.sources.folds.batch import Batch
from sulq.sources.folds.coordinates import Coordinates, Vectors
from sulq.sources.folds.keys import Chosen
from sulq.sources.folds.totals import Totals

DENSE: Final = 2**20  # so many (cell, table row) pairs are counted before they meet the table


def reach(block: Block) -> int:
    """The largest term of a block."""
    return max(max(abs(a), abs(b)) for a, b in zip(block.low, block.high, strict=True))


class Kernel:
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


class Constant(Kernel):
    """The same term for every row: how many rows there are, times that."""

    def __init__(self, block: Block, schema: Schema, value: float) -> None:
        super().__init__(block, schema)
        self.term = int(to_grid(np.array([value]), block.step, block.low[0], block.high[0])[0])

    def add(self, batch: Batch, chosen: Chosen, sums: Integers) -> None:
        """Count the rows of a batch."""
        if chosen.cells is None:
            sums[0] += self.term * (batch.size if chosen.rows is None else len(chosen.rows))
        else:
            _into(sums, chosen, 0, None, self.term)


def units_of(block: Block, schema: Schema, batch: Batch) -> tuple[Floats, Truths | None]:
    """A block's terms on a batch, one row of the matrix a coordinate, and where they are missing."""
    return Kernel(block, schema).units(batch)


class _Shared(Kernel):
    """Terms of a vector whose coordinates others may read too, so that they are only read."""

    def __init__(self, block: Block, schema: Schema, coordinates: Coordinates) -> None:
        super().__init__(block, schema)
        self.coordinates = coordinates
        self.adder = by_cell.Adder()

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
        if self.coordinates.by_rows:
            places = slice(None) if chosen.ids is None else chosen.ids
            sums[places] += self.adder.sums(chosen, matrix.T, weights)[:, :-1]
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


class _Counted(Kernel):
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


def kernel(block: Block, schema: Schema, cells: int, vectors: Vectors, *, keyed: bool) -> Kernel:
    """The way in which a block is added up, for so many cells, which keys tell apart or which are one."""
    fn = block.fn
    match fn:
        case Outer(vector):
            return _Products(block, schema, vectors.of(vector))
        case Vector() | WithinBall():
            return _Shared(block, schema, vectors.of(fn, by_rows=keyed and by_cell.installed()))
        case Scaled(vector):
            return _Weighted(block, schema, fn, vectors.of(vector, by_rows=keyed and by_cell.installed()))
        case Lookup() if block.vector and cells * len(fn.table) <= DENSE:
            return _Counted(block, schema, fn, cells)
        case Lit(value) if not isinstance(value, (bool, str)):
            return Constant(block, schema, float(value))
    return Kernel(block, schema)
