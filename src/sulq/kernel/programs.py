"""Programs of folds: what is worked out of each row in NumPy, and how far one person moves what is summed of it.

A program is data: steps from a closed list, each of which gives a value for each row from values of the same row, and
sums of vectors whose whole numbers are held within public bounds, whatever was worked out before. So who wrote a
program is not believed; `certify` reads it with the columns that the certified statement gives.

Source: docs/theory/kernel.md; SR1, SR16.
"""

from __future__ import annotations

import functools
import itertools
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

import numpy as np

from sulq.kernel.facts import Refused
from sulq.kernel.moves import Certified, Moves, Norms, table
from sulq.kernel.relations import Certificate
from sulq.kernel.values import EXACT, INTEGERS, Value

MAX_WIDTH: Final = 2**20
MAX_CELLS: Final = 2**30  # a row past so many stays past them, times as many more, within 64 bits
BLOCK: Final = 2**17  # scores are worked out so many at a time
Numbers = Any  # a number, or one a row
Rows = Any  # how many there are, and their columns
COLUMNS: Final = ("BOOLEAN", "DOUBLE", *(kind for kind in INTEGERS if kind != "HUGEINT"))


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

    `shorten`: to the L2 norm `ball` where it is longer. *The guard*: a vector past `l1` or `ball` is zero.
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
    """A key of a partition: the codes of a step from 0 and below `size` are cells, all else is none."""

    of: int
    size: int


@dataclass(frozen=True, slots=True)
class Sum:
    """What is summed, by cell, of the rows of which the step `where` is true.

    count: `term` for each row. vectors: the vector of the step `of`, times the one number of the vector `factor`.
    products: all products of two of its coordinates, i <= j, row by row. table: the row of a public table, of `width`
    numbers of 8 bytes each, the least first, at the step's number.
    """

    kind: Literal["count", "vectors", "products", "table"]
    of: int = -1
    factor: int | None = None
    term: int = 1
    units: bytes = b""
    width: int = 1
    where: int | None = None
    keys: tuple[Key, ...] = ()

    @property
    def cells(self) -> int:
        """How many cells the keys tell apart."""
        return math.prod(key.size for key in self.keys)

    @property
    def table(self) -> np.ndarray:
        """The public table."""
        return np.frombuffer(self.units, dtype="<i8").reshape(-1, self.width).astype(np.int64)

    @property
    def reads(self) -> tuple[int, ...]:
        """The steps that it looks at."""
        every = (None if self.kind == "count" else self.of, self.factor, self.where, *(key.of for key in self.keys))
        return tuple(place for place in every if place is not None)


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


def whole(values: Numbers) -> np.ndarray:
    """Numbers as 64-bit integers; doubles are brought within the exact ones first, NaN to the least."""
    found = np.asarray(values)
    if found.dtype.kind == "f":
        found = np.fmin(np.fmax(found, -float(EXACT)), float(EXACT))
    return found.astype(np.int64, copy=False)


def _wide(values: Numbers) -> np.ndarray:
    """Numbers in 64 bits, so that no type of a column makes a function fail or wrap earlier."""
    found = np.asarray(values)
    return found if found.dtype.kind == "f" else found.astype(np.int64, copy=False)


def _where(_: object, __: object, truth: Numbers, *either: Numbers) -> np.ndarray:
    first, second = map(np.asarray, either)
    if first.dtype != second.dtype:  # of one type, so that no number of the one wraps in the other's
        first, second = _wide(first), _wide(second)
    return np.where(truth, first, second)


def _codes(rows: Rows, given: tuple[int], *of: Numbers) -> np.ndarray:
    found = np.empty((len(of), rows.size), dtype=np.min_scalar_type(given[0]))
    for own, each in zip(found, of, strict=True):  # without a sign: what is below 0 is far above
        np.minimum(whole(each).view(np.uint64), given[0], out=own, casting="unsafe")
    return found


def _pick(rows: Rows, _: object, codes: np.ndarray, place: Numbers) -> Numbers:
    place = np.clip(whole(place), 0, len(codes) - 1)
    return codes.ravel().take(place * rows.size + np.arange(rows.size))


def _least(rows: Rows, scores: np.ndarray, vector: np.ndarray) -> np.ndarray:
    step = max(BLOCK // len(scores), 256)
    return np.concatenate([(scores @ vector[:, i : i + step]).min(axis=0) for i in range(0, rows.size, step)])


def are_whole(*values: object) -> bool:
    """Whether all are whole numbers that doubles hold exactly."""
    return all(type(value) is int and abs(value) < EXACT for value in values)


def _nothing(given: tuple[Any, ...], *_: object) -> bool:
    return given == ()


def _one_below(most: int, given: tuple[Any, ...]) -> bool:
    return len(given) == 1 and are_whole(*given) and 0 <= given[0] < most


def _alike(given: tuple[Any, ...]) -> bool:
    """Whether there are numbers, all of one kind."""
    return are_whole(*given) or {type(each) for each in given} in ({float}, {bool})


def _increasing(given: tuple[Any, ...], *_: object) -> bool:
    finite = all(type(edge) is float and math.isfinite(edge) for edge in given)
    return finite and all(a < b for a, b in itertools.pairwise(given))


def _exact(given: tuple[Any, ...], _: int, far: Sequence[int]) -> bool:
    """Whether there are scores, and every term of each and any sum of them is an exact double (SR16)."""
    right = bool(given) and all(len(score) == len(far) + 1 and are_whole(*score) for score in given)
    return right and all(sum(abs(w) * x for w, x in zip(score, (*far, 1), strict=True)) < EXACT for score in given)


@dataclass(frozen=True, slots=True)
class Rule:
    """A kind of step: what it is of (n: a number, c: codes, v: a vector), and what of the public numbers must hold.

    `fits` looks at these, the number of columns, and a vector's largest absolute coordinates; `run` at the rows, at
    the public numbers, and at what the other steps gave of the same rows.
    """

    of: str
    fits: Callable[[tuple[Any, ...], int, Sequence[int]], object]
    run: Callable[..., Any]


def _function(name: str, widen: Callable[[Any], Any]) -> Rule:
    function = getattr(np, name)
    return Rule("n" * function.nin, _nothing, lambda _, __, *of: function(*map(widen, of)))


_ARITHMETIC: Final = (
    "add", "subtract", "multiply", "divide", "floor_divide", "remainder", "fmod", "minimum", "maximum", "floor", "ceil",
    "trunc", "sign", "absolute", "sqrt", "less", "less_equal", "greater", "greater_equal",
)  # fmt: skip
_TRUTHS: Final = ("equal", "not_equal", "isfinite", "logical_and", "logical_or", "logical_not")
STEPS: Final[dict[str, Rule]] = {
    **{name: _function(name, _wide) for name in _ARITHMETIC},
    **{name: _function(name, lambda values: values) for name in _TRUTHS},
    "bitwise_and": _function("bitwise_and", whole),
    "where": Rule("nnn", _nothing, _where),
    "float": Rule("n", _nothing, lambda _, __, of: np.asarray(of).astype(np.float64, copy=False)),
    "whole": Rule("n", _nothing, lambda _, __, of: whole(of)),
    # a column of the rows, 0 where it is missing; whether it is missing; a public number
    "column": Rule("", lambda given, count, _: _one_below(count, given), lambda rows, given: rows.columns[given[0]][0]),
    "missing": Rule(
        "", lambda given, count, _: _one_below(count, given), lambda rows, given: rows.columns[given[0]][1]
    ),
    "constant": Rule("", lambda given, *_: len(given) == 1 and _alike(given), lambda _, given: given[0]),
    # how many of some increasing numbers are at most a number; the entry of a public table, that is brought into it
    "search": Rule("n", _increasing, lambda _, edges, of: np.searchsorted(edges, of, side="right")),
    "take": Rule(
        "n", lambda given, *_: given and _alike(given), lambda _, table, of: table.take(whole(of), mode="clip")
    ),
    # codes side by side, those below 0 or above a size being that size; the one at a place, that is brought among them
    "codes": Rule("n+", lambda given, *_: _one_below(2**31, given), _codes),
    "pick": Rule("cn", _nothing, _pick),
    # the least of some scores of a vector: inner products with whole weights, the last of which is for 1
    "least": Rule("v", _exact, _least),
}
"""Each looks at one row at a time, and gives an exactly rounded result, however rows are batched."""


# What a row adds


@dataclass(frozen=True, slots=True)
class Box:
    """Where a vector's whole numbers lie, once guarded; `zero`: whether it may be zero beside that.

    `norms`: of every such vector. `right`: whether any two are at most a right angle apart.
    """

    low: tuple[int, ...]
    high: tuple[int, ...]
    norms: Norms
    zero: bool
    right: bool

    @classmethod
    def of(cls, low: Sequence[int], high: Sequence[int], *norms: Norms, zero: bool = False, right: bool = False) -> Box:
        """All vectors between these, of at most these norms; those without a sign are at most a right angle apart."""
        every = cls(tuple(low), tuple(high), Norms(0, 0, 0), zero, right or min(low) >= 0)
        least = functools.reduce(functools.partial(_each, min), norms, _norms(every.far))
        l1 = min(least.l1, _root_up(len(every.low) * least.l2_squared))  # |x|_1 <= sqrt(width) |x|_2
        return replace(every, norms=replace(least, l1=l1))

    @property
    def far(self) -> list[int]:
        """The largest absolute value of each coordinate."""
        return [max(-low, high) for low, high in zip(self.low, self.high, strict=True)]

    def times(self, other: Box) -> Box:
        """The vector times a number."""
        ends = np.array([self.low, self.high], dtype=object)
        every = np.concatenate([ends * other.low[0], ends * other.high[0]])
        low, high = every.min(axis=0).tolist(), every.max(axis=0).tolist()
        return Box.of(low, high, self.norms.times(max(other.far)), zero=self.zero or other.zero)

    def products(self) -> Box:
        """All products of two coordinates, each below 2^31: the upper triangle of x x^T; s = |x|^2.

        Its L2 norm is at most s, and in L1 it is (|x|_1^2 + s)/2 <= (d + 1)/2 s. The inner product of two triangles is
        ((x.y)^2 + sum x_i^2 y_i^2)/2 >= 0, so they are at most a right angle apart.
        """
        _require(max(self.far) < 2**31, "products that are not exact")
        ends = np.array([self.low, self.high], dtype=np.int64)
        every = np.einsum("ai,bj->abij", ends, ends).reshape(4, len(self.low), -1)
        low, high = every.min(axis=0), every.max(axis=0)
        squares = np.flatnonzero((ends[0] <= 0) & (ends[1] >= 0))
        low[squares, squares] = 0
        triangle, square = np.triu_indices(len(self.low)), self.norms.l2_squared
        norms = Norms((len(self.low) + 1) * square // 2 + 1, square**2, square)
        return Box.of(low[triangle].tolist(), high[triangle].tolist(), norms, zero=self.zero, right=True)

    def moves(self, rows: int) -> Moves:
        """How far so many such vectors are from zero, and from as many others."""
        single = self.norms
        twice = Norms(2 * single.l1, (2 if self.right else 4) * single.l2_squared, 2 * single.coordinate)
        pair = _each(min, twice, _norms([high - low for low, high in zip(self.low, self.high, strict=True)]))
        pair = _each(max, pair, single) if self.zero else pair
        return Moves(single.times(rows), pair.times(rows), self.low, self.high)


def _norms(far: Sequence[int]) -> Norms:
    return Norms(sum(far), sum(x * x for x in far), max(far))


def _each(pick: Callable[[int, int], int], one: Norms, other: Norms) -> Norms:
    return Norms(*(pick(getattr(one, name), getattr(other, name)) for name in Norms.__slots__))


def _root_up(square: int) -> int:
    root = math.isqrt(square)
    return root + (root * root < square)


def box_of(step: Stack) -> Box:
    """Where a vector lies once it is guarded."""
    units, ball = step.units, step.ball
    _require(0 < len(units) <= MAX_WIDTH, "a vector of too many coordinates, or of none")
    _require(all(are_whole(u.low, u.high) and u.low <= u.high for u in units), "a coordinate without bounds")
    _require(all(type(u.scale) is float and math.isfinite(u.scale) for u in units), "a grid of no size")
    _require(all(norm is None or (are_whole(norm) and norm >= 0) for norm in (step.l1, ball)), "a norm")
    low, high = [unit.low for unit in units], [unit.high for unit in units]
    free, norms = Box.of(low, high).norms, []
    if step.l1 is not None:
        _require(free.l1 < EXACT, "a length that is not exact")
        norms.append(Norms(step.l1, step.l1**2, step.l1))
    if ball is not None:
        _require(free.l2_squared < EXACT, "a length that is not exact")
        norms.append(Norms(_root_up(len(units) * ball**2), ball**2, ball))
    past = any(free.l1 > norm.l1 or free.l2_squared > norm.l2_squared for norm in norms)
    _require(not step.shorten or ball is not None, "a vector shortened to no length")
    if step.shorten and ball is not None and past:  # a coordinate may then be anything between itself and zero
        _require(free.coordinate * ball + _root_up(free.l2_squared) < EXACT, "a vector shortened that is not exact")
        low, high = [max(min(a, 0), -ball) for a in low], [min(max(b, 0), ball) for b in high]
    return Box.of(low, high, *norms, zero=past or step.missing is not None)


# What is known of a program


def _require(holds: object, why: str) -> None:
    if not holds:
        raise Refused(why)


def check(program: Program) -> tuple[dict[int, Box], list[Box]]:
    """The bounds of a program's vectors, and of what a row adds to each sum; Refused where one is not of the list.

    Privacy: products of whole numbers stay below 2^53, so that BLAS gives the same for a row in every batch (SR16).
    """
    boxes: dict[int, Box] = {}
    kinds = ""  # what each step gives
    for step in program.steps:
        _require(type(step) in (Step, Stack), "a step that is not of the list")
        given = _given(kinds, step.of)
        if isinstance(step, Stack):
            _require(set(given) <= {"n"}, "a vector of other than numbers")
            boxes[len(kinds)] = box_of(step)
            kinds += "v"
            continue
        rule = STEPS.get(step.name)
        _require(rule is not None and re.fullmatch(rule.of, given), "a step that is not of the list")
        far = boxes[step.of[0]].far if given == "v" else ()
        _require(rule and rule.fits(step.given, len(program.columns), far), f"other numbers than {step.name} takes")
        kinds += "c" if step.name == "codes" else "n"
    summed: list[Box] = []
    for each in program.sums:
        _require(all(type(key.size) is int and key.size > 0 for key in each.keys), "a key of no size")
        box = _summed(each, boxes, kinds)
        entries = len(each.units) // (8 * each.width)  # of a table
        _require(each.cells * max(len(box.low), entries) < MAX_CELLS, "too many cells")
        _require(max(box.far) < EXACT, "a term that is no exact double")
        summed.append(box)
    return boxes, summed


def _given(kinds: str, of: Iterable[int]) -> str:
    """What steps give that are there already."""
    _require(all(type(place) is int and 0 <= place < len(kinds) for place in of), "a step of a later one")
    return "".join(kinds[place] for place in of)


def _summed(each: Sum, boxes: Mapping[int, Box], kinds: str) -> Box:
    """What one row adds to a sum."""
    given = _given(kinds, each.reads)
    vectors = {"vectors": "v" if each.factor is None else "vv", "products": "v"}.get(each.kind, "")
    _require(given == vectors + "n" * (len(given) - len(vectors)), "a sum of other than vectors, by other than numbers")
    match each.kind:
        case "count":
            _require(are_whole(each.term), "a term that is not whole")
            return Box.of((each.term,), (each.term,))
        case "table":
            right = type(each.width) is int and 0 < each.width <= MAX_WIDTH and each.units
            _require(right and len(each.units) % (8 * each.width) == 0, "a table of no width, or that ends early")
            _require(int(np.abs(each.table).max()) < 2**31, "a table's number that is too large")
            return Box.of(each.table.min(axis=0).tolist(), each.table.max(axis=0).tolist())
        case "vectors" if each.factor is None:
            return boxes[each.of]
        case "vectors":
            factor = boxes[each.reads[1]]
            _require(len(factor.low) == 1, "a factor that is no number")
            return boxes[each.of].times(factor)
        case "products":
            _require(len(boxes[each.of].low) ** 2 <= 2 * MAX_WIDTH, "too many products")
            return boxes[each.of].products()
    raise Refused("a sum of no kind")


def certify(program: Program, columns: Sequence[Value], rows: int, *, every: bool) -> tuple[Certified, ...]:
    """How far one person, who alters so many rows, moves each sum; `every`: whether every kept row is among them."""
    _require(len(columns) == len(program.columns), "a program of other columns")
    _require(all(value.type in COLUMNS for value in columns), "a column that is no number")
    certified = []
    for each, box in zip(program.sums, check(program)[1], strict=True):
        moved = box.moves(rows)
        if each.kind == "table":
            moved = table(Certificate((), (), rows, public=False, every=False), each.table)
        present = every and each.where is None and not each.keys
        certified.append(Certified(moved, rows, present, (each.where, each.keys)))
    return tuple(certified)
