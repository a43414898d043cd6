"""Folds: a program's sums over batches of rows, by a closed list of row-wise NumPy operations on exact numbers.

A vector's whole numbers are held within their public bounds before they are summed (the guard), each row goes to one
cell or none, and all sums within a batch stay below 2^53, so that no order of rows, threads and batches changes them.
Nothing that is worked out of one row looks at another; nothing is written where another step reads.

Source: docs/theory/kernel.md; SR1, SR13, SR16.
"""

from __future__ import annotations

import functools
import importlib
import math
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Final, cast

import numpy as np
import numpy.typing as npt

from sulq.kernel.columns import Made, Stored, StoredColumn, needed, operands
from sulq.kernel.columns import names as names_of
from sulq.kernel.programs import (
    FUNCTIONS,
    Apply,
    Box,
    Checked,
    Column,
    Constant,
    Dot,
    Gone,
    Key,
    Missing,
    Nearest,
    Pick,
    Program,
    Search,
    Stack,
    Sum,
    Take,
    check,
    divides,
    may_break,
    packed,
)  # fmt: skip

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Truths = npt.NDArray[np.bool_]
EXACT: Final = 2**53
SATURATED: Final = 2**62
ROOM: Final = 2**22  # so many doubles a vector's coordinates take at a time, however many it has
BLOCK: Final = 2**20  # of a whole matrix worked on at a time: short operations wait for the interpreter
DENSE: Final = 2**20  # so many (cell, table row) pairs are counted before they meet the table
NEAR: Final = 2**16  # so many cells of a count stay near the core


def _whole(values: np.ndarray) -> Integers:
    """Numbers as 64-bit integers; doubles are brought within the exact ones first, NaN to the least."""
    if values.dtype.kind == "f":
        values = np.fmin(np.fmax(values, -float(EXACT)), float(EXACT))
    return values.astype(np.int64, copy=False)


_OTHERS: Final[Mapping[str, Callable[..., np.ndarray]]] = {
    "float": lambda values: np.asarray(values).astype(np.float64, copy=False),
    "whole": lambda values: _whole(np.asarray(values)),
    "where": lambda truth, *either: np.where(truth, *_alike(*map(np.asarray, either))),
}
_FUNCTIONS: Final = {name: _OTHERS.get(name) or getattr(np, name) for name in FUNCTIONS}
_ANY: Final = ("where", "float", "whole", "isfinite", "equal", "logical_and", "logical_or", "logical_not", "not_equal")


def _alike(first: np.ndarray, second: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Two columns of one type, so that no number of the one wraps in the other's."""
    return (first, second) if first.dtype == second.dtype else (_wide(first), _wide(second))


def _wide(values: object) -> np.ndarray:
    """Numbers in 64 bits, so that no type of a column makes a function fail or wrap earlier."""
    found = np.asarray(values)
    return found if found.dtype.kind == "f" else found.astype(np.int64, copy=False)


@dataclass(frozen=True, slots=True)
class Batch:
    """Some rows: their columns by place, None where no step looks at one; and the vectors that are known, by step."""

    size: int
    columns: Sequence[Stored | None]
    start: int = 0
    made: Mapping[int, Made] = field(default_factory=dict)


_last: list[tuple[Program, tuple[Checked, tuple[str, ...], frozenset[int]]]] = []


def checked(program: Program) -> tuple[Checked, tuple[str, ...], frozenset[int]]:
    """What is known of a program, the names of its steps, and the vectors that are added by cell.

    It is remembered of the very object: of an equal one, that another asked for, its time would tell (T39).
    """
    for known, found in _last[:]:
        if known is program:
            return found
    by_rows = frozenset(each.of for each in program.sums if each.kind == "vectors" and each.keys)
    found = check(program), tuple(names_of(program)), by_rows if by_rows and _sparse() else frozenset()
    _last[:] = [(program, found), *_last[:7]]  # of the folds that may be under way
    return found


@functools.cache
def _sparse() -> Any:  # noqa: ANN401 - scipy has no types
    """Sparse matrices, where there is a scipy that works: vectors are then added by cell in one product."""
    try:
        return importlib.import_module("scipy.sparse").csc_array
    except Exception:  # noqa: BLE001 - one made for another NumPy raises what it likes, and is not needed
        return None


def vectors(program: Program, table: tuple[str, ...]) -> dict[int, tuple[tuple[tuple[str, ...], str], Box, bool]]:
    """The vectors of a program that may be kept from fold to fold: what each is, its bounds, and if by rows."""
    found, names, by_rows = checked(program)
    return {
        i: ((table, f"vector {names[i]}{' by rows' * (i in by_rows)}"), box, i in by_rows)
        for i, box in found.boxes.items()
    }


def cut(
    program: Program,
    table: tuple[str, ...],
    columns: Mapping[str, StoredColumn],
    made: Mapping[int, Made],
    rows: tuple[int, int],
) -> Iterator[Batch]:
    """Columns in memory, of so many rows, in batches of some; a column or vector of anything else is refused."""
    count, size = rows
    own = vectors(program, table)
    wanted = needed(program, {place for place, each in made.items() if each.ready})
    stored = [columns[name] if i in wanted else None for i, name in enumerate(program.columns)]
    right = all(each is None or each.of == (table, name) for each, name in zip(stored, program.columns, strict=True))
    right = right and all(each.of == own[place][0] for place, each in made.items())
    counts = {each.count for each in stored if each is not None} | {each.count for each in made.values()}
    if not right or counts - {count}:
        raise LookupError("columns of other rows")
    for start in range(0, count, size):
        stop = min(start + size, count)
        yield Batch(stop - start, [None if each is None else each.part(start, stop) for each in stored], start, made)


def fold(program: Program, batches: Iterable[Batch], *, workers: int = 1) -> list[Integers]:
    """The exact sums of a program over all batches, a row for each cell, saturated at +-2^62 (a 1-Lipschitz step, T5).

    Privacy: each batch is taken once, by one of the threads.
    """
    source, lock = iter(batches), threading.Lock()

    def take() -> Batch | None:
        with lock:
            return next(source, None)

    def work() -> _Worker:
        worker = _Worker(program)
        with np.errstate(all="ignore"):  # of a missing cell: no warning may tell that there is one
            while (batch := take()) is not None:
                worker.add(batch)
        return worker

    with ThreadPoolExecutor(max(workers - 1, 1)) as pool:  # this thread is one of them
        jobs = [pool.submit(work) for _ in range(workers - 1)]
        found = [work(), *(job.result() for job in jobs)]
    sums: list[Integers] = []
    for several in zip(*(worker.totals() for worker in found), strict=True):
        total = sum(several[1:], start=several[0])
        sums.append(np.clip(total, -SATURATED, SATURATED).astype(np.int64))
    return sums


class _Total:
    """Exact running sums: 64 bits as long as nothing can wrap, else Python's own integers."""

    def __init__(self, cells: int, width: int) -> None:
        self.small: Integers = np.zeros((cells, width), dtype=np.int64)
        self._large: Any = 0
        self._used = 0

    def reserve(self, most: int) -> None:
        """Make room for sums of at most this size."""
        if self._used + most >= SATURATED:
            self._large, self._used = self._large + self.small.astype(object), 0
            self.small[:] = 0
        self._used += most

    def exact(self) -> Any:  # noqa: ANN401 - integers of either kind
        """The sums as they are, as Python's integers."""
        return self._large + self.small.astype(object)


class _Worker:
    """One thread's sums, and what it works out of one batch."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.checked, _, self.by_rows = checked(program)
        self.used = Counter(each for step in program.steps for each in operands(step))
        self.room: dict[int, Floats] = {}
        self.scores = {i: _Scores(s, self.checked.boxes[s.stack]) for i, s in _of(program, Nearest)}
        self.sums = [_Added(each, self.checked.boxes) for each in program.sums]
        self.joint = _joint(self.sums)
        self.batch = Batch(0, ())
        self.known: dict[object, Any] = {}
        widest = max((len(box.low) for box in self.checked.boxes.values()), default=0)
        self.most = min(self.checked.most, max(ROOM // (widest + 1), 256))

    def add(self, batch: Batch) -> None:
        """Add a batch's rows, so many at a time that all sums are exact."""
        for start in range(0, batch.size, self.most):
            rows = slice(start, min(start + self.most, batch.size))
            some = [each and (each[0][rows], None if each[1] is None else each[1][rows]) for each in batch.columns]
            self.batch, self.known = Batch(rows.stop - start, some, batch.start + start, batch.made), {}
            if any(each is not None and np.shape(each[0]) != (self.batch.size,) for each in some):
                raise LookupError("columns of different lengths")
            for each in self.sums:
                each.add(self)
            for joint in self.joint:
                joint.add(self)

    def totals(self) -> list[Any]:
        """What was summed, exactly."""
        for joint in self.joint:
            joint.end()
        return [each.end() for each in self.sums]

    def number(self, place: int) -> Any:  # noqa: ANN401 - a number, or one a row
        """What a step gives: one number for each row, or one for all of them."""
        if self.used[place] == 1:  # what is read once is not kept: it would leave no room near the core
            return self._worked_out(place)
        if place not in self.known:
            self.known[place] = self._worked_out(place)
        return self.known[place]

    def _worked_out(self, place: int) -> Any:  # noqa: ANN401 - likewise
        match self.program.steps[place]:
            case Column(at):
                return cast("Stored", self.batch.columns[at])[0]
            case Missing(at):
                missing = cast("Stored", self.batch.columns[at])[1]
                return np.False_ if missing is None else missing
            case Constant(value):
                return value
            case Apply(name, of):
                given = (self.number(each) for each in of)
                return _FUNCTIONS[name](*(given if name in _ANY else map(_wide, given)))
            case Search(of, edges):
                return np.searchsorted(np.array(edges), self.number(of), side="right")
            case Take(of, entries):
                index = _whole(np.asarray(self.number(of)))
                return np.array(entries).take(index, mode="clip")
            case Pick(of, items, size):
                return self._picked(of, items, size)
            case Gone(stack):
                return self.vector(stack)[1]
            case Dot(stack, weights):
                return np.array(weights, dtype=np.float64) @ self.vector(stack)[0][:-1]
            case Nearest(stack, _):
                return self.scores[place].least(self.vector(stack)[0])
        raise LookupError("a step that is no number")

    def _picked(self, of: int, items: tuple[int, ...], size: int) -> Integers:
        if (items, size) not in self.known:
            codes = np.empty((len(items), self.batch.size), dtype=np.min_scalar_type(size))
            for own, each in zip(codes, items, strict=True):
                np.minimum(self.column(each).view(np.uint64), size, out=own, casting="unsafe")
            self.known[items, size] = codes.ravel(), np.arange(self.batch.size)
        codes, rows = self.known[items, size]
        chosen = np.clip(self.column(of), 0, len(items) - 1)
        return cast("Integers", codes.take(chosen * self.batch.size + rows).astype(np.int64))

    def column(self, place: int) -> Integers:
        """What a step gives as 64-bit integers, one for each row."""
        found = _whole(np.asarray(self.number(place)))
        return np.ascontiguousarray(np.broadcast_to(found, (self.batch.size,)))

    def vector(self, place: int) -> tuple[Floats, Any]:
        """A vector's coordinates, a row of ones below them, and where it is missing; only to be read."""
        if ("vector", place) not in self.known:
            self.known["vector", place] = self._stacked(place, cast("Stack", self.program.steps[place]))
        return cast("tuple[Floats, Any]", self.known["vector", place])

    def _stacked(self, place: int, step: Stack) -> tuple[Floats, Any]:
        size, made = self.batch.size, self.batch.made.get(place)
        if place not in self.room or self.room[place].shape[1] < size:  # fresh pages cost more than the arithmetic
            self.room[place] = np.ones((len(step.units) + 1, size), order="F" if place in self.by_rows else "C")
        out = self.room[place][:, :size]
        if made is not None and made.ready:
            return out, made.read(self.batch.start, out)
        units = out[:-1]
        for row, unit in zip(units, step.units, strict=True):
            given = np.asarray(self.number(unit.of))
            row[:] = given
            if unit.scale != 1:
                row *= unit.scale  # noqa: PLW2901 - in place
            if given.dtype.kind == "f" or not unit.scale.is_integer():
                np.floor(np.add(row, 0.5, out=row), out=row)
            np.clip(row, unit.low, unit.high, out=row)
            if given.dtype.kind == "f":
                np.copyto(row, unit.low, where=np.isnan(row))  # which is not clipped
        missing = np.False_ if step.missing is None else np.asarray(self.number(step.missing)) != 0
        if np.ndim(missing) or missing:
            units[:, np.broadcast_to(missing, (size,))] = 0.0
        if may_break(step):
            block = max(BLOCK // len(units), 256)
            for start in range(0, size, block):
                _guard(step, units[:, start : start + block])
        if made is not None:
            made.write(self.batch.start, units, missing)
        return out, missing

    def counted(self, where: int | None) -> Truths | None:
        """The rows of which a condition is true; None: all."""
        if where is None:
            return None
        return np.broadcast_to(np.asarray(self.number(where)) != 0, (self.batch.size,))

    def places(self, key: Key) -> Integers:
        """A key's code for each row; of a row that has none, the one after the last."""
        if key not in self.known:  # without a sign: what is below 0 is far above
            self.known[key] = np.minimum(self.column(key.of).view(np.uint64), key.size).view(np.int64)
        return cast("Integers", self.known[key])

    def cells(self, where: int | None, keys: tuple[Key, ...]) -> Integers:
        """Each row's cell, the last key fastest; the one after the last where it has none."""
        if where is None and len(keys) == 1:
            return self.places(keys[0])
        if (where, keys) not in self.known:
            none, cells, last = None, np.zeros(self.batch.size, dtype=np.int64), math.prod(key.size for key in keys)
            for i, key in enumerate(keys):
                places = self.places(key)
                cells = cells * key.size + places if i else places
                if places.max(initial=0) == key.size:
                    none = places == key.size if none is None else none | (places == key.size)
            counted = self.counted(where)
            if counted is not None:
                none = ~counted if none is None else none | ~counted
            self.known[where, keys] = cells if none is None else np.where(none, last, cells)
        return cast("Integers", self.known[where, keys])


def _of(program: Program, kind: type[Nearest]) -> Iterator[tuple[int, Nearest]]:
    return ((i, step) for i, step in enumerate(program.steps) if isinstance(step, kind))


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
    if past.any():
        units[:, past] = 0.0


def _shorten(step: Stack, units: Floats) -> None:
    """Make vectors outside the ball trunc(q * ball / norm), norm = |q| rounded up; a float root is looked at twice.

    For whole a, b with a + b < 2^53 the double nearest a/b never reaches the whole number above.
    """
    ball, squares = cast("int", step.ball), np.einsum("ij,ij->j", units, units)
    outside = squares > ball**2
    rows = np.flatnonzero(outside) if np.count_nonzero(outside) < len(outside) // 4 else slice(None)
    few, squares, outside = units[:, rows], squares[rows], outside[rows]
    norm = np.floor(np.sqrt(squares))
    norm += norm * norm < squares
    norm += norm * norm < squares
    norm = np.where(outside, norm, 1.0)
    few *= np.where(outside, ball, 1.0)
    if divides(step):
        few /= norm
        np.trunc(few, out=few)
    else:
        np.copysign(np.abs(few).astype(np.int64) // norm.astype(np.int64), few, out=few)
    units[:, rows] = few


class _Scores:
    """Nearest centres: |c|^2 - 2 x.c, each with its centre's number in its lowest bits where these fit beside it.

    The least of such scores is the least score, of the lowest number where scores are equal, and says which.
    """

    def __init__(self, step: Nearest, box: Box) -> None:
        centres = np.array(step.centres, dtype=np.int64)
        bits = max(len(centres) - 1, 1).bit_length()
        self._packed = packed(box, step.centres, bits + 1)
        scale = 1 << bits if self._packed else 1
        constants = (centres * centres).sum(axis=1) * scale + (np.arange(len(centres)) if self._packed else 0)
        self._mask = scale - 1
        self._scores = np.concatenate([-2 * scale * centres, constants[:, None]], axis=1).astype(np.float64)
        self._room = np.empty((len(centres), max(BLOCK // len(centres), 256)))

    def least(self, matrix: Floats) -> Integers:
        """The number of the nearest centre of each vector, below which stands a one."""
        codes = np.empty(matrix.shape[1], dtype=np.int64)
        step = self._room.shape[1]
        for start in range(0, len(codes), step):
            given = matrix[:, start : start + step]
            scores = np.matmul(self._scores, given, out=self._room[:, : given.shape[1]])
            codes[start : start + step] = scores.min(axis=0) if self._packed else scores.argmin(axis=0)
        return codes & self._mask if self._packed else codes


class _Added:
    """The sums of one Sum."""

    def __init__(self, each: Sum, boxes: Mapping[int, Box]) -> None:
        self.each = each
        self.joined = False
        self._sparse: Any = None
        self._units: Integers = each.table if each.kind == "table" else np.zeros((0, 1), dtype=np.int64)
        box = boxes.get(each.of)
        width = {"count": 1, "table": each.width}.get(each.kind) or len(cast("Box", box).low)
        self._triangle = np.triu_indices(width)
        if each.kind == "products":
            self._most, width = max(cast("Box", box).far) ** 2, len(self._triangle[0])
        elif each.kind == "vectors":
            factor = 1 if each.factor is None else max(boxes[each.factor].far)
            self._most = max(cast("Box", box).far) * factor
        else:
            self._most = abs(each.term) if each.kind == "count" else int(np.abs(self._units).max())
        self.total = _Total(each.cells, width)
        dense = each.kind == "table" and each.cells * len(self._units) <= DENSE
        self._counts = np.zeros(each.cells * len(self._units), dtype=np.int64) if dense else None

    def add(self, worker: _Worker) -> None:
        """Add some rows."""
        self.total.reserve(worker.batch.size * self._most)
        if self.joined:
            return
        getattr(self, f"_{self.each.kind}")(worker)

    def _into(self, cells: Integers, sums: Callable[[Integers, int], np.ndarray]) -> None:
        """Add what is summed for cells from 0 and below some number, those after the last being none."""
        last, small = self.each.cells, self.total.small
        if last <= 4 * len(cells):
            small += sums(cells, last + 1)[:last].astype(np.int64)
            return
        ids, places = np.unique(cells, return_inverse=True)
        there = ids < last
        small[ids[there]] += sums(places.reshape(-1), len(ids))[there].astype(np.int64)

    def _count(self, worker: _Worker) -> None:
        if self.each.keys:
            cells = worker.cells(self.each.where, self.each.keys)
            self._into(cells, lambda own, count: np.bincount(own, minlength=count)[:, None] * self.each.term)
            return
        counted = worker.counted(self.each.where)
        self.total.small += self.each.term * (worker.batch.size if counted is None else int(np.count_nonzero(counted)))

    def _vectors(self, worker: _Worker) -> None:
        each = self.each
        matrix = worker.vector(each.of)[0]
        weights = None if each.factor is None else worker.vector(each.factor)[0][0]
        if each.keys:
            by = self._by_product if each.of in worker.by_rows else _by_count
            self._into(worker.cells(each.where, each.keys), lambda own, count: by(own, count, matrix, weights))
            return
        weights, counted = matrix[-1] if weights is None else weights, worker.counted(each.where)
        weights = weights if counted is None else np.where(counted, weights, 0.0)
        self.total.small[0] += (matrix[:-1] @ weights).astype(np.int64)

    def _by_product(self, cells: Integers, count: int, matrix: Floats, weights: Floats | None) -> Floats:
        """Vectors added by cell in one product with a sparse matrix of one entry a row, kept as long as it fits."""
        if self._sparse is None or self._sparse.shape != (count, len(cells)):
            entries = np.ones(len(cells)), np.zeros(len(cells), np.int32), np.arange(len(cells) + 1, dtype=np.int32)
            self._sparse = _sparse()(entries, shape=(count, len(cells)))
        self._sparse.indices[:] = cells
        if weights is not None:
            self._sparse.data[:] = weights
        return cast("Floats", self._sparse @ matrix.T)[:, :-1]

    def _products(self, worker: _Worker) -> None:
        each, units = self.each, worker.vector(self.each.of)[0][:-1]
        if not each.keys:
            counted = worker.counted(each.where)
            units = units if counted is None else units[:, counted]
            self.total.small[0] += (units @ units.T)[self._triangle].astype(np.int64)
            return
        cells = worker.cells(each.where, each.keys)
        order = np.argsort(cells, kind="stable")
        units, cells = units[:, order], cells[order]
        starts = np.flatnonzero(np.diff(cells, prepend=-1)).tolist()
        for start, end in zip(starts, [*starts[1:], len(cells)], strict=True):
            if cells[start] < each.cells:
                mine = units[:, start:end]
                self.total.small[cells[start]] += (mine @ mine.T)[self._triangle].astype(np.int64)

    def _table(self, worker: _Worker) -> None:
        """Pairs of a cell and a row of the table are counted; few of them meet the table when all rows are."""
        last = self.each.cells * len(self._units)
        pairs = worker.cells(self.each.where, (*self.each.keys, Key(self.each.of, len(self._units))))
        if self._counts is not None:
            self._counts += np.bincount(pairs, minlength=last + 1)[:last]
            return
        ids, counts = np.unique(pairs[pairs < last], return_counts=True)
        step = max(1, DENSE // self.each.width)
        for start in range(0, len(ids), step):
            cells, rows = np.divmod(ids[start : start + step], len(self._units))
            np.add.at(self.total.small, cells, counts[start : start + step, None] * self._units[rows])

    def end(self) -> Any:  # noqa: ANN401 - integers of either kind
        """The sums of all batches."""
        if self._counts is None:
            return self.total.exact()
        counts = self._counts.reshape(self.each.cells, -1)
        if int(counts.sum()) * self._most < SATURATED:
            return (counts @ self._units).astype(object)
        return counts.astype(object) @ self._units.astype(object)


def _by_count(cells: Integers, count: int, matrix: Floats, weights: Floats | None) -> Floats:
    """Vectors added by cell, one coordinate after another."""
    rows = (row if weights is None else row * weights for row in matrix[:-1])
    return np.stack([np.bincount(cells, weights=row, minlength=count) for row in rows], axis=1)


class _Joint:
    """Sums that count the same rows by few enough keys: each is a marginal of one count.

    A row that has none of a key's codes has a place of its own there, so that this changes neither way nor time (T34).
    """

    def __init__(self, sums: list[_Added]) -> None:
        self._sums = sums
        self._keys = _union(sums)
        self._counts = np.zeros([key.size + 1 for key in self._keys], dtype=np.int64)
        for each in sums:
            each.joined = True

    def add(self, worker: _Worker) -> None:
        """Count some rows."""
        cells = worker.places(self._keys[0])
        for key in self._keys[1:]:
            cells = cells * (key.size + 1) + worker.places(key)
        counted = worker.counted(self._sums[0].each.where)
        cells = cells if counted is None else cells[counted]
        self._counts += np.bincount(cells, minlength=self._counts.size).reshape(self._counts.shape)

    def end(self) -> None:
        """Give each sum its marginal, of the rows that have all its keys."""
        for added in self._sums:
            axes = [self._keys.index(key) for key in added.each.keys]
            there = self._counts[tuple(slice(-1) if i in axes else slice(None) for i in range(len(self._keys)))]
            own = there.sum(axis=tuple(i for i in range(len(self._keys)) if i not in axes))
            added.total.small[:, 0] += own.transpose(np.argsort(np.argsort(axes))).ravel() * added.each.term


def _union(sums: Iterable[_Added]) -> list[Key]:
    return list(dict.fromkeys(key for added in sums for key in added.each.keys))


def _joint(sums: list[_Added]) -> list[_Joint]:
    """The sums that are counted jointly."""
    groups: list[list[_Added]] = []
    for added in sums:
        keys = added.each.keys
        if added.each.kind != "count" or not keys or len(set(keys)) != len(keys) or abs(added.each.term) >= 2**20:
            continue
        for group in groups:
            union = _union([*group, added])
            if group[0].each.where == added.each.where and math.prod(key.size + 1 for key in union) <= NEAR:
                group.append(added)
                break
        else:
            groups.append([added])
    return [_Joint(group) for group in groups if len(group) > 1]
