"""Row functions between public labels: a case of constants, other names for keys, missing as a label of its own."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, cast

import numpy as np

from sulq.errors import QuestionError
from sulq.language.domain import Schema
from sulq.language.kinds import Cells, Code, Frame, Integers, Scalar, union
from sulq.language.rowfn.base import Literal, RowFn, check, condition, describe, evaluate, literal, truths
from sulq.language.rowfn.keys import MAX_LABELS

MAX_BRANCHES: Final = 10_000


def code(fn: RowFn, schema: Schema) -> Code:
    """The kind of a row function used as a key."""
    kind = fn.kind(schema)
    if not isinstance(kind, Code):
        raise QuestionError("wrong-kind", f"{describe(fn)} is not a key.")
    return kind


def _index(value: object, labels: int) -> bool:
    return value is None or (isinstance(value, int) and not isinstance(value, bool) and 0 <= value < labels)


@dataclass(frozen=True, slots=True, eq=False)
class Choice(RowFn):
    """The label of the first condition that holds, else that of `otherwise`; None is missing.

    A case whose results are all constants: it puts each row into one public cell.
    """

    branches: tuple[tuple[RowFn, int | None], ...]
    labels: tuple[int | float | str | bool, ...]
    otherwise: int | None = None

    def __post_init__(self) -> None:
        if not 1 <= len(self.branches) <= MAX_BRANCHES or not 1 <= len(self.labels) <= MAX_LABELS:
            raise QuestionError("bad-question", "A choice needs branches and labels, and not too many.")
        object.__setattr__(self, "labels", tuple(literal(label) for label in self.labels))
        _one_kind(self.labels)
        if len(set(self.labels)) != len(self.labels):
            raise QuestionError("bad-question", "The labels of a choice must differ.")
        for when, place in self.branches:
            check(when, "A condition")
            if not _index(place, len(self.labels)):
                raise QuestionError("bad-question", "A branch gives one of the labels, or none.")
        if not _index(self.otherwise, len(self.labels)):
            raise QuestionError("bad-question", "A choice ends with one of the labels, or none.")

    def parts(self) -> tuple[RowFn, ...]:
        return tuple(when for when, _ in self.branches)

    def kind(self, schema: Schema) -> Code:
        for when, _ in self.branches:
            condition(when, schema)
        return Code(self.labels, self.otherwise is None or any(place is None for _, place in self.branches))

    def cells(self, frame: Frame) -> Cells:
        found = np.full(frame.size, -1 if self.otherwise is None else self.otherwise, dtype=np.int64)
        open_ = np.ones(frame.size, dtype=np.bool_)
        for when, place in self.branches:
            holds, unknown = truths(when, frame)
            here = open_ & holds if unknown is None else open_ & holds & ~unknown
            found[here] = -1 if place is None else place
            open_ &= ~here
        return Cells(found, found < 0)


def _one_kind(labels: Iterable[object]) -> None:
    """Labels can be told apart and put in order whatever rows there are: what cannot is refused here (T30)."""
    if len({str if isinstance(x, str) else bool if isinstance(x, bool) else float for x in labels}) != 1:
        raise QuestionError("bad-question", "The labels of a key are all texts, all numbers or all truths.")


@dataclass(frozen=True, slots=True, eq=False)
class Relabel(RowFn, item="The item"):
    """A key under other names: labels[i] is the new name of code i, None where it has none and is missing.

    Codes of one name become one. The new labels are sorted.
    """

    item: RowFn
    labels: tuple[int | float | str | bool | None, ...]

    def __post_init__(self) -> None:
        RowFn.__post_init__(self)
        if len(self.labels) > MAX_LABELS:
            raise QuestionError("too-large", "A key has at most 2^20 labels.")
        object.__setattr__(self, "labels", tuple(None if x is None else literal(x) for x in self.labels))
        _one_kind(self._named)

    @property
    def _named(self) -> list[Literal]:
        return [label for label in self.labels if label is not None]

    def renamed(self) -> tuple[tuple[Literal, ...], list[int | None]]:
        """The new labels, and the new code of each old one."""
        different = {cast("float", label): label for label in reversed(self._named)}
        names = tuple(different[key] for key in sorted(different))
        places = {cast("float", label): i for i, label in enumerate(names)}
        return names, [None if label is None else places[cast("float", label)] for label in self.labels]

    def kind(self, schema: Schema) -> Code:
        inner = code(self.item, schema)
        if inner.size != len(self.labels):
            raise QuestionError("bad-question", f"A key of {inner.size} labels needs as many new ones.")
        return Code(self.renamed()[0], inner.nullable or None in self.labels)

    def cells(self, frame: Frame) -> Cells:
        item = evaluate(self.item, frame)
        places = np.array([-1 if place is None else place for place in self.renamed()[1]], dtype=np.int64)
        values = cast("Integers", item.values)
        found = places[values if item.missing is None else np.where(item.missing, 0, values)]
        return Cells(found, union(item.missing, found < 0))


@dataclass(frozen=True, slots=True, eq=False)
class OrMissing(RowFn, item="The item"):
    """A key with one label more, None, for the rows in which it is missing."""

    item: RowFn

    def kind(self, schema: Schema) -> Code:
        inner = code(self.item, schema)
        return Code((*inner.labels, None), nullable=False)

    def cells(self, frame: Frame) -> Cells:
        item = evaluate(self.item, frame)
        if item.missing is None:
            return item
        last = code(self.item, frame.schema).size
        return Cells(np.where(item.missing, last, cast("Integers", item.values)), None)


@dataclass(frozen=True, slots=True, eq=False)
class Value(RowFn, item="The item"):
    """The number a label is; missing where the label is None."""

    item: RowFn

    def figures(self, schema: Schema) -> list[float | None]:
        """The number of each code."""
        return self._figures(code(self.item, schema))

    def _figures(self, inner: Code) -> list[float | None]:
        found: list[float | None] = []
        for label in inner.labels:
            if label is not None and (isinstance(label, bool) or not isinstance(label, (int, float))):
                raise QuestionError("wrong-kind", f"{describe(self.item)} has labels that are no numbers.")
            found.append(None if label is None else float(label))
        return found

    def kind(self, schema: Schema) -> Scalar:
        inner = code(self.item, schema)
        figures = self._figures(inner)
        known = [Fraction(x) for x in figures if x is not None] or [Fraction(0)]
        step = Fraction(1) if all(x.denominator == 1 for x in known) else None
        return Scalar(min(known), max(known), step, inner.nullable or None in figures)

    def cells(self, frame: Frame) -> Cells:
        item = evaluate(self.item, frame)
        figures = self.figures(frame.schema)
        table = np.array([0.0 if x is None else x for x in figures])
        none = np.array([x is None for x in figures], dtype=np.bool_)
        index = cast("Integers", item.values)
        index = index if item.missing is None else np.where(item.missing, 0, index)
        return Cells(table[index], union(item.missing, none[index] if none.any() else None))
