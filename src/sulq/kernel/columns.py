"""Columns of a stored table in memory, and vectors made of them: of each row at the row's own number.

Whoever keeps these is not believed: each says of which table's rows it is, and a fold takes it for no other's.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt

from sulq.kernel.facts import Refused
from sulq.kernel.programs import Box

Truths = npt.NDArray[np.bool_]
Stored = tuple[np.ndarray, Truths | None]
Streamed = Iterator[tuple[Sequence[Stored], int]]
_NAME: Final = re.compile(r"[a-z][a-z0-9_]*\Z")


def text(table: tuple[str, ...], names: Sequence[str], *, numbered: bool = False) -> str:
    """The statement of some columns of a stored table; numbered: each row's own number first."""
    if not names or not all(_NAME.match(name) for name in (*table, *names)):
        raise Refused("a name of another form")
    return f"SELECT {'rowid, ' if numbered else ''}{', '.join(names)} FROM {'.'.join(table)}"  # noqa: S608 - looked at


@dataclass(eq=False)
class Kept:
    """Numbers of all rows of a table, each at its row's own number: of a column, or of a vector within its bounds.

    A vector's are narrow whole numbers, side by side in memory with a one after each row's; others may read them once
    every row is `written`: so many by each batch, threads append, and nobody reads before they end.
    """

    table: tuple[str, ...]
    values: np.ndarray
    missing: Truths | None = None
    box: Box | None = None
    written: list[int] = field(default_factory=list)

    @property
    def count(self) -> int:
        """How many rows there are."""
        return int(self.values.shape[-1])

    @property
    def ready(self) -> bool:
        """Whether every row was written."""
        return sum(self.written) == self.count

    @property
    def bytes(self) -> int:
        """How much memory it takes."""
        return self.values.nbytes + (0 if self.missing is None else self.missing.nbytes)

    def part(self, start: int, stop: int) -> Stored:
        """Some consecutive rows."""
        return self.values[..., start:stop], None if self.missing is None else self.missing[start:stop]


def vector(table: tuple[str, ...], box: Box, count: int) -> Kept:
    """Room for the vectors of so many rows, and a one after each."""
    return Kept(table, np.ones((len(box.low) + 1, count), narrow(box), order="F"), box=box)


def narrow(box: Box) -> np.dtype[np.signedinteger]:
    """The narrowest integers that hold every coordinate, zero for rows without a vector, and one."""
    return np.min_scalar_type(min(*box.low, *(-1 - high for high in box.high), -2))


def read(ask: Callable[[str], Streamed], table: tuple[str, ...], names: Sequence[str], count: int) -> dict[str, Kept]:
    """Columns of a table, each cell at its row's number: columns read at different times have the same order of rows.

    The numbers of the rows of a stored table run from 0 without a gap, as no row of it was ever taken away.

    Privacy: cells that met another row's would make one person's rows move two vectors.
    """
    found: dict[str, Kept] = {name: Kept(table, np.zeros(count, dtype=np.int8)) for name in names}
    done = 0
    for ((numbers, _), *cells), size in ask(text(table, names, numbered=True)):
        ordered = np.array_equal(numbers, np.arange(done, done + size))
        rows = slice(done, done + size) if ordered else numbers
        for column, (values, missing) in zip(found.values(), cells, strict=True):
            column.values = column.values if done else np.zeros(count, dtype=values.dtype)
            column.values[rows] = values
            if missing is not None:
                column.missing = np.zeros(count, dtype=np.bool_) if column.missing is None else column.missing
                column.missing[rows] = missing
        done += size
    if done != count:
        raise LookupError("the stored rows changed")
    return found
