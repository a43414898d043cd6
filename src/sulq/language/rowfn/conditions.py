"""Row functions that give a truth value: comparisons, lists, three-valued logic, and whether there is a value."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

from sulq.errors import QuestionError, SetupError
from sulq.language import domain
from sulq.language.domain import Schema
from sulq.language.kinds import Cells, Code, Frame, Kind, Scalar, Truth, Words, union
from sulq.language.rowfn.base import (
    MAX_LIST_ITEMS,
    Lit,
    Literal,
    RowFn,
    Values,
    condition,
    describe,
    evaluate,
    known,
    literals,
    truths,
)

COMPARISONS: Final[dict[str, Callable[[Values, Values | float], Values]]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
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
            return domain.days(value) if kind.clock == "date" else domain.microseconds(value)
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


@dataclass(frozen=True, slots=True, eq=False)
class IsIn(RowFn, item="The left of isin", values=literals):
    """Whether a value is one of a list of constants."""

    item: RowFn
    values: tuple[int | float | str | bool, ...]

    def __post_init__(self) -> None:
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


@dataclass(frozen=True, slots=True, eq=False)
class Not(RowFn, item="A condition"):
    """The opposite; unknown stays unknown."""

    item: RowFn

    def kind(self, schema: Schema) -> Truth:
        return condition(self.item, schema)

    def cells(self, frame: Frame) -> Cells:
        value, missing = truths(self.item, frame)
        return Cells(~value, missing)


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
