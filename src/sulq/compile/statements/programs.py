"""Tallies to programs of the kernel: vectors, what is read off them, and conditions and keys beside them.

Every step is the one that the row function's own meaning in NumPy takes, so that the sums are the same to the bit.
What has no such steps (texts, dates, logarithms) is a column that the statement works out. Nothing here is believed:
the kernel reads the program that comes of it (docs/theory/kernel.md).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Final, cast

import numpy as np

from sulq.compile.emit.emitter import Emitter, NotInSql
from sulq.compile.emit.labels import MAX_LIST_ENTRIES
from sulq.compile.emit.literals import double, whole
from sulq.compile.emit.piece import Piece, joined
from sulq.compile.statements.kept_table import PERSON, PLACE, Rows
from sulq.kernel import matrix
from sulq.kernel.programs import (
    Fold,
    Key,
    Program,
    Stack,
    Step,
    Sum,
    Unit,
)
from sulq.language import tally as engine
from sulq.language.domain import Bool, Category, Schema, Text, power_of_two
from sulq.language.kinds import Code, Grid, Scalar, Truth
from sulq.language.rowfn import Arith, Case, Clip, Col, Compare, Fill, IsIn, IsMissing, Lit, Logic, Not, Position, RowFn
from sulq.language.rowfn.conditions import against
from sulq.language.rowfn.keys import HALF, PRIME, Bins, Bucket, Each, mixing
from sulq.language.rowfn.labels import Choice, OrMissing, Relabel, Value, code
from sulq.language.rowfn.maths import Greatest, Least, Maths, Modulo, Power, Round
from sulq.language.rowfn.missing import First, NullIf
from sulq.language.rowfn.route import Route
from sulq.language.rowfn.scaled import Scaled
from sulq.language.rowfn.vectors import (
    Bernstein,
    Dot,
    Lookup,
    Nearest,
    Outer,
    Vector,
    WithinBall,
    grid_vector,
    to_grid,
)
from sulq.language.tally import Block, Tally

PLAIN: Final = re.compile(r"[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)*")
LONG: Final = 4096  # so many coordinates of another vector are taken one by one
EXACT: Final = {"abs": "absolute", "floor": "floor", "ceil": "ceil", "trunc": "trunc", "sign": "sign"}
ARITHMETIC: Final = {"+": "add", "-": "subtract", "*": "multiply", "/": "divide"}
COMPARISONS: Final = {
    "==": "equal",
    "!=": "not_equal",
    "<": "less",
    "<=": "less_equal",
    ">": "greater",
    ">=": "greater_equal",
}
Cell = tuple[int, int | None]
"""The step of a value, and the step that says where it is missing; None: nowhere."""


def _tame(number: float | Fraction) -> bool:
    """Whether a few products with such numbers and sums of them neither overflow nor become subnormal."""
    return number == 0 or 2**-50 <= math.fabs(number) <= 2**50


class Beside(Emitter):
    """Writes what stands about an inner product or a table, where the program has no step for it."""

    def _number(self, fn: RowFn) -> Piece:
        if isinstance(fn, Dot) and isinstance(fn.vector, Vector):
            kind, (weights, step) = grid_vector(fn.vector, self.schema), fn.units()
            units = [
                self.on_grid(self.number(item), kind.step, kind.low[i], kind.high[i])
                for i, item in enumerate(fn.vector.items)
            ]
            terms = " + ".join(f"{double(float(weight))} * ({{{i}}})" for i, weight in enumerate(weights))
            return joined(f"(({terms}) * {double(float(kind.step * step))})", *units)
        if isinstance(fn, Lookup) and len(fn.table) <= MAX_LIST_ENTRIES:
            (units_, step), (sizes, _) = fn.units(), fn.sizes(self.schema)
            index = joined("CAST({0} AS BIGINT)", self.code(fn.keys[0]))
            for key, size in zip(fn.keys[1:], sizes[1:], strict=True):
                index = joined(f"({{0}} * {size} + {{1}})", index, self.code(key))
            entries = ", ".join(double(float(unit) * float(step)) for unit in units_[:, 0].tolist())
            return joined(f"CAST(list_extract(list_value({entries}), {{0}} + 1) AS DOUBLE)", index)
        return super()._number(fn)


class Compiler:
    """Writes the program of some tallies over one relation's rows."""

    def __init__(self, schema: Schema, rows: Rows) -> None:
        self.schema = schema
        self.rows = rows
        self.emitter = Beside(schema, rows)
        self.steps: dict[str, int] = {}
        self._listed: list[Step | Stack] = []
        self._columns: dict[str, tuple[str, bool]] = {}  # what is selected, as it stands or worked out
        self._known: dict[tuple[str, int], tuple[Cell, RowFn]] = {}

    def fold(self, tallies: Sequence[Tally], blocks: Sequence[tuple[int, int]]) -> Fold:
        """The program that sums some blocks, each of a tally; NotInSql where it has no step for a part."""
        condition = ""
        table = tuple(self.rows.relation.split(".")) if PLAIN.fullmatch(self.rows.relation) else None
        conditions = {id(tallies[i].where) for i, _ in blocks}
        where = tallies[blocks[0][0]].where
        if table is None and where is not None and len(conditions) == 1:  # the statement leaves rows out
            try:
                condition, where = f" WHERE {self.emitter.truth(where).sql}", None
            except NotInSql:
                condition = ""
        sums = tuple(self._sum(tallies[i], tallies[i].blocks[place], filtered=bool(condition)) for i, place in blocks)
        return self._fold(sums, tuple(blocks), table, condition)

    def _fold(
        self, sums: tuple[Sum, ...], blocks: tuple[tuple[int, int], ...], table: tuple[str, ...] | None, condition: str
    ) -> Fold:
        steps = tuple(self._listed)
        plain = table is not None and self._columns and all(as_is for _, as_is in self._columns.values())
        if plain:
            names = tuple(self._columns)
            program = Program(names, steps, sums)
            return Fold(program, matrix.text(cast("tuple[str, ...]", table), names), (), table, blocks)
        found = [sql for sql, _ in self._columns.values()] or ["1"]
        program = Program(tuple(f"f{i}" for i in range(len(found))), steps, sums)
        selected = ", ".join(f"{sql} AS f{i}" for i, sql in enumerate(found))
        scan = self.emitter.scan(f"SELECT {selected} FROM {self.emitter.relation()}{condition}")
        return Fold(program, scan.sql, scan.texts, None, blocks)

    # Steps

    def put(self, step: Step | Stack) -> int:
        """The place of a step, each once."""
        said = repr(step)
        if said not in self.steps:
            self.steps[said] = len(self._listed)
            self._listed.append(step)
        return self.steps[said]

    def constant(self, value: float) -> int:
        """A public number."""
        return self.put(Step("constant", given=(value,)))

    def apply(self, name: str, *of: int) -> int:
        """A function of steps."""
        return self.put(Step(name, of))

    def take(self, of: int, entries: tuple[float | int, ...]) -> int:
        """The entry of a public table at a step's number."""
        return self.put(Step("take", (of,), entries))

    def dot(self, stack: int, weights: tuple[int, ...]) -> int:
        """The inner product of a vector with whole weights."""
        return self.put(Step("least", (stack,), ((*weights, 0),)))

    def either(self, *missing: int | None) -> int | None:
        """Where any of these is missing."""
        found: int | None = None
        for each in missing:
            if each is not None and each != found:
                found = each if found is None else self.apply("logical_or", found, each)
        return found

    def _column(self, name: str, sql: str, *, as_is: bool, missing: bool) -> Cell:
        self._columns.setdefault(name, (sql, as_is))
        place = list(self._columns).index(name)
        none = self.put(Step("missing", given=(place,))) if missing else None
        return self.put(Step("column", given=(place,))), none

    def raw(self, name: str) -> Cell:
        """A declared column's whole numbers, codes counted from 0."""
        held, column = self.rows.names[name], self.schema.find(name)
        if column is None or isinstance(column, Text):
            raise NotInSql(name)
        shift = self.rows.shifts.get(held, 0)
        sql = f"({held} - {whole(shift)})" if shift else held
        return self._column(held, sql, as_is=not shift, missing=column.missing)

    def _worked_out(self, piece: Piece, fn: RowFn) -> Cell:
        """A column that the statement works out."""
        kind = fn.kind(self.schema)
        return self._column(piece.sql, f"({piece.sql})", as_is=False, missing=kind.nullable)

    def _once(self, mode: str, fn: RowFn, write: Callable[[RowFn], Cell | None], sql: Callable[[RowFn], Piece]) -> Cell:
        known = self._known.get((mode, id(fn)))
        if known is None:
            found = write(fn)
            known = self._known[mode, id(fn)] = (self._worked_out(sql(fn), fn) if found is None else found, fn)
        return known[0]

    # Numbers, conditions, keys

    def number(self, fn: RowFn) -> Cell:
        """A row function used as a number: a double."""
        return self._once("number", fn, self._number, self.emitter.number)

    def truth(self, fn: RowFn) -> Cell:
        """A row function used as a condition."""
        return self._once("truth", fn, self._truth, self.emitter.truth)

    def code(self, fn: RowFn) -> Cell:
        """A row function used as a key: whole numbers from 0."""
        return self._once("code", fn, self._code, self.emitter.code)

    def _number(self, fn: RowFn) -> Cell | None:  # noqa: PLR0912 - one short branch a row function
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
            case Fill(item, filled):
                return self._filled(self.number(item), float(against(filled, item.kind(self.schema)))), None
            case First(items):
                return self._first([self.number(item) for item in items])
            case NullIf(item, _):
                return self._null_if(fn, self.number(item))
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
            case Maths(op, item) if op in EXACT:
                value, missing = self.number(item)
                return self.apply(EXACT[op], value), missing
            case Maths("sqrt", item):
                return self._root(*self.number(item))
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

    def _root(self, value: int, missing: int | None) -> Cell:
        none = self.apply("logical_not", self.apply("greater_equal", value, self.constant(0.0)))
        return self.apply("sqrt", self.apply("where", none, self.constant(0.0), value)), self.either(missing, none)

    def _finite(self, value: int, missing: int | None) -> Cell:
        finite = self.apply("isfinite", value)
        value = self.apply("where", finite, value, self.constant(0.0))
        return value, self.either(missing, self.apply("logical_not", finite))

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

    def _times(self, value: int, unit: float) -> int:
        return self.apply("multiply", value, self.constant(unit))

    def _arithmetic(self, fn: Arith, op: str, left: Cell, right: Cell) -> Cell:
        value, missing = self.apply(ARITHMETIC[op], left[0], right[0]), self.either(left[1], right[1])
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

    def _holds(self, cell: Cell) -> int:
        value, missing = cell
        return value if missing is None else self.apply("logical_and", value, self.apply("logical_not", missing))

    def _filled(self, cell: Cell, value: float) -> int:
        return cell[0] if cell[1] is None else self.apply("where", cell[1], self.constant(value), cell[0])

    def _first(self, cells: Sequence[Cell]) -> Cell:
        value, missing = cells[0]
        for more, none in cells[1:]:
            if missing is None:
                break
            value = self.apply("where", missing, more, value)
            missing = None if none is None else self.apply("logical_and", missing, none)
        return value, missing

    def _null_if(self, fn: RowFn, cell: Cell) -> Cell:
        taken = self._holds(self.truth(cast("NullIf", fn).equal))
        return cell[0], self.either(taken, cell[1])

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
            case Fill(item, value):
                return self._filled(self.truth(item), bool(value)), None
            case First(items):
                return self._first([self.truth(item) for item in items])
            case NullIf(item, _):
                return self._null_if(fn, self.truth(item))
        return None

    def _missing(self, item: RowFn) -> int | None:
        """Where a row function is missing; -1: the statement says it."""
        kind = item.kind(self.schema)
        if isinstance(kind, Grid):
            return self._gone(item)
        modes = {Scalar: self.number, Truth: self.truth, Code: self.code}
        return modes[type(kind)](item)[1] if type(kind) in modes else -1

    def _any(self, fn: RowFn) -> Callable[[RowFn], Cell] | None:
        """How a row function of its kind is worked out; None: by the statement."""
        modes: dict[type, Callable[[RowFn], Cell]] = {Scalar: self.number, Truth: self.truth, Code: self.code}
        return modes.get(type(fn.kind(self.schema)))

    def _compare(self, fn: Compare) -> Cell | None:
        left, right, op = fn.sides(self.schema)
        mode = self._any(left)
        if mode is None:
            return None
        a, none = mode(left)
        if isinstance(right, RowFn):
            b, other = mode(right)
        else:
            b, other = self.constant(cast("float", right)), None
        return self.apply(COMPARISONS[op], a, b), self.either(none, other)

    def _is_in(self, fn: IsIn, item: RowFn) -> Cell | None:
        mode, values = self._any(item), fn.fitted(self.schema)
        if mode is None or len(values) > LONG:
            return None
        value, missing = mode(item)
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
            case First(items):
                return self._first([self.code(item) for item in items])
            case NullIf(item, _):
                return self._null_if(fn, self.code(item))
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

    def _route(self, fn: Route) -> Cell:
        paths = fn.paths()
        sizes = [code(fn.keys[number], self.schema).size for number in fn.asked]
        items = [self._filled(self.code(fn.keys[number]), size) for number, size in zip(fn.asked, sizes, strict=True)]
        bits = max(sizes, default=0).bit_length()
        most = 62 // max(bits, 1)  # so many codes are side by side in a word
        words = [self._packed(items[i : i + most], bits) for i in range(0, len(items), most)]
        key, start, to = (tuple(entries.tolist()) for entries in (paths.key, paths.start, paths.to))
        shifts = tuple(bits * (number % most) if number < len(items) else 63 for number in key)  # a leaf's code is 0
        place = self.constant(0)
        for _ in range(paths.depth):
            word = words[0]
            for i, later in enumerate(words[1:], 1):
                word = self.apply("where", self.take(place, tuple(number // most >= i for number in key)), later, word)
            child = self.apply("right_shift", word, self.take(place, shifts))
            child = self.apply("bitwise_and", child, self.constant((1 << bits) - 1))
            place = self.take(self.apply("add", self.take(place, start), child), to)
        leaf = self.apply("subtract", place, self.constant(len(fn.tree)))
        return leaf, self.apply("equal", leaf, self.constant(paths.leaves))

    def _packed(self, codes: Sequence[int], bits: int) -> int:
        """Codes side by side in a word, the first in its lowest bits."""
        word = self.constant(0)
        for each in reversed(codes):
            word = self.apply("add", self.apply("left_shift", word, self.constant(bits)), each)
        return word

    def _nearest(self, stack: int, centres: list[list[int]]) -> int:
        """The number of the nearest centre, the lowest of several, by |c|^2 - 2 x.c.

        The least of scores that have their centre's number in their lowest bits is the least score, and says which.
        """
        bits = max(len(centres) - 1, 1).bit_length()
        scores = [(*(-2 * c for c in centre), sum(c * c for c in centre)) for centre in centres]
        far = [max(-unit.low, unit.high) for unit in cast("Stack", self._listed[stack]).units]
        most = max(sum(abs(w) * x for w, x in zip(score, (*far, 1), strict=True)) for score in scores)
        if (most + 1) << bits < 2**53:
            numbered = ((*(w << bits for w in score[:-1]), (score[-1] << bits) + i) for i, score in enumerate(scores))
            least = self.put(Step("least", (stack,), tuple(numbered)))
            return self.apply("bitwise_and", least, self.constant((1 << bits) - 1))
        if len(scores) > LONG:
            raise NotInSql("many centres on a fine grid")
        found, least = self.constant(0), self.put(Step("least", (stack,), (scores[0],)))
        for i, score in enumerate(scores[1:], 1):
            other = self.put(Step("least", (stack,), (score,)))
            found = self.apply("where", self.apply("less", other, least), self.constant(i), found)
            least = self.apply("minimum", least, other)
        return found

    def _index(self, fn: Lookup) -> Cell:
        """The row of a table that a row's keys name."""
        sizes, _ = fn.sizes(self.schema)
        index, missing = self.code(fn.keys[0])
        for key, size in zip(fn.keys[1:], sizes[1:], strict=True):
            more, none = self.code(key)
            index = self.apply("multiply", self.apply("whole", index), self.constant(size))
            index = self.apply("add", index, self.apply("whole", more))
            missing = self.either(missing, none)
        return index, missing

    # Vectors

    def stack(self, fn: RowFn) -> int:
        """A vector of whole numbers."""
        kind = grid_vector(fn, self.schema)
        if isinstance(fn, WithinBall):
            units, missing = self._units(fn.vector)
            return self.put(Stack(units, missing, ball=kind.ball, shorten=True))
        units, missing = self._units(fn)
        l1 = kind.high[0] if isinstance(fn, Bernstein) else None  # its terms are not negative and sum to that
        return self.put(Stack(units, missing, l1, kind.ball))

    def _gone(self, fn: RowFn) -> int | None:
        return cast("Stack", self._listed[self.stack(fn)]).missing if grid_vector(fn, self.schema).nullable else None

    def _units(self, fn: RowFn) -> tuple[tuple[Unit, ...], int | None]:
        """The coordinates of a vector, and where it is missing."""
        kind = grid_vector(fn, self.schema)
        match fn:
            case Vector(items):
                cells = [self._coordinate(item, kind.step) for item in items]
                places, scales = [place for (place, _), _ in cells], [each for _, each in cells]
                missing = self.either(*(none for (_, none), _ in cells))
                ends = zip(places, kind.low, kind.high, scales, strict=True)
                return tuple(Unit(*each) for each in ends), missing
            case Bernstein():
                places, missing = self._bernstein(fn)
            case Lookup():
                index, missing = self._index(fn)
                table = fn.units()[0]
                if table.shape[1] > LONG:
                    raise NotInSql("a wide table")
                places = [self.take(index, tuple(entries)) for entries in table.T.tolist()]
            case Scaled(vector, factor):
                value, none = self.number(factor)
                step, low, high = fn.span(self.schema)
                times = self.dot(self.put(Stack((Unit(value, low, high, float(1 / step)),), none)), (1,))
                places = [self.apply("multiply", each, times) for each in self._coordinates(vector)]
                missing = self.either(self._gone(vector), none)
            case Outer(vector):
                each = self._coordinates(vector)
                places = [self.apply("multiply", a, b) for i, a in enumerate(each) for b in each[i:]]
                missing = self._gone(vector)
            case WithinBall():
                places, missing = self._coordinates(fn), self._gone(fn)
            case _:
                raise NotInSql(type(fn).__name__)
        bounds = zip(places, kind.low, kind.high, strict=True)
        return tuple(Unit(place, low, high) for place, low, high in bounds), missing

    def _coordinates(self, fn: RowFn) -> list[int]:
        """Each coordinate of a vector by itself."""
        stack, width = self.stack(fn), grid_vector(fn, self.schema).width
        if width > LONG:
            raise NotInSql("a long vector")
        return [self.dot(stack, tuple(int(i == j) for j in range(width))) for i in range(width)]

    def _coordinate(self, item: RowFn, step: Fraction) -> tuple[Cell, float]:
        """A number, and what it is multiplied with for its grid; a column's own whole numbers where that is exact."""
        column = self.schema.find(item.name) if isinstance(item, Col) else None
        if column is not None and not isinstance(column, (Bool, Category, Text)):
            ratio = column.step / step
            if power_of_two(ratio) == ratio and max(abs(column.low), abs(column.high)) < 2**51:
                return self.raw(cast("Col", item).name), float(ratio)
        cell, unit = self._in_steps(item) or (self.number(item), Fraction(1))
        return cell, float(unit / step)

    def _in_steps(self, fn: RowFn, depth: int = 3) -> tuple[Cell, Fraction] | None:
        """A number in steps of its column, and the step; None where it is not of a column and few constants.

        A column's step is a power of two: to multiply with it later rounds nothing otherwise, and saves a pass.
        """
        match fn:
            case Col(name):
                column = self.schema.find(name)
                if column is None or isinstance(column, (Bool, Category, Text)):
                    return None
                if power_of_two(column.step) != column.step or not _tame(column.step):
                    return None
                value, missing = self.raw(name)
                return (self.apply("float", value), missing), column.step
            case Arith(op, item, Lit(given)) if not isinstance(given, (bool, str)) and _tame(given):
                found = self._in_steps(item, depth - 1) if depth and fn.kind(self.schema).bounded else None
                if found is None or (op in "*/" and given == 1):
                    return found
                (value, missing), unit = found
                by = self.constant(float(given) / float(unit) if op in "+-" else float(given))
                return (self.apply(ARITHMETIC[op], value, by), missing), unit
            case Power(item, 2):
                found = self._in_steps(item, depth - 1) if depth and fn.kind(self.schema).bounded else None
                return found and ((self.apply("multiply", found[0][0], found[0][0]), found[0][1]), found[1] ** 2)
        return None

    def _bernstein(self, fn: Bernstein) -> tuple[list[int], int | None]:
        step, low, high = fn.span(self.schema)
        value, missing = self.number(fn.item)
        units = self.dot(self.put(Stack((Unit(value, low, high, float(1 / step)),), None)), (1,))
        above = self.apply("subtract", units, self.constant(low))
        below = self.apply("subtract", self.constant(high), units)
        terms = [above, below]
        if fn.degree == 2:
            mixed = self.apply("multiply", self.apply("multiply", self.constant(2), above), below)
            terms = [self.apply("multiply", above, above), mixed, self.apply("multiply", below, below)]
        if not fn.missing:
            return terms, missing
        gone = self.constant(False) if missing is None else missing
        none, rest = self.constant(0), self.constant((high - low) ** fn.degree)
        return [*(self.apply("where", gone, none, term) for term in terms), self.apply("where", gone, rest, none)], None

    # Sums

    def _key(self, key: engine.Key) -> Key:
        return Key(self._filled(self.code(key.fn), -1), len(key.labels))

    def _sum(self, tally: Tally, block: Block, *, filtered: bool) -> Sum:
        keys = tuple(self._key(key) for key in tally.by if len(key.labels) != 1 or key.fn.kind(self.schema).nullable)
        if tally.where is not None and not filtered:
            keys += (Key(self.apply("logical_not", self._holds(self.truth(tally.where))), 1),)
        fn = block.fn
        if isinstance(fn, Lit) and not isinstance(fn.value, (bool, str)):
            term = int(to_grid(np.array([float(fn.value)]), block.step, block.low[0], block.high[0])[0])
            return Sum("vectors", self.put(Stack((Unit(self.constant(1), term, term),))), keys=keys)
        if not block.vector:
            value, missing = self.number(fn)
            unit = Unit(value, block.low[0], block.high[0], float(1 / block.step))
            return Sum("vectors", self.put(Stack((unit,), missing)), keys=keys)
        match fn:
            case Outer(vector):
                return Sum("products", self.stack(vector), keys=keys)
            case Lookup():
                index, units = self._filled(self._index(fn), -1), fn.units()[0]
                table = units.astype("<i8").tobytes()
                return Sum("table", index, units=table, width=units.shape[1], keys=keys)
            case Scaled(vector, factor):
                value, missing = self.number(factor)
                step, low, high = fn.span(self.schema)
                times = self.put(Stack((Unit(value, low, high, float(1 / step)),), missing))
                return Sum("vectors", self.stack(vector), times, keys=keys)
        return Sum("vectors", self.stack(fn), keys=keys)
