"""Programs of folds: what is worked out of each row in NumPy, and how far one person moves what is summed of it.

A program is data: steps from a closed list, each of which gives a value for each row from values of the same row, and
sums of vectors whose whole numbers are held within public bounds, whatever was worked out before. So who wrote a
program is not believed; `certify` reads it with the columns that the certified statement gives.

Source: docs/theory/kernel.md; SR1, SR16.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from sulq.kernel.facts import Refused
from sulq.kernel.moves import table
from sulq.kernel.norms import Certified, Moves, Norms
from sulq.kernel.relations import Certificate
from sulq.kernel.values import EXACT, INTEGERS, Value

MAX_WIDTH: Final = 2**20
COLUMNS: Final = ("BOOLEAN", "DOUBLE", *(kind for kind in INTEGERS if kind != "HUGEINT"))
FUNCTIONS: Final = {
    "add": 2, "subtract": 2, "multiply": 2, "divide": 2, "floor_divide": 2, "remainder": 2, "floor": 1,
    "minimum": 2, "maximum": 2, "isfinite": 1, "equal": 2, "not_equal": 2, "less": 2, "less_equal": 2, "greater": 2,
    "greater_equal": 2, "logical_and": 2, "logical_or": 2, "logical_not": 1, "where": 3, "float": 1, "whole": 1,
    "absolute": 1, "ceil": 1, "trunc": 1, "sign": 1, "sqrt": 1, "fmod": 2,
}  # fmt: skip
"""Functions of one row's numbers, and of how many; each gives an exactly rounded result, however rows are batched."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the rows, 0 where it is missing."""

    place: int


@dataclass(frozen=True, slots=True)
class Missing:
    """Whether a column is missing."""

    place: int


@dataclass(frozen=True, slots=True)
class Constant:
    """A public number."""

    value: float | int | bool


@dataclass(frozen=True, slots=True)
class Apply:
    """A function of FUNCTIONS of earlier steps."""

    name: str
    of: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Search:
    """How many of some increasing numbers are at most a step's."""

    of: int
    edges: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Take:
    """The entry of a public table at a step's number, which is brought into the table first."""

    of: int
    entries: tuple[float | int, ...]


@dataclass(frozen=True, slots=True)
class Pick:
    """The code of the item that the step `of` names by its place; codes are from 0 to `size`, which others become."""

    of: int
    items: tuple[int, ...]
    size: int


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


@dataclass(frozen=True, slots=True)
class Gone:
    """Whether a vector is missing."""

    stack: int


@dataclass(frozen=True, slots=True)
class Dot:
    """The inner product of a vector with public whole weights."""

    stack: int
    weights: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Nearest:
    """The number of the nearest of public whole centres, the lowest of several."""

    stack: int
    centres: tuple[tuple[int, ...], ...]


Step = Column | Missing | Constant | Apply | Search | Take | Pick | Stack | Gone | Dot | Nearest


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


@dataclass(frozen=True, slots=True)
class Program:
    """Steps, each of earlier ones, over the columns of these names, and sums."""

    columns: tuple[str, ...]
    steps: tuple[Step, ...]
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


@dataclass(frozen=True, slots=True)
class Box:
    """Where a vector's whole numbers lie, once guarded; `zero`: whether it may be zero beside that."""

    low: tuple[int, ...]
    high: tuple[int, ...]
    l1: int | None = None
    ball: int | None = None
    zero: bool = False

    @property
    def far(self) -> list[int]:
        """The largest absolute value of each coordinate."""
        return [max(-low, high) for low, high in zip(self.low, self.high, strict=True)]

    def times(self, other: Box) -> Box:
        """The vector times a number."""
        low, high = other.low[0], other.high[0]
        ends = [(a * low, a * high, b * low, b * high) for a, b in zip(self.low, self.high, strict=True)]
        most = max(other.far)
        l1, ball = (None if norm is None else norm * most for norm in (self.l1, self.ball))
        return Box(tuple(map(min, ends)), tuple(map(max, ends)), l1, ball, self.zero or other.zero)

    def products(self) -> Box:
        """All products of two coordinates, each below 2^31."""
        _require(max(self.far) < 2**31, "products that are not exact")
        ends = np.array([self.low, self.high], dtype=np.int64)
        every = np.einsum("ai,bj->abij", ends, ends).reshape(4, len(self.low), -1)
        low, high = every.min(axis=0), every.max(axis=0)
        squares = np.flatnonzero((ends[0] <= 0) & (ends[1] >= 0))
        low[squares, squares] = 0
        triangle = np.triu_indices(len(self.low))
        return Box(tuple(low[triangle].tolist()), tuple(high[triangle].tolist()), zero=self.zero)

    def moves(self) -> Moves:
        """How far one such vector is from zero, and two from each other."""
        far, width = self.far, len(self.low)
        wide = [high - low for low, high in zip(self.low, self.high, strict=True)]
        l1, l2, coordinate = sum(far), sum(x * x for x in far), max(far)
        if self.ball is not None:  # |x|_1 <= sqrt(width) |x|_2
            l1 = min(l1, _root_up(width * self.ball**2))
            l2, coordinate = min(l2, self.ball**2), min(coordinate, self.ball)
        if self.l1 is not None:
            l1, l2, coordinate = min(l1, self.l1), min(l2, self.l1**2), min(coordinate, self.l1)
        single = Norms(l1, l2, coordinate)
        apart = 2 if all(low >= 0 for low in self.low) else 4  # vectors whose signs agree: at most a right angle
        return Moves(single, self.pair(single, Norms(sum(wide), sum(x * x for x in wide), max(wide)), apart))

    def pair(self, single: Norms, wide: Norms, apart: int) -> Norms:
        """Two within the box, or one beside zero."""
        pair = Norms(
            min(wide.l1, 2 * single.l1),
            min(wide.l2_squared, apart * single.l2_squared),
            min(wide.coordinate, 2 * single.coordinate),
        )
        return Norms(*(max(getattr(pair, each), getattr(single, each) * self.zero) for each in Norms.__slots__))


def _root_up(square: int) -> int:
    root = math.isqrt(square)
    return root + (root * root < square)


def _require(holds: object, why: str) -> None:
    if not holds:
        raise Refused(why)


def _whole(*values: object) -> bool:
    return all(type(value) is int and abs(value) < EXACT for value in values)


@dataclass(frozen=True, slots=True)
class Checked:
    """What is known of a program before it runs: the bounds of its vectors, and how many rows are added in doubles."""

    boxes: dict[int, Box]
    most: int


def check(program: Program) -> Checked:
    """What follows of a program; Refused where a step is not one of the list.

    Privacy: products of whole numbers stay below 2^53, so that BLAS gives the same for a row in every batch (SR16).
    """
    boxes: dict[int, Box] = {}
    for place, step in enumerate(program.steps):
        _step(step, place, program, boxes)
    largest = 1
    for each in program.sums:
        _numbers(program.steps, len(program.steps), each.where, *(key.of for key in each.keys))
        _require(all(type(key.size) is int and key.size > 0 for key in each.keys), "a key of no size")
        box = _summed(each, program, boxes)
        _require(each.cells * len(box.low) < 2**40, "too many cells")
        largest = max(largest, *box.far)
    _require(largest < EXACT, "a term that is no exact double")
    return Checked(boxes, EXACT // largest)


def _numbers(steps: Sequence[Step], before: int, *of: int | None) -> None:
    """Steps that are there already and give one number a row."""
    for place in of:
        if place is not None:
            _require(type(place) is int and 0 <= place < before, "a step of a later one")
            _require(not isinstance(steps[place], Stack), "a vector taken for a number")


def _step(step: Step, place: int, program: Program, boxes: dict[int, Box]) -> None:
    steps = program.steps
    match step:
        case Column(at) | Missing(at):
            _require(type(at) is int and 0 <= at < len(program.columns), "a column that is not there")
        case Constant(value):
            _require(type(value) in (int, float, bool) and (type(value) is not int or _whole(value)), "a constant")
        case Apply(name, of):
            _numbers(steps, place, *of)
            _require(FUNCTIONS.get(name) == len(of), "a function that is not of the list")
        case Search(of, edges):
            _numbers(steps, place, of)
            _require(all(type(edge) is float and math.isfinite(edge) for edge in edges), "an edge that is no number")
            _require(all(a < b for a, b in itertools.pairwise(edges)), "edges that do not increase")
        case Take(of, entries):
            _numbers(steps, place, of)
            _require(entries and (_whole(*entries) or all(type(x) is float for x in entries)), "a table's entry")
        case Pick(of, items, size):
            _numbers(steps, place, of, *items)
            _require(items and _whole(size) and 0 <= size < 2**31, "codes of no size")
        case Stack():
            _numbers(steps, place, step.missing, *(unit.of for unit in step.units))
            boxes[place] = _box(step)
        case Gone(stack):
            _require(stack in boxes, "no vector")
        case Dot(stack, weights):
            _require(stack in boxes and _whole(*weights), "no vector, or weights that are not whole")
            far = boxes[stack].far
            _require(len(far) == len(weights), "as many weights as coordinates")
            _require(sum(abs(w) * x for w, x in zip(weights, far, strict=True)) < EXACT, "a product that is not exact")
        case Nearest(stack, centres):
            _require(stack in boxes and centres, "no vector, or no centres")
            _require(packed(boxes[stack], centres, 0), "distances that are not exact")
        case _:
            raise Refused("a step that is not of the list")


def packed(box: Box, centres: Sequence[tuple[int, ...]], bits: int) -> bool:
    """Whether |c|^2 - 2 x.c, with so many bits beside it, is exact, term by term."""
    far = box.far
    _require(all(len(centre) == len(far) and _whole(*centre) for centre in centres), "a centre of other coordinates")
    most = max(sum(c * c + 2 * abs(c) * x for c, x in zip(centre, far, strict=True)) for centre in centres)
    return most < EXACT >> bits


def _box(step: Stack) -> Box:
    """Where a vector lies once it is guarded."""
    units = step.units
    _require(0 < len(units) <= MAX_WIDTH, "a vector of too many coordinates, or of none")
    _require(all(_whole(u.low, u.high) and u.low <= u.high for u in units), "a coordinate without bounds")
    _require(all(type(u.scale) is float and math.isfinite(u.scale) for u in units), "a grid of no size")
    low, high = tuple(unit.low for unit in units), tuple(unit.high for unit in units)
    far = [max(-a, b) for a, b in zip(low, high, strict=True)]
    _require(all(norm is None or (_whole(norm) and norm >= 0) for norm in (step.l1, step.ball)), "a norm")
    _require(sum(far) < EXACT or step.l1 is None, "a length that is not exact")
    _require(sum(x * x for x in far) < EXACT or step.ball is None, "a length that is not exact")
    _require(step.ball is not None or not step.shorten, "a vector shortened to no length")
    _require(not step.shorten or max(far) * (step.ball or 0) < EXACT, "a vector shortened that is not exact")
    zero = step.missing is not None or may_break(step)
    if step.shorten and may_break(step):  # a shortened coordinate may be anything between itself and zero
        low = tuple(max(min(a, 0), -(step.ball or 0)) for a in low)
        high = tuple(min(max(b, 0), step.ball or 0) for b in high)
        zero = step.missing is not None
    return Box(low, high, step.l1, step.ball, zero)


def may_break(step: Stack) -> bool:
    """Whether a vector within the bounds of its coordinates may be past the norms that are promised."""
    far = [max(-unit.low, unit.high) for unit in step.units]
    past = step.l1 is not None and sum(far) > step.l1
    return past or (step.ball is not None and sum(x * x for x in far) > step.ball**2)


def divides(step: Stack) -> bool:
    """Whether q * ball / norm, both whole, may be worked out in doubles."""
    far = [max(-unit.low, unit.high) for unit in step.units]
    return max(far) * (step.ball or 0) + _root_up(sum(x * x for x in far)) < EXACT


def _summed(each: Sum, program: Program, boxes: Mapping[int, Box]) -> Box:
    """What one row adds to a sum."""
    match each.kind:
        case "count":
            _require(_whole(each.term), "a term that is not whole")
            return Box((each.term,), (each.term,))
        case "table":
            _numbers(program.steps, len(program.steps), each.of)
            _require(type(each.width) is int and 0 < each.width <= MAX_WIDTH and each.units, "a table of no width")
            _require(len(each.units) % (8 * each.width) == 0, "a table with a row that ends early")
            _require(int(np.abs(each.table).max()) < 2**31, "a table's number that is too large")
            return Box(tuple(each.table.min(axis=0).tolist()), tuple(each.table.max(axis=0).tolist()))
    _require(each.of in boxes and each.kind in ("vectors", "products"), "a sum of no vector")
    box = boxes[each.of]
    if each.kind == "products":
        _require(each.factor is None and len(box.low) ** 2 <= 2 * MAX_WIDTH, "too many products")
        return box.products()
    if each.factor is not None:
        _require(each.factor in boxes and len(boxes[each.factor].low) == 1, "a factor that is no number")
        return box.times(boxes[each.factor])
    return box


def certify(program: Program, columns: Sequence[Value], rows: int, *, every: bool) -> tuple[Certified, ...]:
    """How far one person, who alters so many rows, moves each sum; `every`: whether every kept row is among them."""
    _require(len(columns) == len(program.columns), "a program of other columns")
    _require(all(value.type in COLUMNS for value in columns), "a column that is no number")
    boxes = check(program).boxes
    certified = []
    for each in program.sums:
        box = _summed(each, program, boxes)
        if each.kind == "table":
            moved = table(Certificate((), (), 1, public=False, every=False), each.table)
        else:
            moved = _products(boxes[each.of], box) if each.kind == "products" else box.moves()
        low, high = (moved.low, moved.high) if each.kind == "table" else (box.low, box.high)
        moved = Moves(moved.single.times(rows), moved.pair.times(rows), low, high, moved.vectors)
        present = every and each.where is None and not each.keys
        certified.append(Certified(moved, rows, present, (each.where, each.keys)))
    return tuple(certified)


def _products(vector: Box, products: Box) -> Moves:
    """Of upper triangles of x x^T, where |x|^2 <= s, if it is guarded, and so their L2 norm.

    The inner product of two triangles is ((x.y)^2 + sum x_i^2 y_i^2)/2 >= 0, so they are at most a right angle apart.
    In L1 a triangle is (|x|_1^2 + |x|_2^2)/2 <= (d + 1)/2 s.
    """
    moved = products.moves()
    single = moved.single
    if vector.ball is not None:
        square = vector.ball**2
        l1 = min(single.l1, (len(vector.low) + 1) * square // 2 + 1)
        single = Norms(l1, min(single.l2_squared, square**2), min(single.coordinate, square))
    return Moves(single, products.pair(single, moved.pair, 2))
