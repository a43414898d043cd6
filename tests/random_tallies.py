"""Random row functions and tallies over a schema, drawn from a seeded generator: a failure is repeated by its seed."""

from __future__ import annotations

import math
import random

from sulq.errors import QuestionError
from sulq.language import rowfn
from sulq.language.domain import Bool, Category, Date, Int, Real, Schema, Text, Timestamp
from sulq.language.kinds import Code, Grid, Scalar
from sulq.language.privacy import Unit
from sulq.language.relation import Table
from sulq.language.rowfn.dates import PARTS, PERIODS
from sulq.language.rowfn.vectors import bounded, scalar_grid
from sulq.language.tally import Block, Key, Tally
from tests.generate import ORDINARY_TEXTS


class Language:
    """Random row functions over a schema; what a question may not say is drawn again."""

    def __init__(self, rng: random.Random, schema: Schema, unit: Unit) -> None:
        self.rng = rng
        self.schema = schema
        self.unit = unit
        self.by_kind: dict[type, list[str]] = {}
        for name, column in schema.columns:
            self.by_kind.setdefault(type(column), []).append(name)

    def _named(self, *kinds: type) -> str | None:
        found = [name for kind in kinds for name in self.by_kind.get(kind, [])]
        return self.rng.choice(found) if found else None

    def constant(self) -> float | int:
        """A number for a question."""
        rng = self.rng
        name = self._named(Int, Real)
        column = self.schema.find(name) if name else None
        if isinstance(column, (Int, Real)) and rng.random() < 0.5:
            units = rng.choice((column.low, column.high, rng.randint(column.low, column.high)))
            value = float(units * column.step)
            return rng.choice((value, math.nextafter(value, math.inf), value + 0.3))
        return rng.choice((0, 1, -1, 2, 0.5, 0.1, 3.25, -2.5, 100, 1e-9, 1e6, 2**40, rng.uniform(-10, 10)))

    def number(self, depth: int) -> rowfn.RowFn:
        """A number."""
        rng = self.rng
        if depth <= 0:
            name = self._named(Int, Real, Int, Real, Bool)
            return rowfn.Lit(self.constant()) if name is None or rng.random() < 0.2 else rowfn.Col(name)
        inner = depth - 1
        if rng.random() < 0.4:
            return self.function(inner)
        choice = rng.randrange(11)
        if choice < 3:
            return rowfn.Arith(rng.choice("+-*/"), self.number(inner), self.number(inner))
        if choice == 3:
            branches = tuple((self.truth(inner), self.number(inner)) for _ in range(rng.randint(1, 2)))
            return rowfn.Case(branches, self.number(inner) if rng.random() < 0.5 else None)
        if choice == 4:
            lo, hi = sorted((self.constant(), self.constant()))
            return rowfn.Clip(self.number(inner), lo, hi)
        if choice == 5:
            return rowfn.Fill(self.number(inner), self.constant())
        if choice == 6:
            return self.truth(inner)
        if choice == 7 and self.unit.positions_are_public:
            return rowfn.Position()
        if choice == 8:
            vector = self.vector(inner)
            width = vector.kind(self.schema).width
            return rowfn.Dot(vector, tuple(self.constant() for _ in range(width)))
        if choice == 9:
            keys = (self.code(inner),)
            size = math.prod(key.kind(self.schema).size for key in keys)
            return rowfn.Lookup(keys, tuple((self.constant(),) for _ in range(size)))
        return self.number(0)

    def function(self, depth: int) -> rowfn.RowFn:
        """A number that is a function of numbers, dates, labels or text; only what IEEE 754 fixes."""
        rng = self.rng
        makers = (
            lambda: rowfn.Maths(rng.choice(("abs", "floor", "ceil", "trunc", "sqrt", "sign")), self.number(depth)),
            lambda: rowfn.Round(self.number(depth), rng.randint(-4, 6)),
            lambda: rowfn.Power(self.number(depth), rng.choice((0, 1, 2, 3, -1, -2, 16, 0.5))),
            lambda: rowfn.Modulo(self.number(depth), self.constant() or 7),
            lambda: rowfn.Least(tuple(self.number(depth) for _ in range(rng.randint(1, 3)))),
            lambda: rowfn.Greatest(tuple(self.number(depth) for _ in range(rng.randint(1, 3)))),
            lambda: rowfn.First(tuple(self.number(depth) for _ in range(rng.randint(1, 3)))),
            lambda: rowfn.NullIf(self.number(depth), self.number(depth)),
            lambda: rowfn.NullIf(self.number(depth), rowfn.Lit(self.constant())),
            lambda: rowfn.DatePart(rng.choice(PARTS), self.date(depth + 1)),
            lambda: self.date(depth) - rowfn.ToDate(self.date(depth)),
            lambda: rowfn.Value(self.code(depth)),
            lambda: rowfn.Length(self.words(depth + 1)),
            lambda: rowfn.IndexOf(self.words(depth + 1), rng.choice(("", "x", "é", "\u0301", "本"))),
        )
        return rng.choice(makers)()

    def date(self, depth: int) -> rowfn.RowFn:
        """A date or moment."""
        rng = self.rng
        name = self._named(Date, Timestamp)
        if depth <= 0 or rng.random() < 0.3:
            if name is not None and rng.random() < 0.7:
                return rowfn.Col(name)
            return rng.choice(
                (
                    rowfn.Moment("2024-02-29"),
                    rowfn.Moment("0001-01-01"),
                    rowfn.Moment("2020-01-01T12:00:00.5", "timestamp"),
                )
            )
        inner = self.date(depth - 1)
        makers = (
            lambda: rowfn.DateTrunc(rng.choice(PERIODS), inner),
            lambda: rowfn.DateTrunc(rng.choice(PERIODS), inner),
            lambda: rowfn.ToTimestamp(rowfn.ToDate(inner)),
            lambda: rowfn.ToTimestamp(inner),
            lambda: inner + rng.choice((1, -40, 10**7)),
            lambda: rowfn.Least((rowfn.ToDate(inner), rowfn.ToDate(self.date(0)))),
        )
        return rng.choice(makers)()

    def words(self, depth: int) -> rowfn.RowFn:
        """A text."""
        rng = self.rng
        name = self._named(Text)
        if depth <= 0 or rng.random() < 0.2:
            return rowfn.Lit(rng.choice(ORDINARY_TEXTS)) if name is None or rng.random() < 0.1 else rowfn.Col(name)
        inner = self.words(depth - 1)
        makers = (
            lambda: rowfn.Lowered(inner),
            lambda: rowfn.Uppered(inner),
            lambda: rowfn.Trimmed(inner, rng.choice(("both", "left", "right")), rng.choice((" ", "x", "é日"))),
            lambda: rowfn.Substring(inner, rng.randint(-1, 3), rng.choice((None, 0, 1, 2))),
            lambda: rowfn.Concat((inner, self.words(0))),
            lambda: rowfn.First((inner, self.words(0))),
            lambda: rowfn.NullIf(inner, self.words(0)),
        )
        return rng.choice(makers)()

    def truth(self, depth: int) -> rowfn.RowFn:
        """A condition."""
        rng = self.rng
        if depth <= 0:
            name = self._named(Bool)
            return rowfn.Lit(rng.random() < 0.5) if name is None or rng.random() < 0.2 else rowfn.Col(name)
        inner = depth - 1
        choice = rng.randrange(12)
        if choice == 9:
            pair = (self.truth(inner), self.truth(inner))
            return rng.choice((rowfn.First(pair), rowfn.NullIf(*pair)))
        if choice >= 10:
            return self.wording(inner)
        if choice < 3:
            return self._compare(inner)
        if choice == 3:
            return rowfn.Logic(rng.choice(("and", "or")), tuple(self.truth(inner) for _ in range(rng.randint(1, 3))))
        if choice == 4:
            return rowfn.Not(self.truth(inner))
        if choice == 5:
            return rowfn.IsMissing(self.anything(inner))
        if choice == 6:
            return rowfn.Fill(self.truth(inner), rng.choice((True, False)))
        if choice == 7:
            return self._is_in(inner)
        return self.truth(0)

    def wording(self, depth: int) -> rowfn.RowFn:
        """A condition on text."""
        rng = self.rng
        pattern = "".join(rng.choice(("%", "_", "x", "é", "\\_", "日", "1")) for _ in range(rng.randint(0, 4)))
        makers = (
            lambda: rowfn.StartsWith(self.words(depth + 1), rng.choice(("", "x", "e", "日", "'"))),
            lambda: rowfn.Like(self.words(depth + 1), pattern),
            lambda: rowfn.Compare(rng.choice(("==", "!=")), self.words(depth + 1), self.words(depth)),
            lambda: rowfn.IsIn(self.words(depth + 1), tuple(rng.sample(ORDINARY_TEXTS, 4))),
        )
        return rng.choice(makers)()

    def _compare(self, depth: int) -> rowfn.RowFn:
        rng = self.rng
        order = rng.choice(("==", "!=", "<", "<=", ">", ">="))
        equal = rng.choice(("==", "!="))
        choice = rng.randrange(7)
        if choice == 0 and (name := self._named(Category)) is not None:
            return rowfn.Compare(equal, rowfn.Col(name), rowfn.Lit(rng.choice(self.schema.find(name).values)))
        if choice == 1 and (name := self._named(Text)) is not None:
            other = rowfn.Col(name) if rng.random() < 0.2 else rowfn.Lit(rng.choice(ORDINARY_TEXTS))
            return rowfn.Compare(equal, *rng.sample((rowfn.Col(name), other), 2))
        if choice == 2 and (name := self._named(Date, Timestamp)) is not None:
            column = self.schema.find(name)
            edge = rng.choice((column.lo, column.hi))
            return rowfn.Compare(order, *rng.sample((rowfn.Col(name), rowfn.Lit(edge)), 2))
        if choice == 3:
            return rowfn.Compare(equal, self.truth(depth), rowfn.Lit(rng.choice((True, False))))
        if choice == 4:
            return rowfn.Compare(order, self.number(depth), self.number(depth))
        name = self._named(Int, Real)
        item = rowfn.Col(name) if name is not None and rng.random() < 0.7 else self.number(depth)
        return rowfn.Compare(order, *rng.sample((item, rowfn.Lit(self.constant())), 2))

    def _is_in(self, depth: int) -> rowfn.RowFn:
        rng = self.rng
        choice = rng.randrange(4)
        if choice == 0 and (name := self._named(Category)) is not None:
            values = self.schema.find(name).values
            return rowfn.IsIn(rowfn.Col(name), tuple(rng.sample(values, rng.randint(0, len(values)))))
        if choice == 1 and (name := self._named(Text)) is not None:
            return rowfn.IsIn(rowfn.Col(name), tuple(rng.sample(ORDINARY_TEXTS, rng.randint(0, 4))))
        if choice == 2:
            return rowfn.IsIn(self.truth(depth), (rng.choice((True, False)),))
        name = self._named(Int, Real)
        item = rowfn.Col(name) if name is not None and rng.random() < 0.6 else self.number(depth)
        many = rng.choice((0, 1, 3, 40))
        return rowfn.IsIn(item, tuple(self.constant() for _ in range(many)))

    def code(self, depth: int) -> rowfn.RowFn:
        """A key."""
        rng = self.rng
        for _ in range(20):
            fn = self._code(depth)
            try:
                kind = fn.kind(self.schema)
            except QuestionError:
                continue
            if isinstance(kind, Code) and kind.size <= 64:
                return fn
        return rowfn.Each(rowfn.Lit(rng.random() < 0.5))

    def _code(self, depth: int) -> rowfn.RowFn:
        rng = self.rng
        choice = rng.randrange(12 if depth > 0 else 8)
        if choice == 7:
            branches = tuple((self.truth(depth), rng.choice((0, 1, 2, None))) for _ in range(rng.randint(1, 3)))
            return rowfn.Choice(branches, rng.choice((("a", "b", "c"), (3, -1, 0.5))), rng.choice((0, 2, None)))
        if choice == 8:
            return rowfn.OrMissing(self.code(depth - 1))
        if choice == 9:
            inner = self.code(depth - 1)
            return rowfn.Relabel(inner, tuple(rng.choice((1, 2, 3.5, None)) for _ in inner.kind(self.schema).labels))
        if choice == 10:
            inner = self.code(depth - 1)
            return rng.choice(
                (rowfn.First((inner, inner)), rowfn.NullIf(inner, inner), rowfn.OrMissing(rowfn.NullIf(inner, inner)))
            )
        if choice == 11:
            return self._route([self.code(depth - 1) for _ in range(rng.randint(1, 3))])
        if choice == 0 and (name := self._named(Category)) is not None:
            return rng.choice((rowfn.Col(name), rowfn.Each(rowfn.Col(name))))
        if choice == 1:
            return rowfn.Each(self.truth(depth))
        if choice == 2 and (name := self._named(Int, Date)) is not None:
            return rowfn.Each(rowfn.Col(name))
        if choice == 3:
            return rowfn.Each(rowfn.Clip(self.number(0), 0, 5))
        if choice == 4 and (self.unit.column is not None or self.unit.positions_are_public):
            return rowfn.Bucket(rng.choice((1, 2, 7, 50)), rng.choice((0, 1, -9)))
        if choice == 5 and depth > 0:
            vector = self.vector(0)
            width = vector.kind(self.schema).width
            centres = tuple(tuple(self.constant() for _ in range(width)) for _ in range(rng.randint(1, 4)))
            return rowfn.Nearest(vector, centres)
        return self._bins(depth)

    def _route(self, keys: list[rowfn.RowFn]) -> rowfn.RowFn:
        """A random tree over some keys: each child a later node, a new or a known leaf, or nowhere."""
        rng = self.rng
        count = rng.randint(0, 6)
        nodes: list[tuple[int | None, ...]] = []
        leaves = 0
        for place in range(count):
            key = rng.randrange(len(keys))
            children: list[int | None] = []
            for _ in range(keys[key].kind(self.schema).size):
                options: list[int | None] = [-1 - leaves, None, *([rng.randint(-leaves, -1)] if leaves else [])]
                options += [rng.randint(place + 1, count - 1)] * 3 if place + 1 < count else []
                children.append(rng.choice(options))
                leaves = max(leaves, -(children[-1] or 0))
            nodes.append((key, *children))
        return rowfn.Route(tuple(keys), tuple(nodes))

    def _bins(self, depth: int) -> rowfn.RowFn:
        rng = self.rng
        name = self._named(Date, Timestamp)
        if name is not None and rng.random() < 0.3:
            column = self.schema.find(name)
            edges: list[object] = sorted({column.lo, column.hi})
            return rowfn.Bins(rowfn.Col(name), tuple(edges))
        name = self._named(Int, Real)
        item = rowfn.Col(name) if name is not None and rng.random() < 0.7 else self.number(depth)
        column = self.schema.find(name) if name is not None else None
        if column is not None and rng.random() < 0.4:  # evenly spaced over the declared range
            low, high, n = float(column.low * column.step), float(column.high * column.step), rng.randint(1, 20)
            return rowfn.Bins(item, tuple(low + (high - low) * i / n for i in range(n + 1)))
        return rowfn.Bins(item, tuple(sorted({float(self.constant()) for _ in range(rng.randint(2, 12))})))

    def vector(self, depth: int) -> rowfn.RowFn:
        """A vector of integers on a grid."""
        rng = self.rng
        for _ in range(20):
            items = tuple(self.number(rng.choice((0, 0, 0, depth))) for _ in range(rng.randint(1, 4)))
            fn: rowfn.RowFn = rowfn.Vector(items, rng.choice((1, 4, 11, 11, 15)))
            if rng.random() < 0.3:
                fn = rng.choice((rowfn.WithinBall, rowfn.WithinL1))(fn, rng.choice((0.5, 1, 10, 1000, 2**30)))
            try:
                if isinstance(fn.kind(self.schema), Grid):
                    return fn
            except QuestionError:
                continue
        return rowfn.Vector((rowfn.Lit(1),))

    def block(self, depth: int) -> rowfn.RowFn:
        """A vector that may be asked for as a value."""
        rng = self.rng
        choice = rng.randrange(6)
        if choice == 0:
            return rowfn.Outer(self.vector(depth - 1))
        if choice == 5:
            return rowfn.Scaled(self.vector(depth - 1), self.number(depth - 1), rng.choice((1, 4, 11, 11, 15)))
        if choice == 1:
            fn = rowfn.Bernstein(self.number(depth - 1), rng.choice((1, 2)))
            _, low, high = fn.span(self.schema)
            return fn if max(abs(low), abs(high)) < 2**52 else self.vector(depth - 1)
        if choice == 2:
            keys = tuple(self.code(0) for _ in range(rng.randint(1, 2)))
            size, width = math.prod(key.kind(self.schema).size for key in keys), rng.randint(2, 4)
            return rowfn.Lookup(keys, tuple(tuple(self.constant() for _ in range(width)) for _ in range(size)))
        return self.vector(depth - 1)

    def anything(self, depth: int) -> rowfn.RowFn:
        """A row function of any kind."""
        rng = self.rng
        return rng.choice((self.words, self.date, self.number, self.truth, self.code, self.vector))(depth)


def block(fn: rowfn.RowFn, schema: Schema) -> Block:
    """A value as a block, on the grid the plan would choose."""
    kind = fn.kind(schema)
    if isinstance(kind, Grid):
        return Block(fn, kind.step, kind.low, kind.high, vector=True)
    lo, hi, number = bounded(fn, schema)
    step, low, high = scalar_grid(lo, hi, number.step)
    return Block(fn, step, (low,), (high,), vector=False)


def question(values, schema: Schema, *, where: rowfn.RowFn | None = None, by=()) -> Tally:
    """A tally of row functions, as the plan would make it."""
    keys = []
    for fn in by:
        kind = fn.kind(schema)
        assert isinstance(kind, Code)
        keys.append(Key(fn, kind.labels))
    blocks = tuple(block(fn, schema) for fn in values)
    return Tally(Table(), blocks, where, tuple(keys), math.prod(len(key.labels) for key in keys))


def tally(rng: random.Random, schema: Schema, unit: Unit) -> Tally:
    """A random tally that a plan could have made."""
    language = Language(rng, schema, unit)
    while True:
        try:
            values = []
            for _ in range(rng.randint(1, 3)):
                depth = rng.randint(0, 4)
                fn = language.block(max(depth, 1)) if rng.random() < 0.4 else language.number(depth)
                fn = language.function(2) if rng.random() < 0.25 else fn
                kind = fn.kind(schema)
                if isinstance(kind, Scalar) and not kind.bounded:
                    fn = rowfn.Clip(fn, -10, 1000)
                values.append(fn)
            where = language.truth(rng.randint(0, 3)) if rng.random() < 0.5 else None
            where = language.wording(1) if rng.random() < 0.2 else where
            by = [language.code(1) for _ in range(rng.choice((0, 0, 1, 1, 2)))]
            made = question(values, schema, where=where, by=by)
            if where is not None:
                where.kind(schema)
        except QuestionError:
            continue
        if made.cells <= 600 and made.cells * made.width <= 4000:
            return made


def walk(made: Tally) -> list[rowfn.RowFn]:
    """Every row function of a tally."""
    front = [b.fn for b in made.blocks] + [key.fn for key in made.by] + ([] if made.where is None else [made.where])
    found = []
    while front:
        fn = front.pop()
        found.append(fn)
        front.extend(fn.parts())
    return found
