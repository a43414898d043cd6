"""Columns of a stored table in memory, and vectors made of them: of each row at the row's own number.

Whoever keeps these is not believed: each says which table's column, or which vector of a program, it is, and a fold
takes it for nothing else.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields
from typing import Final

import numpy as np
import numpy.typing as npt

from sulq.kernel.facts import Refused
from sulq.kernel.programs import Box, Column, Missing, Program, Step, Unit

Truths = npt.NDArray[np.bool_]
Stored = tuple[np.ndarray, Truths | None]
Streamed = Iterator[tuple[Sequence[Stored], int]]
_NAME: Final = re.compile(r"[a-z][a-z0-9_]*\Z")


def text(table: tuple[str, ...], names: Sequence[str], *, numbered: bool = False) -> str:
    """The statement of some columns of a stored table; numbered: each row's own number first."""
    if not names or not all(_NAME.match(name) for name in (*table, *names)):
        raise Refused("a name of another form")
    return f"SELECT {'rowid, ' if numbered else ''}{', '.join(names)} FROM {'.'.join(table)}"  # noqa: S608 - looked at


class StoredColumn:
    """One column: its values and where they are missing, filled from the rows' own numbers, then only read."""

    def __init__(self, table: tuple[str, ...], name: str, count: int) -> None:
        self.of = (table, name)
        self.count = count
        self._values: np.ndarray = np.zeros(0, dtype=np.int64)
        self._missing: Truths | None = None

    @property
    def bytes(self) -> int:
        """How much memory it takes."""
        return self._values.nbytes + (0 if self._missing is None else self._missing.nbytes)

    def put(self, rows: npt.NDArray[np.int64] | slice, values: np.ndarray, missing: Truths | None) -> None:
        """Take in the cells of some rows."""
        if len(self._values) < self.count:
            self._values = np.zeros(self.count, dtype=values.dtype)
        self._values[rows] = values
        if missing is not None:
            if self._missing is None:
                self._missing = np.zeros(self.count, dtype=np.bool_)
            self._missing[rows] = missing

    def part(self, start: int, stop: int) -> Stored:
        """Some consecutive rows."""
        return self._values[start:stop], None if self._missing is None else self._missing[start:stop]


def read(
    ask: Callable[[str], Streamed], table: tuple[str, ...], names: Sequence[str], count: int
) -> dict[str, StoredColumn]:
    """Columns of a table, each cell at its row's number: columns read at different times have the same order of rows.

    The numbers of the rows of a stored table run from 0 without a gap, as no row of it was ever taken away.

    Privacy: cells that met another row's would make one person's rows move two vectors.
    """
    columns = [StoredColumn(table, name, count) for name in names]
    found = 0
    for ((numbers, _), *cells), size in ask(text(table, names, numbered=True)):
        rows: npt.NDArray[np.int64] | slice = slice(found, found + size)
        if not np.array_equal(numbers, np.arange(found, found + size)):
            rows = numbers.astype(np.int64)
        for column, (values, missing) in zip(columns, cells, strict=True):
            column.put(rows, values, missing)
        found += size
    if found != count:
        raise LookupError("the stored rows changed")
    return dict(zip(names, columns, strict=True))


class Made:
    """A vector of all rows as narrow whole numbers, one row a coordinate, and where it is missing.

    With `by_rows` vectors lie side by side in memory, each with a one at its end, so that they are read without a gap.
    """

    def __init__(self, of: tuple[tuple[str, ...], str], box: Box, count: int, *, by_rows: bool) -> None:
        self.of = of
        self.count = count
        self.by_rows = by_rows
        order = "F" if by_rows else "C"
        self._units: np.ndarray = np.ones((len(box.low) + by_rows, count), narrow(box), order=order)  # type: ignore[call-overload]
        self._width = len(box.low)
        self._missing: Truths = np.zeros(count, dtype=np.bool_)
        self._some = False
        self._written: list[int] = []  # how many rows each batch wrote; threads append, nobody reads before they end
        self.ready = False

    @property
    def bytes(self) -> int:
        """How much memory it takes."""
        return self._units.nbytes + self._missing.nbytes

    def write(self, start: int, units: npt.NDArray[np.float64], missing: Truths | np.bool_) -> None:
        """Take in the vectors of some consecutive rows."""
        stop = start + units.shape[1]
        self._units[: self._width, start:stop] = units
        if np.ndim(missing) or missing:
            self._missing[start:stop] = missing
            self._some = True
        self._written.append(stop - start)

    def read(self, start: int, out: npt.NDArray[np.float64]) -> Truths | np.bool_:
        """Give the vectors of some consecutive rows, above a row of ones; says where they are missing."""
        stop = start + out.shape[1]
        out[: len(self._units)] = self._units[:, start:stop]
        return self._missing[start:stop] if self._some else np.False_

    def end(self) -> bool:
        """Whether every row was written, once the fold that wrote is over: only then may others read."""
        self.ready = sum(self._written) == self.count
        return self.ready


def narrow(box: Box) -> np.dtype[np.signedinteger]:
    """The narrowest integers that hold every coordinate, zero for rows without a vector, and one."""
    low, high = min(*box.low, 0), max(*box.high, 1)
    for kind in (np.int8, np.int16, np.int32):
        if np.iinfo(kind).min <= low and high <= np.iinfo(kind).max:
            return np.dtype(kind)
    return np.dtype(np.int64)


def size(box: Box, count: int, *, by_rows: bool) -> int:
    """How many bytes the vectors of all rows take."""
    return count * ((len(box.low) + by_rows) * narrow(box).itemsize + 1)


def names(program: Program) -> list[str]:
    """What each step is, by the names of columns and by what it is worked out of: equal names, equal values."""
    found: list[str] = []

    def said(value: object, *, steps: bool) -> str:
        if isinstance(value, Unit):
            return f"{found[value.of]} {value.low} {value.high} {value.scale!r}"
        if isinstance(value, tuple):
            return f"({', '.join(said(each, steps=steps) for each in value)})"
        return found[value] if steps and type(value) is int else repr(value)

    for step in program.steps:
        if isinstance(step, (Column, Missing)):
            parts = [program.columns[step.place]]
        else:
            parts = [said(getattr(step, each.name), steps=each.name in STEPS) for each in fields(step)]
        found.append(hashlib.sha256(f"{type(step).__name__} {parts!r}".encode()).hexdigest())
    return found


STEPS: Final = ("of", "items", "missing", "stack", "units")  # fields that name other steps


def needed(program: Program, ready: set[int]) -> set[int]:
    """The places of the columns that are looked at where some vectors are known already."""
    front = [place for each in program.sums for place in (each.of, each.factor, each.where) if place is not None]
    front += [key.of for each in program.sums for key in each.keys]
    seen: set[int] = set()
    while front:
        place = front.pop()
        if place >= 0 and place not in seen:
            seen.add(place)
            front += [] if place in ready else operands(program.steps[place])
    return {step.place for step in (program.steps[i] for i in seen) if isinstance(step, (Column, Missing))}


def operands(step: Step) -> list[int]:
    """The steps that a step is worked out of."""
    found: list[int] = []
    for each in fields(step):
        value = getattr(step, each.name)
        if each.name in STEPS and value is not None:
            found += [
                item.of if isinstance(item, Unit) else item
                for item in (value if isinstance(value, tuple) else (value,))
            ]
    return found
