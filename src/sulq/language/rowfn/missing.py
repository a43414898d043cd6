"""Row functions about what is missing: the first value that is there, and a value taken away."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from sulq.errors import QuestionError
from sulq.language.domain import Schema
from sulq.language.kinds import Cells, Code, Frame, Grid, Kind, Scalar, Truth, Words
from sulq.language.rowfn.base import Lit, RowFn, as_number, describe, evaluate, one_of, truths
from sulq.language.rowfn.conditions import Compare, against, alike


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
        equal, unknown = truths(self.equal, frame)
        taken = equal if unknown is None else equal & ~unknown
        return Cells(cells.values, taken if cells.missing is None else taken | cells.missing)
