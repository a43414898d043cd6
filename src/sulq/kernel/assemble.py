"""Results of certified statements to exact sums of cells.

Assembling is linear. Each row of a result goes to at most one cell of its grouping set, times public weights, whatever
keys and weights say (SR13); sums past 2^62 are saturated, a 1-Lipschitz step (T5).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Final, cast

import numpy as np

from sulq.kernel.private import Groups, Integers, Objects, Stored, Truths, saturate
from sulq.kernel.request import Asking, Key, Looked, Open, Part, Proposal, Statement

WORD: Final = 2**63  # what 64 bits hold is less
LIMB: Final = 20  # bits: of so many and of a table's 22, products of 2^20 rows of the table fit 64
DENSE: Final = 2**20  # so many (cell, table row) pairs are counted before they meet the table

Sums = dict[tuple[int, int], Integers]
"""The sums of blocks, each by its tally and its place in it: a row for each cell, a column for each coordinate."""


def sums_of(proposal: Proposal, asking: Asking) -> list[Integers]:
    """The exact sums of each tally, saturated."""
    return joined(proposal, summed(proposal, asking))


def summed(proposal: Proposal, asking: Asking) -> Sums:
    """The exact sums of all blocks, saturated."""
    found: Sums = {}
    results = asking.columns(proposal.statements) if proposal.statements else ()
    for statement, columns in zip(proposal.statements, results, strict=True):
        found |= assemble(statement, columns)
    if proposal.fold is not None:
        found |= dict(zip(proposal.fold.blocks, asking.fold(proposal.fold), strict=True))
    return found


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


def groups_of(asked: Open, rows: list[tuple[object, ...]], widths: Sequence[int]) -> Groups:
    """The groups that occur, their keys as they are stored, with their sums and how many people each has."""
    if not asked.keys and rows[0][asked.persons] == 0:  # without keys SQL gives one row even of nothing
        rows = []
    totals = [values for values, _ in columns_of([row[asked.keys :] for row in rows], len(asked.bounds), object)]
    sums = [np.zeros((len(rows), width), dtype=np.int64) for width in (0, *widths)]
    for block in asked.blocks:
        for i, weights in enumerate(block.weights):
            sums[block.block + 1][:, i] = saturate(_weighted(totals, asked.bounds, weights))
    keys = tuple(tuple(map(_unsigned, row[: asked.keys])) for row in rows)
    return Groups(keys, np.concatenate(sums, axis=1), totals[asked.persons].astype(np.int64))


def _unsigned(key: object) -> object:
    """A key without the sign of a zero, which DuckDB shows as the first row of the group had it: it tells of a row."""
    return key + 0.0 if isinstance(key, float) else key


def columns_of(rows: list[tuple[object, ...]], width: int, kind: type = np.int64) -> list[Stored]:
    """Fetched rows as columns of whole numbers."""
    columns: list[Stored] = []
    for i in range(width):
        missing = np.array([row[i] is None for row in rows], dtype=np.bool_)
        values: np.ndarray = np.array([0 if row[i] is None else int(cast("int", row[i])) for row in rows], dtype=kind)
        columns.append((values, missing))
    return columns


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


def _indexed(codes: Sequence[Integers], sizes: Sequence[int], length: int) -> tuple[Integers, Truths]:
    """Each group's place among all combinations, the last key fastest, and whether all its keys are there."""
    index = np.zeros(length, dtype=np.int64)
    counted = np.ones(length, dtype=np.bool_)
    for code, size in zip(codes, sizes, strict=True):
        counted &= code >= 0
        index = index * size + code
    return index, counted


def _weighted(
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
    index, counted = _indexed(codes, [key.size for key in part.keys], len(totals[0]))
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
            sums[cells, i] = saturate(_weighted(totals, bounds, weights))
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
        index, there = _indexed(codes, sizes, len(counts))
        whole = np.zeros(math.prod(sizes), dtype=np.int64)
        np.add.at(whole, index[there], counts[there].astype(np.int64))
        codes, counts = [code[~there] for code in codes], counts[~there]
    found: Sums = {}
    for looked in part.looked:
        mine = [*range(part.own), *looked.keys]
        index, counted = _indexed([codes[i] for i in mine], [sizes[i] for i in mine], len(counts))
        base = None if whole is None else _margin(whole, sizes, mine)
        found[looked.tally, looked.block] = _times(part, looked, index[counted], (counts[counted], bound), base)
    return found


def _margin(counts: Integers, sizes: Sequence[int], mine: Sequence[int]) -> Integers:
    """Counts of all combinations of keys, summed for some of the keys, in their order.

    The first axes are summed over first: what is added then lies side by side.
    """
    several = [i for i, size in enumerate(sizes) if size > 1]
    table, kept = counts.reshape([sizes[i] for i in several]), [several.index(i) for i in mine if sizes[i] > 1]
    others = [axis for axis in range(len(several)) if axis not in kept]
    for axis in others:
        table = table.sum(axis=axis, keepdims=True)
    return table.transpose([*kept, *others]).flatten()


def _times(
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
        return _by_limbs(dense, bound * reach, lambda limb: cast("Integers", limb @ units))
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
