"""A relation of kept rows as statements name it: its SQL, its columns, and what stands beside them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from sulq.kernel import facts
from sulq.language.domain import Category, Column, Schema, Text

PERSON: Final = facts.HASH
PLACE: Final = facts.PLACE
OWNER: Final = facts.OWNER
SPELLED: Final = 512  # so many categories are stored as short texts beside their codes


@dataclass(frozen=True, slots=True, eq=False)
class KeptRows:
    """A relation of kept rows: its SQL, the constants bound in it, and how each column stands in it."""

    relation: str
    parameters: dict[str, object]
    names: dict[str, str]  # declared column -> c0, c1, ...
    doubles: frozenset[str]  # those of them that hold their whole numbers as doubles
    shifts: dict[str, int]  # those whose codes do not count from 0
    most: int  # how many there can be, from what is public alone: their number must not choose a word of any statement
    frames: dict[str, object] = field(default_factory=dict, repr=False)  # what it reads, by name
    spelled: dict[str, str] = field(default_factory=dict)  # those whose codes are there as texts too


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
