"""Folds: a program's sums over batches of rows, by a closed list of row-wise NumPy operations on exact numbers.

A vector's whole numbers are held within their public bounds before they are summed (the guard), each row goes to one
cell or none, and all sums within a batch stay below 2^53, so that no order of rows, threads and batches changes them.
Nothing that is worked out of one row looks at another; nothing is written where another step reads. Columns of a stored
table may stay in memory, and vectors made of them: whoever keeps these is not believed; each says of which rows it is.

Source: docs/theory/kernel.md; SR1, SR13, SR16.
"""

from __future__ import annotations

import functools
import importlib
import math
import re
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Final, cast

import numpy as np
import numpy.typing as npt

from sulq.kernel.facts import Refused
from sulq.kernel.programs import MAX_CELLS, STEPS, Box, Key, Program, Stack, Step, Sum, check, whole
from sulq.kernel.values import EXACT

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Stored = tuple[np.ndarray, Any]  # values, and where they are missing; None: nowhere
Streamed = Iterable[tuple[Sequence[Stored], int]]
SATURATED: Final = 2**62
WORKERS: Final = 8  # so many sums of one worker each are added before they saturate
ROOM: Final = 2**22  # so many doubles a vector's coordinates take at a time, however many it has
DENSE: Final = 2**20  # so many (cell, table row) pairs are counted before they meet the table
_NAME: Final = re.compile(r"[a-z][a-z0-9_]*\Z")
ARRAYS: Final = ("search", "take", "least")  # whose public numbers are many


# Columns in memory


def text(table: tuple[str, ...], names: Sequence[str], *, numbered: bool = False) -> str:
    """The statement of some columns of a stored table; numbered: each row's own number first."""
    if not names or not all(_NAME.match(name) for name in (*table, *names)):
        raise Refused("a name of another form")
    return f"SELECT {'rowid, ' if numbered else ''}{', '.join(names)} FROM {'.'.join(table)}"  # noqa: S608 - looked at


@dataclass(eq=False)
class Kept:
    """Numbers of all rows of a table, each at its row's own number: of a column, or of a vector within its bounds.

    A vector's are narrow whole numbers, side by side in memory with a one after each row's. Which rows are `written`,
    from where to where, threads append; a fold that begins later may read them once that is every row.
    """

    table: tuple[str, ...]
    values: np.ndarray
    missing: np.ndarray | None = None
    box: Box | None = None
    written: list[tuple[int, int]] = field(default_factory=list)

    @property
    def count(self) -> int:
        """How many rows there are."""
        return int(self.values.shape[-1])

    @property
    def ready(self) -> bool:
        """Whether every row was written, once."""
        ends = sorted(self.written)
        return [0, *(stop for _, stop in ends)] == [*(start for start, _ in ends), self.count]


def vector(table: tuple[str, ...], box: Box, count: int) -> Kept:
    """Room for the vectors of so many rows, and a one after each."""
    values = np.zeros((len(box.low) + 1, count), narrow(box), order="F")
    values[-1] = 1
    return Kept(table, values, box=box)


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
    ready: frozenset[int] = frozenset()  # those that were so when the fold began

    def part(self, start: int, size: int) -> Batch:
        """Some of the rows."""
        rows = slice(start, min(start + size, self.size))
        some = [each and (each[0][rows], each[1][rows] if np.ndim(each[1]) else np.False_) for each in self.columns]
        if any(each is not None and np.shape(each[0]) != (rows.stop - start,) for each in some):
            raise LookupError("columns of different lengths")
        return Batch(rows.stop - start, some, self.start + start, self.made, self.ready)


def cut(
    table: tuple[str, ...], count: int, columns: Sequence[Kept | None], made: Mapping[int, Kept], size: int
) -> Iterator[Batch]:
    """Columns in memory, of so many rows, by their places, and vectors, by their steps, in batches of some rows.

    Privacy: what is of other rows is refused, so that a row's cells and vectors are never another's.
    """
    if {(each.table, each.count) for each in (*columns, *made.values()) if each is not None} - {(table, count)}:
        raise LookupError("columns of other rows")
    if len(set(map(id, made.values()))) != len(made):
        raise LookupError("one vector for two steps")
    stored = [None if each is None else (each.values, each.missing) for each in columns]
    every = Batch(count, stored, made=made, ready=frozenset(place for place, each in made.items() if each.ready))
    return (every.part(start, size) for start in range(0, count, size))


# Sums


def order(program: Program, ready: Collection[int]) -> list[tuple[int, list[int]]]:
    """The steps that sums look at where some vectors are ready, and what none looks at after each."""
    last = {place: -1 for each in program.sums for place in each.reads}  # who looks at it last; -1: a sum
    for place in range(len(program.steps) - 1, -1, -1):
        if place in last and place not in ready:
            for each in program.steps[place].of:
                last.setdefault(each, place)
    done: dict[int, list[int]] = {place: [] for place in (-1, *sorted(last))}
    for each, place in last.items():
        done[place].append(each)
    return list(done.items())[1:]


def fold(program: Program, batches: Iterable[Batch], *, workers: int = 1) -> list[Integers]:
    """The exact sums of a program over all batches, a row for each cell, saturated at +-2^62 (a 1-Lipschitz step, T5).

    Privacy: each batch is taken once, by one of the threads.
    """
    source, lock, known = iter(batches), threading.Lock(), check(program)

    def take() -> Batch | None:
        with lock:
            return next(source, None)

    def work() -> _Worker:
        worker = _Worker(program, *known)
        with np.errstate(all="ignore"):  # of a missing cell: no warning may tell that there is one
            while (batch := take()) is not None:
                worker.add(batch)
        return worker

    others = min(workers, WORKERS) - 1
    with ThreadPoolExecutor(max(others, 1)) as pool:  # this thread is one of them
        jobs = [pool.submit(work) for _ in range(others)]
        found = [work(), *(job.result() for job in jobs)]
    sums = (sum(several) for several in zip(*(worker.end() for worker in found), strict=True))
    return [np.clip(total, -SATURATED, SATURATED).astype(np.int64) for total in sums]


class _Worker:
    """One thread's sums, and what it works out of some rows."""

    def __init__(self, program: Program, boxes: Mapping[int, Box], summed: Sequence[Box]) -> None:
        self._program, self._boxes = program, boxes
        self._arrays = {
            place: np.array(step.given)
            for place, step in enumerate(program.steps)
            if isinstance(step, Step) and step.name in ARRAYS
        }
        self._sums = [_Running(each, box) for each, box in zip(program.sums, summed, strict=True)]
        self._largest = max((max(box.far) for box in summed), default=0) or 1
        widest = max((len(box.low) for box in (*boxes.values(), *summed)), default=0)
        self._most = max(1, min(EXACT // self._largest, max(ROOM // (widest + 1), 256)))
        self._used = 0
        self._room: dict[int, Floats] = {}
        self._made: Mapping[int, Kept] | None = None
        self._order: list[tuple[int, list[int]]] = []

    def add(self, batch: Batch) -> None:
        """Add a batch's rows, so many at a time that all sums are exact."""
        if batch.made is not self._made:
            if any(each.box != self._boxes[place] for place, each in batch.made.items()):
                raise LookupError("vectors of other bounds")
            self._made = batch.made
            self._order = order(self._program, batch.ready)
        for start in range(0, batch.size, self._most):
            rows = batch.part(start, self._most)
            self._used += rows.size * self._largest
            if self._used >= SATURATED // WORKERS:
                self._used = rows.size * self._largest
                for total in self._sums:
                    total.spill()
            values, known, by, cells = self._values(rows), dict[Key, Integers](), None, np.zeros(0, dtype=np.int64)
            for total in self._sums:
                if by != (total.each.where, total.keys):  # sums by the same cells follow each other
                    by = (total.each.where, total.keys)
                    cells = _cells(*by, rows.size, values, known)
                total.add(values, cells)

    def end(self) -> list[Any]:
        """What was summed, exactly."""
        return [each.end() for each in self._sums]

    def _values(self, rows: Batch) -> dict[int, Any]:
        """What the steps give that sums look at."""
        values: dict[int, Any] = {}
        for place, done in self._order:
            step = self._program.steps[place]
            if isinstance(step, Stack):
                values[place] = self._vector(place, step, rows, values)
            else:
                given = self._arrays.get(place, step.given)
                values[place] = STEPS[step.name].run(rows, given, *(values[each] for each in step.of))
            for each in done:  # what nobody looks at again would leave no room near the core
                del values[each]
        return values

    def _vector(self, place: int, step: Stack, rows: Batch, values: Mapping[int, Any]) -> Floats:
        """A vector's coordinates, with a row of ones below them; only to be read."""
        made, stop = rows.made.get(place), rows.start + rows.size
        ready = place in rows.ready
        if place not in self._room or self._room[place].shape[1] < rows.size:  # fresh pages cost more than arithmetic
            # 16 more: coordinates at powers of two would take each other's place near the core
            self._room[place] = np.ones((len(step.units) + 1, rows.size + 16), order="F" if ready else "C")
        out = self._room[place][:, : rows.size]
        if made is not None and ready:
            out[:] = made.values[:, rows.start : stop]
            return out
        for row, unit in zip(out[:-1], step.units, strict=True):
            np.multiply(values[unit.of], unit.scale, out=row)
            np.floor(np.add(row, 0.5, out=row), out=row)
            np.fmin(np.fmax(row, unit.low, out=row), unit.high, out=row)  # which brings NaN to the lower bound
        if step.missing is not None:
            out[:-1, np.broadcast_to(np.asarray(values[step.missing]) != 0, (rows.size,))] = 0.0
        if step.l1 is not None or step.ball is not None:
            _guard(step, out[:-1])
        if made is not None:
            made.values[:, rows.start : stop] = out
            made.written.append((rows.start, stop))
        return out


def _guard(step: Stack, units: Floats) -> None:
    """Make vectors zero that are past the norms that are promised; those to be shortened are shortened first.

    Privacy: this alone is believed of a vector's length, not how it came about.
    """
    past = np.zeros(units.shape[1], dtype=np.bool_)
    if step.ball is not None:
        if step.shorten:
            _shorten(step.ball, units)
        past |= np.einsum("ij,ij->j", units, units) > step.ball**2
    if step.l1 is not None:
        past |= np.abs(units).sum(axis=0) > step.l1
    units[:, past] = 0.0


def _shorten(ball: int, units: Floats) -> None:
    """Make vectors outside the ball trunc(q * ball / norm), norm = |q| rounded up; a float root is looked at twice.

    For whole a, b with a + b < 2^53 the double nearest a/b never reaches the whole number above.
    """
    squares = np.einsum("ij,ij->j", units, units)
    outside, norm = squares > ball**2, np.floor(np.sqrt(squares))
    norm += norm * norm < squares
    norm += norm * norm < squares
    units *= np.where(outside, ball, 1.0)
    units /= np.where(outside, norm, 1.0)
    np.trunc(units, out=units)


def _cells(
    where: int | None, keys: tuple[Key, ...], size: int, values: Mapping[int, Any], known: dict[Key, Integers]
) -> Integers:
    """Each row's cell, the last key fastest; the one after the last where it has none."""
    cells, last = np.zeros(size, dtype=np.int64), math.prod(key.size for key in keys)
    for key in keys:
        if key not in known:  # without a sign what is below 0 is far above; past the last cell a row stays there
            codes = np.broadcast_to(whole(values[key.of]), (size,))
            known[key] = np.where(codes.view(np.uint64) < key.size, codes, MAX_CELLS)
        cells *= key.size
        cells += known[key]
    cells = np.minimum(cells, last, out=cells) if keys else cells
    return cells if where is None else np.where(np.asarray(values[where]) != 0, cells, last)


class _Running:
    """One sum over batches: in 64 bits as long as these hold it, what was there before as Python's integers.

    Rows of a table are counted, and the counts meet it in the end. The last cell is of the rows that have none.
    """

    def __init__(self, each: Sum, box: Box) -> None:
        self.each, self.keys = each, each.keys
        self._before: Any = 0
        self._table: Integers = np.array([[each.term]])
        if each.kind == "table":
            self._table = each.table
            self.keys += (Key(each.of, len(self._table)),)
        self._pairs = each.cells * len(self._table)
        self._counted = each.kind == "count" or (each.kind == "table" and self._pairs <= DENSE)
        shape = (self._pairs + 1, 1) if self._counted else (each.cells + 1, len(box.low))
        self._small: Integers = np.zeros(shape, dtype=np.int64)

    def spill(self) -> None:
        """Make room for more."""
        self._before = self.end().astype(object)
        self._small[:] = 0

    def end(self) -> Any:  # noqa: ANN401 - integers of either kind
        """What was summed, a row for each cell."""
        found = self._small[:-1]
        return (found.reshape(self.each.cells, -1) @ self._table if self._counted else found) + self._before

    def add(self, values: Mapping[int, Any], cells: Integers) -> None:
        """Add some rows, each to its cell."""
        each, vector = self.each, cast("Any", values.get(self.each.of))
        if each.kind == "products":
            every = not each.keys and each.where is None
            for cell, units in ((0, vector[:-1]),) if every else _apart(cells, self._pairs, vector[:-1]):
                self._small[cell] += (units @ units.T)[np.triu_indices(len(units))].astype(np.int64)
            return
        if each.kind == "vectors" and not each.keys:  # one cell: a product with a column
            counted = cells == 0
            weights = counted if each.factor is None else counted * values[each.factor][0]
            self._small[0] += (vector[:-1] @ weights).astype(np.int64)
            return
        ids: Any = slice(None)
        if self._pairs >= 4 * len(cells) or (each.kind == "table" and not self._counted):  # few cells have a row
            ids, cells = np.unique(cells, return_inverse=True)
        count = self._pairs + 1 if isinstance(ids, slice) else len(ids)
        if self._counted:
            self._small[ids, 0] += np.bincount(cells, minlength=count)
        elif each.kind == "table":
            cell, row = np.divmod(ids, len(self._table))  # the last pair is of the last cell
            np.add.at(self._small, cell, np.bincount(cells)[:, None] * self._table[row])
        else:
            weights = None if each.factor is None else values[each.factor][0]
            self._small[ids] += _by_cell(cells, count, vector, weights).astype(np.int64)


def _apart(cells: Integers, last: int, units: Floats) -> Iterator[tuple[int, Floats]]:
    """The vectors of each cell that has any."""
    by_cell = np.argsort(cells, kind="stable")
    units, cells = units[:, by_cell], cells[by_cell]
    starts = np.flatnonzero(np.diff(cells, prepend=-1)).tolist()
    for start, end in zip(starts, [*starts[1:], len(cells)], strict=True):
        if cells[start] < last:
            yield int(cells[start]), units[:, start:end]


def _by_cell(cells: Integers, count: int, matrix: Floats, weights: Floats | None) -> Floats:
    """Vectors added by cell: one product with a sparse matrix of one entry a row, or one coordinate after another."""
    size, sparse = len(cells), _sparse()
    if sparse is None:
        each = (row if weights is None else row * weights for row in matrix[:-1])
        return np.stack([np.bincount(cells, weights=row, minlength=count) for row in each], axis=1)
    entries = np.ones(size) if weights is None else weights, cells.astype(np.int32), np.arange(size + 1, dtype=np.int32)
    return cast("Floats", sparse(entries, shape=(count, size)) @ np.ascontiguousarray(matrix.T))[:, :-1]


@functools.cache
def _sparse() -> Any:  # noqa: ANN401 - scipy has no types
    """Sparse matrices, where there is a scipy that works: vectors are then added by cell in one product."""
    try:
        return importlib.import_module("scipy.sparse").csc_array
    except Exception:  # noqa: BLE001 - one made for another NumPy raises what it likes, and is not needed
        return None
