"""Numbers, conditions and keys as steps of a kernel program.

Every step is the one that the row function's own meaning in NumPy takes, so that the sums are the same to the bit.
What has no such steps (texts, dates, logarithms) is a column that the statement works out.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Final, cast

from sulq.compile.emit.emitter import MODES, Mode, NotInSql
from sulq.compile.statements.kept_table import PERSON, PLACE
from sulq.compile.statements.programs.steps import Cell, Steps
from sulq.kernel.programs import (
    Step,
)
from sulq.language.domain import Bool, Category, Text
from sulq.language.kinds import Code, Grid, Scalar, Truth
from sulq.language.rowfn import Arith, Case, Clip, Col, Compare, Fill, IsIn, IsMissing, Lit, Logic, Not, Position, RowFn
from sulq.language.rowfn.conditions import against
from sulq.language.rowfn.keys import (
    HALF,
    PRIME,
    Bins,
    Bucket,
    Choice,
    Each,
    OrMissing,
    Relabel,
    Route,
    Value,
    code,
    mixing,
)
from sulq.language.rowfn.maths import OPERATIONS, Greatest, Least, Maths, Modulo, Power, Round
from sulq.language.rowfn.scalar import ARITHMETIC, First, NullIf
from sulq.language.rowfn.vectors import (
    Dot,
    Lookup,
    Nearest,
    grid_vector,
)

MAX_STEPS: Final = 4096  # so many coordinates of another vector are taken one by one
COMPARISONS: Final = {
    "==": "equal",
    "!=": "not_equal",
    "<": "less",
    "<=": "less_equal",
    ">": "greater",
    ">=": "greater_equal",
}


class Values(Steps, ABC):
    """Writes the row functions of one program that give one value a row."""

    def value(self, mode: Mode, fn: RowFn) -> Cell:
        """A row function used as a number, a condition or a key; what has no steps is a column of the statement."""
        known = self._known.get((mode, id(fn)))
        if known is None:
            found = self._written(mode, fn)
            cell = self._worked_out(self.emitter.write(mode, fn), fn) if found is None else found
            known = self._known[mode, id(fn)] = (cell, fn)
        return known[0]

    def _written(self, mode: Mode, fn: RowFn) -> Cell | None:
        if isinstance(fn, (Fill, First, NullIf)) and mode == self._mode(fn):
            return self._there(mode, fn)
        if mode == "number":
            return self._number(fn)
        return self._truth(fn) if mode == "truth" else self._code(fn)

    def _there(self, mode: Mode, fn: Fill | First | NullIf) -> Cell:
        """What is missing filled in, or taken away."""
        if isinstance(fn, First):
            return self._first([self.value(mode, item) for item in fn.items])
        cell = self.value(mode, fn.item)
        if isinstance(fn, NullIf):
            return cell[0], self.either(self._holds(self.truth(fn.equal)), cell[1])
        constant = against(fn.value, fn.item.kind(self.schema))
        return self._filled(cell, bool(constant) if mode == "truth" else float(constant)), None

    def number(self, fn: RowFn) -> Cell:
        """A row function used as a number: a double."""
        return self.value("number", fn)

    def truth(self, fn: RowFn) -> Cell:
        """A row function used as a condition."""
        return self.value("truth", fn)

    def code(self, fn: RowFn) -> Cell:
        """A row function used as a key: whole numbers from 0."""
        return self.value("code", fn)

    def _number(self, fn: RowFn) -> Cell | None:
        kind = fn.kind(self.schema)
        if isinstance(kind, Truth):
            value, missing = self.truth(fn)
            return self.apply("float", value), missing
        match fn:
            case Col(name):
                column = self.schema.find(name)
                if column is None or isinstance(column, (Bool, Category, Text)):
                    raise NotInSql(name)
                value, missing = self.raw(name)
                value = self.apply("float", value)
                return value if column.step == 1 else self._times(value, float(column.step)), missing
            case Lit(given) if not isinstance(given, (bool, str)):
                return self.constant(float(given)), None
            case Position():
                value, _ = self._column(PLACE, PLACE, as_is=True, missing=False)
                return self.apply("float", self.apply("minimum", value, self.constant(Position.LIMIT))), None
            case Arith(op, left, right):
                return self._arithmetic(fn, op, self.number(left), self.number(right))
            case Case(branches, otherwise):
                return self._case(branches, otherwise)
            case Clip(item, lo, hi):
                value, missing = self.number(item)
                value = self.apply("maximum", value, self.constant(float(lo)))
                return self.apply("minimum", value, self.constant(float(hi))), missing
            case Dot(vector):
                weights, step = fn.units()
                stack = self.stack(vector)
                found = self.dot(stack, weights)
                unit = float(grid_vector(vector, self.schema).step * step)
                return self._times(found, unit), self._gone(vector)
            case Lookup() if isinstance(kind, Scalar):
                index, missing = self._index(fn)
                units, step = fn.units()
                entries = tuple(float(unit) for unit in units[:, 0].tolist())
                return self._times(self.take(index, entries), float(step)), missing
            case Value(item):
                return self._labelled(fn, *self.code(item))
        return self._maths(fn)

    def _maths(self, fn: RowFn) -> Cell | None:
        """Functions whose results are exactly rounded; logarithms and powers that are none are the statement's."""
        match fn:
            case Maths("sqrt", item):
                return self._root(*self.number(item))
            case Maths(op, item) if OPERATIONS[op].exact:
                value, missing = self.number(item)
                return self.apply(OPERATIONS[op].act.__name__, value), missing
            case Power(item) if fn.root:
                return self._root(*self.number(item))
            case Power(item) if fn.exponent == 0:
                return self.constant(1.0), self.number(item)[1]
            case Power(item) if fn.whole is not None:
                value, missing = self.number(item)
                found = value
                for _ in range(abs(fn.whole) - 1):
                    found = self.apply("multiply", found, value)
                if fn.whole > 0 and fn.kind(self.schema).bounded:
                    return found, missing
                return self._finite(found if fn.whole > 0 else self.apply("divide", self.constant(1.0), found), missing)
            case Modulo(item, by):
                value, missing = self.number(item)
                return self.apply("fmod", value, self.constant(float(by))), missing
            case Least(items):
                return self._extreme("minimum", items)
            case Greatest(items):
                return self._extreme("maximum", items)
            case Round(item):
                return self._rounded(fn, *self.number(item))
        return None

    def _extreme(self, name: str, items: Sequence[RowFn]) -> Cell:
        value, missing = self.number(items[0])
        for more, none in (self.number(item) for item in items[1:]):
            found = self.apply(name, value, more)
            found = found if none is None else self.apply("where", none, value, found)
            value = found if missing is None else self.apply("where", missing, more, found)
            missing = None if missing is None or none is None else self.apply("logical_and", missing, none)
        return value, missing

    def _rounded(self, fn: Round, value: int, missing: int | None) -> Cell:
        if fn.unchanged(self.schema):
            return value, missing
        scale = self.constant(10.0 ** abs(fn.digits))
        scaled = self.apply("multiply" if fn.digits >= 0 else "divide", value, scale)
        far = self.apply("absolute", scaled)
        size = self.apply("floor", far)
        up = self.apply("greater_equal", self.apply("subtract", far, size), self.constant(0.5))
        size = self.apply("add", size, self.apply("float", up))
        below = self.apply("less", scaled, self.constant(0.0))
        size = self.apply("where", below, self.apply("subtract", self.constant(0.0), size), size)
        found = self.apply("divide" if fn.digits >= 0 else "multiply", size, scale)
        return (found, missing) if fn.kind(self.schema).bounded else self._finite(found, missing)

    def _arithmetic(self, fn: Arith, op: str, left: Cell, right: Cell) -> Cell:
        value, missing = self.apply(ARITHMETIC[op].__name__, left[0], right[0]), self.either(left[1], right[1])
        if fn.kind(self.schema).bounded:
            return value, missing
        return self._finite(value, missing)

    def _case(self, branches: tuple[tuple[RowFn, RowFn], ...], otherwise: RowFn | None) -> Cell:
        value, missing = (self.constant(0.0), self.constant(True)) if otherwise is None else self.number(otherwise)
        for when, then in reversed(branches):
            holds = self._holds(self.truth(when))
            given, none = self.number(then)
            value = self.apply("where", holds, given, value)
            if none is not None or missing is not None:
                sides = [self.constant(False) if each is None else each for each in (none, missing)]
                missing = self.apply("where", holds, *sides)
        return value, missing

    def _labelled(self, fn: Value, index: int, missing: int | None) -> Cell:
        figures = fn.figures(self.schema)
        found = self.take(index, tuple(0.0 if x is None else float(x) for x in figures))
        if any(x is None for x in figures):
            none = self.take(index, tuple(int(x is None) for x in figures))
            missing = self.either(missing, self.apply("not_equal", none, self.constant(0)))
        return found, missing

    def _truth(self, fn: RowFn) -> Cell | None:
        match fn:
            case Col(name) if isinstance(self.schema.find(name), Bool):
                value, missing = self.raw(name)
                return self.apply("not_equal", value, self.constant(0)), missing
            case Lit(value) if isinstance(value, bool):
                return self.constant(value), None
            case Compare():
                return self._compare(fn)
            case IsIn(item):
                return self._is_in(fn, item)
            case Logic(op, items):
                return self._logic(op, [self.truth(item) for item in items])
            case Not(item):
                value, missing = self.truth(item)
                return self.apply("logical_not", value), missing
            case IsMissing(item):
                missing = self._missing(item)
                return None if missing == -1 else (self.constant(False) if missing is None else missing, None)
        return None

    def _missing(self, item: RowFn) -> int | None:
        """Where a row function is missing; -1: the statement says it."""
        if isinstance(item.kind(self.schema), Grid):
            return self._gone(item)
        mode = self._mode(item)
        return -1 if mode is None else self.value(mode, item)[1]

    def _mode(self, fn: RowFn) -> Mode | None:
        """As what a row function of its kind is worked out; None: by the statement."""
        mode = MODES.get(type(fn.kind(self.schema)))
        return None if mode == "words" else mode

    def _compare(self, fn: Compare) -> Cell | None:
        left, right, op = fn.sides(self.schema)
        mode = self._mode(left)
        if mode is None:
            return None
        a, none = self.value(mode, left)
        if isinstance(right, RowFn):
            b, other = self.value(mode, right)
        else:
            b, other = self.constant(cast("float", right)), None
        return self.apply(COMPARISONS[op], a, b), self.either(none, other)

    def _is_in(self, fn: IsIn, item: RowFn) -> Cell | None:
        mode, values = self._mode(item), fn.fitted(self.schema)
        if mode is None or len(values) > MAX_STEPS:
            return None
        value, missing = self.value(mode, item)
        found = self.constant(False)
        for each in values:
            found = self.apply("logical_or", found, self.apply("equal", value, self.constant(cast("float", each))))
        return found, missing

    def _logic(self, op: str, cells: Sequence[Cell]) -> Cell:
        """Three-valued: unknown only where the known parts do not decide."""
        decided: int | None = None
        for value, missing in cells:
            strikes = value if op == "or" else self.apply("logical_not", value)
            strikes = self._holds((strikes, missing))
            decided = strikes if decided is None else self.apply("logical_or", decided, strikes)
        found = cast("int", decided)
        unknown = self.either(*(missing for _, missing in cells))
        missing = None if unknown is None else self._holds((unknown, found))
        return found if op == "or" else self.apply("logical_not", found), missing

    def _code(self, fn: RowFn) -> Cell | None:
        match fn:
            case Col(name):
                value, missing = self.raw(name)
                return self.apply("whole", value), missing
            case Each(item):
                return self._each(item)
            case Bins(item):
                return self._bins(fn, *self.number(item))
            case Bucket(count, salt):
                return self._bucket(count, *mixing(salt)), None
            case Nearest(vector):
                return self._nearest(self.stack(vector), fn.units(self.schema).tolist()), self._gone(vector)
            case OrMissing(item):
                return self._filled(self.code(item), code(item, self.schema).size), None
            case Relabel(item):
                index, missing = self.code(item)
                places = tuple(-1 if place is None else place for place in fn.renamed()[1])
                found = self.take(index, places)
                none = self.apply("less", found, self.constant(0)) if -1 in places else None
                return found, self.either(missing, none)
            case Choice():
                return self._choice(fn)
            case Route():
                return self._route(fn)
        return None

    def _each(self, item: RowFn) -> Cell:
        kind = item.kind(self.schema)
        if isinstance(kind, Code):
            return self.code(item)
        column = self.schema.find(item.name) if isinstance(item, Col) else None
        low = math.ceil(kind.lo) if isinstance(kind, Scalar) and kind.lo is not None else 0
        if column is not None and not isinstance(column, Text) and column.step == 1:
            value, missing = self.raw(cast("Col", item).name)
            value = self.apply("whole", value)
            return value if low == 0 else self.apply("subtract", value, self.constant(low)), missing
        value, missing = self.number(item)
        return self.apply("whole", self.apply("subtract", value, self.constant(float(low)))), missing

    def _bins(self, fn: Bins, value: int, missing: int | None) -> Cell:
        edges = tuple(float(edge) for edge in fn.fitted(self.schema))
        last = self.constant(len(edges) - 2)
        index = self.apply("subtract", self.put(Step("search", (value,), edges)), self.constant(1))
        index = self.apply("where", self.apply("equal", value, self.constant(edges[-1])), last, index)
        if not fn.kind(self.schema).nullable:
            return index, None
        below, above = self.apply("less", index, self.constant(0)), self.apply("greater", index, last)
        return index, self.either(missing, below, above)

    def _bucket(self, count: int, a: int, b: int, c: int) -> int:
        person, _ = self._column(PERSON, PERSON, as_is=True, missing=False)
        half = self.constant(HALF)
        first = self.apply("multiply", self.constant(a), self.apply("floor_divide", person, half))
        second = self.apply("multiply", self.constant(b), self.apply("remainder", person, half))
        mixed = self.apply("add", self.apply("add", first, second), self.constant(c))
        return self.apply("remainder", self.apply("remainder", mixed, self.constant(PRIME)), self.constant(count))

    def _choice(self, fn: Choice) -> Cell:
        found = self.constant(-1 if fn.otherwise is None else fn.otherwise)
        for when, place in reversed(fn.branches):
            mine = self.constant(-1 if place is None else place)
            found = self.apply("where", self._holds(self.truth(when)), mine, found)
        return found, self.apply("less", found, self.constant(0))

    @abstractmethod
    def stack(self, fn: RowFn) -> int:
        """A vector of whole numbers."""

    @abstractmethod
    def _gone(self, fn: RowFn) -> int | None:
        """Where a vector is missing."""

    @abstractmethod
    def _index(self, fn: Lookup) -> Cell:
        """The row of a table that a row's keys name."""

    @abstractmethod
    def _nearest(self, stack: int, centres: list[list[int]]) -> int:
        """The number of the nearest centre, the lowest of several."""

    @abstractmethod
    def _route(self, fn: Route) -> Cell:
        """The leaf of a public tree."""
