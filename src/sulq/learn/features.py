"""Columns as numbers in [-1, 1] and as keys, on private rows and on ordinary tables alike.

A number is moved to the middle of its declared bounds and divided by half their width; a truth value is -1 or 1; a
category is an indicator for each of its values, -1 or 1. What is public about a column, its bounds and its list,
fixes all of it: nothing is read off the data (T21). An ordinary table is an array or a frame to predict on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, cast

import numpy as np
import numpy.typing as npt

from sulq.answers.oracle import ColumnChoice
from sulq.errors import QuestionError, SulqError
from sulq.language.attribute import Attribute
from sulq.language.domain import Bool, Category, Column, Date, Int, Text, days, microseconds
from sulq.language.rowfn import Col, RowFn, case, lit

Array = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]
MAX_FEATURES: Final = 1024  # numbers a row may become
Codes = npt.NDArray[np.int64]


class BadTable(QuestionError, ValueError):
    """A table that does not fit the model; also a ValueError, which is what scikit-learn's tools look for."""


def cells(X: object, names: Sequence[str]) -> dict[str, Array]:
    """The columns of an ordinary table: a frame's by name, an array's by their order.

    Raises:
        BadTable: `bad-table`: a column is not there, or the array is of another width.
    """
    if hasattr(X, "columns") and hasattr(X, "__getitem__"):
        frame = cast("Any", X)
        known = frame.column_names if hasattr(frame, "column_names") else list(frame.columns)
        missing = [name for name in names if name not in known]
        if missing:
            raise BadTable("bad-table", f"The table has no column {missing[0]!r}; it was learned from.")
        return {name: np.asarray(frame[name]) for name in names}
    array = np.asarray(X)
    if array.ndim == 1 and len(names) == 1 and array.dtype != object:
        array = array.reshape(-1, 1)
    wanted = f"{', '.join(names[:5])}{', ...' * (len(names) > 5)}"
    if array.ndim != 2:
        raise BadTable("bad-table", f"Reshape your data to a table of {len(names)} columns ({wanted}).")
    if array.shape[1] != len(names):
        raise BadTable(
            "bad-table",
            f"X has {array.shape[1]} features, but prediction is expecting {len(names)} features as input ({wanted}).",
        )
    return {name: array[:, i] for i, name in enumerate(names)}


def is_missing(value: object) -> bool:
    """Whether a cell holds nothing: None, NaN, NaT, or pandas' NA, which has no answer to any comparison."""
    try:
        return value is None or bool(value != value)  # noqa: PLR0124 - what NaN is told by
    except TypeError:
        return True


@dataclass(frozen=True, slots=True)
class Feature:
    """One number of a row: a scaled column, or the indicator of one category."""

    column: str
    domain: Column
    label: object = None  # of an indicator

    @property
    def name(self) -> str:
        """What the number is called."""
        return self.column if self.label is None else f"{self.column}={self.label}"

    @property
    def middle(self) -> Fraction:
        """The middle of the declared bounds."""
        low, high = _ends(self.domain)
        return (low + high) / 2

    @property
    def half(self) -> Fraction:
        """Half the width of the declared bounds; one where they are a point."""
        low, high = _ends(self.domain)
        return (high - low) / 2 or Fraction(1)

    @property
    def row(self) -> RowFn:
        """The number as a row function, within [-1, 1]."""
        if self.label is not None:
            return case((Col(self.column) == lit(self.label), 1), otherwise=-1)
        if isinstance(self.domain, Bool):
            return case((Col(self.column), 1), otherwise=-1)
        return (Col(self.column) - float(self.middle)) / float(self.half)

    def of(self, values: npt.NDArray[np.object_] | Floats) -> Floats:
        """The same of an ordinary column; a cell outside its bounds is clamped, a missing one is the middle."""
        if self.label is not None:
            found = [not is_missing(value) and _plain(value) == self.label for value in values]
            return np.where(np.array(found, dtype=bool), 1.0, -1.0)
        numbers = numbers_of(values, self.domain, self.column)
        low, high = (float(end) for end in _ends(self.domain))
        numbers = np.where(np.isnan(numbers), float(self.middle), np.clip(numbers, low, high))
        if isinstance(self.domain, Bool):
            return np.where(numbers > 0.5, 1.0, -1.0)
        return (numbers - float(self.middle)) / float(self.half)


class Features:
    """The numbers of X: row functions for a question, the same transformation for prediction."""

    def __init__(self, columns: Sequence[tuple[str, Column]]) -> None:
        self.columns = tuple(columns)
        self.items = tuple(item for name, domain in self.columns for item in _features(name, domain))
        if len(self.items) > MAX_FEATURES:
            raise QuestionError(
                "too-large", f"The columns make {len(self.items):,} numbers, more than {MAX_FEATURES:,}."
            )

    @classmethod
    def of(cls, X: ColumnChoice) -> Features:
        """The features of private columns."""
        return cls(list(zip(X.names, X.domain, strict=True)))

    @property
    def names(self) -> tuple[str, ...]:
        """What the numbers are called."""
        return tuple(item.name for item in self.items)

    @property
    def rows(self) -> tuple[RowFn, ...]:
        """The numbers as row functions, each within [-1, 1]."""
        return tuple(item.row for item in self.items)

    def __len__(self) -> int:
        return len(self.items)

    def transform(self, X: object) -> Floats:
        """An ordinary array or frame as a matrix of numbers in [-1, 1]."""
        found = cells(X, [name for name, _ in self.columns])
        return np.stack([item.of(found[item.column]) for item in self.items], axis=1)

    def restore(self, matrix: Floats) -> Floats:
        """Numbers in [-1, 1] in the columns' own units; for features that are whole columns."""
        middles = np.array([float(item.middle) for item in self.items])
        halves = np.array([float(item.half) for item in self.items])
        return np.asarray(matrix * halves + middles)

    @property
    def numeric(self) -> bool:
        """Whether every feature is a whole column, so that results can be told in its own units."""
        return all(item.label is None for item in self.items)


def _features(name: str, domain: Column) -> list[Feature]:
    if isinstance(domain, Text):
        raise QuestionError("wrong-kind", f"{name} is free text; a learner takes numbers, truth values and categories.")
    if isinstance(domain, Category):
        return [Feature(name, domain, label) for label in domain.values]
    return [Feature(name, domain)]


def _ends(domain: Column) -> tuple[Fraction, Fraction]:
    """The bounds of a column as numbers; those of a list are 0 and 1, as of its indicators."""
    if isinstance(domain, (Text, Category)):
        return Fraction(-1), Fraction(1)
    return domain.low * domain.step, domain.high * domain.step


def numbers_of(values: npt.NDArray[np.object_] | Floats, domain: Column, name: str) -> Floats:
    """Ordinary cells as numbers; days and microseconds for dates and moments, NaN where one is missing.

    Raises:
        BadTable: `bad-table`: a cell is no number.
    """
    if values.dtype.kind in "fiub":
        return values.astype(np.float64)
    if values.dtype.kind == "M":
        unit = "datetime64[D]" if isinstance(domain, Date) else "datetime64[us]"
        return np.where(np.isnat(values), np.nan, values.astype(unit).astype(np.int64).astype(np.float64))
    read = {"Date": days, "Timestamp": microseconds}.get(type(domain).__name__, float)
    found = np.full(len(values), np.nan)
    for i, value in enumerate(values):
        if is_missing(value):
            continue
        try:
            found[i] = read(cast("str", value))
        except (TypeError, ValueError, SulqError):
            raise BadTable("bad-table", f"The column {name} holds a cell that is no number.") from None
    return found


def _plain(value: object) -> object:
    """A cell as Python says it: NumPy's numbers and texts compare like their own kind."""
    return value.item() if isinstance(value, np.generic) else value


def codes_of(attribute: Attribute, values: Array) -> Codes:
    """The cells of an ordinary column: -1 for what is missing or on no list; numbers are clamped."""
    if isinstance(attribute.domain, Category):
        place: dict[object, int] = {label: i for i, label in enumerate(attribute.domain.values)}
        found = [-1 if is_missing(value) else place.get(_plain(value), -1) for value in values]
        return np.array(found, dtype=np.int64)
    numbers = numbers_of(values, attribute.domain, attribute.name)
    domain = attribute.domain
    gone = np.isnan(numbers)
    assert not isinstance(domain, Text)  # noqa: S101 - refused above
    clipped = np.clip(np.where(gone, 0.0, numbers), float(domain.low * domain.step), float(domain.high * domain.step))
    edges = attribute.edges
    if edges is None:
        codes = np.rint(clipped).astype(np.int64) - domain.low
    else:
        codes = np.clip(np.searchsorted(np.array(edges), clipped, side="right") - 1, 0, len(edges) - 2)
    return np.where(gone, -1, codes).astype(np.int64)


class Attributes:
    """The keys of X, for a question and for prediction alike."""

    def __init__(self, items: tuple[Attribute, ...]) -> None:
        self.items = items

    @classmethod
    def of(cls, X: ColumnChoice, bins: int) -> Attributes:
        """The attributes of private columns."""
        return cls(tuple(Attribute(name, domain, bins) for name, domain in zip(X.names, X.domain, strict=True)))

    @property
    def learned(self) -> tuple[tuple[str, Column], ...]:
        """The columns with the domains they were learned in."""
        return tuple((item.name, item.domain) for item in self.items)

    def codes(self, X: object) -> Codes:
        """An ordinary table as codes, one column an attribute; -1 for what is missing or on no list."""
        found = cells(X, [item.name for item in self.items])
        return np.stack([codes_of(item, found[item.name]) for item in self.items], axis=1)

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, place: int) -> Attribute:
        return self.items[place]


class Labels:
    """The column to predict, as a key: its classes are the declared ones, whatever the data holds (SR6)."""

    def __init__(self, y: ColumnChoice, *, most: int = 100) -> None:
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
