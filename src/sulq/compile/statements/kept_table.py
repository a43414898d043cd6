"""Kept rows as statements name them: SQL, columns and what stands beside them; and the kernel's facts of kept tables.

The facts follow from declarations; `kernel.keep` checks the tables against them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from sulq.kernel import facts
from sulq.kernel.facts import MAX_STORED_ROWS
from sulq.language.domain import Category, Column, Schema, Text
from sulq.language.facts import TableFacts, Tables
from sulq.language.rowfn.writer import KeptRows

PERSON: Final = facts.HASH
PLACE: Final = facts.PLACE
OWNER: Final = facts.OWNER
SPELLED: Final = 512  # so many categories are stored as short texts beside their codes


def names(schema: Schema) -> dict[str, str]:
    """The generated names of the columns: no name of the owner's or the analyst's is ever part of SQL (T71)."""
    return {name: f"c{i}" for i, name in enumerate(schema.names)}


def spelled(schema: Schema) -> dict[str, str]:
    """The columns of categories whose codes a prepared file holds as texts too.

    DuckDB keeps short texts as a dictionary and groups by its entries, faster than by integers (docs/benchmarks.md).
    """
    columns = zip(names(schema).values(), (column for _, column in schema.columns), strict=True)
    return {
        name: f"d{name[1:]}"
        for name, column in columns
        if isinstance(column, Category) and len(column.values) <= SPELLED
    }


def smallest(column: Column) -> str:
    """The narrowest SQL integer that holds every code of a column."""
    if isinstance(column, Text):
        return "VARCHAR"
    for name, bits in (("TINYINT", 7), ("SMALLINT", 15), ("INTEGER", 31)):
        if -(2**bits) <= column.low and column.high < 2**bits:
            return name
    return "BIGINT"


HASHES = facts.Column("BIGINT", 0, 2**60 - 1, missing=False)
PLACES = facts.Column("BIGINT", 0, MAX_STORED_ROWS, missing=False)


def stored_facts(tables: Tables, kept: Callable[[str], KeptRows]) -> facts.Facts:
    """The public facts of the kept tables."""
    found = tuple(_table(item, tables, kept(item.schema.table)) for item in tables.tables)
    return facts.Facts(found, tables.unit.neighbors, tables.unit.column is None)


def _table(item: TableFacts, tables: Tables, stored: KeptRows) -> facts.Table:
    columns: list[tuple[str, facts.Column]] = []
    spelled: list[tuple[str, facts.Column]] = []  # the codes of categories that are there as texts too
    for name, column in item.schema.columns:
        held = stored.names[name]
        if isinstance(column, Text):
            columns.append((held, facts.Column("VARCHAR", missing=column.missing)))
            continue
        columns.append((held, facts.Column(smallest(column), column.low, column.high, column.missing)))
        if held in stored.spelled:
            spelled.append((stored.spelled[held], facts.Column("VARCHAR", column.low, column.high, column.missing)))
    person = None if item.public else tables.person_of(item)
    if person is not None or tables.unit.positions_are_public:
        columns.append((PERSON, HASHES))
    if tables.unit.positions_are_public:
        columns.append((PLACE, PLACES))
    columns += spelled  # in the order in which they are stored: `*` stands for it
    size = item.rows if item.public and item.rows is not None else MAX_STORED_ROWS
    altered = 0 if item.public else tables.rows_of(item) or 0
    unique = stored.names.get(item.key or "")
    return facts.Table(tuple(stored.relation.split(".")), tuple(columns), altered, person is not None, size, unique)
