"""How small and how large a number can be, other than 0: what shows that no arithmetic on it can fail.

PostgreSQL stops a statement where a product or quotient of doubles leaves their
range at either end. Whether one can is known from public facts alone: what cannot
is written as SQL, and the rest is left to the batch path, where nothing fails
(T30). No guard is needed, and none is relied on: the planner may work out a
branch of a CASE before its condition.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Final, NamedTuple

from sulq.curator.engines.piece import NotInSql
from sulq.terms.domain import Category, Schema, Text
from sulq.terms.kinds import Truth
from sulq.terms.rowfn.dates import DatePart, DateTrunc, Moment, ToDate, ToTimestamp, clocked
from sulq.terms.rowfn.labels import Value
from sulq.terms.rowfn.maths import Greatest, Least, Maths, Modulo, Power, Round
from sulq.terms.rowfn.missing import First, NullIf
from sulq.terms.rowfn.scalar import Arith, Case, Clip, Col, Fill, Lit, RowFn, against, number
from sulq.terms.rowfn.texts import IndexOf, Length

SMALLEST: Final = 1e-290  # far within the normal doubles, so that rounding here does not matter
LARGEST: Final = 1e290
WIDEST: Final = 2.0**62
ULP: Final = 2.0**-53


class Extent(NamedTuple):
    """Bounds of the size of a number that is not 0; (inf, 0) of one that always is."""

    least: float
    most: float

    @property
    def safe(self) -> Extent:
        """The same, where doubles hold it with room to spare."""
        if self.most > 0 and not (self.least >= SMALLEST and self.most <= LARGEST):
            raise NotInSql("a number near the ends of the doubles")
        return self


NOTHING: Final = Extent(math.inf, 0.0)
ONE: Final = Extent(1.0, 1.0)


def of(value: float) -> Extent:
    """A constant's."""
    return NOTHING if value == 0 else Extent(abs(value), abs(value))


def either(*extents: Extent) -> Extent:
    """Of a number that is one of several."""
    return Extent(min(e.least for e in extents), max(e.most for e in extents))


def product(a: Extent, b: Extent) -> Extent:
    """Of a product."""
    if a.most == 0 or b.most == 0:
        return NOTHING
    return Extent(a.safe.least * b.safe.least, a.most * b.most).safe


def quotient(a: Extent, b: Extent) -> Extent:
    """Of a quotient by what is not 0."""
    if a.most == 0 or b.most == 0:
        return NOTHING
    return Extent(a.safe.least / b.safe.most, a.most / b.least).safe


def added(a: Extent, b: Extent) -> Extent:
    """Of a sum or difference: a whole multiple of the finer of both last places."""
    if a.most == 0 or b.most == 0:
        return either(a, b)
    return Extent(min(a.safe.least, b.safe.least) * ULP, a.most + b.most).safe


def whole(a: Extent) -> Extent:
    """Of what is rounded to a whole number."""
    return Extent(1.0, a.most + 1.0)


def power(a: Extent, times: int) -> Extent:
    """Of a product of so many equal factors, and of each product on the way."""
    found = a
    for _ in range(times - 1):
        found = product(found, a)
    return found


class Extents:
    """The extents of row functions over one schema, each worked out once."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self._known: dict[int, tuple[Extent, RowFn]] = {}

    def of(self, fn: RowFn) -> Extent:
        """A row function's, used as a number; NotInSql where it is none that SQL works out, or nothing is known."""
        if id(fn) not in self._known:
            self._known[id(fn)] = (self._of(fn), fn)
        return self._known[id(fn)][0]

    def _of(self, fn: RowFn) -> Extent:
        if isinstance(fn.kind(self.schema), Truth):
            return ONE
        found = self._leaf(fn) or _mathematical(self, fn) or _counted(self, fn)
        if found is not None:
            return found
        match fn:
            case Arith(op, left, right):
                act = {"*": product, "/": quotient}.get(op, added)
                return act(self.of(left), self.of(right))
            case Case(branches, otherwise):
                thens = [then for _, then in branches] + ([] if otherwise is None else [otherwise])
                return either(*(self.of(then) for then in thens))
            case Clip(item, lo, hi):
                inner, ends = self.of(item), either(of(float(lo)), of(float(hi)))
                return Extent(min(inner.least, ends.least), ends.most)
            case Fill(item, value):
                return either(self.of(item), of(float(against(value, item.kind(self.schema)))))
            case First(items) | Least(items) | Greatest(items):
                return either(*(self.of(item) for item in items))
            case NullIf(item):
                return self.of(item)
        raise NotInSql(type(fn).__name__)

    def _leaf(self, fn: RowFn) -> Extent | None:
        match fn:
            case Col(name):
                return self._column(name)
            case Lit(value) if not isinstance(value, str):
                return of(float(value))
            case Moment():
                return of(float(fn.value))
            case Value():
                return either(NOTHING, *(of(x) for x in fn.figures(self.schema) if x is not None))
        return None

    def _column(self, name: str) -> Extent:
        column = self.schema.find(name)
        if column is None or isinstance(column, (Text, Category)):
            raise NotInSql(name)
        try:
            return Extent(float(column.step), float(max(abs(column.low), abs(column.high)) * column.step))
        except OverflowError:
            raise NotInSql(name) from None


def _mathematical(extents: Extents, fn: RowFn) -> Extent | None:
    match fn:
        case Maths("abs", item):
            return extents.of(item)
        case Maths("floor" | "ceil" | "trunc", item):
            return whole(extents.of(item))
        case Maths("sign", _):
            return ONE
        case Maths("sqrt", item):
            return _root(extents.of(item))
        case Round(item, digits):
            inner, scale = extents.of(item), of(10.0 ** abs(digits))
            if fn.unchanged(extents.schema):
                return inner
            there, back = (product, quotient) if digits >= 0 else (quotient, product)
            return back(whole(there(inner, scale)), scale)
        case Power(item, exponent):
            inner = extents.of(item)
            if exponent == 0:
                return ONE
            if fn.root:
                return _root(inner)
            if fn.whole is not None:
                found = power(inner, abs(fn.whole))
                return found if fn.whole > 0 else quotient(ONE, found)
    return None


def _counted(extents: Extents, fn: RowFn) -> Extent | None:
    """Of dates and lengths, whose interval is always known: whole numbers, or seconds with their fraction."""
    match fn:
        case ToDate(item) | ToTimestamp(item) if clocked(item, extents.schema).clock == fn.kind(extents.schema).clock:
            return extents.of(item)
        case DatePart() | DateTrunc() | ToDate() | ToTimestamp() | Length() | IndexOf():
            kind = fn.kind(extents.schema)
            if kind.lo is None or kind.hi is None:
                return None
            return Extent(1.0 if kind.step is not None else 1e-7, float(max(-kind.lo, kind.hi, Fraction(1))))
        case Modulo(left, right):
            inner, step = extents.of(left), number(left, extents.schema).step
            if step is None or step.denominator != 1 or right != int(right) or max(inner.most, abs(right)) >= WIDEST:
                return None
            return Extent(1.0, max(1.0, inner.most))
    return None


def _root(a: Extent) -> Extent:
    return NOTHING if a.most == 0 else Extent(math.sqrt(a.least), math.sqrt(a.most)).safe
