"""Rows before anything is released: a relation, what its columns are called, and what still filters it.

A subquery is not a new relation: its columns are row functions of the same rows.
Only where a relation must have columns of its own (a join, a group of each
person, different rows, a union) are they worked out, under names made up here.
"""

from __future__ import annotations

import difflib
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from sulq.language import domain
from sulq.language.domain import Schema
from sulq.language.facts import Facts, TableFacts
from sulq.language.relation import Distinct, Join, PerPerson, Relation, Table, Where
from sulq.language.relation import Select as Columns
from sulq.language.rowfn import Col, Lit, RowFn
from sulq.language.rowfn.base import walk
from sulq.language.shape import Shape, shape
from sulq.sql.parse import syntax
from sulq.sql.parse.syntax import Node, Place, SqlRefused, placed
from sulq.sql.rows.expressions import RowExpressions
from sulq.sql.rows.values import Cell, Fixed, PersonValue, Term, both, cell, constant_fn

MAX_SHOWN_NAMES = 20
CAST_NAMES = {"int": "int4", "float": "float8"}


@dataclass(frozen=True, slots=True, eq=False)
class ColumnName:
    """A column that a name may mean; `table`: its table's name in this query.

    `hidden`: only its table's name leads to it, as it is the second of two columns that USING made one.
    """

    name: str
    table: str | None = None
    hidden: bool = False


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Item(ColumnName):
    """A column of rows: its names and what it stands for.

    Where it is a registered column as it stands: `key_of`, the table whose declared key
    it is; `refers_to`, the table whose key it is declared to refer to.
    """

    term: Term
    key_of: str | None = None
    refers_to: str | None = None
    rank: int = 0


def refers(one: Item, other: Item) -> bool:
    """Whether equating two columns can only match rows of one person, by declarations alone (SR15).

    Either both are the key of one table, so that both rows are the same row; or one is
    a key, and the other was declared to refer to it. Names are no declaration.
    """
    if one.key_of is not None and one.key_of in (other.key_of, other.refers_to):
        return True
    return other.key_of is not None and other.key_of == one.refers_to


def find(column: syntax.ColumnRef, items: Sequence[ColumnName]) -> int | None:
    """The place of the column a name means; None where there is none, a refusal where there are several."""
    found = [i for i in _of(column.table, items) if column.name.fits(items[i].name)]
    exact = [i for i in found if items[i].name == column.name.text]
    found = exact if len(exact) == 1 else found
    if len(found) > 1:
        why = f"{column.name.text[:80]!r} may be one of several columns"
        raise SqlRefused("unknown-column", why, column.at, "Name its table.")
    return found[0] if found else None


def _of(table: syntax.Name | None, items: Sequence[ColumnName]) -> list[int]:
    """The places of a table's columns, or of all that need no table's name."""
    if table is None:
        return [i for i, item in enumerate(items) if not item.hidden]
    return [i for i, item in enumerate(items) if item.table is not None and table.fits(item.table)]


def look_up(column: syntax.ColumnRef, items: Sequence[ColumnName]) -> syntax.Place:
    """The column a name means, or a refusal that lists what there is."""
    place = find(column, items)
    if place is not None:
        return syntax.Place(place, column.at)
    table = "" if column.table is None else f" of {column.table.text[:80]!r}"
    known = ", ".join(dict.fromkeys(item.name[:80] for item in items[:MAX_SHOWN_NAMES]))
    why = f"No column {column.name.text[:80]!r}{table} is declared (there are: {known})"
    meant = _other_name(column.name, [item.name for item in items])
    raise SqlRefused("unknown-column", why, column.at, meant, column=column.name)


def _other_name(name: syntax.Name, names: Sequence[str]) -> str:
    """What may have been meant by the name of no column: one that is spelled alike, or a text."""
    text = f"a text stands in single quotes: '{name.text[:80]}'"
    if name.quoted:
        return f"{text[0].upper()}{text[1:]}; double quotes are for names."
    near = difflib.get_close_matches(name.text.lower(), [one.lower() for one in names], 1, 0.75)
    meant = next((one for one in names if near and one.lower() == near[0]), None)
    if meant is not None:
        return f"Did you mean {meant[:80]!r}?"
    return f"Ask about a declared column, or have the owner declare it; {text}."


def resolve(node: Node, items: Sequence[ColumnName]) -> Node:
    """An expression with every name replaced by the place of its column; subqueries are left to themselves."""
    return syntax.changed(node, lambda item: look_up(item, items) if isinstance(item, syntax.ColumnRef) else None)


def known(node: Node, items: Sequence[ColumnName]) -> bool:
    """Whether every name of an expression means a column here, and none several."""
    try:
        return all(find(item, items) is not None for item in syntax.walk(node) if isinstance(item, syntax.ColumnRef))
    except SqlRefused:
        return False


def expand(star: syntax.Star, items: Sequence[ColumnName]) -> list[tuple[syntax.Place, str]]:
    """The columns a star stands for, with their names."""
    found = [(syntax.Place(i, star.at), items[i].name) for i in _of(star.table, items)]
    if not found:
        raise SqlRefused("unknown-table", "No table of this name is in FROM", star.at)
    return found


def result_name(node: Node, items: Sequence[ColumnName]) -> str:
    """The name PostgreSQL gives a result without an alias."""
    return _named(node, items)[0] or "?column?"


def _named(node: Node, items: Sequence[ColumnName]) -> tuple[str | None, int]:
    """A result's name and how strongly it is one: 2 a column's or function's, 1 a guess, 0 none."""
    match node:
        case syntax.ColumnRef():
            place = find(node, items)
            return node.name.text if place is None else items[place].name, 2
        case syntax.Place():
            return items[node.index].name, 2
        case syntax.Call(op="case"):
            otherwise = syntax.branches(node)[1]
            name, strength = (None, 0) if otherwise is None else _named(otherwise, items)
            return (name, strength) if strength == 2 else ("case", 1)
        case syntax.Call() | syntax.Aggregate():
            return (None, 0) if node.called == "?column?" else (node.called, 2)
        case syntax.Cast():
            name, strength = _named(node.item, items)
            return (name, strength) if strength else (CAST_NAMES.get(node.to, node.to), 1)
        case syntax.Literal():
            return (node.type, 1) if node.type == "interval" else (None, 0)
        case syntax.Subquery(how="exists"):
            return "exists", 2
        case syntax.Subquery(how="value"):
            query = node.query
            while not isinstance(query, syntax.SelectQuery):
                query = query.left
            inner, alias = query.items[0]
            return alias or result_name(inner, ()), 2
        case _:
            return None, 0


def alias_of(name: syntax.Name, aliases: Sequence[str | None]) -> int | None:
    """The place of the result an alias names."""
    found = [i for i, alias in enumerate(aliases) if alias is not None and name.fits(alias)]
    exact = [i for i in found if aliases[i] == name.text]
    return (exact or found)[0] if found else None


@dataclass(frozen=True, slots=True, eq=False)
class RowSet:
    """A relation with named columns.

    `filters` are conditions still to be applied; `personal` names the relation's
    columns that hold a person's identity, from which no released key may be made.
    """

    relation: Relation
    shape: Shape
    items: tuple[Item, ...]
    filters: tuple[RowFn, ...] = ()
    personal: frozenset[str] = frozenset()

    @property
    def schema(self) -> Schema:
        """The relation's columns."""
        return self.shape.schema

    @property
    def bound(self) -> dict[Node, Term]:
        """What each place stands for."""
        return {Place(i): item.term for i, item in enumerate(self.items)}

    def express(self) -> RowExpressions:
        """Expressions over these rows."""
        return RowExpressions(self.schema, self.bound)

    def where(self) -> RowFn | None:
        """The filters as one condition."""
        return both(*self.filters)

    def filtered(self) -> Relation:
        """The relation with its filters applied."""
        condition = self.where()
        return self.relation if condition is None else Where(self.relation, condition)

    def identifies(self, fn: RowFn) -> bool:
        """Whether a row function is made of a person's identity."""
        return any(isinstance(part, Col) and part.name in self.personal for part in walk(fn))


def shaped(relation: Relation, facts: Facts, at: int) -> Shape:
    """A relation's shape, or its refusal with the place in the text."""
    with placed(at):
        return shape(relation, facts)


def column_name(fn: RowFn, name: str = "value") -> str:
    """What a column made of a row function is called: as the column it is, never as the analyst names it.

    So the same rows are the same relation in whatever words they were asked for (SR12).
    """
    return fn.name.rpartition(".")[2][:60] if isinstance(fn, Col) else name


TYPES = {domain.Int: "int", domain.Real: "float", domain.Bool: "bool", domain.Text: "text"}
TYPES |= {domain.Date: "date", domain.Timestamp: "timestamp", domain.Vertices: "int"}


def type_of(column: domain.Column) -> str:
    """The SQL type of a declared column."""
    if isinstance(column, domain.Category):
        return "int" if isinstance(column.values[0], int) else "text"
    return TYPES[type(column)]


class RelationBuilder:
    """Makes rows of tables, and gives relations columns of their own under fresh names."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.numbers: Iterator[int] = itertools.count(1)

    def table(self, table: TableFacts, alias: str, at: int) -> RowSet:
        """The rows of a registered table."""
        only = len(self.facts.catalogue.tables) == 1
        relation = Table("" if only else table.schema.table)
        person = None if table.public else self.facts.person_of(table)
        found = shaped(relation, self.facts, at)
        items = []
        for name, column in table.schema.columns:
            item = cell(Col(name), type_of(column), found.schema, at)
            term: Term = PersonValue(item) if name == person else item
            key = table.schema.table if name == table.key else None
            items.append(Item(name, alias, term=term, key_of=key, refers_to=table.refers(name)))
        if person is not None and person not in table.schema.names:
            key = table.schema.table if person == table.key else None
            items.insert(0, Item(person, alias, term=PersonValue(), key_of=key))
        return RowSet(relation, found, tuple(items), personal=frozenset(() if person is None else (person,)))

    def columns(
        self, rows: RowSet, extra: Sequence[tuple[Term, int]] = (), *, optional: bool = False, only: bool = False
    ) -> ProjectedRows:
        """The rows with their columns worked out under fresh names, and further expressions beside them.

        `optional`: the rows may be absent beside others (the right of a LEFT JOIN), so
        that even what is constant or always there needs a column that can be missing.
        `only`: no column that is not listed may be left, since rows are told apart by all of them.
        """
        number = next(self.numbers)
        made: list[tuple[str, RowFn]] = []
        labels: dict[object, str] = {}

        def label(fn: RowFn, name: str = "value") -> str:
            """The column of a row function, a new one if it has none."""
            key = fn.name if isinstance(fn, Col) else id(fn)
            if key not in labels:
                name = column_name(fn, name)
                fresh = f"t{number}.{name}"
                labels[key] = fresh if fresh not in labels.values() else f"t{number}.{len(made)}.{name}"
                made.append((labels[key], fn))
            return labels[key]

        terms = [_as_column(item.term, rows.schema, 0) if optional else item.term for item in rows.items]
        beside = [_as_column(term, rows.schema, at) if at else term for term, at in extra]
        for name, several in (("value", terms), ("on", beside)):
            for term in several:
                for fn in _functions(term):
                    label(fn, "here" if isinstance(term, PersonValue) and fn is term.present else name)
        marker = label(Lit(True), "here") if optional or not made else ""
        plain = not only and not isinstance(rows.relation, Table) and all(isinstance(fn, Col) for _, fn in made)
        own = {name: fn.name for name, fn in made if isinstance(fn, Col)} if plain else {}
        relation = rows.filtered() if plain else Columns(rows.filtered(), tuple(made))
        found = shaped(relation, self.facts, extra[0][1] if extra else 0)

        def column(fn: RowFn) -> str:
            """A row function's column in the new relation: its own where all are columns of fresh names already."""
            return own.get(label(fn), label(fn))

        def again(term: Term) -> Term:
            """What a column stands for in the new relation."""
            if isinstance(term, Cell):
                return cell(Col(column(term.fn)), term.type, found.schema, 0)
            if isinstance(term, Fixed):
                return term
            value = None if term.cell is None else cell(Col(column(term.cell.fn)), term.cell.type, found.schema, 0)
            absent = Col(own.get(marker, marker)) if optional else None
            return PersonValue(value, absent if term.present is None else Col(column(term.present)))

        items = tuple(replace(item, term=again(term)) for item, term in zip(rows.items, terms, strict=True))
        personal = frozenset(own.get(name, name) for name, fn in made if rows.identifies(fn))
        values = map(_value_of, beside)
        names = tuple("" if value is None else column(value) for value in values)
        return ProjectedRows(RowSet(relation, found, items, personal=personal), names, marker)

    def per_person(
        self, laid: RowSet, keys: tuple[str, ...], values: tuple[tuple[str, str, RowFn | None], ...], at: int
    ) -> RowSet:
        """One row for each person and combination of keys; the caller names its columns."""
        relation = PerPerson(laid.relation, keys, values)
        return RowSet(relation, shaped(relation, self.facts, at), ())

    def distinct(self, rows: RowSet, at: int) -> RowSet:
        """The different rows of a relation, by the columns they are listed with."""
        laid = self.columns(rows, only=True).rows
        relation = Distinct(laid.relation)
        return replace(laid, relation=relation, shape=shaped(relation, self.facts, at))

    def join(
        self, left: RowSet, right: RowSet, on: tuple[tuple[str, str], ...], how: str, *, person: bool, at: int
    ) -> RowSet:
        """Two laid out relations side by side."""
        relation = Join(left.relation, right.relation, on, how, person)
        found = shaped(relation, self.facts, at)
        return RowSet(relation, found, (*left.items, *right.items), personal=left.personal | right.personal)


@dataclass(frozen=True, slots=True, eq=False)
class ProjectedRows:
    """Rows with columns of their own, what was laid beside them, and the marker of optional rows."""

    rows: RowSet
    beside: tuple[str, ...]
    marker: str


def _as_column(term: Term, schema: Schema, at: int) -> Term:
    """A constant as a row function, so that it has a column; NULL has none."""
    if not isinstance(term, Fixed) or term.value is None:
        return term
    return Cell(constant_fn(term, at), term.type, schema, at)


def _value_of(term: Term) -> RowFn | None:
    """The row function of a term's value, where it has one."""
    inner = term.cell if isinstance(term, PersonValue) else term
    return inner.fn if isinstance(inner, Cell) else None


def _functions(term: Term) -> Iterator[RowFn]:
    """The row functions a term is made of."""
    value = _value_of(term)
    if value is not None:
        yield value
    if isinstance(term, PersonValue) and term.present is not None:
        yield term.present
