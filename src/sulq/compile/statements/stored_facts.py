"""The kernel's facts of an engine's kept tables, from declarations; `kernel.keep` checks the tables against them."""

from __future__ import annotations

from collections.abc import Callable

from sulq.compile.statements import kept_table
from sulq.compile.statements.kept_table import PERSON, PLACE, KeptRows
from sulq.kernel.facts import MAX_STORED_ROWS, Column, Facts, Table
from sulq.language.domain import Schema, Text
from sulq.language.facts import TableFacts, Tables

HASHES = Column("BIGINT", 0, 2**60 - 1, missing=False)
PLACES = Column("BIGINT", 0, MAX_STORED_ROWS, missing=False)


def facts(tables: Tables, kept: Callable[[str], KeptRows]) -> Facts:
    """The public facts of the kept tables."""
    found = tuple(_table(item, tables, kept(item.schema.table)) for item in tables.tables)
    return Facts(found, tables.unit.neighbors, tables.unit.column is None)


def _table(item: TableFacts, tables: Tables, stored: KeptRows) -> Table:
    columns = _columns(item.schema, stored)
    person = None if item.public else tables.person_of(item)
    if person is not None or tables.unit.positions_are_public:
        columns.append((PERSON, HASHES))
    if tables.unit.positions_are_public:
        columns.append((PLACE, PLACES))
    columns += _spelled(item.schema, stored)  # in the order in which they are stored: `*` stands for it
    size = item.rows if item.public and item.rows is not None else MAX_STORED_ROWS
    altered = 0 if item.public else tables.rows_of(item) or 0
    unique = stored.names.get(item.key or "")
    return Table(tuple(stored.relation.split(".")), tuple(columns), altered, person is not None, size, unique)


def _columns(schema: Schema, held: KeptRows) -> list[tuple[str, Column]]:
    found = []
    for name, column in schema.columns:
        stored = held.names[name]
        if isinstance(column, Text):
            found.append((stored, Column("VARCHAR", missing=column.missing)))
            continue
        found.append((stored, Column(kept_table.smallest(column), column.low, column.high, column.missing)))
    return found


def _spelled(schema: Schema, held: KeptRows) -> list[tuple[str, Column]]:
    """The codes of categories that are there as texts too."""
    found = []
    for name, column in schema.columns:
        if held.names[name] in held.spelled and not isinstance(column, Text):
            digits = Column("VARCHAR", column.low, column.high, column.missing)
            found.append((held.spelled[held.names[name]], digits))
    return found
