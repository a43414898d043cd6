"""Row functions that give a number for each row: places, arithmetic, cases, clamps, and what stands for missing."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar, Final, cast

import numpy as np

from sulq.errors import QuestionError
from sulq.kernel.facts import PLACE
from sulq.language.domain import Schema
from sulq.language.kinds import HUGE, Cells, Code, Frame, Grid, Kind, Scalar, Truth, Truths, Words, union
from sulq.language.rowfn.base import (
    Lit,
    RowFn,
    as_number,
    check,
    condition,
    describe,
    evaluate,
    figure,
    known,
    literal,
    number,
    numbers,
    one_of,
    outward,
    per_schema,
    truths,
)
from sulq.language.rowfn.conditions import Compare, against, alike
from sulq.language.rowfn.piece import Piece, clamped, joined, places_of

if TYPE_CHECKING:
    from sulq.language.rowfn.writer import SqlWriter

ARITHMETIC: Final[dict[str, np.ufunc]] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": np.divide,
}


@dataclass(frozen=True, slots=True, eq=False)
class Position(RowFn):
    """The row's place in the table, from 0, where the relation keeps places public (S0.7, SR11)."""

    LIMIT: ClassVar[int] = 2**40

    def kind(self, schema: Schema) -> Kind:
        return Scalar(Fraction(0), Fraction(self.LIMIT), Fraction(1), nullable=False)

    def cells(self, frame: Frame) -> Cells:
        return Cells(np.minimum(frame.position(), self.LIMIT).astype(np.float64), None)

    def sql(self, writer: SqlWriter) -> Piece:
        return Piece(f"CAST(CASE WHEN {PLACE} > {self.LIMIT} THEN {self.LIMIT} ELSE {PLACE} END AS DOUBLE)")


@dataclass(frozen=True, slots=True, eq=False)
class Arith(RowFn, left="A term", right="A term"):
    """Sum, difference, product or quotient; a quotient by zero is missing."""

    op: str
    left: RowFn
    right: RowFn

    def __post_init__(self) -> None:
        if self.op not in ("+", "-", "*", "/"):
            raise QuestionError("bad-question", "Arithmetic is one of + - * /.")
        RowFn.__post_init__(self)

    @per_schema
    def kind(self, schema: Schema) -> Scalar:
        a, b = number(self.left, schema), number(self.right, schema)
        zero = b.lo is None or b.hi is None or b.lo <= 0 <= b.hi
        nullable = a.nullable or b.nullable or (self.op == "/" and zero)
        step, clock = None, _shifted(self.op, a, b)
        if a.step and b.step and self.op != "/":
            step = a.step * b.step if self.op == "*" else min(a.step, b.step)
        if a.lo is None or a.hi is None or b.lo is None or b.hi is None or (self.op == "/" and zero):
            return Scalar(None, None, step, nullable=True, clock=clock)
        corners = {
            "+": (a.lo + b.lo, a.hi + b.hi),
            "-": (a.lo - b.hi, a.hi - b.lo),
        }.get(self.op) or tuple((x * y if self.op == "*" else x / y) for x in (a.lo, a.hi) for y in (b.lo, b.hi))
        if max(map(abs, corners)) > HUGE:
            return Scalar(None, None, step, nullable=True, clock=clock)
        lo, hi = outward(min(corners), max(corners))
        return Scalar(lo, hi, step, nullable, clock)

    def cells(self, frame: Frame) -> Cells:
        left, no_left = numbers(self.left, frame)
        right, no_right = numbers(self.right, frame)
        missing = union(no_left, no_right)
        with np.errstate(all="ignore"):
            values = ARITHMETIC[self.op](left, right)
        if not self.kind(frame.schema).bounded:
            finite = np.isfinite(values)
            values, missing = np.where(finite, values, 0.0), union(missing, ~finite)
        return Cells(values, missing)

    def sql(self, writer: SqlWriter) -> Piece:
        result = joined(f"({{0}} {self.op} {{1}})", writer.number(self.left), writer.number(self.right))
        return result if self.kind(writer.schema).bounded else writer.finite(result)


def _shifted(op: str, a: Scalar, b: Scalar) -> str | None:
    """The clock of a sum or difference: a date moved by whole days is a date, two dates differ by a number."""
    if op in ("+", "-") and a.clock and not b.clock and b.step is not None and b.step.denominator == 1:
        return a.clock
    if op == "+" and b.clock and not a.clock and a.step is not None and a.step.denominator == 1:
        return b.clock
    return None


@dataclass(frozen=True, slots=True, eq=False)
class Case(RowFn):
    """The value of the first condition that holds; else `otherwise`, or missing."""

    branches: tuple[tuple[RowFn, RowFn], ...]
    otherwise: RowFn | None = None

    def __post_init__(self) -> None:
        if not self.branches:
            raise QuestionError("bad-question", "A case needs at least one branch.")
        for fn in self.parts():
            check(fn, "A branch")

    def parts(self) -> tuple[RowFn, ...]:
        last = () if self.otherwise is None else (self.otherwise,)
        return tuple(fn for branch in self.branches for fn in branch) + last

    def kind(self, schema: Schema) -> Scalar:
        for when, _ in self.branches:
            condition(when, schema)
        last = () if self.otherwise is None else (self.otherwise,)
        kinds = [number(value, schema) for value in (*(then for _, then in self.branches), *last)]
        nullable = self.otherwise is None or any(kind.nullable for kind in kinds)
        return one_of(kinds, "The branches of a case mix dates and numbers.", nullable=nullable)

    def cells(self, frame: Frame) -> Cells:
        values, missing = np.zeros(frame.size), cast("Truths | None", np.ones(frame.size, dtype=np.bool_))
        if self.otherwise is not None:
            values, missing = numbers(self.otherwise, frame)
        for when, then in reversed(self.branches):
            here = known(*truths(when, frame))
            value, none = numbers(then, frame)
            values = np.where(here, value, values)
            if none is not None or missing is not None:
                sides = (np.zeros(frame.size, dtype=np.bool_) if mask is None else mask for mask in (none, missing))
                missing = np.where(here, *sides)
        return Cells(values, missing)

    def sql(self, writer: SqlWriter) -> Piece:
        pieces: list[Piece] = []
        form = "CASE"
        for when, then in self.branches:
            form += f" WHEN {{{len(pieces)}}} THEN {{{len(pieces) + 1}}}"
            pieces += [writer.truth(when), writer.number(then)]
        if self.otherwise is not None:
            form += f" ELSE {{{len(pieces)}}}"
            pieces.append(writer.number(self.otherwise))
        return joined(f"{form} END", *pieces)


@dataclass(frozen=True, slots=True, eq=False)
class Clip(RowFn, item="The item", lo=figure, hi=figure):
    """A number clamped into [lo, hi]; this bounds what nothing else does."""

    item: RowFn
    lo: float | int
    hi: float | int

    def __post_init__(self) -> None:
        RowFn.__post_init__(self)
        if self.lo > self.hi:
            raise QuestionError("bad-literal", "The bounds of clip are reversed.")

    @per_schema
    def kind(self, schema: Schema) -> Scalar:
        inner = number(self.item, schema)
        lo, hi = Fraction(self.lo), Fraction(self.hi)
        inside = (lo if inner.lo is None else inner.lo, hi if inner.hi is None else inner.hi)
        ends = [min(max(end, lo), hi) for end in inside]
        step = inner.step
        if step is not None and any((end / step).denominator != 1 for end in ends):
            step = None
        return Scalar(ends[0], ends[1], step, inner.nullable)

    def _changes(self, schema: Schema) -> bool:
        """Whether there may be numbers beyond the bounds."""
        inner = number(self.item, schema)
        return inner.lo is None or inner.hi is None or inner.lo < self.lo or self.hi < inner.hi

    def cells(self, frame: Frame) -> Cells:
        value, missing = numbers(self.item, frame)
        if not self._changes(frame.schema):
            return Cells(value, missing)
        return Cells(np.minimum(np.maximum(value, float(self.lo)), float(self.hi)), missing)

    def sql(self, writer: SqlWriter) -> Piece:
        item = writer.number(self.item)
        return clamped(writer.named(item), float(self.lo), float(self.hi)) if self._changes(writer.schema) else item


@dataclass(frozen=True, slots=True, eq=False)
class Fill(RowFn, item="The item", value=literal):
    """A number or condition, with a constant where it is missing."""

    item: RowFn
    value: int | float | str | bool

    @per_schema
    def kind(self, schema: Schema) -> Kind:
        inner = self.item.kind(schema)
        constant = against(self.value, inner)
        if isinstance(inner, Truth):
            return Truth(nullable=False)
        if not isinstance(inner, Scalar):
            raise QuestionError("wrong-kind", "fill takes a number or a condition.")
        exact = Fraction(constant)
        step = inner.step if inner.step and (exact / inner.step).denominator == 1 else None
        if inner.lo is None or inner.hi is None:
            return Scalar(None, None, step, nullable=False, clock=inner.clock)
        return Scalar(min(inner.lo, exact), max(inner.hi, exact), step, nullable=False, clock=inner.clock)

    def cells(self, frame: Frame) -> Cells:
        cells = evaluate(self.item, frame)
        if cells.missing is None:
            return cells
        constant = against(self.value, self.item.kind(frame.schema))
        return Cells(np.where(cells.missing, np.asarray(constant).astype(cells.values.dtype), cells.values), None)


@dataclass(frozen=True, slots=True, eq=False)
class First(RowFn, items="An item"):
    """The first of several values of one kind that is not missing."""

    items: tuple[RowFn, ...]

    def __post_init__(self) -> None:
        if not self.items:
            raise QuestionError("bad-question", "The first of no values has no meaning.")
        RowFn.__post_init__(self)

    def kind(self, schema: Schema) -> Kind:
        kinds = [item.kind(schema) for item in self.items]
        nullable = all(kind.nullable for kind in kinds)
        if all(isinstance(kind, Truth) for kind in kinds):
            return Truth(nullable)
        words = [kind for kind in kinds if isinstance(kind, Words)]
        if len(words) == len(kinds):
            return Words(nullable, max(kind.longest for kind in words))
        if isinstance(kinds[0], Code):
            if any(not isinstance(kind, Code) or kind.labels != kinds[0].labels for kind in kinds):
                raise QuestionError("wrong-kind", f"{describe(self.items[0])} and others have different labels.")
            return Code(kinds[0].labels, nullable)
        numbers = [as_number(kind, item) for kind, item in zip(kinds, self.items, strict=True)]
        return one_of(numbers, f"{describe(self.items[0])} and others mix dates and numbers.", nullable=nullable)

    def cells(self, frame: Frame) -> Cells:
        several = [evaluate(item, frame) for item in self.items]
        if isinstance(self.kind(frame.schema), Scalar):
            several = [replace(cells, values=cells.values.astype(np.float64, copy=False)) for cells in several]
        found = several[0]
        for cells in several[1:]:
            if found.missing is None:
                break
            values = np.where(found.missing, cells.values, found.values)
            found = Cells(values, None if cells.missing is None else found.missing & cells.missing)
        return Cells(found.values, found.missing)


@dataclass(frozen=True, slots=True, eq=False)
class NullIf(RowFn, item="The item", other="The other value"):
    """A value, missing where it equals another."""

    item: RowFn
    other: RowFn

    @property
    def equal(self) -> Compare:
        """The condition under which the value is taken away."""
        return Compare("==", self.item, self.other)

    def kind(self, schema: Schema) -> Kind:
        inner = self.item.kind(schema)
        if isinstance(inner, Grid):
            raise QuestionError("wrong-kind", f"{describe(self.item)} is a vector.")
        if isinstance(self.other, Lit):
            against(self.other.value, inner)
        elif isinstance(self.item, Lit):
            against(self.item.value, self.other.kind(schema))
        else:
            alike(self.item, inner, self.other, self.other.kind(schema))
        return replace(inner, nullable=True)

    def cells(self, frame: Frame) -> Cells:
        cells = evaluate(self.item, frame)
        return Cells(cells.values, union(known(*truths(self.equal, frame)), cells.missing))


@dataclass(frozen=True, slots=True, eq=False)
class _Extreme(RowFn, items="An item"):
    """The least or the greatest of several numbers, whatever is missing left aside."""

    items: tuple[RowFn, ...]
    act: ClassVar[np.ufunc]
    name: ClassVar[str]  # of SQL's function

    def __post_init__(self) -> None:
        if not self.items:
            raise QuestionError("bad-question", "The least or greatest needs at least one number.")
        RowFn.__post_init__(self)

    def kind(self, schema: Schema) -> Scalar:
        kinds = [number(item, schema) for item in self.items]
        mixed = f"{describe(self.items[0])} and others mix dates and numbers."
        found = one_of(kinds, mixed, nullable=all(kind.nullable for kind in kinds))
        if not found.bounded:
            return found
        there = [found.limits, *(kind.limits for kind in kinds if not kind.nullable)]  # those that always count
        if self.name == "least":
            return replace(found, hi=min(hi for _, hi in there))
        return replace(found, lo=max(lo for lo, _ in there))

    def cells(self, frame: Frame) -> Cells:
        found, missing = numbers(self.items[0], frame)
        for item in self.items[1:]:
            values, none = numbers(item, frame)
            best = self.act(found, values)
            best = best if missing is None else np.where(missing, values, best)
            best = best if none is None else np.where(none, found, best)
            found, missing = best, None if missing is None or none is None else missing & none
        return Cells(found, missing)

    def sql(self, writer: SqlWriter) -> Piece:
        return joined(f"{self.name}({places_of(self.items)})", *map(writer.number, self.items))


@dataclass(frozen=True, slots=True, eq=False)
class Least(_Extreme):
    """The least of several numbers, whatever is missing left aside."""

    act: ClassVar[np.ufunc] = np.minimum
    name: ClassVar[str] = "least"


@dataclass(frozen=True, slots=True, eq=False)
class Greatest(_Extreme):
    """The greatest of several numbers, whatever is missing left aside."""

    act: ClassVar[np.ufunc] = np.maximum
    name: ClassVar[str] = "greatest"
