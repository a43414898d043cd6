"""Parts of prepared tables whose sums add up: rows of whole persons, and what is asked of them, there or here."""

from __future__ import annotations

import abc
import functools
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeVar

from sulq.answers import wire
from sulq.compile.statements.tally_functions import Needed, needed
from sulq.kernel.programs import Fold
from sulq.kernel.request import Scan
from sulq.language.facts import Tables
from sulq.language.relation import Distinct, Join, PerPerson, Relation, Select, Table, Union
from sulq.language.shape import shape
from sulq.language.tally import Tally
from sulq.sources.duckdb.connection import Connection
from sulq.sources.spark import chunks, work
from sulq.sources.spark.prepared import Prepared, streamed
from sulq.sources.spark.shared_rows import SharedRows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

T = TypeVar("T")
TASKS_PER_CORE: Final = 2  # so many there may always be
MAX_TASK_NUMBERS: Final = 2**25  # that the tasks of a question may give, before they are added


def tasks(rows: int, sums: int, cores: int) -> int:
    """Into how many tasks a question is cut at most: each with a chunk or more, and their sums have room here.

    Fewer would be slower: partitions put together are worked on by anyone on their
    host, and whoever does not hold one is sent all its columns, asked for or not.
    """
    return max(min(rows // chunks.CHUNK_ROWS, MAX_TASK_NUMBERS // max(sums, 1)), TASKS_PER_CORE * cores, 1)


@dataclass(frozen=True)
class Part(abc.ABC):
    """Tables whose rows give a relation's person by person, and the public tables beside them.

    `public`: by their names in statements, with what is looked at.
    """

    public: Mapping[str, tuple[Prepared, Needed]] = field(default_factory=dict, kw_only=True)

    @abc.abstractmethod
    def sides(self) -> list[work.SentTable]:
        """The tables, as statements name them."""

    @abc.abstractmethod
    def source(self) -> DataFrame:
        """The kept rows where they lie, no more columns than are looked at."""

    @abc.abstractmethod
    def tables(self) -> Sequence[Prepared]:
        """The tables whose rows they are."""

    def rows(self, sums: int) -> DataFrame:
        """The kept rows, put together where they lie in too many places."""
        (first, *_), found = self.tables(), self.source()
        most = tasks(sum(table.size for table in self.tables()), sums, _cores(first))
        return found if first.parts <= most else found.coalesce(most)

    def send(self, asked: Sequence[Scan] | Fold, sums: int) -> dict[int, list[bytes]] | None:
        """The results of statements or of a program over each page of rows, by their places; None: too much to send."""
        beside = []
        for name, (table, wanted) in self.public.items():
            rows = table.public(wanted)
            if rows is None:
                return None
            beside.append(work.SentTable(name, wire.encode(table.facts.schema), owned=False, public=rows))
        task = work.PartitionTask.of(asked, [*self.sides(), *beside])
        found: dict[int, list[bytes]] = {}
        for result in self.rows(sums).mapInArrow(functools.partial(work.run, task), work.RESULTS).collect():
            found.setdefault(result.i, []).append(bytes(result.r))
        return found

    def here(self, ask: Callable[[Mapping[str, chunks.TablePages], Connection | None], T]) -> list[T]:
        """What is asked of the rows in this process, a page of whole persons at a time; public tables lie on disk."""
        public = {name: pages(table, wanted) for name, (table, wanted) in self.public.items()}
        with chunks.gathered(public) if public else nullcontext(None) as connection:
            return [
                ask({side.name: side.pages(page) for side in self.sides()}, connection)
                for page in chunks.paged(streamed(self.source()), chunks.PAGE_ROWS)
            ]


@dataclass(frozen=True)
class TablePart(Part):
    """One table: its name in statements, and what is read of it."""

    table: Prepared
    name: str
    wanted: Needed
    owned: bool  # whether it is read whose each row is

    def tables(self) -> Sequence[Prepared]:
        """See `Part`."""
        return (self.table,)

    def sides(self) -> list[work.SentTable]:
        """See `Part`."""
        return [work.SentTable(self.name, wire.encode(self.table.facts.schema), self.table.owned)]

    def source(self) -> DataFrame:
        """See `Part`."""
        return self.table.columns(self.wanted, owned=self.owned)


@dataclass(frozen=True)
class SharedPart(Part):
    """Several tables of the same persons, by their names in statements."""

    shared: SharedRows
    named: Mapping[str, tuple[Prepared, Needed]]
    owned: bool  # whether it is read whose each row is

    def tables(self) -> Sequence[Prepared]:
        """See `Part`."""
        return [table for table, _ in self.named.values()]

    def sides(self) -> list[work.SentTable]:
        """See `Part`."""
        return [
            work.SentTable(name, wire.encode(table.facts.schema), owned=True, side=self.shared.tables.index(table))
            for name, (table, _) in self.named.items()
        ]

    def source(self) -> DataFrame:
        """See `Part`."""
        return self.shared.rows(dict(self.named.values()), owned=self.owned)


def _cores(table: Prepared) -> int:
    return int(table.session.sparkContext.defaultParallelism)


def pages(table: Prepared, wanted: Needed | None = None) -> chunks.TablePages:
    """All rows of a table."""
    return chunks.TablePages(table.facts.schema, table.owned, table.whole(wanted))


def looked_at(relation: Relation, tallies: Sequence[Tally], facts: Tables) -> dict[str, Needed]:
    """What tallies over a relation look at in the rows of the tables it is made of, by the tables' names."""
    found: dict[str, Needed] = {}
    front = [(relation, needed(*tallies))]
    while front:
        over, wanted = front.pop()
        match over:
            case Table():
                before = found.setdefault(over.name, Needed())
                before.columns |= wanted.columns & set(facts.table_of(over.name).schema.names)
                before.person |= wanted.person
                continue
            case Select():  # what is above it reads its columns, and all of these are worked out
                wanted.columns = set()
            case Join():
                wanted.columns |= {name for pair in over.on for name in pair}
            case PerPerson():
                wanted.columns = set(over.keys)
            case Distinct() | Union():  # all their columns tell rows apart, or are named by their place
                wanted.columns = {name for each in over.sources() for name in shape(each, facts).schema.names}
        wanted.add(*over.parts())
        front += [(source, _copied(wanted)) for source in over.sources()]
    return found


def told_apart(relation: Relation) -> bool:
    """Whether rows are put together by whose they are."""
    own = isinstance(relation, PerPerson) or (isinstance(relation, Join) and relation.person)
    return own or any(map(told_apart, relation.sources()))


def joins(relation: Relation) -> bool:
    """Whether rows are put together with others."""
    return isinstance(relation, Join) or any(map(joins, relation.sources()))


def _copied(wanted: Needed) -> Needed:
    found = Needed(wanted.columns)
    found.person = wanted.person
    return found
