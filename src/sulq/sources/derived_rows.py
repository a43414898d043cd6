"""Relations to rows in NumPy: the reference the SQL must agree with, and its substitute for what SQL does not say."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Sequence
from typing import cast

import numpy as np

from sulq.compile.statements import derived_tables
from sulq.kernel.private import SATURATED, Stored, saturate
from sulq.language.domain import Column, Schema, Text
from sulq.language.facts import Tables
from sulq.language.kinds import Code, Floats, Integers, Kind, Objects, Scalar, Truth, Truths, Words
from sulq.language.relation import Distinct, Join, PerPerson, Relation, Select, Table, Union, Where
from sulq.language.rowfn import Col, RowFn
from sulq.language.rowfn.base import evaluate, numbers
from sulq.language.rowfn.vectors import to_grid
from sulq.language.shape import Shape, shape
from sulq.language.tally import Groups, Tally
from sulq.sources.fold import EXACT, RowBatch, holding, reach, units_of

Read = Callable[[str], RowBatch]
"""The kept rows of a table by its name, with their owners where it has any."""


def derive(relation: Relation, tables: Tables, read: Read) -> RowBatch:
    """The rows of a relation, each with its owner where rows are owned."""
    with np.errstate(all="ignore"):  # a missing cell may hold anything; warnings must not tell of it
        return _derive(relation, tables, read)


def _derive(relation: Relation, tables: Tables, read: Read) -> RowBatch:
    match relation:
        case Table():
            return read(relation.name)
        case Where():
            source = _derive(relation.source, tables, read)
            return source.take(np.flatnonzero(holding(relation.condition, source)))
        case Select():
            source = _derive(relation.source, tables, read)
            schema = shape(relation, tables).schema
            pairs = zip(schema.columns, relation.columns, strict=True)
            columns = {name: _column(fn, column, source) for (name, column), (_, fn) in pairs}
            return RowBatch(schema, source.size, columns, owner=source.owner)
        case Join():
            return _join(relation, tables, read)
        case PerPerson():
            inner = shape(relation.source, tables)
            return _per_person(relation, inner, shape(relation, tables), _derive(relation.source, tables, read))
        case Distinct():
            source = _derive(relation.source, tables, read)
            groups = numbered(source.size, [source.stored(name) for name in source.schema.names])
            found = source.take(np.unique(groups, return_index=True)[1])
            found.owner = None
            return found
        case Union():
            return _union(shape(relation, tables), [_derive(item, tables, read) for item in relation.sources()])


def _column(fn: RowFn, column: Column, source: RowBatch) -> Stored:
    """A row function as a column of integers (or texts)."""
    name = derived_tables.copied(fn, source.schema, column)
    if name is not None:
        return source.stored(name)
    kind = fn.kind(source.schema)
    if isinstance(kind, Code):
        cells = evaluate(fn, source)
        codes = cast("Integers", cells.values)
        outside = (codes < 0) | (codes >= kind.size)
        gone = outside if cells.missing is None else outside | cells.missing
        return np.where(gone, 0, codes), gone
    if isinstance(column, Text):
        cells = evaluate(fn, source)
        return cells.values.astype(object, copy=False), cells.missing
    values, missing = numbers(fn, source)
    return to_grid(values, column.step, column.low, column.high), missing


def _union(whole: Shape, parts: list[RowBatch]) -> RowBatch:
    columns: dict[str, Stored] = {}
    for i, name in enumerate(whole.schema.names):
        stored = [part.stored(part.schema.names[i]) for part in parts]
        values = [v if isinstance(v, np.ndarray) and v.dtype == object else v.astype(np.int64) for v, _ in stored]
        gone = [np.zeros(len(v), dtype=np.bool_) if m is None else m for v, m in stored]
        columns[name] = np.concatenate(values), np.concatenate(gone)
    owner = None
    if whole.owned:
        owner = np.concatenate([cast("np.ndarray", part.owner) for part in parts])
    return RowBatch(whole.schema, sum(part.size for part in parts), columns, owner=owner)


def _join(join: Join, tables: Tables, read: Read) -> RowBatch:
    """Pairs of rows whose keys agree: both sides' keys are numbered alike, then the right is searched in order."""
    schema = shape(join, tables).schema
    left, right = _derive(join.left, tables, read), _derive(join.right, tables, read)
    keys: list[Stored] = []
    for ours, theirs in join.on:
        keys.append(_beside(left.stored(ours), right.stored(theirs)))
    if join.person:
        keys.append(_beside((cast("np.ndarray", left.owner), None), (cast("np.ndarray", right.owner), None)))
    pairs = numbered(left.size + right.size, keys)
    absent = np.zeros(left.size + right.size, dtype=np.bool_)
    for _, missing in keys:
        absent |= False if missing is None else missing
    ours_id, theirs_id = pairs[: left.size], pairs[left.size :]
    present = np.flatnonzero(~absent[left.size :])
    order = present[np.argsort(theirs_id[present], kind="stable")]
    first = np.searchsorted(theirs_id[order], ours_id, side="left")
    matches = np.searchsorted(theirs_id[order], ours_id, side="right") - first
    matches[absent[: left.size]] = 0
    lone = (matches == 0) if join.how == "left" else np.zeros(left.size, dtype=np.bool_)
    times = np.where(lone, 1, matches)
    rows = np.repeat(np.arange(left.size), times)
    within = np.arange(len(rows)) - np.repeat(np.cumsum(times) - times, times)
    unmatched = lone[rows]
    places = np.where(unmatched, 0, first[rows] + within)
    taken = left.take(rows)
    columns: dict[str, Stored] = {name: taken.stored(name) for name in left.schema.names}
    if len(order):
        found = right.take(order[places])
    else:  # nothing to take from: every row that is left has no match
        found = RowBatch(
            right.schema, len(rows), {name: _none(right.stored(name)[0], len(rows)) for name in right.schema.names}
        )
    for name in right.schema.names:
        values, missing = found.stored(name)
        columns[name] = values, unmatched if missing is None else missing | unmatched
    owner = taken.owner
    if owner is None and right.owner is not None:
        owner = right.owner[order[places]] if len(order) else right.owner[:0]
    return RowBatch(schema, len(rows), columns, owner=owner)


def _none(like: np.ndarray, size: int) -> Stored:
    return np.full(size, None if like.dtype == object else 0, dtype=like.dtype), np.ones(size, dtype=np.bool_)


def _beside(ours: Stored, theirs: Stored) -> Stored:
    """Two sides' cells, one after the other."""
    missing = [np.zeros(len(values), dtype=np.bool_) if gone is None else gone for values, gone in (ours, theirs)]
    return np.concatenate([ours[0], theirs[0]]), np.concatenate(missing)


def numbered(size: int, columns: list[Stored]) -> Integers:
    """The number of each row's combination of values, missing equal to missing."""
    found = np.zeros(size, dtype=np.int64)
    for values, missing in columns:
        codes = _cells(values, missing)
        combined = found * (int(codes.max(initial=0)) + 1) + codes
        found = np.unique(combined, return_inverse=True)[1].reshape(-1)
    return found


def _cells(values: np.ndarray, missing: Truths | None) -> Integers:
    """Cells as numbers from 1, equal where they are equal; 0 where missing."""
    if values.dtype == object:
        known: dict[object, int] = {}
        codes = np.array([known.setdefault(value, len(known) + 1) for value in values], dtype=np.int64)
    else:
        codes = np.unique(values, return_inverse=True)[1].reshape(-1).astype(np.int64) + 1
    return codes if missing is None else np.where(missing, 0, codes)


def _per_person(relation: PerPerson, inner: Shape, whole: Shape, source: RowBatch) -> RowBatch:
    owner = cast("np.ndarray", source.owner)
    groups = numbered(source.size, [(owner, None), *(source.stored(name) for name in relation.keys)])
    some = np.unique(groups, return_index=True)[1]
    size = len(some)
    columns: dict[str, Stored] = {}
    for name in relation.keys:
        values, missing = source.stored(name)
        columns[name] = values[some], None if missing is None else missing[some]
    for name, how, fn in relation.values:
        column = cast("Column", whole.schema.find(name))
        columns[name] = _aggregate((how, fn, column), inner, source, groups, size)
    return RowBatch(whole.schema, size, columns, owner=owner[some])


def _aggregate(
    value: tuple[str, RowFn | None, Column], inner: Shape, source: RowBatch, groups: Integers, size: int
) -> Stored:
    """One aggregate of the rows of each number."""
    how, fn, column = value
    if fn is None:
        return _count(np.bincount(groups, minlength=size), column)
    if how == "count":
        gone = evaluate(fn, source).missing
        return _count(np.bincount(groups if gone is None else groups[~gone], minlength=size), column)
    if how == "distinct":
        values, missing = _compared(fn, source)
        here = np.arange(source.size) if missing is None else np.flatnonzero(~missing)
        pairs = numbered(len(here), [(groups[here], None), (values[here], None)])
        some = here[np.unique(pairs, return_index=True)[1]]
        return _count(np.bincount(groups[some], minlength=size), column)
    if how in ("min", "max"):
        values, missing = _column(fn, column, source)
        here = np.arange(source.size) if missing is None else np.flatnonzero(~missing)
        if isinstance(column, Text):
            return _extreme_text(values, here, groups, size, lowest=how == "min")
        found = np.full(size, column.high if how == "min" else column.low, dtype=np.int64)
        (np.minimum if how == "min" else np.maximum).at(found, groups[here], values[here].astype(np.int64))
        return found, np.bincount(groups[here], minlength=size) == 0
    if isinstance(column, Text):
        raise TypeError("a number was promised")
    terms = derived_tables.person_terms(fn, source.schema, inner.rows)
    doubles, missing = numbers(fn, source)
    units = to_grid(doubles, terms.step, terms.low, terms.high)
    here = np.arange(source.size) if missing is None else np.flatnonzero(~missing)
    total = np.bincount(groups[here], weights=units[here].astype(np.float64), minlength=size)  # exact below 2^53
    counts = np.bincount(groups[here], minlength=size)
    each = cast("Floats", total if how == "sum" else total / np.maximum(counts, 1))
    return to_grid(each * float(terms.step), column.step, column.low, column.high), counts == 0


def _extreme_text(values: np.ndarray, here: Integers, groups: Integers, size: int, *, lowest: bool) -> Stored:
    """The first or last text of each number, by code point."""
    found = np.full(size, None, dtype=object)
    for row in here[sorted(range(len(here)), key=lambda i: values[here[i]], reverse=lowest)]:
        found[groups[row]] = values[row]
    return found, np.bincount(groups[here], minlength=size) == 0


def _count(counts: Integers, column: Column) -> Stored:
    high = 0 if isinstance(column, Text) else column.high
    return np.minimum(counts, high).astype(np.int64), None


def _compared(fn: RowFn, source: RowBatch) -> Stored:
    """A value as it is told apart from others: a column by what it stores, a number as a double without a sign of 0."""
    if isinstance(fn, Col):
        return source.stored(fn.name)
    cells = evaluate(fn, source)
    if isinstance(fn.kind(source.schema), (Scalar, Truth)):
        return cells.values.astype(np.float64) + 0.0, cells.missing
    if cells.values.ndim == 2:  # a vector, by all its coordinates
        return numbered(source.size, [(column, None) for column in cells.values.T]), cells.missing
    return cells.values, cells.missing


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
    stored = tuple(_group_cells(values[first], None if missing is None else missing[first]) for values, missing in keys)
    totals = saturate(cast("Integers | Objects", np.concatenate(sums, axis=1)))
    return in_order([key.fn for key in tally.by], rows.schema, Groups(stored, totals, counts))


def in_order(keys: Sequence[RowFn], schema: Schema, groups: Groups) -> Groups:
    """Groups whose keys are as they are stored, with their labels, in the order of these."""
    columns = [_labels(fn.kind(schema), cells) for fn, cells in zip(keys, groups.keys, strict=True)]
    labels, order = _in_order(columns)
    return Groups(tuple(labels), groups.sums[order], groups.persons[order])


def labelled(
    keys: Sequence[RowFn], schema: Schema, stored: Sequence[list[object]]
) -> tuple[list[list[object]], Integers | slice]:
    """The labels of each key, ascending, for keys as the kernel stores and sorts them, and which group each is of."""
    kinds = [fn.kind(schema) for fn in keys]
    if all(isinstance(kind, Words) for kind in kinds):  # texts are their own labels
        return list(stored), slice(None)
    return _in_order(list(map(_labels, kinds, stored)))


def _in_order(columns: list[list[object]]) -> tuple[list[list[object]], Integers | slice]:
    """The labels of each key, ascending, and which group each is of."""
    if not columns:
        return [], slice(None)
    order = np.lexsort([_ranks(cells) for cells in reversed(columns)])  # the first key decides, which NumPy takes last
    return [[cells[i] for i in order.tolist()] for cells in columns], order


def _labels(kind: Kind, cells: list[object]) -> list[object]:
    """The labels of a key's cells; texts are their own."""
    return cells if isinstance(kind, Words) else [_value(kind, value) for value in cells]


def _ranks(labels: Sequence[object]) -> Integers:
    """Each label's place in ascending order, equal ones alike."""
    alike = set(map(type, labels)) in ({str}, {int})
    if alike and all(map(operator.lt, labels, itertools.islice(labels, 1, None))):  # type: ignore[arg-type]
        return np.arange(len(labels))  # as the kernel gives them
    keys: Sequence[object] = labels if alike else [_place(value) for value in labels]
    places = {key: i for i, key in enumerate(sorted(dict.fromkeys(keys)))}  # type: ignore[type-var]
    return np.fromiter(map(places.__getitem__, keys), np.int64, len(labels))


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


def _group_cells(values: np.ndarray, missing: Truths | None) -> list[object]:
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
