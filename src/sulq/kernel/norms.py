"""How far one person moves sums: what a certificate says in the end."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True, slots=True)
class Norms:
    """Norms of a vector, in whole units; the L2 norm squared."""

    l1: int
    l2_squared: int
    coordinate: int

    def times(self, rows: int) -> Norms:
        """The norms of so many equal vectors together."""
        return Norms(self.l1 * rows, self.l2_squared * rows**2, self.coordinate * rows)


@dataclass(frozen=True, slots=True)
class Moves:
    """The largest norms of what one row adds to a block (`single`), and changes it by (`pair`), times a person's rows.

    A row that comes or goes alone is no pair: whoever prices a person with fewer rows takes `single` too.
    `low`, `high`: what one row adds to each coordinate. `vectors`: where it adds a row of a public table, the table.
    """

    single: Norms
    pair: Norms
    low: tuple[int, ...] = ()
    high: tuple[int, ...] = ()
    vectors: npt.NDArray[np.int64] | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Certified:
    """One block of sums: what a person moves it by, over how many rows, and whether a row is always in some cell.

    `source`: what tells the rows and cells that it is summed over; blocks of one source are moved by the same rows.
    """

    moves: Moves
    rows: int
    present: bool
    source: object = field(default=None, compare=False)
