"""Programs of folds: what is worked out of each row in NumPy, and how far one person moves what is summed of it.

A program is data: steps from a closed list, each of which gives a value for each row from values of the same row, and
sums of vectors whose whole numbers are held within public bounds, whatever was worked out before. So who wrote a
program is not believed; `certify` reads it with the columns that the certified statement gives.
Source: docs/theory/kernel.md; SR1, SR16.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

import numpy as np

from sulq.kernel.facts import INTEGERS, Refused, require
from sulq.kernel.moves import Certified, Moves, Norms, table
from sulq.kernel.private import Integers
from sulq.kernel.values import EXACT, Value

MAX_WIDTH: Final = 2**20
MAX_CELLS: Final = 2**30  # a row past so many stays past them, times as many more, within 64 bits
BLOCK: Final = 2**16  # scores are worked out so many at a time
COLUMNS: Final = ("BOOLEAN", "DOUBLE", *INTEGERS)


@dataclass(frozen=True, slots=True)
class Step:
    """A step of STEPS: of earlier steps, by their places, and of public numbers."""

    name: str
    of: tuple[int, ...] = ()
    given: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True)
class Unit:
    """A number put on a grid: floor(x * scale + 1/2), brought into [low, high], and NaN to low."""

    of: int
    low: int
    high: int
    scale: float = 1.0


@dataclass(frozen=True, slots=True)
class Stack:
    """A vector of whole numbers, zero where the step `missing` is true.

    `shorten`: where it is longer to the L2 norm `ball`, else the L1 norm `l1`. *The guard*: past either it is zero.
    """

    units: tuple[Unit, ...]
    missing: int | None = None
    l1: int | None = None
    ball: int | None = None
    shorten: bool = False

    @property
    def of(self) -> tuple[int, ...]:
        """The steps that it is worked out of."""
        return (*(unit.of for unit in self.units), *(() if self.missing is None else (self.missing,)))


@dataclass(frozen=True, slots=True)
class Key:
    """A key of a partition: a step's codes from 0 and below `size` are cells, all else none; of size 1: a condition."""

    of: int
    size: int


@dataclass(frozen=True, slots=True)
class Sum:
    """What is summed by cell.

    vectors: the vector of the step `of`, times the one number of the vector `factor`. products: all products of two of
    its coordinates, i <= j, row by row. table: the row of a public table, of `width` numbers of 8 bytes each, the least
    first, at the step's number.
    """

    kind: Literal["vectors", "products", "table"]
    of: int
    factor: int | None = None
    units: bytes = b""
    width: int = 1
    keys: tuple[Key, ...] = ()

    @property
    def cells(self) -> int:
        """How many cells the keys tell apart."""
        return math.prod(key.size for key in self.keys)

    @property
    def table(self) -> Integers:
        """The public table."""
        return np.frombuffer(self.units, dtype="<i8").reshape(-1, self.width).astype(np.int64)

    @property
    def reads(self) -> tuple[int, ...]:
        """The steps that it looks at."""
        return (self.of, *(() if self.factor is None else (self.factor,)), *(key.of for key in self.keys))


@dataclass(frozen=True, slots=True)
class Program:
    """Steps, each of earlier ones, over the columns of these names, and sums."""

    columns: tuple[str, ...]
    steps: tuple[Step | Stack, ...]
    sums: tuple[Sum, ...]


@dataclass(frozen=True, slots=True)
class Fold:
    """A program over a statement's rows, and which block, of which tally, each of its sums is.

    `table`: the stored table whose columns they are, if that is all; then the statement is the kernel's own.
    """

    program: Program
    sql: str
    texts: tuple[str, ...]
    table: tuple[str, ...] | None
    blocks: tuple[tuple[int, int], ...]


# Steps


def whole(values: Any) -> Integers:  # noqa: ANN401 - a number, or one a row
    """Numbers as 64-bit integers; doubles are brought within the exact ones first, NaN to the least."""
    found = np.asarray(values)
    if found.dtype.kind == "f":
        found = np.fmin(np.fmax(found, -float(EXACT)), float(EXACT))
    return found.astype(np.int64, copy=False)


def _wide(values: Any) -> np.ndarray:  # noqa: ANN401 - a number, or one a row
    """Numbers in 64 bits, so that no type of a column makes a function fail or wrap earlier."""
    found = np.asarray(values)
    return found if found.dtype.kind == "f" else found.astype(np.int64, copy=False)


def _least(_: object, scores: np.ndarray, vector: np.ndarray) -> np.ndarray:
    step = max(BLOCK // len(scores), 256)
    parts = (vector[:, start : start + step] for start in range(0, vector.shape[1], step))
    return np.concatenate([(scores @ part).min(axis=0).astype(np.int64) for part in parts])


def are_whole(*values: object) -> bool:
    """Whether all are whole numbers that doubles hold exactly."""
    return all(type(value) is int and abs(value) < EXACT for value in values)


def _fits(form: str, given: tuple[Any, ...], columns: int, far: Sequence[int]) -> bool:
    """Whether a step's public numbers are of its form; `far`: a vector's largest absolute coordinates."""
    alike = are_whole(*given) or {type(each) for each in given} in ({float}, {bool})
    match form:
        case "column":
            return len(given) == 1 and are_whole(*given) and 0 <= given[0] < columns
        case "numbers":
            return bool(given) and alike
        case "increasing":
            finite = all(type(edge) is float and math.isfinite(edge) for edge in given)
            return finite and all(a < b for a, b in itertools.pairwise(given))
        case "scores":  # every term of each and any sum of them is an exact double (SR16)
            ends = (*far, 1)
            right = bool(given) and all(len(score) == len(ends) and are_whole(*score) for score in given)
            return right and all(sum(abs(w) * x for w, x in zip(score, ends, strict=True)) < EXACT for score in given)
    return given == ()


@dataclass(frozen=True, slots=True)
class Rule:
    """A kind of step: what it is of (n: a number, v: a vector), the form of its public numbers, and what it gives.

    `run` looks at the rows, at the public numbers, and at what the other steps gave of the same rows.
    """

    of: str
    form: str
    run: Callable[..., Any]


def _function(name: str, widen: Callable[[Any], Any]) -> Rule:
    function = getattr(np, name)
    return Rule("n" * function.nin, "", lambda _, __, *of: function(*map(widen, of)))


_ARITHMETIC: Final = (
    "add", "subtract", "multiply", "divide", "floor_divide", "remainder", "fmod", "minimum", "maximum", "floor", "ceil",
    "trunc", "sign", "absolute", "sqrt", "less", "less_equal", "greater", "greater_equal",
)  # fmt: skip
_TRUTHS: Final = ("equal", "not_equal", "isfinite", "logical_and", "logical_or", "logical_not")
_BITS: Final = ("bitwise_and", "left_shift", "right_shift")
STEPS: Final[dict[str, Rule]] = {
    **{name: _function(name, _wide) for name in _ARITHMETIC},
    **{name: _function(name, lambda values: values) for name in _TRUTHS},
    **{name: _function(name, whole) for name in _BITS},
    # of arrays: beside a narrow column a number of Python's own that it does not hold would fail
    "where": Rule("nnn", "", lambda _, __, truth, *either: np.where(truth, *map(np.asarray, either))),
    "float": Rule("n", "", lambda _, __, of: np.asarray(of).astype(np.float64, copy=False)),
    "whole": Rule("n", "", lambda _, __, of: whole(of)),
    # a column of the rows, 0 where it is missing; whether it is missing; a public number
    "column": Rule("", "column", lambda rows, given: rows.columns[given[0]][0]),
    "missing": Rule("", "column", lambda rows, given: rows.columns[given[0]][1]),
    "constant": Rule("", "numbers", lambda _, given: given[0].item()),
    # how many of some increasing numbers are at most a number; the entry of a public table, that is brought into it
    "search": Rule("n", "increasing", lambda _, edges, of: np.searchsorted(edges, of, side="right")),
    "take": Rule("n", "numbers", lambda _, table, of: table.take(whole(of), mode="clip")),
    # the least of some scores of a vector: inner products with whole weights, the last of which is for 1
    "least": Rule("v", "scores", _least),
}
"""Each looks at one row at a time, and gives an exactly rounded result, however rows are batched."""


# What a row adds


@dataclass(frozen=True, slots=True)
class Box:
    """Where a vector's whole numbers lie, once guarded; `zero`: whether it may be zero beside that.

    `norms`: of every such vector. `right`: whether any two are known to be at most a right angle apart.
    """

    low: tuple[int, ...]
    high: tuple[int, ...]
    norms: Norms
    zero: bool
    right: bool

    @classmethod
    def of(cls, low: Sequence[int], high: Sequence[int], *norms: Norms, zero: bool = False, right: bool = False) -> Box:
        """All vectors between these, of at most these norms."""
        far = Norms.of([max(-a, b) for a, b in zip(low, high, strict=True)])
        least = Norms(*map(min, zip(far, *norms, strict=True)))
        square = len(low) * least.l2_squared  # |x|_1 <= sqrt(width) |x|_2, the root rounded up
        l1 = min(least.l1, math.isqrt(square - 1) + 1 if square else 0)
        return cls(tuple(low), tuple(high), replace(least, l1=l1), zero, right)

    @property
    def far(self) -> list[int]:
        """The largest absolute value of each coordinate."""
        return [max(-low, high) for low, high in zip(self.low, self.high, strict=True)]

    def times(self, other: Box) -> Box:
        """The vector times a number."""
        by = (*other.low, *other.high)
        ends = [[end * b for end in both for b in by] for both in zip(self.low, self.high, strict=True)]
        norms = self.norms.times(max(other.far))
        return Box.of([*map(min, ends)], [*map(max, ends)], norms, zero=self.zero or other.zero)

    def products(self) -> Box:
        """All products of two coordinates, each below 2^31: the upper triangle of x x^T; s = |x|^2.

        Its L2 norm is at most s, and in L1 it is (|x|_1^2 + s)/2 <= (d + 1)/2 s. The inner product of two triangles is
        ((x.y)^2 + sum x_i^2 y_i^2)/2 >= 0, so they are at most a right angle apart.
        """
        require(max(self.far) < 2**31, "products that are not exact")
        ends = np.array([self.low, self.high], dtype=np.int64)
        i, j = np.triu_indices(len(self.low))
        every = np.concatenate([ends[:, i] * ends[0, j], ends[:, i] * ends[1, j]])
        low = np.where((i == j) & (ends[0, i] <= 0) & (ends[1, i] >= 0), 0, every.min(axis=0))  # no square is below 0
        s = self.norms.l2_squared
        norms = Norms(min((len(self.low) + 1) * s // 2 + 1, (self.norms.l1**2 + s) // 2), s**2, s)
        return Box.of(low.tolist(), every.max(axis=0).tolist(), norms, zero=self.zero, right=True)

    def moves(self, rows: int) -> Moves:
        """How far so many such vectors are from zero, and from as many others."""
        return Moves.of(self.norms, self.low, self.high, rows, zero=self.zero, right=self.right)


def box_of(step: Stack) -> Box:
    """Where a vector lies once it is guarded."""
    units, ball, length = step.units, step.ball, step.l1 if step.ball is None else step.ball
    require(0 < len(units) <= MAX_WIDTH, "a vector of too many coordinates, or of none")
    require(all(type(u) is Unit and are_whole(u.low, u.high) and u.low <= u.high for u in units), "no bounds")
    require(all(type(u.scale) is float and math.isfinite(u.scale) for u in units), "a grid of no size")
    require(all(norm is None or (are_whole(norm) and norm >= 0) for norm in (step.l1, ball)), "a norm")
    low, high = [unit.low for unit in units], [unit.high for unit in units]
    free, norms = Box.of(low, high).norms, []
    if step.l1 is not None:
        require(free.l1 < EXACT, "a length that is not exact")
        norms.append(Norms(step.l1, step.l1**2, step.l1))
    if ball is not None:
        require(free.l2_squared < EXACT, "a length that is not exact")
        norms.append(Norms(free.l1, ball**2, ball))
    past = any(free.l1 > norm.l1 or free.l2_squared > norm.l2_squared for norm in norms)
    require(not step.shorten or length is not None, "a vector shortened to no length")
    if step.shorten and length is not None and past:  # a coordinate may then be anything between itself and zero
        require(free.coordinate * length + free.l1 < EXACT, "a vector shortened that is not exact")
        low, high = [max(min(a, 0), -length) for a in low], [min(max(b, 0), length) for b in high]
    return Box.of(low, high, *norms, zero=past or step.missing is not None)


# What is known of a program


def check(program: Program) -> tuple[dict[int, Box], list[Box]]:
    """The bounds of a program's vectors, and of what a row adds to each sum; Refused where one is not of the list.

    Privacy: products of whole numbers stay below 2^53, so that BLAS gives the same for a row in every batch (SR16).
    """
    boxes: dict[int, Box] = {}
    require(type(program) is Program, "a program of another class")
    for place, step in enumerate(program.steps):
        require(type(step) in (Step, Stack), "a step that is not of the list")
        given = _given(boxes, place, step.of)
        if isinstance(step, Stack):
            require("v" not in given, "a vector of other than numbers")
            boxes[place] = box_of(step)
            continue
        rule = STEPS.get(step.name)
        if rule is None or rule.of != given:
            raise Refused("a step that is not of the list")
        far = boxes[step.of[0]].far if given == "v" else ()
        require(_fits(rule.form, step.given, len(program.columns), far), f"other numbers than {step.name} takes")
    summed = [_summed(each, boxes, len(program.steps)) for each in program.sums]
    for each, box in zip(program.sums, summed, strict=True):
        entries = len(each.table) if each.kind == "table" else 1
        require(each.cells * max(len(box.low), entries) < MAX_CELLS, "too many cells")
        require(max(box.far) < EXACT, "a term that is no exact double")
    return boxes, summed


def _given(boxes: Mapping[int, Box], count: int, of: Iterable[int]) -> str:
    """What steps give that are among the first so many."""
    require(all(type(place) is int and 0 <= place < count for place in of), "a step of a later one")
    return "".join("v" if place in boxes else "n" for place in of)


def _summed(each: Sum, boxes: Mapping[int, Box], steps: int) -> Box:
    """What one row adds to a sum."""
    plain = type(each) is Sum and all(type(key) is Key and type(key.size) is int and key.size > 0 for key in each.keys)
    given, keys = _given(boxes, steps, each.reads), "n" * len(each.keys)
    require(plain and given.endswith(keys), "a key of no size, a vector for a key, or a sum of another class")
    match each.kind, given.removesuffix(keys):
        case "vectors", "v":
            return boxes[each.of]
        case "vectors", "vv":
            factor = boxes[each.reads[1]]
            require(len(factor.low) == 1, "a factor that is no number")
            return boxes[each.of].times(factor)
        case "products", "v":
            require(len(boxes[each.of].low) ** 2 <= 2 * MAX_WIDTH, "too many products")
            return boxes[each.of].products()
        case "table", "n":
            right = type(each.width) is int and 0 < each.width <= MAX_WIDTH and each.units
            require(right and len(each.units) % (8 * each.width) == 0, "a table of no width, or that ends early")
            box = Box.of(each.table.min(axis=0).tolist(), each.table.max(axis=0).tolist())
            require(max(box.far) < 2**31, "a table's number that is too large")
            return box
    raise Refused("a sum of no kind, of other than vectors, or by other than numbers")


def certify(program: Program, columns: Sequence[Value], rows: int, *, every: bool) -> tuple[Certified, ...]:
    """How far one person, who alters so many rows, moves each sum; `every`: whether every kept row is among them."""
    require(len(columns) == len(program.columns), "a program of other columns")
    require(all(value.type in COLUMNS for value in columns), "a column that is no number")
    found = []
    for each, box in zip(program.sums, check(program)[1], strict=True):
        moved = table(rows, each.table) if each.kind == "table" else box.moves(rows)
        found.append(Certified(moved, rows, every and not each.keys, each.keys))
    return tuple(found)
