"""What of a question is sent to executors: numbers, dates, operations and the owner's words, no text of an analyst's.

Labels of cells stay here, since only their number counts there, and so do the
names of derived columns. A question in which any other text stands (a word that a
cell is compared with, a pattern) is not sent: its rows are summed in this process.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, TypeVar, cast

from sulq.terms.domain import Category
from sulq.terms.engine import Block, Key, Tally
from sulq.terms.facts import Tables
from sulq.terms.relation import Relation, Select, Table, Where
from sulq.terms.rowfn.keys import Each
from sulq.terms.rowfn.labels import Choice, OrMissing
from sulq.terms.rowfn.scalar import Col, RowFn

T = TypeVar("T")

DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}([T ][0-9:.]{5,15})?")
OPERATIONS: Final = frozenset({"op", "part", "side", "clock"})
"""Fields that hold one of the words of the language itself: each is checked when a row function is built."""


def nameless(tallies: Sequence[Tally]) -> list[Tally]:
    """The same tallies over such rows, without labels and with names of our own for derived columns."""
    over, names = _relation(tallies[0].over)
    return [
        dataclasses.replace(
            tally,
            over=over,
            blocks=_renamed(tally.blocks, names),
            where=_renamed(tally.where, names),
            by=tuple(Key(_unlabelled(_renamed(key.fn, names)), tuple(range(len(key.labels)))) for key in tally.by),
        )
        for tally in tallies
    ]


def sendable(tallies: Sequence[Tally], facts: Tables) -> bool:
    """Whether no text stands in nameless tallies but what the owner declared."""
    schemas = [table.schema for table in facts.tables]
    own = {v for schema in schemas for _, c in schema.columns if isinstance(c, Category) for v in c.values}
    return all(text in own or DATE.fullmatch(text) for text in _texts(tuple(tallies)))


def _relation(over: Relation) -> tuple[Relation, dict[str, str]]:
    """A relation with derived columns named by us, and how those were called."""
    if isinstance(over, Where):
        source, names = _relation(over.source)
        return Where(source, _renamed(over.condition, names)), names
    if isinstance(over, Select):
        source, names = _relation(over.source)
        columns = tuple((f"d{i}", _renamed(fn, names)) for i, (_, fn) in enumerate(over.columns))
        return Select(source, columns), {name: f"d{i}" for i, (name, _) in enumerate(over.columns)}
    return over, {}


def _renamed(value: T, names: Mapping[str, str]) -> T:
    """A row function, or what is built of some, with other names of columns."""
    if not names or value is None:
        return value
    if isinstance(value, Col):
        return cast("T", Col(names.get(value.name, value.name)))
    if isinstance(value, tuple):
        return cast("T", tuple(_renamed(item, names) for item in value))
    if isinstance(value, (RowFn, Block)):
        fields = dataclasses.fields(cast("Block", value))
        told = {field.name: _renamed(getattr(value, field.name), names) for field in fields}
        return cast("T", type(value)(**told))
    return value


def _unlabelled(fn: RowFn) -> RowFn:
    """A key that gives the same codes: how a case's branches are called is not needed to tell them apart."""
    if isinstance(fn, Choice):
        return Choice(fn.branches, tuple(range(len(fn.labels))), fn.otherwise)
    return type(fn)(_unlabelled(fn.item)) if isinstance(fn, (Each, OrMissing)) else fn


def _texts(value: object) -> Iterator[str]:
    """Every text in nameless tallies but the language's own words, and names of columns: the owner's and ours."""
    front: list[object] = [value]
    while front:
        item = front.pop()
        if isinstance(item, str):
            yield item
        elif isinstance(item, tuple):
            front += [part for part in item if not isinstance(part, (int, float))]
        elif isinstance(item, Select):
            front += [item.source, *item.parts()]
        elif dataclasses.is_dataclass(item) and not isinstance(item, (Col, Table)):
            front += [getattr(item, field.name) for field in dataclasses.fields(item) if field.name not in OPERATIONS]
