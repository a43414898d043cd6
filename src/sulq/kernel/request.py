"""Requests: statements and programs that will run, how results become sums of cells, and what is released of them.

A request is written before anything runs, by code that is not believed, from public facts alone. It holds whole
numbers, texts and tuples of them, and no sensitivity (SR5): the kernel reads all of it before the debit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Final, Protocol

import numpy as np

if TYPE_CHECKING:  # executors of Spark read statements, and load nothing that draws (T67)
    from sulq.kernel.laws import Law
    from sulq.kernel.moves import Certified
    from sulq.kernel.private import Integers, Private, Stored
    from sulq.kernel.programs import Fold
    from sulq.kernel.scores import Score
    from sulq.kernel.whole.asked import Asked

At = tuple[int, int]  # a tally, and the place of a block in it


@dataclass(frozen=True, slots=True)
class Scan:
    """A statement, and the texts bound in it as text0, text1, ..."""

    sql: str
    texts: tuple[str, ...] = ()

    @property
    def bound(self) -> dict[str, object]:
        """The texts by their names."""
        return {f"text{i}": text for i, text in enumerate(self.texts)}


@dataclass(frozen=True, slots=True)
class Key:
    """A key of a partition: which column of the result holds it, and the code that its values become.

    A value less `shift` is the code; with `places` the code is looked up there by it, -1 being none. Codes from 0 and
    below `size` are cells. `missing`: the code of rows that lack the key; None: they are in no cell.
    """

    column: int
    size: int
    shift: int = 0
    places: tuple[int, ...] | None = None
    missing: int | None = None


@dataclass(frozen=True, slots=True)
class Combined:
    """A block of a tally: for each coordinate the sums it is of, by their places, with their weights."""

    at: At
    weights: tuple[tuple[tuple[int, int], ...], ...]


@dataclass(frozen=True, slots=True)
class Looked:
    """A block of a tally: the counts of a public table's rows, told by some of the part's hidden keys, times the table.

    `units`: the table's whole numbers, row after row of `width`, each in 8 bytes, the least first.
    """

    at: At
    keys: tuple[int, ...]  # places among the part's keys, the last fastest
    width: int
    units: bytes

    @property
    def table(self) -> Integers:
        """The public table."""
        return np.frombuffer(self.units, dtype="<i8").reshape(-1, self.width).astype(np.int64)


@dataclass(frozen=True, slots=True)
class Part:
    """One partition of a statement: its keys, those past the first `own` of them hidden, and what is summed in it.

    `mark`: what the statement says of its grouping set; None where there is only one.
    """

    keys: tuple[Key, ...]
    own: int
    mark: int | None
    combined: tuple[Combined, ...] = ()
    looked: tuple[Looked, ...] = ()

    @property
    def cells(self) -> int:
        """How many cells the keys tell apart, hidden ones among them."""
        return math.prod(key.size for key in self.keys)


@dataclass(frozen=True, slots=True)
class Statement:
    """A SELECT of `keys` keys, the mark of their grouping set where there are several, and sums.

    `people`: where groups are found in the data (SR14), which sum is their number of people. The one part has no keys
    then: those of the statement are shown.
    """

    scan: Scan
    keys: int
    parts: tuple[Part, ...]
    people: int | None = None

    @property
    def first(self) -> int:
        """The column of the first sum."""
        return self.keys + (self.parts[0].mark is not None)


@dataclass(frozen=True, slots=True)
class Proposal:
    """All that is asked of one relation's rows for some tallies: of each its number of cells and its blocks' widths.

    Groups that are found in the data are one tally, of no cells and one statement; their people are its first block.
    """

    tallies: tuple[tuple[int, tuple[int, ...]], ...]
    statements: tuple[Statement, ...]
    fold: Fold | None = None


class Asking(Protocol):
    """Where certified text runs: DuckDB over the kept rows, or over parts of whole persons."""

    def columns(self, statements: Sequence[Statement]) -> Sequence[Sequence[Stored]]:
        """The result of each statement as columns of whole numbers, and where they are missing."""

    def groups(self, asked: Statement) -> Sequence[Stored]:
        """The columns of a statement whose groups are found in the data."""

    def fold(self, asked: Fold) -> Sequence[Integers]:
        """The sums of a program over its rows (kernel/matrix.py)."""


Place = Callable[[], AbstractContextManager[Asking]]


@dataclass(frozen=True, slots=True, eq=False)
class Proposed:
    """One tally of a proposal, and where that runs: once, for all releases of the same proposal and place."""

    proposal: Proposal
    place: Place
    tally: int = 0
    whole: ClassVar[None] = None

    @property
    def cells(self) -> int:
        """How many cells there are; 0 where groups are found in the data."""
        return self.proposal.tallies[self.tally][0]

    @property
    def widths(self) -> tuple[int, ...]:
        """How many sums each block has in a cell."""
        return self.proposal.tallies[self.tally][1]

    @property
    def groups(self) -> bool:
        """Whether groups are found in the data."""
        return any(each.people is not None for each in self.proposal.statements)


@dataclass(frozen=True, slots=True, eq=False)
class Outside:
    """What other code works out of rows: nothing of it is certified (docs/theory/kernel.md, "What is outside").

    `read`: the exact sums of some tallies, of which this is the one at `tally`; groups where `groups` is set. `bounds`:
    what the rules of plans say of each block. `whole`: a statistic of the whole table, which the annex works out of the
    rows that are read, with these functions of the owner's; its bound says how many of them a person alters.
    """

    read: Callable[[], Sequence[Private[Any]]]
    tally: int
    cells: int
    widths: tuple[int, ...]
    bounds: tuple[Certified, ...] = ()
    groups: bool = False
    whole: Asked | None = None
    functions: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class Release:
    """What is released of some blocks of sums: each with noise, or a choice or a threshold by all of them.

    `laws`: of each block; of a choice or a threshold one. `refine`: by how many bits each block's grid is finer than
    its sums. `answered`: how many choices there are. `thresholds`: one for all sums, or one for each.
    """

    source: Proposed | Outside
    laws: tuple[Law, ...]
    refine: tuple[int, ...]
    answered: int = 1
    score: Score | None = None
    thresholds: tuple[int, ...] | None = None

    @property
    def numbers(self) -> int:
        """How many numbers its sums are."""
        return self.source.cells * sum(self.source.widths)

    @property
    def told(self) -> bool:
        """Whether one law decides what is told of all blocks."""
        return self.score is not None or self.thresholds is not None or self.source.whole is not None


WRITTEN: Final = (Scan, Key, Combined, Looked, Part, Statement, Proposal, Proposed)
"""What proposers write of whole numbers and texts, and the kernel reads down to the last of them."""
