"""Results of certified statements to exact sums of cells.

Assembling is linear. Each row of a result goes to at most one cell of its grouping set, times public weights, whatever
keys and weights say (SR13); sums past 2^62 are saturated, a 1-Lipschitz step (T5).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final, cast

import numpy as np

from sulq.kernel.arrays import Integers, Objects, Stored, Truths, saturate
from sulq.kernel.private import Groups
from sulq.kernel.request import Asking, Key, Part, Proposal, Statement
from sulq.kernel.request import Looked, Open

WORD: Final = 2**63  # what 64 bits hold is less
MAX_TABLE: Final = 2**22  # rows of a public table, and units of each of its numbers
LIMB: Final = 18  # bits of a count: times all rows of such a table they add up within 64
DENSE: Final = 2**20  # so many combinations of keys are counted before they meet a table
MAX_AXES: Final = 32  # of an array

Sums = dict[tuple[int, int], Integers]
"""The sums of blocks, each by its tally and its place in it: a row for each cell, a column for each coordinate."""
Totals = Sequence[Integers | Objects]


def sums_of(proposal: Proposal, asking: Asking, most: Sequence[Sequence[int]] = ()) -> list[Integers]:
    """The exact sums of each tally, saturated."""
    return joined(proposal, summed(proposal, asking, most))


def summed(proposal: Proposal, asking: Asking, most: Sequence[Sequence[int]] = ()) -> Sums:
    """The exact sums of all blocks, saturated; `most`: the largest totals of each statement, if they are known."""
    found: Sums = {}
    results = asking.columns(proposal.statements) if proposal.statements else ()
    for i, (statement, columns) in enumerate(zip(proposal.statements, results, strict=True)):
        found |= assemble(statement, columns, most[i] if most else [WORD] * len(columns))
    if proposal.fold is not None:
        found |= dict(zip(proposal.fold.blocks, asking.fold(proposal.fold), strict=True))
    return found


def joined(proposal: Proposal, found: Mapping[tuple[int, int], Integers]) -> list[Integers]:
    """The blocks of each tally side by side."""
    return [
        np.concatenate([found[i, place] for place in range(len(widths))], axis=1)
        for i, (_, widths) in enumerate(proposal.tallies)
    ]


def assemble(statement: Statement, columns: Sequence[Stored], most: Sequence[int]) -> Sums:
    """The sums of a statement's blocks from the columns of its result; `most`: the largest total of each sum."""
    found: Sums = {}
    for part in statement.parts:
        here: Any = slice(None) if part.mark is None else columns[statement.keys][0] == part.mark
        own = [(values[here], None if missing is None else missing[here]) for values, missing in columns]
        codes = [_codes(own[key.column], key) for key in part.keys]
        # Sums of doubles are whole, and are not multiplied as doubles; a missing one is filled with 0.
        totals = [values if values.dtype == object else values.astype(np.int64) for values, _ in own[statement.first :]]
        found |= _combined(part, codes, totals, most)
        found |= _looked(part, codes, totals[0], most[0])
    return found


def groups_of(statement: Statement, rows: list[tuple[object, ...]]) -> Groups:
    """The groups that occur, their keys as they are stored, with their sums and how many people each has."""
    (part,), keys, people = statement.parts, statement.keys, cast("int", statement.people)
    if not keys and rows[0][people] == 0:  # without keys SQL gives one row even of nothing
        rows = []
    width = len(rows[0]) - keys if rows else people + 1
    totals = [np.array([int(cast("int", row[keys + i]) or 0) for row in rows], dtype=object) for i in range(width)]
    weights = [each for block in sorted(part.combined, key=lambda block: block.block) for each in block.weights]
    sums = np.zeros((len(rows), len(weights)), dtype=np.int64)
    for i, each in enumerate(weights if rows else ()):
        sums[:, i] = _weighted(totals, each, [WORD] * width)
    return Groups(tuple(tuple(map(_unsigned, row[:keys])) for row in rows), sums, totals[people].astype(np.int64))


def _unsigned(key: object) -> object:
    """A key without the sign of a zero, which DuckDB shows as the first row of the group had it: it tells of a row."""
    return key + 0.0 if isinstance(key, float) else key


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


def _weighted(totals: Totals, weights: Sequence[tuple[int, int]], most: Sequence[int]) -> Integers:
    """A whole linear combination of sums, saturated; in Python's integers where 64 bits might not hold it."""
    wide = sum(abs(weight) * max(most[i], 1) for i, weight in weights) >= WORD
    parts = [(totals[i].astype(object) if wide else totals[i]) * weight for i, weight in weights]
    return saturate(sum(parts[1:], start=parts[0]))


def _combined(part: Part, codes: Sequence[Integers], totals: Totals, most: Sequence[int]) -> Sums:
    """The blocks that are combinations of sums."""
    if not part.combined:
        return {}
    index, counted = _indexed(codes, [key.size for key in part.keys], len(totals[0]))
    cells, totals = index[counted], [values[counted] for values in totals]
    if len(cells) and np.bincount(cells).max() > 1:  # several rows of the result are one cell: they are added
        cells, inverse = np.unique(cells, return_inverse=True)
        merged = [np.zeros(len(cells), dtype=values.dtype) for values in totals]
        for into, values in zip(merged, totals, strict=True):
            np.add.at(into, inverse, values)
        totals = cast("Totals", merged)
    found: Sums = {}
    for block in part.combined:
        sums = np.zeros((part.cells, len(block.weights)), dtype=np.int64)
        for i, weights in enumerate(block.weights):
            sums[cells, i] = _weighted(totals, weights, most)
        found[block.tally, block.block] = sums
    return found


def _looked(part: Part, codes: Sequence[Integers], total: Integers | Objects, most: int) -> Sums:
    """The blocks that are counts of rows times a public table.

    A row that lacks a key counts for the tables that do not read it. Those that lack none are counted once for all
    tables, where their keys have few combinations.
    """
    sizes, counts = [key.size for key in part.keys], total.astype(np.int64) if part.looked else np.zeros(0, np.int64)
    reads = [[*range(part.own), *looked.keys] for looked in part.looked]
    whole: Integers | None = None
    few = len(sizes) <= MAX_AXES and math.prod(sizes) <= DENSE
    if few and len(reads) > 1 and all(len(set(mine)) == len(mine) for mine in reads):
        index, there = _indexed(codes, sizes, len(counts))
        whole = np.zeros(sizes, dtype=np.int64)
        np.add.at(whole.reshape(-1), index[there], counts[there])
        codes, counts = [code[~there] for code in codes], counts[~there]
    found: Sums = {}
    for looked, mine in zip(part.looked, reads, strict=True):
        units, pairs = looked.table, math.prod(sizes[i] for i in mine)
        index, there = _indexed([codes[i] for i in mine], [sizes[i] for i in mine], len(counts))
        at, own, times = index[there], counts[there], partial(_times, units, pairs // len(units), index[there])
        if whole is not None or pairs <= DENSE:
            dense = np.zeros(pairs, dtype=np.int64) if whole is None else _margin(whole, mine)
            np.add.at(dense, at, own)
            own, times = dense.reshape(-1, len(units)), partial(_times, units, 0, None)
        found[looked.tally, looked.block] = _by_limbs(own, most * int(np.abs(units).max()), times)
    return found


def _margin(counts: Integers, mine: Sequence[int]) -> Integers:
    """Counts by all keys, an axis each, summed for some of the keys, in their order.

    The first axes are summed over first: what is added then lies side by side.
    """
    others = [axis for axis in range(counts.ndim) if axis not in mine]
    for axis in others:
        counts = counts.sum(axis=axis, keepdims=True)
    return counts.transpose([*mine, *others]).flatten()


def _times(units: Integers, cells: int, index: Integers | None, counts: Integers) -> Integers:
    """A table times the counts of its rows in each cell, or of the (cell, row) pairs at the index, some at a time."""
    if index is None:
        return cast("Integers", counts @ units)
    sums, step = np.zeros((cells, units.shape[1]), dtype=np.int64), max(1, DENSE // units.shape[1])
    for start in range(0, len(index), step):
        places, entries = np.divmod(index[start : start + step], len(units))
        np.add.at(sums, places, counts[start : start + step, None] * units[entries])
    return sums


def _by_limbs(counts: Integers, most: int, times: Callable[[Integers], Integers]) -> Integers:
    """Sums of counts times numbers, at most so much in all: at once where 64 bits hold that, else so many bits each."""
    if most < WORD:
        return saturate(times(counts))
    parts = [times((counts >> shift) & (2**LIMB - 1)).astype(object) << shift for shift in range(0, 63, LIMB)]
    return saturate(sum(parts[1:], start=parts[0]))
