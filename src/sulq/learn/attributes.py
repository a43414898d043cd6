"""Columns as keys: every row in one of finitely many public cells of each attribute.

A category has its values, a truth value two, a number as many intervals of equal
width as wished for between its declared bounds, each whole value where those are fewer.
"""

from __future__ import annotations

import datetime
import itertools
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np
import numpy.typing as npt

from sulq.errors import QuestionError
from sulq.learn.features import numbers_of
from sulq.learn.tables import Array, cells, is_missing
from sulq.terms.columns import Columns
from sulq.terms.domain import EPOCH, Bool, Category, Column, Date, Int, Text, Timestamp
from sulq.terms.rowfn import Bins, Col, Each, RowFn

Codes = npt.NDArray[np.int64]
MOST: Final = 1024  # cells of one attribute


@dataclass(frozen=True, slots=True)
class Attribute:
    """One column as a key of `size` cells, in their public order."""

    name: str
    domain: Column
    bins: int  # intervals a number is divided into

    def __post_init__(self) -> None:
        if isinstance(self.domain, Text):
            raise QuestionError("wrong-kind", f"{self.name} is free text; a learner takes categories and numbers.")
        if self.size > MOST:
            raise QuestionError("too-large", f"{self.name} has {self.size:,} values, more than {MOST:,}.")

    @property
    def edges(self) -> tuple[float, ...] | None:
        """The ends of the intervals; None where each value is a cell of its own."""
        domain = self.domain
        if isinstance(domain, (Bool, Category, Text)) or (
            isinstance(domain, Int) and domain.high - domain.low < self.bins
        ):
            return None
        low, high = domain.low * domain.step, domain.high * domain.step
        width = (high - low) / self.bins or Fraction(1)
        if domain.step >= 1:  # whole values: edges between them, so that no interval is uneven by chance
            inner = [Fraction(math.ceil(low + width * i)) for i in range(1, self.bins)]
        else:
            inner = [low + width * i for i in range(1, self.bins)]
        ends = sorted(
            {low, *(edge for edge in inner if low < edge < high), max(high, low + 1 if low == high else high)}
        )
        return tuple(float(end) for end in ends)

    @property
    def labels(self) -> tuple[object, ...]:
        """What the cells are called: values, or intervals."""
        edges = self.edges
        if edges is not None:
            return tuple(itertools.pairwise(_said(edge, self.domain) for edge in edges))
        if isinstance(self.domain, Category):
            return self.domain.values
        if isinstance(self.domain, Int):
            return tuple(range(self.domain.low, self.domain.high + 1))
        return (False, True)

    @property
    def size(self) -> int:
        """The number of cells."""
        return len(self.labels)

    @property
    def ordered(self) -> bool:
        """Whether the cells have an order: numbers do, categories do not."""
        return not isinstance(self.domain, (Bool, Category))

    @property
    def row(self) -> RowFn:
        """The attribute as a key."""
        edges = self.edges
        if edges is not None:
            return Bins(Col(self.name), tuple(_said(edge, self.domain) for edge in edges))
        return Col(self.name) if isinstance(self.domain, Category) else Each(Col(self.name))

    def of(self, values: Array) -> Codes:
        """The cells of an ordinary column: -1 for what is missing or on no list; numbers are clamped."""
        if isinstance(self.domain, Category):
            place = {label: i for i, label in enumerate(self.domain.values)}
            plain = (value.item() if isinstance(value, np.generic) else value for value in values)
            return np.array([-1 if is_missing(value) else place.get(value, -1) for value in plain], dtype=np.int64)
        numbers = numbers_of(values, self.domain, self.name)
        domain = self.domain
        gone = np.isnan(numbers)
        assert not isinstance(domain, Text)  # noqa: S101 - refused above
        clipped = np.clip(
            np.where(gone, 0.0, numbers), float(domain.low * domain.step), float(domain.high * domain.step)
        )
        edges = self.edges
        if edges is None:
            codes = np.rint(clipped).astype(np.int64) - domain.low
        else:
            codes = np.clip(np.searchsorted(np.array(edges), clipped, side="right") - 1, 0, len(edges) - 2)
        return np.where(gone, -1, codes).astype(np.int64)


def _said(edge: float, domain: Column) -> float | str:
    """An edge as a question says it: a day or a moment in its ISO form."""
    if isinstance(domain, Date):
        return (EPOCH + datetime.timedelta(int(edge))).isoformat()
    if isinstance(domain, Timestamp):
        return (datetime.datetime.combine(EPOCH, datetime.time()) + datetime.timedelta(microseconds=edge)).isoformat()
    return edge


class Attributes:
    """The keys of X, for a question and for prediction alike."""

    def __init__(self, items: tuple[Attribute, ...]) -> None:
        self.items = items

    @classmethod
    def of(cls, X: Columns, bins: int) -> Attributes:
        """The attributes of private columns."""
        return cls(tuple(Attribute(name, domain, bins) for name, domain in zip(X.names, X.domain, strict=True)))

    def codes(self, X: object) -> Codes:
        """An ordinary table as codes, one column an attribute; -1 for what is missing or on no list."""
        found = cells(X, [item.name for item in self.items])
        return np.stack([item.of(found[item.name]) for item in self.items], axis=1)

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, place: int) -> Attribute:
        return self.items[place]


class Labels:
    """The column to predict, as a key: its classes are the declared ones, whatever the data holds (SR6)."""

    def __init__(self, y: Columns, *, most: int = 100) -> None:
        name, domain = y.names[0], y.domain[0]
        if not isinstance(domain, (Bool, Category, Int)) or (
            isinstance(domain, Int) and domain.high - domain.low >= most
        ):
            raise QuestionError(
                "wrong-kind",
                f"{name} has no declared classes.",
                f"Declare it as a Category, a Bool or an Int of at most {most} values.",
            )
        self.attribute = Attribute(name, domain, most + 1)
        self.name = name

    @property
    def row(self) -> RowFn:
        """The label as a key."""
        return self.attribute.row

    @property
    def classes(self) -> Array:
        """The classes, in their declared order."""
        return np.array(self.attribute.labels)

    @property
    def size(self) -> int:
        """The number of classes."""
        return self.attribute.size

    def is_class(self, place: int) -> RowFn:
        """Whether a row is of one class, as a condition."""
        label = self.attribute.labels[place]
        column = Col(self.name)
        if isinstance(self.attribute.domain, Bool):
            return column if label else ~column
        return column == label
