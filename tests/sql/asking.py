"""Small tables and short ways to compile queries over them, for the tests of the SQL front."""

from __future__ import annotations

import pytest

from sulq.answers import wire
from sulq.errors import QuestionError
from sulq.language.domain import Bool, Category, Column, Date, Int, Real, Schema, Text, Timestamp
from sulq.language.facts import Facts, TableFacts
from sulq.language.privacy import EpsilonDelta, Unit
from sulq.sql.compile import compile as compiled_of
from sulq.sql.parse.syntax import Node, SelectQuery
from sulq.sql.parse.text import parse
from sulq.sql.released.program import GroupStatistics, TableProgram
from sulq.sql.rows.row_set import RelationBuilder, RowSet, resolve

TABLES: dict[str, dict[str, Column]] = {
    "people": {
        "age": Int(0, 120),
        "income": Real(0, 1024, grid=0.25),
        "sex": Category(("f", "m")),
        "educ": Category(("primary", "secondary", "tertiary")),
        "code": Category((7, 1, 3)),
        "married": Bool(),
        "born": Date("1990-01-01", "1991-12-31"),
        "seen": Timestamp("2020-01-01T00:00:00", "2021-01-01T00:00:00"),
        "name": Text(),
        "region": Int(0, 9),
    },
    "visits": {
        "vid": Int(0, 10_000),
        "cost": Real(-64, 64, grid=0.5),
        "kind": Category(("blood", "eye")),
        "paid": Bool(),
    },
    "bills": {"vid": Int(0, 10_000), "due": Real(0, 64, grid=0.5), "PID": Int(0, 99)},
    "regions": {"code": Int(0, 9), "zone": Category(("east", "west")), "size": Int(0, 40)},
}
REFERENCES = {"bills": (("vid", "visits"),)}
KEYS = {"people": "pid", "visits": "vid", "regions": "code"}


def facts(unit: Unit | None = None) -> Facts:
    """People, their visits and the bills for those, and public regions; the person is pid."""
    budget, none = EpsilonDelta(10.0, 1e-6), EpsilonDelta(1e-9, 1e-15)
    tables = []
    for name, columns in TABLES.items():
        public = name == "regions"
        schema = Schema(name, tuple(columns.items()))
        person = "PID" if name == "bills" else None
        tables.append(
            TableFacts(schema, KEYS.get(name), public, 10 if public else None, person, REFERENCES.get(name, ()))
        )
    found = unit or Unit("pid", rows=4)
    return Facts(tables[0].schema, found, budget, none, budget, tables=tuple(tables))


def program(sql: str, known: Facts | None = None) -> TableProgram:
    """What a query compiles to."""
    return compiled_of(sql, known or facts()).program


def groups(sql: str, known: Facts | None = None) -> GroupStatistics:
    """The statistics a query over rows asks for."""
    found = program(sql, known).source
    assert isinstance(found, GroupStatistics)
    return found


def refused(sql: str, known: Facts | None = None) -> QuestionError:
    """How a query is refused."""
    with pytest.raises(QuestionError) as caught:
        program(sql, known)
    return caught.value


def table(name: str = "people") -> RowSet:
    """The rows of one table."""
    known = facts()
    return RelationBuilder(known).table(known.table_of(name), name, 0)


def node(expression: str, rows: RowSet | None = None) -> Node:
    """An expression over a table, its names looked up."""
    query = parse(f"SELECT {expression} FROM people").query
    assert isinstance(query, SelectQuery)
    return resolve(query.items[0][0], (rows or table()).items)


def same(left: object, right: object) -> bool:
    """Whether two row functions or relations say the same."""
    return wire.encode(left) == wire.encode(right)
