"""Keys of a released table: which labels a grouped expression can have, from public facts alone.

An expression of one column with a finite declared domain is worked out on every
value of the domain, so its labels are exactly those that can occur; a condition
of WHERE on the same column leaves out the values it excludes. What is missing is
a label of its own, the last one, wherever a row can have it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeGuard, cast

import numpy as np

from sulq.sql.values import Cell
from sulq.terms import domain
from sulq.terms.domain import Schema
from sulq.terms.kinds import Cells, Code, Integers, Scalar, Truth
from sulq.terms.rowfn import (
    Arith,
    Bucket,
    Case,
    Choice,
    Clip,
    Col,
    Compare,
    DatePart,
    DateTrunc,
    Each,
    Lit,
    Maths,
    Modulo,
    Moment,
    OrMissing,
    Position,
    Relabel,
    Round,
    RowFn,
    ToDate,
    periods,
)
from sulq.terms.rowfn.dates import written
from sulq.terms.rowfn.scalar import evaluate

MOST_VALUES: Final = 2**16 + 1  # of a column whose every value is tried
MOST_LABELS: Final = 2**16  # of a number that is returned value by value; beyond it the key is open
MOST_WORK: Final = 2**22  # values times nodes that are tried
STRICT: Final = (Col, Lit, Moment, Arith, Maths, Round, Modulo, DatePart, DateTrunc, ToDate, Clip, Each, Compare)
Label = int | float | str | bool | None
Finite = domain.Int | domain.Bool | domain.Category | domain.Date  # kinds whose every value may be tried


class Domain:
    """Every value of one column, and a missing one, as a batch of rows."""

    def __init__(self, name: str, column: Finite) -> None:
        self.schema = Schema("", ((name, column),))
        self._values: Integers = np.append(np.arange(column.low, column.high + 1, dtype=np.int64), column.low)
        self.size = len(self._values)
        self.seen: dict[int, Cells] = {}

    def codes(self, name: str) -> Cells:
        """The column's cells; the last is missing."""
        missing = np.zeros(self.size, dtype=np.bool_)
        missing[-1] = True
        return Cells(self._values, missing)

    def person(self) -> Integers:
        """No value of a domain is a person."""
        raise LookupError("no persons")

    def position(self) -> Integers:
        """No value of a domain has a place."""
        raise LookupError("no positions")


def finite(column: domain.Column | None) -> TypeGuard[Finite]:
    """Whether every value of a column can be tried."""
    if column is None or isinstance(column, (domain.Text, domain.Real, domain.Timestamp)):
        return False
    return column.high - column.low < MOST_VALUES


def columns(fn: RowFn) -> set[str] | None:
    """The columns a row function is made of; None where it looks at more than columns."""
    names, front, size = set[str](), [fn], 0
    while front:
        size += len(front)
        if size > MOST_WORK or any(isinstance(item, (Bucket, Position)) for item in front):
            return None
        names |= {item.name for item in front if isinstance(item, Col)}
        front = [part for item in front for part in item.parts()]
    return names


def key(item: Cell, conditions: Sequence[RowFn], schema: Schema) -> RowFn:
    """A grouped expression as a key: closed, with all its labels, or open where they are not known."""
    names = columns(item.fn)
    if names is not None and len(names) == 1:
        name = next(iter(names))
        column = schema.find(name)
        if finite(column):
            found = _tried(item, name, column, [fn for fn in conditions if columns(fn) == {name}])
            if found is not None:
                return found
    fn = closed(item, schema)
    kind = fn.kind(schema)
    if not isinstance(kind, Code) or not kind.nullable or _never_missing(fn, names, conditions, schema):
        return fn
    return OrMissing(fn)


def _tried(item: Cell, name: str, column: Finite, conditions: list[RowFn]) -> RowFn | None:
    """The labels of an expression of one column, by trying all its values; None where that says nothing."""
    frame = Domain(name, column)
    cells = evaluate(item.fn, frame)
    kept = np.ones(frame.size, dtype=np.bool_)
    kept[-1] = column.missing
    for condition in conditions:
        holds = evaluate(condition, frame)
        kept &= holds.values.astype(np.bool_)
        kept &= True if holds.missing is None else ~holds.missing
    gone = np.zeros(frame.size, dtype=np.bool_) if cells.missing is None else cells.missing
    nameless = bool((kept & gone).any())
    labels = [
        _label(item, value) if here else None
        for value, here in zip(cells.values.tolist(), (kept & ~gone).tolist(), strict=True)
    ]
    different = set(labels) - {None}
    many = len(different) > MOST_LABELS and not isinstance(column, domain.Category)
    if not different or many:
        return None
    base: RowFn = Col(name) if isinstance(column, domain.Category) else Each(Col(name))
    if labels[-1] is not None:  # the expression has a value even where the column has none
        renamed: RowFn = Relabel(OrMissing(base), tuple(labels))
    elif labels[:-1] == list(_labels_of(base, frame.schema)):
        renamed = base
    else:
        renamed = Relabel(base, tuple(labels[:-1]))
    return OrMissing(renamed) if nameless else renamed


def _labels_of(base: RowFn, schema: Schema) -> tuple[object, ...]:
    kind = base.kind(schema)
    return kind.labels if isinstance(kind, Code) else ()


def _label(item: Cell, value: object) -> Label:
    """One value as it is shown: a whole number, a date's text, a category's name."""
    kind = item.kind
    if isinstance(kind, Code):
        return cast("Label", kind.labels[int(cast("int", value))])
    if isinstance(kind, Truth):
        return bool(value)
    if isinstance(kind, Scalar):
        number = cast("float", value)
        if kind.clock is not None:
            return written(int(number), kind.clock)
        return int(number) if number == int(number) else number
    return str(value)


def closed(item: Cell, schema: Schema) -> RowFn:
    """The key of an expression of several columns, or of one that is not finite; open where no list of labels is."""
    fn, kind = item.fn, item.kind
    if isinstance(kind, Code):
        return fn
    if isinstance(kind, Truth):
        return Each(fn)
    if not isinstance(kind, Scalar):
        return fn
    chosen = _constant_case(fn)
    if chosen is not None:
        return chosen
    if isinstance(fn, DateTrunc):
        inner = fn.item.kind(schema)
        few = isinstance(inner, Scalar) and _periods(fn.part, inner) <= MOST_LABELS
        return periods(fn.part, fn.item, schema) if few else fn
    whole = kind.step is not None and kind.step.denominator == 1 and kind.lo is not None and kind.hi is not None
    if not whole or cast("int", kind.hi) - cast("int", kind.lo) >= MOST_LABELS:
        return fn
    if kind.clock == "date":
        return periods("day", fn, schema)
    return fn if kind.clock is not None else Each(fn)


def _periods(part: str, kind: Scalar) -> int:
    """About how many periods a range of dates holds."""
    if kind.lo is None or kind.hi is None:
        return MOST_LABELS + 1
    days = {"year": 365, "quarter": 90, "month": 28, "week": 7}.get(part, 1)
    unit = 1 if kind.clock == "date" else domain.MICROSECONDS
    if kind.clock == "timestamp" and part in ("hour", "minute", "second"):
        unit = {"hour": 3_600_000_000, "minute": 60_000_000, "second": 1_000_000}[part]
    return int((kind.hi - kind.lo) / (days * unit)) + 1


def _constant_case(fn: RowFn) -> Choice | None:
    """CASE with constant numbers as results: its labels are those numbers and no others."""
    if not isinstance(fn, Case):
        return None
    results = [then for _, then in fn.branches] + ([] if fn.otherwise is None else [fn.otherwise])
    if not all(isinstance(result, Lit) and isinstance(result.value, (int, float)) for result in results):
        return None
    values = sorted({cast("float", result.value) for result in results if isinstance(result, Lit)})
    place = {value: i for i, value in enumerate(values)}
    branches = tuple((when, place[cast("float", cast("Lit", then).value)]) for when, then in fn.branches)
    last = None if fn.otherwise is None else place[cast("float", cast("Lit", fn.otherwise).value)]
    return Choice(branches, tuple(values), last)


def _never_missing(fn: RowFn, names: set[str] | None, conditions: Sequence[RowFn], schema: Schema) -> bool:
    """Whether WHERE leaves no row in which the key is missing: each of its columns is asked for by a condition."""
    if names is None or not _strict(fn):
        return False
    return all(any(_rejects(condition, name, schema) for condition in conditions) for name in names)


def _strict(fn: RowFn) -> bool:
    """Whether a row function is missing only where one of its columns is."""
    front = [fn]
    while front:
        for item in front:
            if isinstance(item, Arith) and item.op == "/":
                if not (isinstance(item.right, Lit) and item.right.value):
                    return False
            elif isinstance(item, Maths):
                if item.op in ("sqrt", "ln", "exp"):
                    return False
            elif isinstance(item, Relabel):
                if None in item.labels:
                    return False
            elif not isinstance(item, STRICT):
                return False
        front = [part for item in front for part in item.parts()]
    return True


def _rejects(condition: RowFn, name: str, schema: Schema) -> bool:
    """Whether a condition on one column is not true where that column is missing."""
    column = schema.find(name)
    if columns(condition) != {name} or column is None:
        return False
    frame = _Missing(name, column)
    found = evaluate(condition, frame)
    return bool(not found.values[0] or (found.missing is not None and found.missing[0]))


class _Missing(Domain):
    """One row in which the column is missing."""

    def __init__(self, name: str, column: domain.Column) -> None:
        self.schema = Schema("", ((name, column),))
        text = isinstance(column, domain.Text)
        empty = np.array([""], dtype=object) if text else np.array([column.low], dtype=np.int64)  # type: ignore[union-attr]
        self._values = cast("Integers", empty)
        self.size = 1
        self.seen = {}
