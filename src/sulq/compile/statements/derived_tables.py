"""Relations to SQL: each a SELECT of generated names over the ones it is made of, the same integers as in NumPy.

Columns are c0, c1, ... in the order of the derived schema, whole numbers on
their grids (or text), and `o` is the row's owner where rows are owned: only ever
compared. Texts of the question are bound, as everywhere (T70, T71).
A person's sum and mean run over whole terms on a grid so coarse that no total of
theirs passes 2^51: doubles add them exactly, whatever the order, and half a unit
more is exact too (SR16).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final, cast

from sulq.compile.statements import kept_table
from sulq.compile.statements.emitter import Emitter
from sulq.compile.statements.kept_table import OWNER, PERSON
from sulq.language.domain import Column, Schema, Text, grid_for
from sulq.language.facts import Tables
from sulq.language.kinds import Code, Scalar, Truth
from sulq.language.relation import Distinct, Join, PerPerson, Relation, Select, Table, Union, Where
from sulq.language.rowfn import Bucket, Col, RowFn
from sulq.language.rowfn.base import walk
from sulq.language.rowfn.piece import Piece, double, joined, whole
from sulq.language.rowfn.vectors import bounded, scalar_grid
from sulq.language.rowfn.writer import KeptRows
from sulq.language.shape import Shape, shape

TOTAL_BITS: Final = 51


@dataclass(frozen=True, slots=True)
class Terms:
    """The grid on which a person's values are added: within [low, high] units of `step`."""

    step: Fraction
    low: int
    high: int


def copied(fn: RowFn, schema: Schema, column: Column) -> str | None:
    """The source column whose stored integers are the derived column's own, where there is one."""
    if not isinstance(fn, Col):
        return None
    source = schema.find(fn.name)
    if source is None or isinstance(source, Text) or isinstance(column, Text):
        return fn.name if isinstance(source, Text) and isinstance(column, Text) else None
    alike = (source.step, source.low, source.high) == (column.step, column.low, column.high)
    return fn.name if alike else None


def person_terms(fn: RowFn, schema: Schema, rows: int) -> Terms:
    """The grid of a value of which one person adds up to `rows`."""
    lo, hi, kind = bounded(fn, schema)
    far = max(abs(lo), abs(hi))
    step = scalar_grid(lo, hi, kind.step)[0] if kind.step is None else kind.step  # on a lattice nothing is lost
    step = max(step, grid_for(far * max(rows, 1), TOTAL_BITS))
    return Terms(step, math.floor(lo / step), math.ceil(hi / step))


Read = Callable[[str], KeptRows]
"""The kept rows of a table by its name, with their owners where it has any."""


def derive(relation: Relation, tables: Tables, read: Read, *, person: bool = False) -> tuple[Schema, KeptRows]:
    """The rows of a relation, and their columns; NotInSql where a row function has no SQL.

    `person`: a table's rows with the person's hash beside them.
    """
    writer = _Writer(tables, read)
    rows = writer.table(relation, person=True) if person and isinstance(relation, Table) else writer.rows(relation)
    return shape(relation, tables).schema, replace(rows, parameters=dict(writer.parameters))


class _Writer:
    """Writes one relation; the constants of all its parts are bound under different names."""

    def __init__(self, tables: Tables, read: Read) -> None:
        self.tables = tables
        self.read = read
        self.parameters: dict[str, object] = {}

    def rows(self, relation: Relation) -> KeptRows:
        """A relation as rows; all constants bound so far are this writer's."""
        match relation:
            case Table():
                return self.table(relation)
            case Where():
                return self._where(relation)
            case Select():
                return self._select(relation)
            case Join():
                return self._join(relation)
            case PerPerson():
                return self._per_person(relation)
            case Distinct():
                source = self.rows(relation.source)
                return self._made(f"SELECT DISTINCT {_listed(source)} FROM {source.relation}", relation)
            case Union():
                return self._union(relation)

    def _made(self, query: str, relation: Relation) -> KeptRows:
        made = shape(relation, self.tables)
        return KeptRows(f"({query})", self.parameters, kept_table.names(made.schema), most=made.most)

    def _owner(self, relation: Relation, prefix: str = "") -> list[str]:
        return [f"{prefix}{OWNER}"] if shape(relation, self.tables).owned else []

    def _emitter(self, relation: Relation, rows: KeptRows) -> Emitter:
        emitter = Emitter(shape(relation, self.tables).schema, rows)
        emitter.parameters = self.parameters
        return emitter

    def table(self, table: Table, *, person: bool = False) -> KeptRows:
        """Kept rows as they are stored, with the person's hash if asked for; those read anew in the same form."""
        rows = self.read(table.name)
        units = {name: name for name in rows.doubles}
        units |= {name: f"{name} - {whole(shift)}" for name, shift in rows.shifts.items()}
        written = {name: f"TRY_CAST({item} AS BIGINT) AS {name}" for name, item in units.items()}
        columns = [written.get(name, name) for name in rows.names.values()]
        columns += [PERSON] if person else []
        return self._made(f"SELECT {', '.join([*columns, *self._owner(table)])} FROM {rows.relation}", table)

    def _where(self, relation: Where) -> KeptRows:
        parts = any(isinstance(fn, Bucket) for fn in walk(relation.condition))  # of the people, whose hash it takes
        if parts and isinstance(relation.source, Table):
            source = self.table(relation.source, person=True)
        else:
            source = self.rows(relation.source)
        emitter = self._emitter(relation.source, source)
        condition = emitter.truth(relation.condition).sql
        columns = ", ".join([*source.names.values(), *self._owner(relation)])
        return self._made(f"SELECT {columns} FROM {emitter.relation()} WHERE {condition}", relation)

    def _select(self, relation: Select) -> KeptRows:
        source = self.rows(relation.source)
        emitter = self._emitter(relation.source, source)
        schema = shape(relation, self.tables).schema
        columns = []
        for i, ((_, column), (_, fn)) in enumerate(zip(schema.columns, relation.columns, strict=True)):
            columns.append(f"{_column(emitter, fn, column).sql} AS c{i}")
        columns += self._owner(relation)
        return self._made(f"SELECT {', '.join(columns)} FROM {emitter.relation()}", relation)

    def _join(self, join: Join) -> KeptRows:
        left, right = self.rows(join.left), self.rows(join.right)
        columns = [f"l.{name}" for name in left.names.values()] + [f"r.{name}" for name in right.names.values()]
        listed = [f"{item} AS c{i}" for i, item in enumerate(columns)]
        listed += self._owner(join.left, "l.") or self._owner(join.right, "r.")
        on = [f"l.{left.names[ours]} = r.{right.names[theirs]}" for ours, theirs in join.on]
        on += [f"l.{OWNER} = r.{OWNER}"] if join.person else []
        how = "LEFT JOIN" if join.how == "left" else "JOIN"
        query = (
            f"SELECT {', '.join(listed)} FROM (SELECT * FROM {left.relation}) AS l "
            f"{how} (SELECT * FROM {right.relation}) AS r ON {' AND '.join(on) or 'TRUE'}"
        )
        return self._made(query, join)

    def _union(self, relation: Union) -> KeptRows:
        parts = [self.rows(item) for item in relation.relations]
        owner = self._owner(relation)
        selects = [f"SELECT {', '.join([*part.names.values(), *owner])} FROM {part.relation}" for part in parts]
        return self._made(" UNION ALL ".join(selects), relation)

    def _per_person(self, relation: PerPerson) -> KeptRows:
        source = self.rows(relation.source)
        inner, outer = shape(relation.source, self.tables), shape(relation, self.tables)
        emitter = self._emitter(relation.source, source)
        keys = [source.names[name] for name in relation.keys]
        within = [OWNER, *(f"{key} AS k{i}" for i, key in enumerate(keys))]
        between = [OWNER, *(f"k{i}" for i in range(len(keys)))]
        columns = [f"k{i} AS c{i}" for i in range(len(keys))]
        for i, (name, how, fn) in enumerate(relation.values, len(keys)):
            column = cast("Column", outer.schema.find(name))
            aggregates, value = _aggregate(emitter, (how, fn, column), inner, i)
            within += aggregates
            between.append(f"{value} AS v{i}")
            columns.append(f"TRY_CAST({_clamped(f'v{i}', column)} AS {kept_table.smallest(column)}) AS c{i}")
        grouped = ", ".join([OWNER, *(f"k{i}" for i in range(len(keys)))])
        query = f"SELECT {', '.join(within)} FROM {emitter.relation()} GROUP BY {grouped}"
        query = f"SELECT {', '.join([*columns, OWNER])} FROM (SELECT {', '.join(between)} FROM ({query}))"
        return self._made(query, relation)


def _listed(rows: KeptRows) -> str:
    return ", ".join(rows.names.values())


def _column(emitter: Emitter, fn: RowFn, column: Column) -> Piece:
    """A row function as a column of integers (or texts)."""
    name = copied(fn, emitter.schema, column)
    if name is not None:
        return emitter.column(name)
    kind = fn.kind(emitter.schema)
    if isinstance(kind, Code):
        code = emitter.named(emitter.code(fn))
        inside = f"CASE WHEN {code.sql} >= 0 AND {code.sql} < {kind.size} THEN {code.sql} END"
        return Piece(f"TRY_CAST({inside} AS {kept_table.smallest(column)})", code.layer)
    if isinstance(column, Text):
        return emitter.words(fn)
    if isinstance(kind, Truth):
        truth = emitter.truth(fn)
        return Piece(f"CAST({truth.sql} AS TINYINT)", truth.layer)
    units = emitter.on_grid(emitter.number(fn), column.step, column.low, column.high)
    return Piece(f"TRY_CAST({units.sql} AS {kept_table.smallest(column)})", units.layer)


def _aggregate(
    emitter: Emitter, value: tuple[str, RowFn | None, Column], inner: Shape, place: int
) -> tuple[list[str], str]:
    """The aggregates that one value of a person needs, and the value on its grid."""
    how, fn, column = value
    if fn is None:
        return [f"count(*) AS s{place}"], f"s{place}"
    if how == "count":
        return [f"count({_compared(emitter, fn).sql}) AS s{place}"], f"s{place}"
    if how == "distinct":
        return [f"count(DISTINCT {_compared(emitter, fn).sql}) AS s{place}"], f"s{place}"
    if how in ("min", "max"):
        return [f"{how}({_column(emitter, fn, column).sql}) AS s{place}"], f"s{place}"
    terms = person_terms(fn, emitter.schema, inner.rows)
    units = emitter.on_grid(emitter.number(fn), terms.step, terms.low, terms.high)
    total = [f"sum({units.sql}) AS s{place}"]  # of whole doubles, exact below 2^53
    item = f"s{place}"
    if how == "mean":
        total.append(f"count({units.sql}) AS n{place}")
        item = f"(s{place} / CAST(n{place} AS DOUBLE))"
    item = item if terms.step == 1 else f"{item} * {double(float(terms.step))}"
    scale = 1 if isinstance(column, Text) else 1 / column.step
    item = item if scale == 1 else f"{item} * {double(float(scale))}"
    return total, f"floor({item} + 0.5e0)"


def _clamped(item: str, column: Column) -> str:
    if isinstance(column, Text):
        return item
    low, high = whole(column.low), whole(column.high)
    return f"CASE WHEN {item} < {low} THEN {low} WHEN {item} > {high} THEN {high} ELSE {item} END"


def _compared(emitter: Emitter, fn: RowFn) -> Piece:
    """A value as it is told apart from others: a column by what it stores, a number as a double without a sign of 0."""
    if isinstance(fn, Col):
        return emitter.column(fn.name)
    value = emitter.value(fn)
    return joined("({0} + 0e0)", value) if isinstance(fn.kind(emitter.schema), Scalar) else value
