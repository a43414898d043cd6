"""Row functions that give a truth value: comparisons, lists, three-valued logic, and whether there is a value."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Final

import numpy as np

from sulq.errors import QuestionError, SetupError
from sulq.language import domain
from sulq.language.domain import Schema
from sulq.language.kinds import Cells, Code, Frame, Kind, Scalar, Truth, Words, union
from sulq.language.rowfn.base import (
    MAX_LIST_ITEMS,
    Col,
    Lit,
    Literal,
    RowFn,
    Values,
    condition,
    describe,
    evaluate,
    known,
    literals,
    several,
    truths,
)
from sulq.language.rowfn.piece import NotInSql, Piece, double, joined, whole

if TYPE_CHECKING:
    from sulq.language.rowfn.writer import SqlWriter

COMPARISONS: Final[dict[str, Callable[[Values, Values | float], Values]]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
MIDNIGHT: Final = "T00:00:00"  # of a moment that is compared with days
_MIRRORED: Final = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


def against(value: Literal, kind: Kind) -> int | float | str:
    """A literal as it meets cells of a kind: a number, a category's code, days, or text."""
    if isinstance(kind, Code):
        if value not in kind.labels or isinstance(value, bool):
            raise QuestionError("unknown-category", f"{str(value)[:80]!r} is not a declared category.")
        return kind.labels.index(value)
    if isinstance(kind, Words) and isinstance(value, str):
        return value
    if isinstance(kind, Truth) and (isinstance(value, bool) or value in (0, 1)):
        return int(value)
    if isinstance(kind, Scalar) and kind.clock and isinstance(value, str):
        try:
            return domain.days(value.removesuffix(MIDNIGHT)) if kind.clock == "date" else domain.microseconds(value)
        except SetupError as error:
            raise QuestionError("bad-literal", error.message) from None
    if isinstance(kind, Scalar) and not kind.clock and isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value)
    raise QuestionError("wrong-kind", f"{str(value)[:80]!r} cannot be compared with this column.")


def _constant(value: float | str) -> Values:
    return np.asarray(value, dtype=object if isinstance(value, str) else None)


def alike(left: RowFn, a: Kind, right: RowFn, b: Kind) -> None:
    """Insist that two row functions of these kinds can be compared."""
    same = type(a) is type(b) and not (isinstance(a, Code) and isinstance(b, Code) and a.labels != b.labels)
    if not same or (isinstance(a, Scalar) and isinstance(b, Scalar) and a.clock != b.clock):
        raise QuestionError("wrong-kind", f"{describe(left)} and {describe(right)} cannot be compared.")


@dataclass(frozen=True, slots=True, eq=False)
class Compare(RowFn, left="A side of a comparison", right="A side of a comparison"):
    """A comparison; unknown where either side is missing."""

    op: str
    left: RowFn
    right: RowFn

    def __post_init__(self) -> None:
        if self.op not in COMPARISONS:
            raise QuestionError("bad-question", "A comparison is one of == != < <= > >=.")
        RowFn.__post_init__(self)

    def sides(self, schema: Schema) -> tuple[RowFn, int | float | str | RowFn, str]:
        """The comparison with a constant, if there is one, on the right and fitted to the other side."""
        left, right, op = self._turned()
        return left, against(right.value, left.kind(schema)) if isinstance(right, Lit) else right, op

    def _turned(self) -> tuple[RowFn, RowFn, str]:
        if isinstance(self.left, Lit) and not isinstance(self.right, Lit):
            return self.right, self.left, _MIRRORED.get(self.op, self.op)
        return self.left, self.right, self.op

    def kind(self, schema: Schema) -> Truth:
        left, right, _ = self._turned()
        a = left.kind(schema)
        nullable = a.nullable
        if isinstance(right, Lit):
            against(right.value, a)
        else:
            b = right.kind(schema)
            alike(left, a, right, b)
            nullable = nullable or b.nullable
        if not isinstance(a, Scalar) and self.op not in ("==", "!="):
            raise QuestionError("wrong-kind", f"{describe(left)} has no order; use == or !=.")
        return Truth(nullable)

    def cells(self, frame: Frame) -> Cells:
        left, right, op = self.sides(frame.schema)
        a = evaluate(left, frame)
        b = evaluate(right, frame) if isinstance(right, RowFn) else Cells(_constant(right), None)
        with np.errstate(all="ignore"):
            found = COMPARISONS[op](a.values, b.values)
        return Cells(found.astype(np.bool_, copy=False), union(a.missing, b.missing))

    def sql(self, writer: SqlWriter) -> Piece:
        left, right, op = self.sides(writer.schema)
        kind = left.kind(writer.schema)
        sign = {"==": "=", "!=": "<>"}.get(op, op)
        if isinstance(right, RowFn):
            moment = right.moment()
            if moment is not None and isinstance(left, Col):
                return _threshold(writer, left.name, op, Fraction(moment))
            mode = writer.mode(left)
            return joined(f"({{0}} {sign} {{1}})", writer.write(mode, left), writer.write(mode, right))
        if isinstance(kind, Words):
            return joined(f"({{0}} {sign} {{1}})", writer.words(left), writer.parameter(str(right)))
        if isinstance(kind, Code):
            return joined(f"({{0}} {sign} {writer.constant(int(right))})", writer.code(left))
        if isinstance(kind, Truth):
            return joined(f"({{0}} {sign} {'TRUE' if right else 'FALSE'})", writer.truth(left))
        if isinstance(left, Col):
            return _threshold(writer, left.name, op, Fraction(right))
        return joined(f"({{0}} {sign} {double(float(right))})", writer.number(left))


def _threshold(writer: SqlWriter, name: str, op: str, constant: Fraction) -> Piece:
    """A column against a constant, as a comparison of its integers, exactly (no float decides: SR16)."""
    column = writer.schema.find(name)
    if column is None or isinstance(column, domain.Text):
        raise NotInSql(name)
    stored = writer.column(name)
    units = constant / column.step
    if op in ("==", "!="):
        if units.denominator != 1 or not column.low <= units <= column.high:
            return joined(f"CASE WHEN {{0}} IS NOT NULL THEN {'FALSE' if op == '==' else 'TRUE'} END", stored)
        return joined(f"({{0}} {'=' if op == '==' else '<>'} {writer.constant(int(units))})", stored)
    least = {">": math.floor(units) + 1, ">=": math.ceil(units)}.get(op)
    if least is not None:
        return joined(f"({{0}} >= {writer.constant(min(max(least, column.low), column.high + 1))})", stored)
    most = math.ceil(units) - 1 if op == "<" else math.floor(units)
    return joined(f"({{0}} <= {writer.constant(min(max(most, column.low - 1), column.high))})", stored)


@dataclass(frozen=True, slots=True, eq=False)
class IsIn(RowFn, item="The left of isin", values=literals):
    """Whether a value is one of a list of constants."""

    item: RowFn
    values: tuple[int | float | str | bool, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", several(self.values, "Values", MAX_LIST_ITEMS + 1))
        if len(self.values) > MAX_LIST_ITEMS:
            raise QuestionError("too-large", "A list holds at most 10,000 constants.")
        RowFn.__post_init__(self)

    def fitted(self, schema: Schema) -> list[int | float | str]:
        """The constants as they meet the cells."""
        return self._fitted(self.item.kind(schema))

    def _fitted(self, kind: Kind) -> list[int | float | str]:
        if isinstance(kind, Code):  # a long list against many labels: one table, not a search for each
            places = {label: place for place, label in enumerate(kind.labels)}
            known = [value for value in self.values if not isinstance(value, bool) and value in places]
            if len(known) == len(self.values):
                return [places[value] for value in known]
        return [against(value, kind) for value in self.values]

    def kind(self, schema: Schema) -> Truth:
        kind = self.item.kind(schema)
        self._fitted(kind)
        return Truth(kind.nullable)

    def cells(self, frame: Frame) -> Cells:
        item = evaluate(self.item, frame)
        found = np.zeros(frame.size, dtype=np.bool_)
        for value in self.fitted(frame.schema):
            found |= (item.values == value).astype(np.bool_, copy=False)
        return Cells(found, item.missing)

    def sql(self, writer: SqlWriter) -> Piece:
        kind, values, column = self.item.kind(writer.schema), self.fitted(writer.schema), writer.stored(self.item)
        if isinstance(kind, Words):
            item, found = writer.words(self.item), [writer.parameter(str(value)).sql for value in values]
        elif isinstance(kind, Code):
            item, found = writer.code(self.item), list(map(str, values))
        elif isinstance(kind, Scalar) and column is not None:
            units = [Fraction(value) / column.step for value in values]
            there = [int(unit) for unit in units if unit.denominator == 1 and column.low <= unit <= column.high]
            item, found = writer.any_kind(self.item), list(map(whole, there))
        elif isinstance(kind, Scalar):
            item, found = writer.number(self.item), [double(float(value)) for value in values]
        else:
            item, found = writer.truth(self.item), ["TRUE" if value else "FALSE" for value in values]
        if not found:
            return joined("CASE WHEN {0} IS NOT NULL THEN FALSE END", item)
        return joined(f"({{0}} IN ({', '.join(found)}))", item)


@dataclass(frozen=True, slots=True, eq=False)
class Logic(RowFn, items="A condition"):
    """Three-valued `and` or `or`: unknown only where the known parts do not decide."""

    op: str
    items: tuple[RowFn, ...]

    def __post_init__(self) -> None:
        if self.op not in ("and", "or") or not self.items:
            raise QuestionError("bad-question", "Logic is `and` or `or` of conditions.")
        RowFn.__post_init__(self)

    def kind(self, schema: Schema) -> Truth:
        kinds = [condition(item, schema) for item in self.items]
        return Truth(any(kind.nullable for kind in kinds))

    def cells(self, frame: Frame) -> Cells:
        decides = self.op == "or"
        cells = [truths(item, frame) for item in self.items]
        strikes = [known(value if decides else ~value, missing) for value, missing in cells]
        decided = functools.reduce(operator.or_, strikes)
        unknown = union(*(missing for _, missing in cells))
        missing = None if unknown is None else unknown & ~decided
        return Cells(decided if decides else ~decided, missing)

    def sql(self, writer: SqlWriter) -> Piece:
        form = f" {self.op.upper()} ".join(f"{{{i}}}" for i in range(len(self.items)))
        return joined(f"({form})", *map(writer.truth, self.items))


@dataclass(frozen=True, slots=True, eq=False)
class Not(RowFn, item="A condition"):
    """The opposite; unknown stays unknown."""

    item: RowFn

    def kind(self, schema: Schema) -> Truth:
        return condition(self.item, schema)

    def cells(self, frame: Frame) -> Cells:
        value, missing = truths(self.item, frame)
        return Cells(~value, missing)

    def sql(self, writer: SqlWriter) -> Piece:
        return joined("(NOT {0})", writer.truth(self.item))


@dataclass(frozen=True, slots=True, eq=False)
class IsMissing(RowFn, item="The item"):
    """Whether there is no value; never unknown itself."""

    item: RowFn

    def kind(self, schema: Schema) -> Truth:
        self.item.kind(schema)
        return Truth(nullable=False)

    def cells(self, frame: Frame) -> Cells:
        missing = evaluate(self.item, frame).missing
        return Cells(np.zeros(frame.size, dtype=np.bool_) if missing is None else missing, None)

    def sql(self, writer: SqlWriter) -> Piece:
        return joined("({0} IS NULL)", writer.any_kind(self.item))
