"""Groups that are not listed in advance: which combinations of keys occur, their exact sums and their people (SR14)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np

from sulq.kernel.private import SATURATED, Stored, saturate
from sulq.language.domain import Schema
from sulq.language.kinds import Code, Floats, Integers, Kind, Objects, Scalar, Truth, Truths
from sulq.language.rowfn import RowFn
from sulq.language.rowfn.base import evaluate
from sulq.language.tally import Groups, Tally
from sulq.sources.folds.batch import RowBatch
from sulq.sources.folds.derived_rows import numbered
from sulq.sources.folds.fold import EXACT, holding, reach, units_of


def group(tally: Tally, rows: RowBatch) -> Groups:
    """The groups of a tally's keys among some rows, in the order of their labels."""
    with np.errstate(all="ignore"):  # a missing cell may hold anything; warnings must not tell of it
        if tally.where is not None:
            rows = rows.take(np.flatnonzero(holding(tally.where, rows)))
        keys = [_stored(key.fn, rows) for key in tally.by]
        groups = numbered(rows.size, keys)
        first = np.unique(groups, return_index=True)[1]
        sums: list[Integers | Objects] = [np.zeros((len(first), 0), dtype=np.int64)]
        for block in tally.blocks:
            units, missing = units_of(block, rows)
            sums.append(_sums(units, missing, groups, len(first), reach(block) * rows.size))
    persons = groups
    if rows.owner is not None:  # each person once in a group
        persons = groups[np.unique(numbered(rows.size, [(groups, None), (rows.owner, None)]), return_index=True)[1]]
    counts = np.bincount(persons, minlength=len(first)).astype(np.int64)
    cells = [_cells(values[first], None if missing is None else missing[first]) for values, missing in keys]
    stored = tuple(zip(*cells, strict=True)) or ((),) * len(counts)
    totals = saturate(cast("Integers | Objects", np.concatenate(sums, axis=1)))
    return in_order([key.fn for key in tally.by], rows.schema, Groups(stored, totals, counts))


def in_order(keys: Sequence[RowFn], schema: Schema, groups: Groups) -> Groups:
    """Groups whose keys are as they are stored, with their labels, in the order of these."""
    labels, order = labelled(keys, schema, groups.keys)
    return Groups(tuple(labels), groups.sums[order], groups.persons[order])


def labelled(
    keys: Sequence[RowFn], schema: Schema, stored: Sequence[tuple[object, ...]]
) -> tuple[list[tuple[object, ...]], Integers]:
    """Labels for the stored keys of groups, ascending, and the places of these in that order."""
    kinds = [fn.kind(schema) for fn in keys]
    labels = [tuple(map(_value, kinds, cells)) for cells in stored]
    order = sorted(range(len(labels)), key=lambda i: [_place(value) for value in labels[i]])
    return [labels[i] for i in order], np.array(order, dtype=np.int64)


def _place(value: object) -> tuple[bool, str, object]:
    """Where a key stands among others: the missing last, ranges by their ends; kinds apart, so none fails (T30)."""
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return value is None, "" if value is None or number else type(value).__name__, 0 if value is None else value


def _stored(fn: RowFn, rows: RowBatch) -> Stored:
    """A key's cells: codes, truth values, numbers or texts."""
    cells = evaluate(fn, rows)
    kind = fn.kind(rows.schema)
    if isinstance(kind, Code):
        codes = cast("Integers", cells.values)
        # A key must be told by its label alone: what has no label is one group, however it came about (T30).
        outside = ~np.isin(codes, kind.named)
        return codes, outside if cells.missing is None else outside | cells.missing
    values = cells.values.astype(np.float64) + 0.0 if isinstance(kind, (Scalar, Truth)) else cells.values
    return values, cells.missing


def _cells(values: np.ndarray, missing: Truths | None) -> list[object]:
    gone = np.zeros(len(values), dtype=np.bool_) if missing is None else missing
    return [None if none else value for value, none in zip(values.tolist(), gone.tolist(), strict=True)]


def _value(kind: Kind, value: object) -> object:
    """A key's cell as a label or a Python value."""
    if value is None:
        return None
    if isinstance(kind, Code):
        return kind.labels[int(cast("int", value))]
    if isinstance(kind, Truth):
        return bool(value)
    if isinstance(kind, Scalar) and kind.step is not None and kind.step.denominator == 1:
        return int(cast("int", value))
    return value


def _sums(units: Floats, missing: Truths | None, groups: Integers, size: int, most: int) -> Integers | Objects:
    """Exact sums of whole doubles by group: in doubles, in 64 bits or in Python's integers, whichever holds them."""
    here = np.arange(len(groups)) if missing is None else np.flatnonzero(~missing)
    found: list[Integers | Objects] = []
    for terms in units:
        if most < EXACT:
            total: Integers | Objects = np.bincount(groups[here], weights=terms[here], minlength=size).astype(np.int64)
        else:
            wide = most >= SATURATED
            total = np.zeros(size, dtype=object if wide else np.int64)
            whole = terms[here].astype(np.int64)
            np.add.at(total, groups[here], whole.astype(object) if wide else whole)
        found.append(total)
    return cast("Integers | Objects", np.stack(found, axis=1)) if found else np.zeros((size, 0), dtype=np.int64)
