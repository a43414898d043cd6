"""Proposals: the statements that will run, and how their result rows become the sums of cells.

A proposal is written before anything runs, from public facts alone, and holds whole
numbers, texts and tuples of them: whoever is to run it can read all of it first.
Assembling is linear. Each result row goes to at most one cell of its grouping set,
times public weights, whatever keys and weights say (SR13); sums past 2^62 are
saturated, a 1-Lipschitz step (T5).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol, cast

import numpy as np

from sulq.curator.engines.batch import Stored
from sulq.curator.engines.kernels import DENSE, weighed
from sulq.curator.engines.totals import saturate
from sulq.kernel.programs import Fold
from sulq.terms.kinds import Integers, Objects, Truths

FEW: Final = 512  # so many cells are fetched as plain numbers, which costs less to set up than Arrow
WORD: Final = 2**63  # what 64 bits hold is less
LIMB: Final = 20  # bits: of so many and of a table's 22, products of 2^20 rows of the table fit 64


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
    """A block of a tally: for each coordinate the aggregates it is of, by their places, with their weights."""

    tally: int
    block: int
    weights: tuple[tuple[tuple[int, int], ...], ...]


@dataclass(frozen=True, slots=True)
class Looked:
    """A block of a tally: the counts of a public table's rows, told by some of the part's hidden keys, times the table.

    `units`: the table's whole numbers, row after row of `width`, each in 8 bytes, the least first.
    """

    tally: int
    block: int
    keys: tuple[int, ...]  # places among the part's keys, the last fastest
    width: int
    units: bytes


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
    """A SELECT of `keys` keys, the mark of their grouping set where there are several, and aggregates.

    `bounds`: the largest total of each aggregate, over as many rows as there can be.
    """

    scan: Scan
    keys: int
    bounds: tuple[int, ...]
    parts: tuple[Part, ...]

    @property
    def wide(self) -> bool:
        """Whether 64 bits might not hold an aggregate."""
        return any(bound >= WORD for bound in self.bounds)

    @property
    def many(self) -> bool:
        """Whether so many rows can come back that they are fetched as columns."""
        return sum(part.cells for part in self.parts) > FEW


@dataclass(frozen=True, slots=True)
class Fetch:
    """What SQL does not sum: the columns to fold over, and the blocks that are folded, each of a tally.

    `filtered`: whether the statement leaves out the rows that the one tally's condition does not hold for.
    """

    scan: Scan
    columns: tuple[str, ...]
    person: bool
    place: bool
    filtered: bool
    blocks: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Proposal:
    """All that is asked of one relation's rows for some tallies: of each its number of cells and its blocks' widths."""

    tallies: tuple[tuple[int, tuple[int, ...]], ...]
    statements: tuple[Statement, ...]
    fetch: Fetch | None = None
    fold: Fold | None = None  # the same as a program that the kernel reads and runs


@dataclass(frozen=True, slots=True)
class Open:
    """A SELECT of groups that are not listed in advance (SR14): keys, aggregates, and the one that counts people."""

    scan: Scan
    keys: int
    bounds: tuple[int, ...]
    persons: int
    blocks: tuple[Combined, ...]


class Asking(Protocol):
    """What runs a statement."""

    def few(self, scan: Scan) -> list[tuple[object, ...]]:
        """A statement's few rows."""
        ...

    def many(self, scan: Scan, *, wide: bool) -> list[Stored]:
        """A statement's many rows, all of whole numbers, as columns; `wide`: such as 64 bits might not hold."""
        ...


Sums = dict[tuple[int, int], Integers]
"""The sums of blocks, each by its tally and its place in it: a row for each cell, a column for each coordinate."""


def run(proposal: Proposal, asking: Asking, fold: Callable[[Fetch | Fold], Sums]) -> list[Integers]:
    """The exact sums of each tally, saturated."""
    found: Sums = {}
    for statement in proposal.statements:
        found |= assemble(statement, read(statement, asking))
    left = proposal.fetch or proposal.fold
    if left is not None:
        found |= fold(left)
    return joined(proposal, found)


def read(statement: Statement, asking: Asking) -> list[Stored]:
    """The result of a statement as columns of whole numbers: of 64 bits, or Python's own where these might not do."""
    if statement.many:
        return asking.many(statement.scan, wide=statement.wide)
    marked = statement.parts[0].mark is not None
    width = statement.keys + marked + len(statement.bounds)
    return columns_of(asking.few(statement.scan), width, object if statement.wide else np.int64)


def joined(proposal: Proposal, found: Mapping[tuple[int, int], Integers]) -> list[Integers]:
    """The blocks of each tally side by side."""
    return [
        np.concatenate([found[i, place] for place in range(len(widths))], axis=1)
        for i, (_, widths) in enumerate(proposal.tallies)
    ]


def assemble(statement: Statement, columns: Sequence[Stored]) -> Sums:
    """The sums of a statement's blocks from the columns of its result."""
    found: Sums = {}
    for part in statement.parts:
        own = columns
        if part.mark is not None:
            here = columns[statement.keys][0] == part.mark
            own = [(values[here], None if missing is None else missing[here]) for values, missing in columns]
        codes = [_codes(own[key.column], key) for key in part.keys]
        totals = cast("list[Integers | Objects]", [values for values, _ in own[-len(statement.bounds) :]])
        found |= _combined(part, codes, totals, statement.bounds)
        found |= _looked(part, codes, totals[0], statement.bounds[0])
    return found


def opened(
    groups: Open, rows: list[tuple[object, ...]], widths: Sequence[int]
) -> tuple[list[Stored], Integers, Integers]:
    """The keys of groups as they came back, their sums, and how many people each has."""
    if not groups.keys and rows[0][groups.persons] == 0:  # without keys SQL gives one row even of nothing
        rows = []
    totals = [values for values, _ in columns_of([row[groups.keys :] for row in rows], len(groups.bounds), object)]
    sums = [np.zeros((len(rows), width), dtype=np.int64) for width in (0, *widths)]
    for block in groups.blocks:
        for i, weights in enumerate(block.weights):
            sums[block.block + 1][:, i] = saturate(combined(totals, groups.bounds, weights))
    keys = [_cells([row[i] for row in rows]) for i in range(groups.keys)]
    return keys, np.concatenate(sums, axis=1), totals[groups.persons].astype(np.int64)


def columns_of(rows: list[tuple[object, ...]], width: int, kind: type = np.int64) -> list[Stored]:
    """Fetched rows as columns of whole numbers."""
    columns: list[Stored] = []
    for i in range(width):
        missing = np.array([row[i] is None for row in rows], dtype=np.bool_)
        values: np.ndarray = np.array([0 if row[i] is None else int(cast("int", row[i])) for row in rows], dtype=kind)
        columns.append((values, missing))
    return columns


def _cells(values: list[object]) -> Stored:
    missing = np.array([value is None for value in values], dtype=np.bool_)
    cells = np.empty(len(values), dtype=object)
    cells[:] = values
    return cells, missing


def _codes(column: Stored, key: Key) -> Integers:
    """A key's codes, -1 where it is missing or unlabelled."""
    values, missing = column
    if values.dtype == object and missing is not None:
        values = np.where(missing, 0, values)  # texts of digits, which None is not
    code = values.astype(np.int64) - key.shift
    last = key.size if key.missing is None else key.missing
    there = (code >= 0) & (code < (last if key.places is None else len(key.places)))
    there &= True if missing is None else ~missing
    if key.places is not None:
        code = np.array(key.places, dtype=np.int64)[np.where(there, code, 0)]
    code = np.where(there, code, -1)
    return code if key.missing is None or missing is None else np.where(missing, key.missing, code)


def indexed(codes: Sequence[Integers], sizes: Sequence[int], length: int) -> tuple[Integers, Truths]:
    """Each group's place among all combinations, the last key fastest, and whether all its keys are there."""
    index = np.zeros(length, dtype=np.int64)
    counted = np.ones(length, dtype=np.bool_)
    for code, size in zip(codes, sizes, strict=True):
        counted &= code >= 0
        index = index * size + code
    return index, counted


def combined(
    totals: Sequence[Integers | Objects], bounds: Sequence[int], weights: Sequence[tuple[int, int]]
) -> Integers | Objects:
    """A whole linear combination of aggregates, in Python integers where 64 bits might not hold it."""
    wide = sum(abs(weight) * max(bounds[i], 1) for i, weight in weights) >= WORD
    parts = [(totals[i].astype(object) if wide else totals[i]) * weight for i, weight in weights]
    return cast("Integers | Objects", sum(parts[1:], start=parts[0]))


def _combined(
    part: Part, codes: Sequence[Integers], totals: Sequence[Integers | Objects], bounds: Sequence[int]
) -> Sums:
    """The blocks that are combinations of aggregates."""
    if not part.combined:
        return {}
    index, counted = indexed(codes, [key.size for key in part.keys], len(totals[0]))
    cells, totals = index[counted], [values[counted] for values in totals]  # a NULL sum is filled with 0
    if len(cells) and np.bincount(cells).max() > 1:  # several rows of the result are one cell: they are added
        cells, inverse = np.unique(cells, return_inverse=True)
        merged = [cast("Integers | Objects", np.zeros(len(cells), dtype=values.dtype)) for values in totals]
        for into, values in zip(merged, totals, strict=True):
            np.add.at(into, inverse, values)
        totals = merged
    found: Sums = {}
    for block in part.combined:
        sums = np.zeros((part.cells, len(block.weights)), dtype=np.int64)
        for i, weights in enumerate(block.weights):
            sums[cells, i] = saturate(combined(totals, bounds, weights))
        found[block.tally, block.block] = sums
    return found


def _looked(part: Part, codes: list[Integers], counts: Integers | Objects, bound: int) -> Sums:
    """The blocks that are counts times a public table.

    A row that lacks a key counts for the tables that do not read it: a count belongs to a table if that table's own
    keys are there.
    """
    sizes = [key.size for key in part.keys]
    whole: Integers | None = None
    if len(part.looked) > 1 and all(len(set(looked.keys)) == len(looked.keys) for looked in part.looked):
        whole, left = _table(codes, counts, sizes)
        codes, counts = [code[left] for code in codes], counts[left]
    found: Sums = {}
    for looked in part.looked:
        mine = [*range(part.own), *looked.keys]
        index, counted = indexed([codes[i] for i in mine], [sizes[i] for i in mine], len(counts))
        base = None if whole is None else _summed(whole, sizes, mine)
        found[looked.tally, looked.block] = _weighed(part, looked, index[counted], (counts[counted], bound), base)
    return found


def _table(codes: list[Integers], counts: Integers | Objects, sizes: list[int]) -> tuple[Integers, Truths]:
    """The counts of groups whose keys are all there, an axis for each key of several codes; and which are left."""
    index, there = indexed(codes, sizes, len(counts))
    found = np.zeros(math.prod(sizes), dtype=np.int64)
    np.add.at(found, index[there], counts[there].astype(np.int64))
    return found.reshape([size for size in sizes if size > 1]), ~there


def _summed(table: Integers, sizes: list[int], mine: list[int]) -> Integers:
    """Such a table's sums for some of its keys, in their order, as one column.

    The first axes are summed over first: what is added then lies side by side.
    """
    kept = [place for place in mine if sizes[place] > 1]
    axis = 0
    for place, size in enumerate(sizes):
        if place in kept:
            axis += 1
        elif size > 1:
            table = table.sum(axis=axis)
    there = sorted(kept)
    return table.transpose([there.index(place) for place in kept]).flatten()


def _weighed(
    part: Part, looked: Looked, index: Integers, counted: tuple[Integers | Objects, int], base: Integers | None
) -> Integers:
    """Counts of (cell, table row) pairs, each perhaps in several parts, on top of the base, times the table."""
    (counts, bound), cells = counted, math.prod(key.size for key in part.keys[: part.own])
    units = np.frombuffer(looked.units, dtype="<i8").reshape(-1, looked.width)
    reach = int(np.abs(units).max(initial=0))
    if base is not None or cells * len(units) <= DENSE:
        dense = np.zeros(cells * len(units), dtype=np.int64) if base is None else base
        np.add.at(dense, index, counts.astype(np.int64))
        dense = dense.reshape(cells, len(units))
        return _by_limbs(dense, bound * reach, lambda limb: weighed(limb, units))
    places, entries = index // len(units), index % len(units)
    step = max(1, DENSE // looked.width)

    def spread(limb: Integers) -> Integers:
        sums = np.zeros((cells, looked.width), dtype=np.int64)
        for start in range(0, len(index), step):
            some = slice(start, start + step)
            np.add.at(sums, places[some], limb[some, None] * units[entries[some]])
        return sums

    return _by_limbs(counts.astype(np.int64), bound * reach, spread)


def _by_limbs(counts: Integers, most: int, sums: Callable[[Integers], Integers]) -> Integers:
    """Sums of counts times numbers, at most so much in all: at once where 64 bits hold that, else so many bits each."""
    if most < WORD:
        return saturate(sums(counts))
    parts = [sums((counts >> shift) & (2**LIMB - 1)).astype(object) << shift for shift in range(0, 63, LIMB)]
    return saturate(sum(parts[1:], start=parts[0]))
