"""How results are read: checked against the certificates of their statements, and assembled to exact sums of cells.

Which columns are keys, marks and sums, and which codes are cells, is checked before anything runs. Assembling is
linear: each row of a result goes to at most one cell of its grouping set, times public weights, whatever keys and
weights say (SR13); sums past 2^62 are saturated, a 1-Lipschitz step (T5).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final, NamedTuple, cast

import numpy as np

from sulq.kernel.facts import Facts, require
from sulq.kernel.matrix import text
from sulq.kernel.moves import Certified, Moves, Norms, moves, table
from sulq.kernel.private import Groups, Integers, Objects, Stored, Truths, saturate
from sulq.kernel.programs import Fold
from sulq.kernel.programs import certify as certify_program
from sulq.kernel.relations import Certificate, Summand, certify, rows
from sulq.kernel.remembered import remembered
from sulq.kernel.request import Asking, At, Key, Part, Proposal, Scan, Statement
from sulq.kernel.tree import Node
from sulq.kernel.values import Value

WORD: Final = 2**63  # what 64 bits hold is less
ROWS: Final = Summand({(): 1})  # a row adds one to a count of rows
MAX_TABLE: Final = 2**22  # rows of a public table, and units of each of its numbers
LIMB: Final = 18  # bits of a count: times all rows of such a table they add up within 64
DENSE: Final = 2**20  # so many combinations of keys are counted before they meet a table
MAX_AXES: Final = 32  # of an array

Sums = dict[At, Integers]  # of blocks: a row for each cell, a column for each coordinate
Totals = Sequence[Integers | Objects]


class Layout(NamedTuple):
    """Of each tally its blocks, and of each statement the largest that each sum can be."""

    blocks: list[tuple[Certified, ...]]
    totals: list[list[int]]


def of_proposal(proposal: Proposal, known: Facts) -> Layout:
    """What a person moves; every block is summed by a statement or the program, once."""
    summed: list[tuple[At, int, Certified]] = []
    listed = all(each.people is None for each in proposal.statements)
    alone = len(proposal.statements) == len(proposal.tallies) == 1 and proposal.fold is None
    require(listed or alone, "groups beside other sums")
    certificates = [remembered(certify, each.scan.sql, known) for each in proposal.statements]
    for statement, certificate in zip(proposal.statements, certificates, strict=True):
        _check_columns(statement, certificate)
        for part in statement.parts:
            summed += _blocks(part, statement, certificate, alone=len(certificates) == 1)
    if proposal.fold is not None:
        cells = [each.cells for each in proposal.fold.program.sums]
        summed += zip(proposal.fold.blocks, cells, remembered(of_fold, proposal.fold, known), strict=True)
    found = {at: bound for at, _, bound in summed}
    shapes = {at: (cells, len(bound.moves.low)) for at, cells, bound in summed}
    said = {(i, j): (size, width) for i, (size, own) in enumerate(proposal.tallies) for j, width in enumerate(own)}
    require(shapes == said and len(found) == len(summed), "a block that is summed twice, or not, or of another shape")
    tallies = [tuple(found[i, j] for j in range(len(own))) for i, (_, own) in enumerate(proposal.tallies)]
    return Layout(tallies, [[each.most for each in one.outputs if isinstance(each, Summand)] for one in certificates])


def of_fold(fold: Fold, known: Facts) -> tuple[Certified, ...]:
    """What a person moves the sums of a program by, over the rows of its statement."""
    own = fold.table is None or fold.sql == text(fold.table, fold.program.columns)
    require(own and type(fold.sql) is str, "a program over other rows than its table's")
    require(all(type(each) is str for each in fold.texts), "a text that is none")
    found = rows(fold.sql, known)
    return certify_program(fold.program, tuple(found.columns.values()), max(found.altered, 1), every=found.every)


def _check_columns(statement: Statement, certificate: Certificate) -> None:
    """Refuse a statement whose columns are not keys, a mark where there are several sets, and sums.

    Cells that are told by a sum would change for a whole group with one row more.
    """
    outputs, first, keys = certificate.outputs, statement.first, range(statement.keys)
    require(statement.keys >= 0 and first < len(outputs), "other columns than a statement has")
    require(all(isinstance(each, Value) for each in outputs[: statement.keys]), "a sum read as a key")
    require(all(isinstance(each, Summand) for each in outputs[first:]), "a sum that is none")
    require(all(type(each) is str for each in statement.scan.texts), "a text that is none")
    marks: set[int | None] = {None} if len(certificate.sets) == 1 else set()
    if first > statement.keys:
        require(outputs[statement.keys] is None, "a sum read as a mark")
        marks = {sum(1 << (statement.keys - 1 - i) for i in keys if i not in each) for each in certificate.sets}
    require(all(part.mark in marks for part in statement.parts), "a part of no grouping set, or of several")


def _blocks(
    part: Part, statement: Statement, certificate: Certificate, *, alone: bool
) -> Iterator[tuple[At, int, Certified]]:
    """The blocks of a part, their cells, and what a person moves; refuses other sums and keys than there are."""
    outputs, first, keys = certificate.outputs, statement.first, part.keys
    require(all(0 <= key.column < statement.keys for key in keys), "a sum read as a key")
    inside = [_in_a_cell(key, cast("Value", outputs[key.column])) for key in keys]
    require(0 <= part.own <= len(keys), "other cells than a part has")
    cells, present = part.cells, certificate.every and all(inside)
    source = partial(_source, statement.scan, part.mark, None if alone else certificate.tree)
    if statement.people is not None:
        cells, present = 0, False
        yield (0, 0), 0, _people(part, statement, certificate)
    for block in part.combined:
        places = [dict(weights).keys() for weights in block.weights]
        once = all(own and len(own) == len(each) for own, each in zip(places, block.weights, strict=True))
        sums = once and all(own <= set(range(len(outputs) - first)) for own in places)
        require(sums, "a coordinate of what is no sum of rows, or of one sum twice")
        moved = moves(certificate, [{first + at: weight for at, weight in weights} for weights in block.weights])
        yield block.at, cells, Certified(moved, certificate.rows, present, source(keys))
    for looked in part.looked:
        require(outputs[first] == ROWS, "a table read by other than a count of rows")
        require(all(0 <= place < len(keys) for place in looked.keys), "a table read by other keys than its own")
        size = math.prod(keys[place].size for place in looked.keys)
        require(len(looked.units) == 8 * looked.width * size, "a table of other rows than its keys have")
        within = size <= MAX_TABLE and looked.table.min() >= -MAX_TABLE and looked.table.max() <= MAX_TABLE
        require(within, "a table of too many rows, or too large numbers")
        moved, own = table(certificate.rows, looked.table), keys[: part.own]
        yield looked.at, math.prod(key.size for key in own), Certified(moved, certificate.rows, present, source(own))


def _source(scan: Scan, mark: int | None, tree: Node | None, keys: tuple[Key, ...]) -> tuple[object, ...]:
    """What tells the rows and cells of some blocks: of other cells they are moved by other rows, or each apart.

    Statements that select and tell cells by the same words do so for the same rows, whatever they sum.
    """
    if tree is None or mark is not None:
        return scan, keys, mark
    items = tree.many("select_list")
    rows = [each.said(scan.texts) for each in (tree["from_table"], tree.get("where_clause")) if each is not None]
    return *rows, *((items[key.column].said(scan.texts), replace(key, column=0)) for key in keys)


def _in_a_cell(key: Key, value: Value) -> bool:
    """Whether every value of a key is the code of a cell; refuses a key that is no code."""
    digits = value.type == "VARCHAR" and value.low > -math.inf
    whole = value.whole and value.within(-WORD // 2, WORD // 2)
    require(digits or whole or value.type == "BOOLEAN", "a key that is no code")
    codes = range(key.size)
    missing = key.missing is None or key.missing in codes
    places = key.places is None or (key.places and all(place == -1 or place in codes for place in key.places))
    require(codes and missing and places and abs(key.shift) <= WORD // 2, "a code of no cell")
    if not ((digits or whole) and math.isfinite(value.high)) or (value.null and key.missing is None):
        return False
    low, high = int(value.low) - key.shift, int(value.high) - key.shift
    if key.places is not None:
        return 0 <= low <= high < len(key.places) and min(key.places[low : high + 1]) >= 0
    return low >= 0 and high < (key.size if key.missing is None else key.missing)


def _people(part: Part, statement: Statement, certificate: Certificate) -> Certified:
    """How many people a group has: what shows it.

    A person is one of the people of at most so many groups, and stays so where rows change within a group.
    """
    counted = dict(enumerate(certificate.outputs[statement.first :])).get(cast("int", statement.people))
    people = isinstance(counted, Summand) and (counted.people or (counted == ROWS and certificate.rows == 1))
    require(people, "groups that are shown by other than their number of people")
    require(part == Part((), 0, None, part.combined), "groups of listed cells, or of several grouping sets")
    one = Moves(Norms(certificate.rows, certificate.rows, 1), Norms(0, 0, 0), (0,), (1,))
    return Certified(one, certificate.rows, present=False, source=(statement.scan, (), None))


# Results to sums


def summed(proposal: Proposal, asking: Asking, most: Sequence[Sequence[int]] = ()) -> Sums:
    """The exact sums of all blocks, saturated; `most`: the largest totals of each statement, if they are known."""
    found: Sums = {}
    results = asking.columns(proposal.statements) if proposal.statements else ()
    for i, (statement, columns) in enumerate(zip(proposal.statements, results, strict=True)):
        found |= assemble(statement, columns, most[i] if most else [WORD] * len(columns))
    if proposal.fold is not None:
        found |= dict(zip(proposal.fold.blocks, asking.fold(proposal.fold), strict=True))
    return found


def joined(proposal: Proposal, found: Mapping[At, Integers]) -> list[Integers]:
    """The blocks of each tally side by side."""
    widths = [len(own) for _, own in proposal.tallies]
    return [np.concatenate([found[i, j] for j in range(width)], axis=1) for i, width in enumerate(widths)]


def assemble(statement: Statement, columns: Sequence[Stored], most: Sequence[int]) -> Sums:
    """The sums of a statement's blocks from the columns of its result; `most`: the largest total of each sum."""
    found: Sums = {}
    for part in statement.parts:
        here: Any = slice(None) if part.mark is None else columns[statement.keys][0] == part.mark
        own = [(values[here], None if missing is None else missing[here]) for values, missing in columns]
        codes = [_codes(own[key.column], key) for key in part.keys]
        totals = _totals(own[statement.first :])
        found |= _combined(part, codes, totals, most) | _looked(part, codes, totals[0], most[0])
    return found


def _totals(columns: Sequence[Stored]) -> Totals:
    """Sums of doubles are whole, and are not multiplied as doubles; a missing one is filled with 0."""
    return [values if values.dtype == object else values.astype(np.int64) for values, _ in columns]


def groups_of(statement: Statement, columns: Sequence[Stored], most: Sequence[int] = ()) -> Groups:
    """The groups that occur, their keys as they are stored, with their sums and how many people each has."""
    (part,), totals = statement.parts, _totals(columns[statement.keys :])
    people = totals[cast("int", statement.people)].astype(np.int64)
    weights = [each for block in sorted(part.combined, key=lambda block: block.at) for each in block.weights]
    found = [_weighted(totals, each, most or [WORD] * len(totals)) for each in weights]
    # Without the sign of a zero, which DuckDB shows as the first row of the group had it: it tells of a row.
    keys = [(values + 0.0 if values.dtype.kind == "f" else values, gone) for values, gone in columns[: statement.keys]]
    cells = [(values if gone is None else np.where(gone, cast("Any", None), values)).tolist() for values, gone in keys]
    return Groups(cells, np.array(found, dtype=np.int64).reshape(len(found), len(people)).T, people)


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
    index, counted = np.zeros(length, dtype=np.int64), np.ones(length, dtype=np.bool_)
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
        found[block.at] = sums = np.zeros((part.cells, len(block.weights)), dtype=np.int64)
        for i, weights in enumerate(block.weights):
            sums[cells, i] = _weighted(totals, weights, most)
    return found


def _looked(part: Part, codes: Sequence[Integers], total: Integers | Objects, most: int) -> Sums:
    """The blocks that are counts of rows times a public table.

    A row that lacks a key counts for the tables that do not read it. Those that lack none are counted once for all
    tables, where their keys have few combinations.
    """
    if not part.looked:
        return {}
    sizes, counts = [key.size for key in part.keys], total.astype(np.int64)
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
        at, own = index[there], counts[there]
        times = partial(_times, units, pairs // len(units), at)
        if whole is not None or pairs <= DENSE:
            dense = np.zeros(pairs, dtype=np.int64) if whole is None else _margin(whole, mine)
            np.add.at(dense, at, own)
            own, times = dense.reshape(-1, len(units)), partial(_times, units, 0, None)
        found[looked.at] = _by_limbs(own, most * int(np.abs(units).max()), times)
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
