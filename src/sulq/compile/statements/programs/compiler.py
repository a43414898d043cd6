"""Tallies to programs of the kernel: vectors, what is read off them, and sums by the cells of a partition.

Nothing here is believed: the kernel reads the program that comes of it (docs/theory/kernel.md).
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Final, cast

import numpy as np

from sulq.compile.statements.programs.trace import MAX_STEPS, TRUTH, Trace, Traced
from sulq.kernel import matrix
from sulq.kernel.programs import Fold, Key, Program, Stack, Step, Sum, Unit
from sulq.language.domain import Bool, Category, Text, power_of_two
from sulq.language.kinds import Cells, Integers, Truths, entry, union
from sulq.language.rowfn import Arith, Clip, Col, Dot, Fill, IsIn, Lit, Nearest, Route, RowFn
from sulq.language.rowfn.base import evaluate, known, numbers, truths
from sulq.language.rowfn.derived_vectors import Scaled, WithinBall, WithinL1
from sulq.language.rowfn.keys import code
from sulq.language.rowfn.maths import Power
from sulq.language.rowfn.piece import NotInSql
from sulq.language.rowfn.scalar import ARITHMETIC
from sulq.language.rowfn.vectors import Bernstein, Lookup, Outer, Vector, grid_vector, to_grid
from sulq.language.tally import Block, Tally

PLAIN: Final = re.compile(r"[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)*")


def _tame(number: float | Fraction) -> bool:
    """Whether a few products with such numbers and sums of them neither overflow nor become subnormal."""
    return number == 0 or 2**-50 <= math.fabs(number) <= 2**50


class ProgramCompiler(Trace):
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
        steps, sums, read = self._live(sums)
        selected = {name: self.columns[name] for name in read}
        if table is not None and selected and all(as_is for _, as_is in selected.values()):
            return Fold(Program(read, steps, sums), matrix.text(table, read), (), table, blocks)
        found = [sql for sql, _ in selected.values()] or ["1"]
        program = Program(tuple(f"f{i}" for i in range(len(found))), steps, sums)
        listed = ", ".join(f"{sql} AS f{i}" for i, sql in enumerate(found))
        scan = self.emitter.scan(f"SELECT {listed} FROM {self.emitter.relation()}{condition}")
        return Fold(program, scan.sql, scan.texts, None, blocks)

    def _live(self, sums: tuple[Sum, ...]) -> tuple[tuple[Step | Stack, ...], tuple[Sum, ...], tuple[str, ...]]:
        """The steps and columns that sums are made of, numbered anew; what was given up left others behind."""
        live: set[int] = set()
        front = [place for each in sums for place in each.reads]
        while front:
            place = front.pop()
            if place not in live:
                live.add(place)
                front += self.listed[place].of
        if len(live) == len(self.listed):
            return tuple(self.listed), sums, tuple(self.columns)
        to = {old: new for new, old in enumerate(sorted(live))}
        kept = [self.listed[place] for place in sorted(live)]
        reading = [step for step in kept if isinstance(step, Step) and step.name in ("column", "missing")]
        columns = sorted({step.given[0] for step in reading})
        steps = tuple(_moved(step, to, {old: new for new, old in enumerate(columns)}) for step in kept)
        moved = tuple(
            replace(
                each,
                of=to[each.of],
                factor=None if each.factor is None else to[each.factor],
                keys=tuple(replace(key, of=to[key.of]) for key in each.keys),
            )
            for each in sums
        )
        return steps, moved, tuple(name for i, name in enumerate(self.columns) if i in columns)

    def traced(self, fn: RowFn) -> Cells:
        """The meaning of a row function in steps; of a vector, only where it is missing."""
        match fn:
            case IsIn() if len(fn.values) > MAX_STEPS:
                raise NotInSql("a long list")
            case Dot(vector):
                weights, step = fn.units()
                found = self.least(self.stack(vector), (*weights, 0))
                return Cells(found * float(grid_vector(vector, self.schema).step * step), self._gone(vector))
            case Nearest(vector):
                return Cells(self._nearest(self.stack(vector), fn.units(self.schema).tolist()), self._gone(vector))
            case Route():
                return self._route(fn)
            case Vector() | WithinBall() | WithinL1() | Outer() | Bernstein() | Scaled():
                return Cells(np.empty(0), self._gone(fn))
            case Lookup() if len(fn.table[0]) > 1:
                return Cells(np.empty(0), self._gone(fn))
        return fn.cells(self)

    def _route(self, fn: Route) -> Cells:
        paths = fn.paths()
        sizes = [code(fn.keys[number], self.schema).size for number in fn.asked]
        items = [
            self.filled(evaluate(fn.keys[number], self), size) for number, size in zip(fn.asked, sizes, strict=True)
        ]
        bits = max(sizes, default=0).bit_length()
        most = 62 // max(bits, 1)  # so many codes are side by side in a word, the first in its lowest bits
        words = []
        for start in range(0, len(items), most):
            word = np.zeros(1, dtype=np.int64)
            for each in reversed(items[start : start + most]):
                word = (word << bits) + each
            words.append(word)
        shifts = np.where(paths.key < len(items), bits * (paths.key % most), 63)  # a leaf's code is 0
        place: Integers = np.zeros(1, dtype=np.int64)
        for _ in range(paths.depth):
            word = words[0]
            for i, later in enumerate(words[1:], 1):
                word = np.where(entry(paths.key // most >= i, place), later, word)
            child = (word >> entry(shifts, place)) & ((1 << bits) - 1)
            place = cast("Integers", entry(paths.to, entry(paths.start, place) + child))
        leaf = place - len(fn.tree)
        return Cells(leaf, leaf == paths.leaves)

    def _nearest(self, stack: int, centres: list[list[int]]) -> Integers:
        """The number of the nearest centre, the lowest of several, by |c|^2 - 2 x.c.

        The least of scores that have their centre's number in their lowest bits is the least score, and says which.
        """
        bits = max(len(centres) - 1, 1).bit_length()
        scores = [(*(-2 * c for c in centre), sum(c * c for c in centre)) for centre in centres]
        far = [max(-unit.low, unit.high) for unit in cast("Stack", self.listed[stack]).units]
        most = max(sum(abs(w) * x for w, x in zip(score, (*far, 1), strict=True)) for score in scores)
        if (most + 1) << bits < 2**53:
            numbered = ((*(w << bits for w in score[:-1]), (score[-1] << bits) + i) for i, score in enumerate(scores))
            return self.least(stack, *numbered) & ((1 << bits) - 1)
        if len(scores) > MAX_STEPS:
            raise NotInSql("many centres on a fine grid")
        found, least = np.zeros(1, dtype=np.int64), self.least(stack, scores[0])
        for i, score in enumerate(scores[1:], 1):
            other = self.least(stack, score)
            found = np.where(other < least, i, found)
            least = np.minimum(least, other)
        return found

    def stack(self, fn: RowFn) -> int:
        """A vector of whole numbers."""
        kind = grid_vector(fn, self.schema)
        if isinstance(fn, (WithinBall, WithinL1)):
            units, missing = self._units(fn.vector)
            return self.put(Stack(units, missing, kind.l1, kind.ball, shorten=True))
        units, missing = self._units(fn)
        l1 = kind.high[0] if isinstance(fn, Bernstein) else kind.l1  # its terms are not negative and sum to that
        return self.put(Stack(units, missing, l1, kind.ball))

    def _gone(self, fn: RowFn) -> Truths | None:
        """Where a vector is missing."""
        place = cast("Stack", self.listed[self.stack(fn)]).missing if grid_vector(fn, self.schema).nullable else None
        return None if place is None else cast("Truths", Traced(self, place, TRUTH))

    def _missing(self, missing: Truths | None) -> int | None:
        return None if missing is None else self.place(missing)

    def _units(self, fn: RowFn) -> tuple[tuple[Unit, ...], int | None]:
        """The coordinates of a vector, and where it is missing."""
        kind = grid_vector(fn, self.schema)
        scales = [1.0] * kind.width
        match fn:
            case Vector(items):
                asked = zip(items, kind.low, kind.high, strict=True)
                cells, scales = map(list, zip(*(self._coordinate(kind.step, *each) for each in asked), strict=True))
                values = [each.values for each in cells]
                missing = union(*(each.missing for each in cells))
            case Bernstein():
                values, missing = fn.terms(self)
            case Lookup():
                index, missing = fn.index(self)
                table = fn.units()[0]
                if table.shape[1] > MAX_STEPS:
                    raise NotInSql("a wide table")
                values = [entry(entries, index) for entries in table.T]
            case Scaled(vector, factor):
                number, none = numbers(factor, self)
                times = to_grid(number, *fn.span(self.schema))
                values = [each * times for each in self._coordinates(vector)]
                missing = union(self._gone(vector), none)
            case Outer(vector):
                each = self._coordinates(vector)
                values = [a * b for i, a in enumerate(each) for b in each[i:]]
                missing = self._gone(vector)
            case WithinBall() | WithinL1():
                values, missing = self._coordinates(fn), self._gone(fn)
            case _:
                raise NotInSql(type(fn).__name__)
        ends = zip(map(self.place, values), kind.low, kind.high, scales, strict=True)
        return tuple(Unit(*each) for each in ends), self._missing(missing)

    def _coordinates(self, fn: RowFn) -> list[Integers]:
        """Each coordinate of a vector by itself."""
        stack, width = self.stack(fn), grid_vector(fn, self.schema).width
        if width > MAX_STEPS:
            raise NotInSql("a long vector")
        return [self.least(stack, (*(int(i == j) for j in range(width)), 0)) for i in range(width)]

    def _coordinate(self, step: Fraction, item: RowFn, low: int, high: int) -> tuple[Cells, float]:
        """A number, and what it is multiplied with for its grid; a column's own whole numbers where that is exact.

        Clamping, and filling what is never missing, is left out where the grid's own ends are the same.
        """
        while (isinstance(item, Clip) and low * step == item.lo and high * step == item.hi) or (
            isinstance(item, Fill) and not item.item.kind(self.schema).nullable
        ):
            item = item.item
        column = self.schema.find(item.name) if isinstance(item, Col) else None
        if column is not None and not isinstance(column, (Bool, Category, Text)):
            ratio = column.step / step
            if power_of_two(ratio) == ratio and max(abs(column.low), abs(column.high)) < 2**51:
                return self.codes(cast("Col", item).name), float(ratio)
        cells, unit = self._in_steps(item) or (Cells(*numbers(item, self)), Fraction(1))
        return cells, float(unit / step)

    def _in_steps(self, fn: RowFn, depth: int = 3) -> tuple[Cells, Fraction] | None:
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
                codes = self.codes(name)
                return Cells(codes.values.astype(np.float64), codes.missing), column.step
            case Arith(op, item, Lit(given)) if not isinstance(given, (bool, str)) and _tame(given):
                found = self._in_steps(item, depth - 1) if depth and fn.kind(self.schema).bounded else None
                if found is None or (op in "*/" and given == 1):
                    return found
                cells, unit = found
                by = float(given) / float(unit) if op in "+-" else float(given)
                return Cells(ARITHMETIC[op](cells.values, by), cells.missing), unit
            case Power(item, 2):
                found = self._in_steps(item, depth - 1) if depth and fn.kind(self.schema).bounded else None
                return found and (Cells(np.multiply(found[0].values, found[0].values), found[0].missing), found[1] ** 2)
        return None

    def _sum(self, tally: Tally, block: Block, *, filtered: bool) -> Sum:
        asked = [key for key in tally.by if len(key.labels) != 1 or key.fn.kind(self.schema).nullable]
        keys = tuple(Key(self.place(self.filled(evaluate(key.fn, self), -1)), len(key.labels)) for key in asked)
        if tally.where is not None and not filtered:
            keys += (Key(self.place(~known(*truths(tally.where, self))), 1),)
        fn = block.fn
        if isinstance(fn, Lit) and not isinstance(fn.value, (bool, str)):
            term = int(to_grid(np.array([float(fn.value)]), block.step, block.low[0], block.high[0])[0])
            return Sum("vectors", self.put(Stack((Unit(self.place(1), term, term),))), keys=keys)
        if not block.vector:
            return Sum("vectors", self._number(fn, block.step, block.low[0], block.high[0]), keys=keys)
        match fn:
            case Outer(vector):
                return Sum("products", self.stack(vector), keys=keys)
            case Lookup():
                index, units = self.filled(Cells(*fn.index(self)), -1), fn.units()[0]
                table = units.astype("<i8").tobytes()
                return Sum("table", self.place(index), units=table, width=units.shape[1], keys=keys)
            case Scaled(vector, factor):
                times = self._number(factor, *fn.span(self.schema))
                return Sum("vectors", self.stack(vector), times, keys=keys)
        return Sum("vectors", self.stack(fn), keys=keys)

    def _number(self, fn: RowFn, step: Fraction, low: int, high: int) -> int:
        """A vector of one number."""
        values, missing = numbers(fn, self)
        return self.put(Stack((Unit(self.place(values), low, high, float(1 / step)),), self._missing(missing)))


def _moved(step: Step | Stack, to: Mapping[int, int], columns: Mapping[int, int]) -> Step | Stack:
    """A step with the places of others, and of columns, numbered anew."""
    if isinstance(step, Stack):
        units = tuple(replace(unit, of=to[unit.of]) for unit in step.units)
        return replace(step, units=units, missing=None if step.missing is None else to[step.missing])
    given = (columns[step.given[0]],) if step.name in ("column", "missing") else step.given
    return replace(step, of=tuple(to[place] for place in step.of), given=given)
