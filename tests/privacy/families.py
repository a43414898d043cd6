"""Families of neighbouring tables: some records, and every table that has a part of a few more besides.

Two tables of a family are neighbours where one has one record more. With d more records there are 2^d tables and
d 2^(d-1) pairs, so that opening each table once shows d/2 pairs, most of them with other hostile records beside.
Tables of several families are opened together, as tables of one dataset, each its own file or frame: a row of one
must change nothing in another either.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from sulq import Unit, col
from sulq.errors import SetupError, SulqError
from sulq.language.domain import Category, Int, Schema
from sulq.language.facts import TableFacts
from sulq.language.relation import Table
from sulq.language.rowfn import Case, OrMissing, lit
from sulq.language.tally import Engine, Tally, sums_of
from sulq.sources.origin import Origin
from sulq.sources.tables import Dataset, Given
from tests.random_tallies import question
from tests.sources.cases import KEY

ROWS = 2
UNIT = Unit("who", rows=ROWS)
NUMBERS = 41
NUMBER = ("n", Category(list(range(NUMBERS))))  # each row has its own; of the added ones the last is the first's
Kept = NDArray[np.int64]
Opened = Callable[[Dataset], Engine]
Source = tuple[object, str | None]  # data, and the table's name where it holds several
T = TypeVar("T")


@dataclass(frozen=True)
class Family(Generic[T]):
    """What its tables are declared, the one with some of its `more` records, and whose each number is, where known."""

    schema: Schema
    more: int
    content: Callable[[frozenset[int]], T]
    whose: dict[int, str] | None = None

    @property
    def pairs(self) -> int:
        """How many of its tables are neighbours."""
        return self.more * 2 ** (self.more - 1)


@functools.lru_cache(maxsize=64)
def asked(schema: Schema) -> Tally:
    """All kept rows in one question: by number, how many there are, and what each lacks or its whole numbers are."""
    cells = [
        col(name) + 1 if isinstance(column, Int) else Case(((col(name).is_missing(), lit(1)),), lit(0))
        for name, column in schema.columns
    ]  # a whole number that is missing adds nothing
    return replace(question([lit(1), *cells], schema, by=(OrMissing(col("n")),)), over=Table(schema.table))


def kept(opened: Opened, sources: Sequence[Source], schemas: Sequence[Schema]) -> list[Kept] | str:
    """The kept rows of tables that are opened together; or why opening, or asking, was refused."""
    try:
        both = zip(sources, schemas, strict=True)
        given = tuple(Given(Origin.of(data), TableFacts(schema), inside) for (data, inside), schema in both)
        engine = opened(Dataset(given, UNIT, KEY))
    except SetupError as error:
        return error.code
    try:
        return [found.open() for found in sums_of(engine, [asked(schema) for schema in schemas])]
    except SulqError as error:
        return f"asked: {error.code}"
    finally:
        engine.close()


def moved(first: Kept, second: Kept) -> tuple[list[int], list[int]]:
    """The numbers of rows that only the first table keeps, or keeps otherwise, and of those that only the second does.

    Rows without a number come last, once for each.
    """
    lost, gained = [], []
    for n in np.flatnonzero((first != second).any(axis=1)).tolist():
        before, after = int(first[n, 0]), int(second[n, 0])
        same = min(before, after) - 1 if before == after else min(before, after)
        lost += [n] * (before - same)
        gained += [n] * (after - same)
    return lost, gained


def within(first: Kept, second: Kept) -> bool:
    """Whether two tables differ by at most a person's rows, each way."""
    return all(len(rows) <= ROWS for rows in moved(first, second))


def neighbours(
    opened: Opened, families: Sequence[Family[T]], turns: Sequence[int], put: Callable[[list[T]], list[Source]]
) -> list[list[Kept]]:
    """Open every table of families, one of each together, and compare all pairs; the kept rows of all.

    Where one family begins with its base another begins with what its turn says.
    """
    (more,) = {family.more for family in families}
    schemas = [family.schema for family in families]
    found: list[list[Kept]] = [[np.empty(0, np.int64)] * 2**more for _ in families]
    for state in range(2**more):
        states = [state ^ turn % 2**more for turn in turns]
        contents = [
            family.content(frozenset(i for i in range(more) if now >> i & 1))
            for family, now in zip(families, states, strict=True)
        ]
        sources = put(contents)
        answers = kept(opened, sources, schemas)
        if isinstance(answers, str):
            alone = [kept(opened, [source], [schema]) for source, schema in zip(sources, schemas, strict=True)]
            why = [(content, why) for content, why in zip(contents, alone, strict=True) if isinstance(why, str)]
            raise AssertionError(answers, why)
        for place, (now, rows) in enumerate(zip(states, answers, strict=True)):
            found[place][now] = rows
    for family, rows in zip(families, found, strict=True):
        for state, i in itertools.product(range(2**more), range(more)):
            if not state >> i & 1:
                compare(family, rows[state], rows[state | 1 << i], i)
    return found


def compare(family: Family[T], first: Kept, second: Kept, i: int) -> None:
    """One pair, the second with record i besides: at most k rows of the record's own person differ, each way."""
    assert within(first, second), (family.schema, i, moved(first, second))
    if family.whose is not None:
        whose = {family.whose.get(n) for rows in moved(first, second) for n in rows}
        assert whose <= {family.whose[NUMBERS - 1 - i]}, (family.schema, i, moved(first, second))
