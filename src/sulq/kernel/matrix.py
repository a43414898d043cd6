"""Folds: a program's sums over batches of rows, by a closed list of row-wise NumPy operations on exact numbers.

A vector's whole numbers are held within their public bounds before they are summed (the guard), each row goes to one
cell or none, and all sums stay below 2^53 until they are whole numbers of Python's own, so that no order of rows,
threads and batches changes them. Columns of a stored table may stay in memory, and vectors made of them: whoever keeps
these is not believed; each says of which rows it is. Source: docs/theory/kernel.md; SR1, SR13, SR16.
"""

from __future__ import annotations

import functools
import importlib
import math
import re
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np

from sulq.kernel.facts import Refused
from sulq.kernel.private import Floats, Integers, saturate
from sulq.kernel.programs import MAX_CELLS, STEPS, Box, Key, Program, Stack, Sum, check, whole
from sulq.kernel.values import EXACT

Stored = tuple[np.ndarray, Any]  # values, and where they are missing; None: nowhere
Streamed = Iterable[tuple[Sequence[Stored], int]]
WORKERS: Final = 8  # so many sums of one worker each are added before they saturate
ROWS: Final = 2**15  # so many at a time stay near the core
ROOM: Final = 2**22  # so many doubles a vector's coordinates take at a time, however many it has
DENSE: Final = 2**20  # so many (cell, table row) pairs are counted before they meet the table
_NAME: Final = re.compile(r"[a-z][a-z0-9_]*\Z")


# Columns in memory


def text(table: tuple[str, ...], names: Sequence[str], *, numbered: bool = False) -> str:
    """The statement of some columns of a stored table; numbered: each row's own number first."""
    if not names or not all(_NAME.match(name) for name in (*table, *names)):
        raise Refused("a name of another form")
    return f"SELECT {'rowid, ' if numbered else ''}{', '.join(names)} FROM {'.'.join(table)}"  # noqa: S608 - looked at


@dataclass(eq=False)
class Kept:
    """Numbers of all rows of a table, each at its row's own number: of a column, or of a vector within its bounds.

    A vector's are narrow whole numbers, side by side in memory with a one after each row's.
    """

    table: tuple[str, ...]
    values: np.ndarray
    missing: np.ndarray | None = None
    box: Box | None = None


def narrow(box: Box) -> np.dtype[np.signedinteger]:
    """The narrowest integers that hold every coordinate, zero for rows without a vector, and one."""
    return np.min_scalar_type(min(*box.low, *(-1 - high for high in box.high), -2))


def read(ask: Callable[[str], Streamed], table: tuple[str, ...], names: Sequence[str], count: int) -> dict[str, Kept]:
    """Columns of a table, each cell at its row's number: columns read at different times have the same order of rows.

    The numbers of the rows of a stored table run from 0 without a gap, as no row of it was ever taken away.

    Privacy: cells that met another row's would make one person's rows move two vectors.
    """
    found = {name: Kept(table, np.zeros(count, dtype=np.int8)) for name in names}
    done = 0
    for ((numbers, _), *cells), size in ask(text(table, names, numbered=True)):
        ordered = np.array_equal(numbers, np.arange(done, done + size))
        rows = slice(done, done + size) if ordered else numbers
        for column, (values, missing) in zip(found.values(), cells, strict=True):
            column.values = column.values if done else np.zeros(count, dtype=values.dtype)
            column.values[rows] = values
            if missing is not None:
                column.missing = np.zeros(count, dtype=np.bool_) if column.missing is None else column.missing
                column.missing[rows] = missing
        done += size
    if done != count:
        raise LookupError("the stored rows changed")
    return found


@dataclass(frozen=True, slots=True)
class Batch:
    """Some rows: their columns by place, None where no step looks at one; and the vectors that are known, by step."""

    size: int
    columns: Sequence[Stored | None]
    start: int = 0
    made: Mapping[int, Kept] = field(default_factory=dict)

    def parts(self, size: int) -> Iterator[Batch]:
        """So many rows at a time."""
        for start in range(0, self.size, size):
            rows = slice(start, min(start + size, self.size))
            some = [each and (each[0][rows], each[1][rows] if np.ndim(each[1]) else np.False_) for each in self.columns]
            if any(each is not None and np.shape(each[0]) != (rows.stop - start,) for each in some):
                raise LookupError("columns of different lengths")
            yield Batch(rows.stop - start, some, self.start + start, self.made)


def stored(table: tuple[str, ...], count: int, columns: Sequence[Kept | None], made: Mapping[int, Kept]) -> Batch:
    """Columns in memory, of so many rows, by their places, and vectors, by their steps.

    Privacy: what is of other rows is refused, so that a row's cells and vectors are never another's.
    """
    every = [each for each in (*columns, *made.values()) if each is not None]
    if {(each.table, each.values.shape[-1]) for each in every} - {(table, count)}:
        raise LookupError("columns of other rows")
    return Batch(count, [None if each is None else (each.values, each.missing) for each in columns], made=made)


def vectors(program: Program, place: int, table: tuple[str, ...], count: int, columns: Sequence[Kept | None]) -> Kept:
    """The guarded vectors of a step, of all rows: for folds of the same rows, and steps of the same bounds."""
    made = replace(program, sums=(Sum("vectors", place),))
    boxes, summed = check(made)
    values = np.zeros((len(boxes[place].low) + 1, count), narrow(boxes[place]), order="F")
    for rows, found in _Worker(made, boxes, summed).values(stored(table, count, columns, {})):
        values[:, rows.start : rows.start + rows.size] = found[place]
    return Kept(table, values, box=boxes[place])


# Sums


def order(program: Program, made: Collection[int]) -> dict[int, int]:
    """The steps that sums look at where some vectors are known, and which one looks at each last; -1: a sum."""
    last = {place: -1 for each in program.sums for place in each.reads}
    for place in range(len(program.steps) - 1, -1, -1):
        if place in last and place not in made:
            for each in program.steps[place].of:
                last.setdefault(each, place)
    return dict(sorted(last.items()))


def fold(program: Program, batches: Iterable[Batch], *, workers: int = 1) -> list[Integers]:
    """The exact sums of a program over all batches, a row for each cell, saturated at +-2^62 (a 1-Lipschitz step, T5).

    Privacy: each batch is taken once, by one of the threads.
    """
    source, lock, known = iter(batches), threading.Lock(), check(program)

    def take() -> Batch | None:
        with lock:
            return next(source, None)

    def work() -> list[Any]:
        worker = _Worker(program, *known)
        for batch in iter(take, None):
            worker.add(batch)
        return [each.end() for each in worker.sums]

    with ThreadPoolExecutor(WORKERS) as pool:  # this thread is one of them
        jobs = [pool.submit(work) for _ in range(min(workers, WORKERS) - 1)]
        found = [work(), *(job.result() for job in jobs)]
    return [saturate(sum(several)) for several in zip(*found, strict=True)]


class _Worker:
    """One thread's sums, and what it works out of some rows."""

    def __init__(self, program: Program, boxes: Mapping[int, Box], summed: Sequence[Box]) -> None:
        self._program, self._boxes = program, boxes
        self.sums = [_Running(each, box) for each, box in zip(program.sums, summed, strict=True)]
        self._given = [None if isinstance(step, Stack) else np.array(step.given) for step in program.steps]
        widest = max((len(box.low) for box in (*boxes.values(), *summed)), default=0)
        self._most = min([ROWS, max(ROOM // (widest + 1), 256), *(EXACT // each.largest for each in self.sums)])
        self._room: dict[int, Floats] = {}

    def add(self, batch: Batch) -> None:
        """Add a batch's rows."""
        for rows, values in self.values(batch):
            known: dict[tuple[Key, ...], Integers] = {}
            for total in self.sums:
                if total.keys not in known:
                    known[total.keys] = _cells(total.keys, rows.size, values)
                total.add(values, known[total.keys])

    def values(self, batch: Batch) -> Iterator[tuple[Batch, dict[int, Any]]]:
        """What the steps give that sums look at, of so many rows at a time that all sums are exact."""
        if any(each.box != self._boxes[place] for place, each in batch.made.items()):
            raise LookupError("vectors of other bounds")
        last = order(self._program, batch.made)
        for rows in batch.parts(self._most):
            values: dict[int, Any] = {}
            with np.errstate(all="ignore"):  # of a missing cell: no warning may tell that there is one
                for place in last:
                    step = self._program.steps[place]
                    if isinstance(step, Stack):
                        values[place] = self._vector(place, step, rows, values)
                    else:
                        of = (values[each] for each in step.of)
                        values[place] = STEPS[step.name].run(rows, self._given[place], *of)
                    for each in step.of:  # what nobody looks at again would leave no room near the core
                        if last.get(each) == place:
                            values.pop(each, None)
            yield rows, values

    def _vector(self, place: int, step: Stack, rows: Batch, values: Mapping[int, Any]) -> Floats:
        """A vector's coordinates, with a row of ones below them; only to be read."""
        if place not in self._room or self._room[place].shape[1] < rows.size:  # fresh pages cost more than arithmetic
            # 16 more: coordinates at powers of two would take each other's place near the core
            self._room[place] = np.ones((len(step.units) + 1, rows.size + 16), order="F" if place in rows.made else "C")
        out = self._room[place][:, : rows.size]
        if place in rows.made:
            out[:] = rows.made[place].values[:, rows.start : rows.start + rows.size]
            return out
        for row, unit in zip(out[:-1], step.units, strict=True):
            given = values[unit.of] if unit.low < unit.high else 0
            part = row if np.ndim(given) else row[:1]  # one number for all rows is worked out once
            np.multiply(given, unit.scale, out=part)
            np.floor(np.add(part, 0.5, out=part), out=part)
            np.fmin(np.fmax(part, unit.low, out=part), unit.high, out=part)  # which brings NaN to the lower bound
            row[len(part) :] = part[:1]
        if step.missing is not None:
            out[:-1, np.broadcast_to(np.asarray(values[step.missing]) != 0, (rows.size,))] = 0.0
        if step.l1 is not None or step.ball is not None:
            _guard(step, out[:-1])
        return out


def _guard(step: Stack, units: Floats) -> None:
    """Make vectors zero that are past the norms that are promised; those to be shortened are shortened first.

    Privacy: this alone is believed of a vector's length, not how it came about.
    """
    if step.shorten:
        _shorten(step, units)
    past = np.zeros(units.shape[1], dtype=np.bool_)
    if step.ball is not None:
        past |= np.einsum("ij,ij->j", units, units) > step.ball**2
    if step.l1 is not None:
        past |= np.abs(units).sum(axis=0) > step.l1
    units[:, past] = 0.0


def _shorten(step: Stack, units: Floats) -> None:
    """Make vectors longer than r trunc(q * r / norm); an L2 norm is rounded up.

    For whole a, b with a + b < 2^53 the double nearest a/b never reaches the whole number above.
    """
    if step.ball is None:
        length, norm = step.l1 or 0, np.abs(units).sum(axis=0)
    else:
        squares = np.einsum("ij,ij->j", units, units)
        length, norm = step.ball, np.ceil(np.sqrt(squares))
        norm += norm * norm < squares  # a float root may be one short
    outside = norm > length
    units *= np.where(outside, length, 1.0)
    units /= np.where(outside, norm, 1.0)
    np.trunc(units, out=units)


def _cells(keys: tuple[Key, ...], size: int, values: Mapping[int, Any]) -> Integers:
    """Each row's cell, the last key fastest; the one after the last where it has none, past which a row stays."""
    cells = np.zeros(size, dtype=np.int64)
    for i, key in enumerate(keys):
        codes = np.broadcast_to(whole(values[key.of]), (size,))
        bare = codes.view(np.uint64)  # without a sign what is below 0 is far above
        cells = np.where(bare < key.size, cells * key.size + codes, MAX_CELLS) if i else np.minimum(bare, key.size)
        cells = cells.view(np.int64)
    return np.minimum(cells, math.prod(key.size for key in keys)) if keys else cells


class _Running:
    """One sum over batches: in doubles as long as these are exact, what was there before as Python's integers.

    Rows of a table are counted, and the counts meet it in the end; where these would be too many, its rows are added.
    The last cell is of the rows that have none.
    """

    def __init__(self, each: Sum, box: Box) -> None:
        self._each, self.keys, self.largest = each, each.keys, max(*box.far, 1)
        self._table = each.table if each.kind == "table" else np.zeros((0, 0), dtype=np.int64)
        self.keys += (Key(each.of, len(self._table)),) if each.kind == "table" else ()
        self._counted = 0 < each.cells * len(self._table) <= DENSE
        shape = (1, each.cells * len(self._table)) if self._counted else (len(box.low), each.cells)
        self._small: Floats = np.zeros((shape[0], shape[1] + 1))
        self._rows, self._before = 0, 0  # the rows that are in doubles; what came before

    def end(self) -> Any:  # noqa: ANN401 - integers of either kind
        """What was summed, a row for each cell."""
        found = self._small[:, :-1].astype(np.int64)
        return (found.reshape(self._each.cells, -1) @ self._table if self._counted else found.T) + self._before

    def add(self, values: Mapping[int, Any], cells: Integers) -> None:
        """Add some rows, each to its cell."""
        each = self._each
        self._rows += len(cells)
        if self._rows * self.largest > EXACT:
            self._before, self._rows = self.end().astype(object), len(cells)
            self._small[:] = 0
        if self._counted:
            np.add.at(self._small[0], cells, 1.0)
            return
        if each.kind == "table":
            cells, rows = np.divmod(cells, len(self._table))  # the last pair is of the last cell
            vector = self._table.T[:, rows].astype(np.float64)
        else:
            vector = values[each.of][:-1]
        weights = None if each.factor is None else values[each.factor][0]
        if each.kind == "products":
            self._products(vector, cells)
        elif each.cells == 1:  # a product with a column
            self._small[:, 0] += vector @ ((cells == 0) if weights is None else (cells == 0) * weights)
        elif each.kind == "vectors" and len(vector) > 1 and each.cells < len(cells) and _sparse() is not None:
            ones, ends = np.ones(len(cells)), np.arange(len(cells) + 1, dtype=np.int32)
            entries = (ones if weights is None else weights, cells.astype(np.int32), ends)
            by_cell = _sparse()(entries, shape=(each.cells + 1, len(cells)))
            self._small += (by_cell @ np.ascontiguousarray(values[each.of].T)).T[:-1]
        else:
            for own, row in zip(self._small, vector, strict=True):
                np.add.at(own, cells, row if weights is None else row * weights)

    def _products(self, vector: Floats, cells: Integers) -> None:
        """Add the products of each cell's rows."""
        several: list[Any] = [slice(None)]
        if self.keys:
            by_cell = np.argsort(cells, kind="stable")
            several = np.split(by_cell, np.flatnonzero(np.diff(cells[by_cell])) + 1)
        for rows in several:
            units, cell = vector[:, rows], cells[rows][0]
            if cell < self._each.cells:
                self._small[:, cell] += (units @ units.T)[np.triu_indices(len(units))]


@functools.cache
def _sparse() -> Any:  # noqa: ANN401 - scipy has no types
    """Sparse matrices, where there is a scipy that works: vectors are then added by cell in one product."""
    try:
        return importlib.import_module("scipy.sparse").csc_array
    except Exception:  # noqa: BLE001 - one made for another NumPy raises what it likes, and is not needed
        return None
