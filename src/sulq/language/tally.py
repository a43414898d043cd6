"""What an engine is asked, and what it must give: exact integer sums of kept rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, Protocol, runtime_checkable

from sulq.kernel.private import Groups, Private
from sulq.language.kinds import Integers
from sulq.language.relation import Relation
from sulq.language.rowfn import RowFn
from sulq.language.rowfn.vectors import Lookup

__all__ = ["BLANK", "Block", "Engine", "Groups", "Key", "Scanning", "Tally", "sums_of"]

BLANK: Final = -(2**63)  # a missing cell among listed rows: no whole unit of any column


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """One value of a question as integers: `width` coordinates, each within [low, high] units of `step`.

    A number (width 1, `vector` false) is put on the grid and clamped directly
    under the sum (T11); a vector row function gives grid units already.
    """

    fn: RowFn
    step: Fraction
    low: tuple[int, ...]
    high: tuple[int, ...]
    vector: bool

    @property
    def width(self) -> int:
        """Number of coordinates."""
        return len(self.low)

    @property
    def vectors(self) -> Integers | None:
        """The rows of a public table, one of which each row adds; None where it adds something else."""
        return self.fn.units()[0] if self.vector and isinstance(self.fn, Lookup) else None


@dataclass(frozen=True, slots=True, eq=False)
class Key:
    """One key of a partition: a row function of kind Code with its labels."""

    fn: RowFn
    labels: tuple[object, ...]


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Tally:
    """Exact sums to work out: blocks side by side, for each cell of a partition.

    Cells run over all combinations of labels, the last key fastest; without
    keys there is one cell. Missing values add nothing; rows with a missing key,
    or whose condition is not true, add nothing.
    """

    over: Relation
    blocks: tuple[Block, ...]
    where: RowFn | None
    by: tuple[Key, ...]
    cells: int

    @property
    def width(self) -> int:
        """Number of sums in each cell."""
        return sum(block.width for block in self.blocks)


class Engine(Protocol):
    """Rows to exact integers; the only thing that reads them."""

    def ready(self) -> None:
        """Make the kept rows available (the prepared copy); releases nothing."""
        ...

    def sums(self, tally: Tally) -> Private[Integers]:
        """Exact sums, an int64 array of shape (cells, width), saturated at +-2^62."""
        ...

    def groups(self, tally: Tally) -> Private[Groups]:
        """Exact sums of the groups that occur; of the tally's keys only their row functions are read."""
        ...

    def listed(self, tally: Tally, *, blanks: bool = False) -> Private[Integers]:
        """The blocks of each row that counts, as whole units: int64 of shape (rows, blocks), in no certain order.

        For statistics that no sums give. Of a `Bucket` the person's hash is listed, which tells the part of the people.
        A row counts if the condition is true and no block is missing; with
        `blanks` rows that lack something count too, and what they lack is `BLANK`; where places are public, which a
        tally then reads, all rows of the source count, blanked ones in their places.
        """
        ...

    def heavy(self, table: str) -> Private[Integers]:
        """How many persons have more rows in a table's source than are kept of them, and how many others have any.

        int64 of shape (2,). A person's rows in the source are counted before any is left out.
        """
        ...

    def close(self) -> None:
        """Let go of files and memory."""
        ...


@runtime_checkable
class Scanning(Protocol):
    """What an engine may do besides: several tallies in one pass over the rows they share."""

    def sums_of(self, tallies: Sequence[Tally]) -> tuple[Private[Integers], ...]:
        """Exact sums of each tally, as `sums` gives them."""
        ...


def sums_of(engine: Engine, tallies: Sequence[Tally]) -> tuple[Private[Integers], ...]:
    """Exact sums of several tallies: shared scans where the engine has them."""
    if isinstance(engine, Scanning):
        return engine.sums_of(tallies)
    return tuple(engine.sums(tally) for tally in tallies)
