"""Random datasets of several tables and random relations over them, and what those mean in plain Python.

Tables are small and awkward: NULLs, equal rows, persons spelled differently, NULL persons, persons with more
rows than are kept, persons of one table alone, public rows that match nothing. `rows_of` shares no code with the
engines: rows are dictionaries, sums are Python's integers.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction

import pyarrow as pa

from sulq.errors import QuestionError
from sulq.language.domain import Bool, Category, Column, Date, Int, Real, Schema, Text, grid_for
from sulq.language.facts import TableFacts, Tables
from sulq.language.kinds import Code, Scalar, Truth, Words
from sulq.language.privacy import Unit
from sulq.language.relation import AGGREGATES, Distinct, Join, PerPerson, Relation, Select, Table, Union, Where
from sulq.language.rowfn import Clip, Col, Lit, RowFn
from sulq.language.rowfn.base import number
from sulq.language.rowfn.vectors import scalar_grid
from sulq.language.shape import Shape, shape
from sulq.language.tally import Key, Tally
from sulq.sources.origin import Origin
from sulq.sources.tables import Dataset, Given
from tests.generate import Data, Made
from tests.meaning import meaning, units
from tests.random_tallies import Language, block, tally
from tests.sources import oracle

KEY = b"k" * 32
PEOPLE = ("ann", "Ann ", "bob", "BOB", "1", "1.0", "cy", "dee", "é", "e\u0301", None)
NAMES = ("people", "visits", "regions")


@dataclass(frozen=True)
class World:
    """A generated dataset: what the engines are given, and the same for the oracle."""

    tables: tuple[tuple[Data, TableFacts], ...]
    unit: Unit

    @property
    def facts(self) -> Tables:
        """What is public."""
        return Tables(self.unit, tuple(facts for _, facts in self.tables))

    def dataset(self, sources: Callable[[str, pa.Table], object] = lambda _, table: table) -> Dataset:
        """The dataset as an engine opens it, from frames or from what `sources` makes of them."""
        given = [Given(Origin.of(sources(facts.schema.table, data.arrow())), facts) for data, facts in self.tables]
        return Dataset(tuple(given), self.unit, KEY)

    def rows(self, name: str) -> list[Row]:
        """The kept rows of a table."""
        data, facts = next(item for item in self.tables if item[1].schema.table == name)
        found = []
        for row in oracle.kept(data, KEY):
            owner = None if data.unit.column is None else row["person"]
            found.append(Row({name: row[name] for name in facts.schema.names}, owner))
        return found

    def people(self) -> list[str]:
        """Everybody in any table, by canonical text."""
        return sorted({who for data, _ in self.tables for who in _owners(data) if who is not None})

    def without(self, person: str) -> World:
        """The same world, had this person never been in it."""
        left = []
        for data, facts in self.tables:
            places = [i for i, who in enumerate(_owners(data)) if who != person]
            made = {name: replace(part, cells=tuple(part.cells[i] for i in places)) for name, part in data.made.items()}
            left.append((replace(data, made=made, size=len(places)), facts))
        return replace(self, tables=tuple(left))


def _owners(data: Data) -> list[str | None]:
    if data.unit.column is None:
        return [None] * data.size
    part = data.made[data.unit.column]
    return [oracle.canonical(part.kind, cell, data.unit.fold) for cell in part.cells]


@dataclass(frozen=True)
class Row:
    """One row: its codes by column, and whose it is."""

    codes: dict[str, object]
    owner: object = None


def world(rng: random.Random) -> World:
    """Two private tables of the same people, the first sometimes with one row a person, and a public one."""
    neighbors, fold = rng.choice(("add_remove", "add_remove", "replace_one")), rng.choice((None, "case", "spelling"))
    unit = Unit("who", rng.choice((1, 2, 3)), neighbors, fold)
    whole = rng.random() < 0.4  # persons as whole numbers
    tables = []
    for name in NAMES[: rng.choice((2, 3))] if rng.random() < 0.3 else NAMES:
        columns: dict[str, Column] = {
            "age": Int(0, 6), "pay": rng.choice((Real(-4, 12, 0.25), Real(0, 1e6))), "city": Category(("x", "y", "z")),
            "note": Text(), "flag": Bool(), "day": Date("2020-01-01", "2020-01-09"),
            "big": rng.choice((Int(-(2**53), 2**53), Int(0, 2**40), Int(-3, 3))),
        }  # fmt: skip
        public = name == "regions"
        keyed = public or (name == "people" and rng.random() < 0.5)
        chosen = ["age", *rng.sample([item for item in columns if item != "age"], rng.randint(2, 4))]
        size = rng.choice((0, 3, 5, 7)) if public else rng.choice((0, 5, 9, 16, 16))
        if own := name == "visits" and rng.random() < 0.5:  # with a key that is not the person
            columns["big"] = Int(0, 99)
            chosen = ["age", "big", *(item for item in chosen if item not in ("age", "big"))]
        made = {item: _made(rng, columns[item], size) for item in chosen}
        if own:
            cells = rng.sample(range(size + 5), size)
            made["big"] = Made(columns["big"], pa.int64(), tuple(c if rng.random() < 0.9 else None for c in cells))
        if public:
            cells = rng.sample(range(7), min(size, 7))
            made["age"] = Made(columns["age"], pa.int64(), tuple(c if rng.random() < 0.8 else None for c in cells))
        person = None
        if not public:
            person = "patient" if name == "visits" and rng.random() < 0.5 else None
            made[person or "who"] = _people(rng, size, whole=whole, once=keyed)
        schema = Schema(name, tuple((item, columns[item]) for item in chosen))
        key = "big" if own else None if not keyed else "age" if public else person or "who"
        facts = TableFacts(schema, key, public, size if public else None, person)
        table_unit = Given(Origin(None), facts).unit(unit)
        tables.append((Data(schema, table_unit, made, size), facts))
    return World(tuple(tables), unit)


def _people(rng: random.Random, size: int, *, whole: bool, once: bool) -> Made:
    if whole:
        cells = list(rng.sample(range(-3, 30), size)) if once else [rng.choice((1, 2, 3, 4, 5)) for _ in range(size)]
        return Made(None, pa.int64(), tuple(None if rng.random() < 0.1 else cell for cell in cells))
    if once:
        names = [f"p{i}" for i in range(size)]
        known = ["ann", "bob", "1", "cy", "dee", "é"]
        mixed = (known + names)[:size]
        return Made(None, pa.string(), tuple(None if rng.random() < 0.1 else name for name in mixed))
    return Made(None, pa.string(), tuple(rng.choice(PEOPLE) for _ in range(size)))


def _made(rng: random.Random, column: Column, size: int) -> Made:
    def cell() -> object:
        if rng.random() < 0.15:
            return None
        match column:
            case Text():
                return rng.choice(("x", "y", "", "é", "x "))
            case Category():
                return rng.choice((*column.values, "elsewhere"))
            case Bool():
                return rng.random() < 0.5
            case Real():
                return rng.choice((0.0, 0.125, -3.9, 7.5, 1e9, rng.uniform(-5, 15)))
            case Date():
                return rng.randint(18_260, 18_272)
        return rng.choice((column.low, column.high, rng.randint(column.low - 1, column.high + 1), 1, 2, 3))

    kinds = {Text: pa.string(), Category: pa.string(), Bool: pa.bool_(), Real: pa.float64(), Date: pa.date32()}
    return Made(column, kinds.get(type(column), pa.int64()), tuple(cell() for _ in range(size)))


class Relations:
    """Random relations over a world; what may not be said is drawn again."""

    def __init__(self, rng: random.Random, facts: Tables) -> None:
        self.rng = rng
        self.facts = facts
        self.counter = itertools.count()

    def relation(self, depth: int) -> Relation:
        """A relation whose shape is allowed."""
        while True:
            try:
                made = self._draw(depth)
                if shape(made, self.facts).rows <= 200:
                    return made
            except QuestionError:
                continue

    def _draw(self, depth: int) -> Relation:
        rng = self.rng
        if depth <= 0:
            return Table(rng.choice([table.schema.table for table in self.facts.tables]))
        source = self.relation(depth - 1)
        match rng.randrange(8):
            case 0:
                return Where(source, self._language(source).truth(rng.randint(1, 2)))
            case 1:
                return self._select(source)
            case 2 | 3:
                return self._per_person(source)
            case 4:
                return Distinct(source)
            case 5:
                parts = tuple(self._alike(source, i) for i in range(rng.choice((2, 2, 3))))
                return Union(parts)
        return self._join(source, depth)

    def _schema(self, relation: Relation) -> Schema:
        return shape(relation, self.facts).schema

    def _language(self, relation: Relation) -> Language:
        return Language(self.rng, self._schema(relation), Unit())  # no buckets and no places in derived tables

    def _name(self) -> str:
        return f"n{next(self.counter)}"

    def _value(self, relation: Relation) -> RowFn:
        language = self._language(relation)
        rng = self.rng
        names = list(self._schema(relation).names)
        fn = rng.choice(
            (
                lambda: Col(rng.choice(names)),
                lambda: Col(rng.choice(names)),
                lambda: language.number(rng.randint(0, 2)),
                lambda: language.truth(1),
                lambda: language.code(1),
                lambda: language.words(1),
            )
        )()
        kind = fn.kind(language.schema)
        return Clip(fn, -10, 1000) if isinstance(kind, Scalar) and not kind.bounded else fn

    def _select(self, source: Relation, least: int = 1) -> Relation:
        columns = [(self._name(), self._value(source)) for _ in range(self.rng.randint(least, 4))]
        return Select(source, tuple(columns))

    def _alike(self, source: Relation, place: int) -> Relation:
        """A relation of the same columns: the same one, or fewer of its rows."""
        if place == 0 or self.rng.random() < 0.3:
            return source
        return Where(source, self._language(source).truth(1))

    def _renamed(self, source: Relation) -> Select:
        return Select(source, tuple((self._name(), Col(name)) for name in self._schema(source).names))

    def _join(self, left: Relation, depth: int) -> Relation:
        rng = self.rng
        if rng.random() < 0.3:  # with itself: keys and groups that are unique meet themselves
            twin = self._renamed(left)
            same = [(fn.name, name) for name, fn in twin.columns if isinstance(fn, Col)]
            on = tuple(rng.sample(same, rng.randint(0, len(same))))
            return Join(left, twin, on, rng.choice(("inner", "left")), rng.random() < 0.8)
        right = self._renamed(self.relation(max(depth - 2, 0)))
        ours, theirs = self._schema(left), self._schema(right)
        pairs = [
            (a, b)
            for (a, x), (b, y) in itertools.product(ours.columns, theirs.columns)
            if type(x) is type(y) and (x == y or isinstance(x, (Int, Text)))
        ]
        on = tuple(rng.sample(pairs, min(len(pairs), rng.choice((0, 1, 1, 2, 4)))))
        return Join(left, right, on, rng.choice(("inner", "left")), rng.random() < 0.6)

    def _per_person(self, source: Relation) -> Relation:
        rng = self.rng
        schema = self._schema(source)
        keys = rng.sample(list(schema.names), min(len(schema.names), rng.choice((0, 0, 1, 2))))
        values = []
        for _ in range(rng.randint(0 if keys else 1, 3)):
            how = rng.choice(AGGREGATES)
            fn = None if how == "count" and rng.random() < 0.5 else self._value(source)
            values.append((self._name(), how, fn))
        return PerPerson(source, tuple(keys), tuple(values))

    def tally(self, relation: Relation) -> Tally:
        """A random tally over a relation."""
        schema = self._schema(relation)
        made = tally(self.rng, schema, Unit())
        where = made.where if self.rng.random() < 0.5 else None
        return replace(made, over=relation, where=where, blocks=(block(Lit(1), schema), *made.blocks))

    def open_tally(self, relation: Relation) -> Tally:
        """A tally whose keys are not listed in advance."""
        made = self.tally(relation)
        schema = self._schema(relation)
        names = self.rng.sample(list(schema.names), min(len(schema.names), self.rng.randint(0, 2)))
        keys = [Col(name) for name in names] + [key.fn for key in made.by if self.rng.random() < 0.5]
        return replace(made, by=tuple(Key(fn, ()) for fn in keys))


def rows_of(relation: Relation, facts: Tables, read: Callable[[str], list[Row]], *, lose: bool = False) -> list[Row]:
    """The rows of a relation. With `lose` joins forget that both rows must be one person's: what must not happen."""

    def inner(source: Relation) -> list[Row]:
        return rows_of(source, facts, read, lose=lose)

    schema = shape(relation, facts).schema
    match relation:
        case Table(name):
            return read(facts.table_of(name).schema.table)
        case Where(source, condition):
            columns = shape(source, facts).schema
            return [row for row in inner(source) if meaning(condition, columns, row.codes) is True]
        case Select(source, columns):
            before = shape(source, facts).schema
            return [
                Row({name: _code(fn, schema.find(name), before, row) for name, fn in columns}, row.owner)
                for row in inner(source)
            ]
        case Join():
            return _joined(relation, inner(relation.left), inner(relation.right), schema, lose=lose)
        case PerPerson():
            return _grouped(relation, inner(relation.source), shape(relation.source, facts), schema)
        case Distinct(source):
            found = {tuple(row.codes.values()): Row(row.codes) for row in inner(source)}
            return list(found.values())
        case Union(relations):
            return [
                Row(dict(zip(schema.names, row.codes.values(), strict=True)), row.owner)
                for item in relations
                for row in inner(item)
            ]


def _code(fn: RowFn, column: Column, before: Schema, row: Row) -> object:
    """A value as a column holds it."""
    value = meaning(fn, before, row.codes)
    if value is None or isinstance(column, Text):
        return value
    if isinstance(column, Category):
        return int(value) if 0 <= value < len(column.values) else None
    source = before.find(fn.name) if isinstance(fn, Col) else None
    if source is not None and (source.step, source.low, source.high) == (column.step, column.low, column.high):
        return row.codes[fn.name]
    return units(value, column.step, column.low, column.high)


def _joined(join: Join, left: list[Row], right: list[Row], schema: Schema, *, lose: bool) -> list[Row]:
    found = []
    theirs = [name for name in schema.names if not left or name not in left[0].codes]
    for a in left:
        matched = False
        for b in right:
            same = all(a.codes[x] is not None and a.codes[x] == b.codes[y] for x, y in join.on)
            if same and (lose or not join.person or a.owner == b.owner):
                matched = True
                found.append(Row(a.codes | b.codes, b.owner if a.owner is None else a.owner))
        if not matched and join.how == "left":
            found.append(Row(a.codes | dict.fromkeys(theirs), a.owner))
    return found


def _grouped(relation: PerPerson, rows: list[Row], source: Shape, schema: Schema) -> list[Row]:
    groups: dict[tuple[object, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault((row.owner, *(row.codes[key] for key in relation.keys)), []).append(row)
    found = []
    for (owner, *keys), mine in groups.items():
        codes: dict[str, object] = dict(zip(relation.keys, keys, strict=True))
        for name, how, fn in relation.values:
            codes[name] = _aggregated(how, fn, mine, source, schema.find(name))
        found.append(Row(codes, owner))
    return found


def _aggregated(how: str, fn: RowFn | None, rows: list[Row], source: Shape, column: Column) -> object:
    if fn is None:
        return len(rows)
    values = [meaning(fn, source.schema, row.codes) for row in rows]
    if how == "count":
        return sum(value is not None for value in values)
    if how == "distinct":
        if isinstance(fn, Col):
            values = [row.codes[fn.name] for row in rows]
        return len({value for value in values if value is not None})
    if how in ("min", "max"):
        found = [_code(fn, column, source.schema, row) for row in rows]
        there = [code for code in found if code is not None]
        return (min if how == "min" else max)(there) if there else None
    kind = number(fn, source.schema)
    step = scalar_grid(kind.lo, kind.hi, None)[0] if kind.step is None else kind.step
    step = max(step, grid_for(max(abs(kind.lo), abs(kind.hi)) * source.rows, 51))
    low, high = math.floor(kind.lo / step), math.ceil(kind.hi / step)
    terms = [units(value, step, low, high) for value in values if value is not None]
    if not terms:
        return None
    if how == "sum":
        exact = math.floor(Fraction(sum(terms)) * step / column.step + Fraction(1, 2))
        return min(max(exact, column.low), column.high)
    return units(float(sum(terms)) / float(len(terms)) * float(step), column.step, column.low, column.high)


def groups_of(tally: Tally, schema: Schema, rows: list[Row]) -> list[tuple[tuple[object, ...], list[int], int]]:
    """Keys, sums and persons of the groups that occur, in order."""
    found: dict[tuple[object, ...], list[Row]] = {}
    for row in rows:
        if tally.where is None or meaning(tally.where, schema, row.codes) is True:
            found.setdefault(tuple(_label(key.fn, schema, row) for key in tally.by), []).append(row)
    order = sorted(found, key=lambda labels: [(label is None, 0 if label is None else label) for label in labels])
    asked = replace(tally, where=None, by=(), cells=1)
    return [
        (
            labels,
            oracle.sums(asked, schema, [row.codes for row in found[labels]])[0],
            len({i if row.owner is None else row.owner for i, row in enumerate(found[labels])}),
        )
        for labels in order
    ]


def _label(fn: RowFn, schema: Schema, row: Row) -> object:
    value, kind = meaning(fn, schema, row.codes), fn.kind(schema)
    if value is None or isinstance(kind, (Words, Truth)):
        return value
    if isinstance(kind, Code):
        return kind.labels[int(value)] if 0 <= value < kind.size else None
    return int(value) if kind.step is not None and kind.step.denominator == 1 else value
