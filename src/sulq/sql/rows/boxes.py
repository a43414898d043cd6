"""Boxes of column values: in which of them a condition can hold, and which labels a key can have there.

A box gives each column an interval of its declared values, or says that it is
missing. Row functions are worked out on the ends of a box, so that what they give on
any row of it lies within; a box about which that says too little is halved. What is
still undecided when there are too many boxes is kept: a label is left out only where
no row can have it, from the condition and the declared domains alone.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, cast

import numpy as np

from sulq.language import domain, rowfn
from sulq.language.domain import Schema
from sulq.language.kinds import Cells, Code, Floats, Integers, Scalar, Truths
from sulq.language.rowfn import RowFn
from sulq.language.rowfn.dates import RANGES
from sulq.sql.rows.values import TrialRows

MAX_BOXES: Final = 2**13
MAX_ROUNDS: Final = 128
MAX_COLUMNS: Final = 3
STEPS: Final = ("abs", "floor", "ceil", "trunc", "sign")
UNITS: Final = (1_000_000, 60_000_000, 3_600_000_000, domain.MICROSECONDS)  # a second, minute, hour and day
RISING: Final = (rowfn.Round, rowfn.Clip, rowfn.DateTrunc, rowfn.ToDate, rowfn.ToTimestamp)


@dataclass(frozen=True, slots=True)
class ValueRange:
    """What a row function can give on each box: numbers, codes, or truths as 0 and 1.

    `here`, `gone`: whether it can be there, or missing. `tight`: whether both ends occur.
    """

    low: Floats
    high: Floats
    here: Truths
    gone: Truths
    tight: Truths

    @property
    def yes(self) -> Truths:
        """Whether it can be true."""
        return self.here & (self.high >= 1)

    @property
    def no(self) -> Truths:
        """Whether it can be false."""
        return self.here & (self.low <= 0)

    @property
    def sure(self) -> Truths:
        """Whether it is true on the whole box."""
        return self.yes & ~self.no & ~self.gone


@dataclass(frozen=True, slots=True)
class Boxes:
    """Several boxes: the ends of each column's interval, in units, and whether it is missing instead.

    Arrays have a row for each column and a place for each box.
    """

    schema: Schema
    names: tuple[str, ...]
    low: Integers
    high: Integers
    missing: Truths

    @property
    def size(self) -> int:
        """How many there are."""
        return int(self.low.shape[1])

    def take(self, which: Truths) -> Boxes:
        """Some of them."""
        return replace(self, low=self.low[:, which], high=self.high[:, which], missing=self.missing[:, which])

    def widths(self) -> Integers:
        """How many steps each column can still be halved by."""
        return np.where(self.missing, 0, self.high - self.low)

    def halved(self) -> Boxes:
        """Each cut in two across the column of which most is left, moments at the beginning of a period."""
        widths = self.widths()
        columns = [_finite(self.schema, name) for name in self.names]
        spans = np.array([[max(column.high - column.low, 1)] for column in columns])
        cut = self.low + widths // 2 + 1
        for i, column in enumerate(columns):
            for unit in UNITS if isinstance(column, domain.Timestamp) else ():
                cut[i] = np.where(widths[i] >= 2 * unit, cut[i] // unit * unit, cut[i])
        here = (widths / spans).argmax(axis=0) == np.arange(len(self.names))[:, None]
        upper = replace(self, low=np.where(here, cut, self.low))
        return joined([replace(self, high=np.where(here, cut - 1, self.high)), upper])


def joined(several: Sequence[Boxes]) -> Boxes:
    """All boxes of several."""
    low, high, missing = (
        np.concatenate([getattr(boxes, part) for boxes in several], axis=1) for part in ("low", "high", "missing")
    )
    return replace(several[0], low=low, high=high, missing=missing)


def _finite(schema: Schema, name: str) -> domain.Numbered:
    """A column that is a box's side."""
    return cast("domain.Numbered", schema.find(name))


def whole(names: Sequence[str], schema: Schema) -> Boxes | None:
    """Everything these columns can be; None where that is no box."""
    columns = [schema.find(name) for name in names]
    if not 1 <= len(names) <= MAX_COLUMNS or any(item is None or isinstance(item, domain.Text) for item in columns):
        return None
    nullable = [(False, True) if rowfn.Col(name).kind(schema).nullable else (False,) for name in names]
    missing = np.array(list(itertools.product(*nullable)), dtype=np.bool_).T
    ends = np.array([(column.low, column.high) for column in (_finite(schema, name) for name in names)], dtype=np.int64)
    low, high = (np.repeat(ends[:, side, None], missing.shape[1], axis=1) for side in (0, 1))
    return Boxes(schema, tuple(names), low, high, missing)


def allowed(conditions: Sequence[RowFn], boxes: Boxes) -> Boxes:
    """The boxes in which all of the conditions can hold, cut until they do."""
    kept: list[Boxes] = []
    for _ in range(MAX_ROUNDS):
        if not conditions or not boxes.size:
            break
        found = [_Visit(boxes).range(condition) for condition in conditions]
        may = np.logical_and.reduce([item.yes for item in found])
        sure = np.logical_and.reduce([item.sure for item in found])
        done = may & (sure | (boxes.widths().max(axis=0) == 0))
        kept.append(boxes.take(done))
        boxes = boxes.take(may & ~done)
        if sum(item.size for item in kept) + 2 * boxes.size > MAX_BOXES:
            break
        boxes = boxes.halved()
    return joined([*kept, boxes])


def labels(key: RowFn, boxes: Boxes, rises_with: RowFn | None = None) -> tuple[Truths, bool]:
    """Which labels of a key can occur in these boxes, and whether it can be missing.

    `rises_with`: a row function the key never falls with, where it is made of one.
    """
    kind = key.kind(boxes.schema)
    size = kind.size if isinstance(kind, Code) else 0
    found, nameless = np.zeros(size, dtype=np.bool_), False
    for round_ in range(MAX_ROUNDS):
        if not boxes.size:
            break
        visit = _Visit(boxes)
        given = visit.range(key) if rises_with is None else visit.rising(key, rises_with)
        last = 2 * boxes.size > MAX_BOXES or round_ == MAX_ROUNDS - 1
        done = (given.tight & ~(given.here & given.gone)) | (boxes.widths().max(axis=0) == 0) | last
        first, final = (np.clip(end, 0, max(size - 1, 0)).astype(np.int64) for end in (given.low, given.high))
        marks = np.zeros(size + 1, dtype=np.int64)
        shown = done & given.here
        np.add.at(marks, first[shown], 1)
        np.add.at(marks, final[shown] + 1, -1)
        found |= np.cumsum(marks[:-1]) > 0
        nameless |= bool((done & given.gone).any())
        absent = np.concatenate([[0], np.cumsum(~found)])
        nothing_new = (absent[final + 1] == absent[first]) & (~given.gone | nameless)
        boxes = boxes.take(~done & ~nothing_new).halved()
    return found, nameless


def understood(fn: RowFn) -> bool:
    """Whether a row function is made of what is worked out here; a comparison fits a constant to its other side."""
    front = [fn]
    while front:
        for item in front:
            odd = isinstance(item, rowfn.Maths) and item.op not in STEPS
            if type(item) not in _RULES or odd or (isinstance(item, rowfn.Lit) and isinstance(item.value, str)):
                return False
        pairs = ((item, part) for item in front for part in item.parts())
        front = [part for item, part in pairs if not (isinstance(item, rowfn.Compare) and isinstance(part, rowfn.Lit))]
    return True


class _Visit:
    """Works row functions out on boxes, each once."""

    def __init__(self, boxes: Boxes) -> None:
        self.boxes = boxes
        self.schema = boxes.schema
        self.known: dict[int, tuple[RowFn, ValueRange]] = {}  # with the function: no other takes its identity
        self.all, self.none = (np.full(boxes.size, value, dtype=np.bool_) for value in (True, False))

    def range(self, fn: RowFn) -> ValueRange:
        """What a row function can give."""
        if id(fn) not in self.known:
            with np.errstate(all="ignore"):
                self.known[id(fn)] = fn, _RULES[type(fn)](self, fn)
        return self.known[id(fn)][1]

    def constant(self, value: float) -> ValueRange:
        """A number that is certain."""
        number = np.full(self.boxes.size, float(value))
        return ValueRange(number, number, self.all, self.none, self.all)

    def limits(self, fn: RowFn) -> tuple[float, float]:
        """What a row function can give at all."""
        kind = fn.kind(self.schema)
        if isinstance(kind, Code):
            return 0.0, float(kind.size - 1)
        if isinstance(kind, Scalar) and kind.lo is not None and kind.hi is not None:
            return float(kind.lo), float(kind.hi)
        return (-np.inf, np.inf) if isinstance(kind, Scalar) else (0.0, 1.0)

    def column(self, fn: rowfn.Col) -> ValueRange:
        column, i = self.schema.find(fn.name), self.boxes.names.index(fn.name)
        step = 1.0 if column is None or isinstance(column, (domain.Text, domain.Category)) else float(column.step)
        gone = self.boxes.missing[i]
        return ValueRange(self.boxes.low[i] * step, self.boxes.high[i] * step, ~gone, gone, self.all)

    def arithmetic(self, fn: rowfn.Arith) -> ValueRange:
        a, b = self.range(fn.left), self.range(fn.right)
        pairs = [(x, y) for x in (a.low, a.high) for y in (b.low, b.high)]
        act = {"+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide}[fn.op]
        corners = np.stack([act(x, y) for x, y in pairs])
        low, high = corners.min(axis=0), corners.max(axis=0)
        loose = ~(np.isfinite(low) & np.isfinite(high))
        if fn.op == "/":
            loose |= (b.low <= 0) & (b.high >= 0)
        tight = a.tight & b.tight & ((a.low == a.high) | (b.low == b.high)) & ~loose
        low, high = np.where(loose, -np.inf, low), np.where(loose, np.inf, high)
        return ValueRange(low, high, a.here & b.here, a.gone | b.gone | loose, tight)

    def rising(self, fn: RowFn, part: RowFn) -> ValueRange:
        """A row function that never falls where its part does not: its ends are those of the part's."""
        inner, gone, ends = self.range(part), self.none, []
        for values in (inner.low, inner.high):
            frame = TrialRows(self.schema, len(values), seen={id(part): Cells(values, None, part)})
            with np.errstate(all="ignore"):
                ends.append(fn.cells(frame))
            gone = gone if ends[-1].missing is None else gone | ends[-1].missing
        certain = inner.low == inner.high
        unknown = gone & ~certain
        least, most = self.limits(fn)
        low = np.where(unknown, least, ends[0].values.astype(np.float64))
        high = np.where(unknown, most, ends[1].values.astype(np.float64))
        return ValueRange(low, high, inner.here & ~(gone & certain), inner.gone | gone, inner.tight & ~unknown)

    def step(self, fn: RowFn) -> ValueRange:
        return self.rising(fn, fn.parts()[0])

    def within(self, fn: RowFn, apart: Truths) -> ValueRange:
        """A row function that never falls within a period, and is anything it can be where a box holds several."""
        found = self.step(fn)
        least, most = self.limits(fn)
        low, high = np.where(apart, least, found.low), np.where(apart, most, found.high)
        return replace(found, low=low, high=high, tight=found.tight & ~apart)

    def part(self, fn: rowfn.DatePart) -> ValueRange:
        if fn.part not in RANGES:
            return self.step(fn)
        period = RANGES[fn.part][2]
        of = self.step(rowfn.DatePart(period, fn.item) if period == "isoyear" else rowfn.DateTrunc(period, fn.item))
        return self.within(fn, of.low != of.high)

    def modulo(self, fn: rowfn.Modulo) -> ValueRange:
        item, by = self.range(fn.left), abs(float(fn.right))
        before, after = (end - np.fmod(end, by) for end in (item.low, item.high))
        return self.within(fn, ~((before == after) & (item.high - item.low < by)) & (item.low != item.high))

    def maths(self, fn: rowfn.Maths) -> ValueRange:
        if fn.op != "abs":
            return self.step(fn)
        item = self.range(fn.item)
        low, high = np.maximum(np.maximum(item.low, -item.high), 0.0), np.maximum(-item.low, item.high)
        return replace(item, low=low, high=high)

    def compared(self, fn: rowfn.Compare) -> ValueRange:
        left, right, op = fn.sides(self.schema)
        a = self.range(left)
        b = self.range(right) if isinstance(right, RowFn) else self.constant(cast("float", right))
        apart, same = (a.high < b.low) | (b.high < a.low), (a.low == a.high) & (b.low == b.high) & (a.low == b.low)
        yes, no = {
            "==": (~apart, ~same),
            "!=": (~same, ~apart),
            "<": (a.low < b.high, a.high >= b.low),
            "<=": (a.low <= b.high, a.high > b.low),
            ">": (a.high > b.low, a.low <= b.high),
            ">=": (a.high >= b.low, a.low < b.high),
        }[op]
        return self.truth(yes, no, a.here & b.here, a.gone | b.gone)

    def truth(self, yes: Truths, no: Truths, here: Truths, gone: Truths) -> ValueRange:
        """A condition that can be true, and can be false."""
        return ValueRange((~no).astype(np.float64), yes.astype(np.float64), here, gone, ~(yes & no))

    def among(self, fn: rowfn.IsIn) -> ValueRange:
        item = self.range(fn.item)
        values = np.sort(np.array(fn.fitted(self.schema), dtype=np.float64))
        first = np.searchsorted(values, item.low)
        yes = first < np.searchsorted(values, item.high, side="right")
        return self.truth(yes, ~(yes & (item.low == item.high)), item.here, item.gone)

    def logic(self, fn: rowfn.Logic) -> ValueRange:
        items = [self.range(item) for item in fn.items]
        either, each = np.logical_or.reduce, np.logical_and.reduce
        of_yes, of_no = (either, each) if fn.op == "or" else (each, either)
        yes, no = of_yes([item.yes for item in items]), of_no([item.no for item in items])
        undecided = each([(item.no if fn.op == "or" else item.yes) | item.gone for item in items])
        gone = undecided & either([item.gone for item in items])
        return self.truth(yes, no, yes | no, gone)

    def opposite(self, fn: rowfn.Not) -> ValueRange:
        item = self.range(fn.item)
        return self.truth(item.no, item.yes, item.here, item.gone)

    def absent(self, fn: rowfn.IsMissing) -> ValueRange:
        item = self.range(fn.item)
        return self.truth(item.gone, item.here, self.all, self.none)

    def first(self, fn: rowfn.First) -> ValueRange:
        open_, cases = self.all, []
        for item in map(self.range, fn.items):
            cases.append((open_ & item.here, replace(item, gone=self.none)))
            open_ = open_ & item.gone
        return self.hull([*cases, (open_, self.nothing())])

    def hull(self, cases: Sequence[tuple[Truths, ValueRange]]) -> ValueRange:
        """Whatever any of several cases gives, of those that can come about."""
        low, high = np.full(self.boxes.size, np.inf), np.full(self.boxes.size, -np.inf)
        here, gone, tight = self.none, self.none, self.all
        several = np.zeros(self.boxes.size, dtype=np.int64)
        for may, item in cases:
            there = may & item.here
            low = np.where(there, np.minimum(low, item.low), low)
            high = np.where(there, np.maximum(high, item.high), high)
            here, gone = here | there, gone | (may & item.gone)
            several += may
            tight &= item.tight | ~may
        nothing = ~here
        low, high = np.where(nothing, 0.0, low), np.where(nothing, 0.0, high)
        return ValueRange(low, high, here, gone, tight & ((several <= 1) | (low == high)))

    def chosen(self, fn: rowfn.Case | rowfn.Choice, result: Callable[[Any], ValueRange]) -> ValueRange:
        """What the first condition that holds gives."""
        open_, cases = self.all, []
        for when, then in fn.branches:
            holds = self.range(when)
            cases.append((open_ & holds.yes, self.nothing() if then is None else result(then)))
            open_ = open_ & ~holds.sure
        return self.hull([*cases, (open_, self.nothing() if fn.otherwise is None else result(fn.otherwise))])

    def nothing(self) -> ValueRange:
        """What is always missing."""
        return replace(self.constant(0), here=self.none, gone=self.all)

    def each(self, fn: rowfn.Each) -> ValueRange:
        item, kind = self.range(fn.item), fn.item.kind(self.schema)
        if not isinstance(kind, Scalar) or kind.lo is None:
            return item
        first = float(-(-kind.lo // 1))
        return replace(item, low=item.low - first, high=item.high - first)

    def table(self, fn: RowFn, of: RowFn, figures: Sequence[float | None]) -> ValueRange:
        """A row function that looks each code up: certain where the code is."""
        item = self.range(of)
        values = np.array([np.nan if figure is None else figure for figure in figures])
        low, high = (np.clip(end, 0, len(values) - 1).astype(np.int64) for end in (item.low, item.high))
        none = np.concatenate([[0], np.cumsum(np.isnan(values))])
        some_gone = none[high + 1] > none[low]
        all_gone = none[high + 1] - none[low] == high - low + 1
        there = values[~np.isnan(values)]
        rises = bool((np.diff(there) >= 0).all()) and not some_gone.any()
        known = (low == high) | rises
        least, most = self.limits(fn)
        first, last = np.where(known, values[low], least), np.where(known, values[high], most)
        first, last = (np.where(all_gone, 0.0, end) for end in (first, last))
        gone = item.gone | (item.here & some_gone)
        return ValueRange(first, last, item.here & ~all_gone, gone, item.tight & (known | all_gone))

    def or_missing(self, fn: rowfn.OrMissing) -> ValueRange:
        item, kind = self.range(fn.item), fn.item.kind(self.schema)
        last = self.constant(kind.size if isinstance(kind, Code) else 0)
        return self.hull([(item.here, replace(item, gone=self.none)), (item.gone, last)])


_Rule = Callable[[_Visit, RowFn], ValueRange]
_RULES: Final = cast(
    "dict[type[RowFn], _Rule]",
    {
        rowfn.Col: _Visit.column,
        rowfn.Lit: lambda visit, fn: visit.constant(float(fn.value)),
        rowfn.Moment: lambda visit, fn: visit.constant(float(fn.value)),
        rowfn.Arith: _Visit.arithmetic,
        rowfn.Maths: _Visit.maths,
        rowfn.DatePart: _Visit.part,
        rowfn.Modulo: _Visit.modulo,
        rowfn.Compare: _Visit.compared,
        rowfn.IsIn: _Visit.among,
        rowfn.Logic: _Visit.logic,
        rowfn.Not: _Visit.opposite,
        rowfn.IsMissing: _Visit.absent,
        rowfn.First: _Visit.first,
        rowfn.Case: lambda visit, fn: visit.chosen(fn, visit.range),
        rowfn.Choice: lambda visit, fn: visit.chosen(fn, visit.constant),
        rowfn.Each: _Visit.each,
        rowfn.Relabel: lambda visit, fn: visit.table(fn, fn.item, fn.renamed()[1]),
        rowfn.Value: lambda visit, fn: visit.table(fn, fn.item, fn.figures(visit.schema)),
        rowfn.OrMissing: _Visit.or_missing,
        **dict.fromkeys(RISING, _Visit.step),
    },
)
