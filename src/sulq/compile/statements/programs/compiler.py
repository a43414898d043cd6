"""Tallies to programs of the kernel: vectors, what is read off them, and sums by the cells of a partition.

Nothing here is believed: the kernel reads the program that comes of it (docs/theory/kernel.md).
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from fractions import Fraction
from typing import Final, cast

import numpy as np

from sulq.compile.emit.emitter import NotInSql
from sulq.compile.statements.programs.steps import Cell
from sulq.compile.statements.programs.values import MAX_STEPS, Values
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
from sulq.language.domain import Bool, Category, Text, power_of_two
from sulq.language.rowfn import Arith, Col, Lit, RowFn
from sulq.language.rowfn.keys import Route, code
from sulq.language.rowfn.maths import Power
from sulq.language.rowfn.scalar import ARITHMETIC
from sulq.language.rowfn.scaled import Scaled
from sulq.language.rowfn.vectors import (
    Bernstein,
    Lookup,
    Outer,
    Vector,
    WithinBall,
    grid_vector,
    to_grid,
)
from sulq.language.tally import Block, Tally

PLAIN: Final = re.compile(r"[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)*")


def _tame(number: float | Fraction) -> bool:
    """Whether a few products with such numbers and sums of them neither overflow nor become subnormal."""
    return number == 0 or 2**-50 <= math.fabs(number) <= 2**50


class ProgramCompiler(Values):
    """Writes the program of some tallies over one relation's rows."""

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
        if len(scores) > MAX_STEPS:
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
                if table.shape[1] > MAX_STEPS:
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
        if width > MAX_STEPS:
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
                return (self.apply(ARITHMETIC[op].__name__, value, by), missing), unit
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
