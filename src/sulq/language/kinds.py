"""What a row function gives: its static kind, known from public facts, and its cells for a batch of rows."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Final, Protocol, TypeVar, cast

import numpy as np
import numpy.typing as npt

from sulq.kernel.private import Floats, Integers, Objects, Truths
from sulq.language.domain import MAX_CELL_LENGTH, Schema

__all__ = [
    "HUGE", "Cells", "Code", "Floats", "Frame", "Grid", "Integers", "Kind", "Objects", "Scalar", "Truth", "Truths",
    "Words", "entry", "native", "union",
]  # fmt: skip

T = TypeVar("T", bound=np.generic)
V = TypeVar("V")
MAX_DOUBLE: Final = Fraction(1.7976931348623157e308)
HUGE: Final = Fraction(2) ** 300  # past this an interval counts as unbounded: doubles must not overflow


def native(value: V) -> V:
    """A number or an array of NumPy as Python's own numbers and lists; all else as it is."""
    return cast("V", value.tolist()) if isinstance(value, (np.generic, np.ndarray)) else value


@dataclass(frozen=True, slots=True)
class Scalar:
    """A number within [lo, hi] (None: unbounded), on the lattice of `step` where one is known."""

    lo: Fraction | None
    hi: Fraction | None
    step: Fraction | None = None
    nullable: bool = True
    clock: str | None = None  # "date" or "timestamp": literals are written as dates

    @property
    def bounded(self) -> bool:
        """Whether both ends are known."""
        return self.lo is not None and self.hi is not None

    @property
    def limits(self) -> tuple[Fraction, Fraction]:
        """The interval; what has no bounds is still a finite double."""
        return (-MAX_DOUBLE if self.lo is None else self.lo), (MAX_DOUBLE if self.hi is None else self.hi)


@dataclass(frozen=True, slots=True)
class Truth:
    """True, false or, where nullable, unknown."""

    nullable: bool = True


@dataclass(frozen=True, slots=True)
class Code:
    """One of `size` public labels, or missing."""

    labels: tuple[object, ...]
    nullable: bool = True

    @property
    def size(self) -> int:
        """Number of labels."""
        return len(self.labels)

    @property
    def named(self) -> tuple[int, ...]:
        """The codes whose label is one; a row at the label None is one whose key is missing, and stands with those."""
        return tuple(i for i, label in enumerate(self.labels) if label is not None)


@dataclass(frozen=True, slots=True)
class Words:
    """Free text of at most `longest` characters, or missing."""

    nullable: bool = True
    longest: int = MAX_CELL_LENGTH


@dataclass(frozen=True, slots=True)
class Grid:
    """A vector of integers on one grid: coordinate i within [low[i], high[i]] units of `step`.

    `ball` and `l1` are the L2 and the L1 norm in units that no vector passes, where one is enforced.
    """

    step: Fraction
    low: tuple[int, ...]
    high: tuple[int, ...]
    ball: int | None = None
    nullable: bool = True
    l1: int | None = None

    @property
    def width(self) -> int:
        """Number of coordinates."""
        return len(self.low)


Kind = Scalar | Truth | Code | Words | Grid


@dataclass(frozen=True, slots=True)
class Cells:
    """A row function's values on a batch; `missing` is None where none can be.

    Scalar: float64. Truth: bool. Code: int64. Words: objects. Grid: int64 rows.
    A missing cell's value is meaningless. `of` is the row function they were kept
    for: it stays alive as long as they do, so nothing else can take its identity.
    """

    values: npt.NDArray[np.generic]
    missing: Truths | None
    of: object = None


class Frame(Protocol):
    """A batch of kept rows as NumPy columns; what an engine shows a row function."""

    schema: Schema
    size: int
    seen: dict[int, Cells]  # cells already worked out on this batch, by identity of the row function

    def codes(self, name: str) -> Cells:
        """A column's cells: int64 grid units, or objects for Text."""
        ...

    def person(self) -> Integers:
        """A 60-bit public hash of each row's person (of its position where rows are people)."""
        ...

    def position(self) -> Integers:
        """Each row's place in the source, from 0."""
        ...


def entry(table: npt.NDArray[T], index: Integers) -> npt.NDArray[T]:
    """The entries of a public table at each row's number; a number past its ends, of a missing cell, takes the last."""
    traced = getattr(index, "entry_of", None)  # of a program that is being written: compile/statements/programs
    return table.take(index, mode="clip") if traced is None else cast("npt.NDArray[T]", traced(table))


def union(*masks: Truths | None) -> Truths | None:
    """Where any of these is missing."""
    found = [mask for mask in masks if mask is not None]
    if not found:
        return None
    total = found[0]
    for mask in found[1:]:
        total = total | mask
    return total
