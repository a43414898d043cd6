"""Kept tables with real rows in DuckDB, their facts, and how far a person moves the sums of a statement."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import duckdb

from sulq.kernel.facts import OWNER, Column, Facts, Table
from sulq.kernel.relations import Certificate, Summand

Row = tuple[object, ...]
Rows = Mapping[str, Sequence[Row]]
TEXTS = ("", "a", "A", "ab", "b ", "é", "7", "%", "zz")


@dataclass(frozen=True)
class World:
    """Tables and the rows in them; an owned row ends in its owner."""

    facts: Facts
    rows: Rows

    def without(self, person: int, instead: Rows | None = None) -> World:
        """The same without a person's rows, or with others in their place."""
        kept = {}
        for table in self.facts.tables:
            name = ".".join(table.name)
            stay = [row for row in self.rows[name] if not table.owned or row[-1] != person]
            kept[name] = [*stay, *(instead or {}).get(name, ())]
        return World(self.facts, kept)


class Database:
    """A DuckDB that holds several worlds, each in a schema of its own."""

    def __init__(self, worlds: Sequence[World]) -> None:
        self._connection = duckdb.connect(config={"threads": 1})
        for i, world in enumerate(worlds):
            self._connection.execute(f"CREATE SCHEMA w{i}")
            for table in world.facts.tables:
                self._create(f"w{i}.{table.name[-1]}", table, world.rows[table.name[-1]])

    def _create(self, name: str, table: Table, rows: Sequence[Row]) -> None:
        types = [f"{column} {kind.type}" for column, kind in table.columns]
        types += [f"{OWNER} BIGINT"] if table.owned else []
        self._connection.execute(f"CREATE TABLE {name} ({', '.join(types)})")
        if rows:
            values = ", ".join(f"({', '.join(map(_literal, row))})" for row in rows)
            self._connection.execute(f"INSERT INTO {name} VALUES {values}")

    def sums(self, world: int, sql: str, certificate: Certificate) -> Counter[tuple[object, int]]:
        """The sums of a statement over the so-many-th world, by group and output."""
        found: Counter[tuple[object, int]] = Counter()
        self._connection.execute(f"SET schema = 'w{world}'")
        for row in self._connection.execute(sql).fetchall():
            outputs = list(zip(row, certificate.outputs, strict=True))
            keys = tuple(_key(cell) for cell, kind in outputs if not isinstance(kind, Summand))
            for i, (cell, kind) in enumerate(outputs):
                if isinstance(kind, Summand):
                    found[keys, i] += int(cell or 0)
        return found

    def named(self, world: int, sql: str) -> Counter[tuple[object, str]]:
        """The sums of any statement that names its keys k0, k1, ... and its sums s0, s1, ..., certified or not."""
        found: Counter[tuple[object, str]] = Counter()
        self._connection.execute(f"SET schema = 'w{world}'")
        result = self._connection.execute(sql)
        names = [str(column[0]) for column in result.description or ()]
        for row in result.fetchall():
            cells = list(zip(names, row, strict=True))
            keys = tuple(_key(cell) for name, cell in cells if not name.startswith("s"))
            for name, cell in cells:
                if name.startswith("s"):
                    found[keys, name] += 0 if cell is None else int(cell)
        return found

    def close(self) -> None:
        """Let go of the rows."""
        self._connection.close()


def _key(cell: object) -> str:
    """A key's text; 0 and -0 are one key, and which of them DuckDB shows is any row's."""
    return repr(cell + 0.0 if isinstance(cell, float) else cell)


def _literal(cell: object) -> str:
    if cell is None:
        return "NULL"
    return f"'{cell}'" if isinstance(cell, str) else repr(cell)


def move(before: Counter[Any], after: Counter[Any], place: int | str) -> tuple[int, int]:
    """How far one output moved, over all groups: in L1, and squared in L2."""
    gaps = [before[key] - after[key] for key in before.keys() | after.keys() if key[1] == place]
    return sum(map(abs, gaps)), sum(gap * gap for gap in gaps)


def cell(column: Column, draw: random.Random) -> object:
    """A cell that a column can hold, its ends more often than others."""
    if column.missing and draw.random() < 0.2:
        return None
    if column.type == "VARCHAR":
        return draw.choice(TEXTS)
    assert column.low is not None
    assert column.high is not None
    number = draw.choice((column.low, column.high, draw.randint(column.low, column.high)))
    return float(number) if column.type == "DOUBLE" else number


def row(table: Table, draw: random.Random, number: int, owner: int | None) -> Row:
    """A row of a table; its unique column, if any, is this number."""
    cells = [number if name == table.unique else cell(column, draw) for name, column in table.columns]
    return (*cells, owner) if table.owned else tuple(cells)


def rows_of(facts: Facts, draw: random.Random, person: int, first: int) -> dict[str, list[Row]]:
    """As many rows as one person may have, most often all alike in what is not unique."""
    found: dict[str, list[Row]] = {}
    for table in facts.tables:
        if table.owned:
            several = [row(table, draw, first + i, person) for i in range(table.rows)]
            if draw.random() < 0.5 and table.unique is None:
                several = several[:1] * table.rows
            found[".".join(table.name)] = several
    return found


def random_facts(draw: random.Random) -> Facts:
    """Two private tables and a public one, of random columns."""

    def column(kind: str) -> Column:
        if kind == "VARCHAR":
            return Column("VARCHAR", missing=draw.random() < 0.5)
        low = draw.choice((0, 1, -3, -100, draw.randint(-120, 0)))
        return Column(kind, low, low + draw.choice((0, 1, 5, draw.randint(0, 6))), draw.random() < 0.5)

    tables = []
    for name, private in (("kept0", True), ("kept1", True), ("kept2", False)):
        kinds = ["TINYINT", draw.choice(("SMALLINT", "TINYINT")), draw.choice(("BIGINT", "DOUBLE")), "VARCHAR"]
        columns = [(f"c{i}", column(kind)) for i, kind in enumerate(kinds)]
        unique = "c0" if draw.random() < 0.4 else None
        if unique:
            columns[0] = ("c0", Column("SMALLINT", 0, 200, missing=False))
        k = draw.choice((1, 1, 2, 3)) if private else 0
        tables.append(Table((name,), tuple(columns), k, private, 50 if private else 3, unique))
    return Facts(tuple(tables), "add_remove", row_is_person=False)


def random_world(facts: Facts, draw: random.Random, people: int = 4) -> World:
    """A world of some people, of whom person 0 has as many rows as one may have."""
    rows: dict[str, list[Row]] = {".".join(table.name): [] for table in facts.tables}
    for person in range(people):
        for name, several in rows_of(facts, draw, person, 10 * person).items():
            rows[name] += several if person == 0 else several[: draw.randint(0, len(several))]
    for table in facts.tables:
        if not table.owned:
            rows[".".join(table.name)] += [row(table, draw, 10 * i, None) for i in range(table.size)]
    return World(facts, rows)
