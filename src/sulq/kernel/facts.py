"""Public facts of a dataset: all that a certificate follows from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

Neighbors = Literal["add_remove", "replace_one", "zero_out"]

MAX_STORED_ROWS: Final = 2**40  # of a table; checked when its rows are kept
OWNER: Final = "o"  # the column that says whose a row is
OWNER_TYPE: Final = "BIGINT"  # in all tables: a cast to compare two might merge persons
HASH: Final = "h"  # the column of a person's public hash, one for all rows of a person
PLACE: Final = "p"  # the column of a row's public place


class Refused(Exception):
    """The kernel cannot prove a bound for this statement. The text is made of the statement and public facts alone."""


def require(holds: object, why: str) -> None:
    """Refuse, and say why, unless something holds."""
    if not holds:
        raise Refused(why)


@dataclass(frozen=True, slots=True)
class Column:
    """A stored column: its DuckDB type, the interval of its whole numbers, and whether cells may be missing."""

    type: str
    low: int | None = None
    high: int | None = None
    missing: bool = True


@dataclass(frozen=True, slots=True)
class Table:
    """A kept table, by the name statements use.

    `rows`: how many rows one person has at most; 0 where rows are public. `owned`: whether the column `o` names each
    row's person, after all others. `size`: how many rows there are at most. `unique`: a column without two equal
    values among a person's rows, or among public ones. What a table says here is checked when it is opened (keep.py).
    """

    name: tuple[str, ...]
    columns: tuple[tuple[str, Column], ...]
    rows: int
    owned: bool
    size: int = MAX_STORED_ROWS
    unique: str | None = None


@dataclass(frozen=True, slots=True)
class Facts:
    """The kept tables and the relation between neighbours.

    `row_is_person`: no column names the person, so under replace_one a neighbour has as many rows.
    """

    tables: tuple[Table, ...]
    neighbors: Neighbors
    row_is_person: bool
