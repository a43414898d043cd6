"""A vector's coordinates of all rows of a stored table, made by one fold and read by those that come after it."""

from __future__ import annotations

import numpy as np

from sulq.terms.kinds import Floats, Grid, Truths


class Matrix:
    """Whole numbers as narrow as their bounds allow, one row a coordinate, and where the vector is missing.

    With `by_rows` it is vectors that lie side by side in memory, each with a one at its
    end, so that they are read without a gap.
    """

    def __init__(self, kind: Grid, count: int, *, by_rows: bool = False) -> None:
        self._units: np.ndarray = np.ones((kind.width + by_rows, count), _narrow(kind), order="F" if by_rows else "C")
        self._width = kind.width
        self._missing: Truths | None = np.zeros(count, dtype=np.bool_) if kind.nullable else None
        self._written: list[int] = []  # how many rows each batch wrote; threads append, nobody reads before they end
        self._some = False
        self.ready = False

    @property
    def bytes(self) -> int:
        """How much memory it takes."""
        return self._units.nbytes + (0 if self._missing is None else self._missing.nbytes)

    def write(self, start: int, units: Floats, missing: Truths | None) -> None:
        """Take in the coordinates of some consecutive rows."""
        stop = start + units.shape[1]
        self._units[: self._width, start:stop] = units
        if self._missing is not None and missing is not None:
            self._missing[start:stop] = missing
            self._some = True
        self._written.append(stop - start)

    def read(self, start: int, out: Floats) -> Truths | None:
        """Give the coordinates of some consecutive rows, above a row of ones; says where the vector is missing."""
        stop = start + out.shape[1]
        out[: len(self._units)] = self._units[:, start:stop]
        return self._missing[start:stop] if self._some and self._missing is not None else None

    def end(self) -> bool:
        """Whether every row was written, once the fold that wrote is over: only then may others read."""
        self.ready = sum(self._written) == self._units.shape[1]
        return self.ready


def kept_as(text: str, *, by_rows: bool) -> str:
    """The name under which the coordinates of the vector of this text are kept."""
    return f"{text} by rows" if by_rows else text


def size(kind: Grid, count: int, *, by_rows: bool = False) -> int:
    """How many bytes a vector's coordinates take."""
    return count * ((kind.width + by_rows) * _narrow(kind).itemsize + kind.nullable)


def _narrow(kind: Grid) -> np.dtype[np.signedinteger]:
    """The narrowest integers that hold every coordinate, zero for rows without a vector, and one."""
    low, high = min(*kind.low, 0), max(*kind.high, 1)
    for narrow in (np.int8, np.int16, np.int32):
        if np.iinfo(narrow).min <= low and high <= np.iinfo(narrow).max:
            return np.dtype(narrow)
    return np.dtype(np.int64)
