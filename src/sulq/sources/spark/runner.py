"""Where certified text runs on Spark: over each partition of whole persons, or over whole tables in this process.

A text of an analyst's is bound, never sent: statements with one read chunks in this process, some at a time.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import pyarrow as pa

from sulq.compile.statements.tally_functions import Needed, needed
from sulq.kernel.facts import Facts
from sulq.kernel.private import Stored
from sulq.kernel.programs import Fold
from sulq.kernel.relations import Certificate, certify
from sulq.kernel.relations import Relation as RowSource
from sulq.kernel.relations import rows as rows_of
from sulq.kernel.remembered import remembered
from sulq.kernel.request import Scan, Statement
from sulq.language.facts import Tables
from sulq.language.kinds import Integers
from sulq.language.relation import PerPerson, Relation, Select, Table, Where
from sulq.language.tally import Tally
from sulq.sources.duckdb.runner import run_program
from sulq.sources.spark import chunks, work
from sulq.sources.spark.prepared import Prepared

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

TASKS_PER_CORE: Final = 2  # so many there may always be
MAX_TASK_NUMBERS: Final = 2**25  # that the tasks of a question may give, before they are added
CHUNKS_AT_ONCE: Final = 16  # that a statement reads in this process


def tasks(rows: int, sums: int, cores: int) -> int:
    """Into how many tasks a question is cut at most: each with a chunk or more, and their sums have room here.

    Fewer would be slower: partitions put together are worked on by anyone on their
    host, and whoever does not hold one is sent all its columns, asked for or not.
    """
    return max(min(rows // chunks.CHUNK_ROWS, MAX_TASK_NUMBERS // max(sums, 1)), TASKS_PER_CORE * cores, 1)


class TablePart(NamedTuple):
    """A table whose rows give a relation's person by person: its name in statements, and what is read of it."""

    table: Prepared
    name: str
    wanted: Needed
    owned: bool  # whether it is read whose each row is

    def rows(self, sums: int) -> DataFrame:
        """The kept rows, no more columns than are looked at, where they lie unless that were too many tasks."""
        asked = chunks.wanted_columns(self.table.facts.schema, self.wanted, owned=self.owned)
        found = self.table.kept.select(*asked)
        most = tasks(self.table.size, sums, int(self.table.session.sparkContext.defaultParallelism))
        return found if self.table.parts <= most else found.coalesce(most)

    def send(self, asked: Sequence[Scan] | Fold, sums: int) -> dict[int, list[bytes]]:
        """The results of statements or of a program over each partition that has rows, by their places."""
        task = work.PartitionTask.of(asked, self.name, self.table.facts.schema, owned=self.table.owned)
        found: dict[int, list[bytes]] = {}
        for result in self.rows(sums).mapInArrow(functools.partial(work.run, task), work.RESULTS).collect():
            found.setdefault(result.i, []).append(bytes(result.r))
        return found

    def pages(self) -> Iterator[dict[str, chunks.TablePages]]:
        """Chunks some at a time, each of whole persons."""
        read = self.table.streamed(self.wanted, owned=self.owned)
        while several := list(itertools.islice(read, CHUNKS_AT_ONCE)):
            yield {self.name: chunks.TablePages(self.table.facts.schema, self.table.owned, several)}


class PartitionRunner:
    """Runs what is asked of one relation over prepared tables."""

    def __init__(
        self,
        tables: Mapping[str, Prepared],
        facts: tuple[Tables, Facts],
        kept_name: Callable[[str], str],
        tallies: Sequence[Tally],
    ) -> None:
        self._tables = tables
        self._facts, self._kernel_facts = facts
        self._kept_name = kept_name
        self._over = tallies[0].over
        self._tallies = tallies
        self._sums = sum(tally.cells * tally.width for tally in tallies)

    def columns(self, asked: Sequence[Statement]) -> list[list[Stored]]:
        """The results of statements, of all parts one after the other."""
        found = self._run([each.scan for each in asked]) if asked else []
        return [chunks.columns(parts) for parts in found]

    def groups(self, asked: Statement) -> list[tuple[object, ...]]:
        """Groups found in the parts, those of the same keys added."""
        (parts,) = self._run([asked.scan], owned=True)
        return chunks.groups(parts, asked.keys)

    def rows(self, scan: Scan) -> tuple[list[Stored], int]:
        """The columns of the rows that a statement lists, and how many rows there are."""
        (parts,) = self._run([scan], read=rows_of)
        return chunks.columns(parts), sum(part.num_rows for part in parts)

    def fold(self, asked: Fold) -> list[Integers]:
        """The sums of a program over the rows of its statement."""
        part = self._part() if self._apart(rows_of, asked.sql) else None
        if part is None:
            return chunks.fold(asked, self._here(self._over), threads=None)[0]
        if asked.texts:
            parts = [chunks.fold(asked, page)[0] for page in part.pages()]
        else:
            sent, sums = part.send(asked, self._sums), asked.program.sums
            each = [[_matrix(found, sums[i].cells) for found in sent.get(i, [])] for i in range(len(sums))]
            parts = [list(one) for one in zip(*each, strict=True)]
        return chunks.added([run_program(asked, ()), *parts])

    def _run(
        self,
        scans: Sequence[Scan],
        *,
        owned: bool = False,
        read: Callable[[str, Facts], Certificate | RowSource] = certify,
    ) -> list[list[pa.Table]]:
        """The results of statements, of each as many as there were parts of whole persons; at least one.

        `read`: whether they sum rows or list them.
        """
        part = self._part(owned=owned) if all(self._apart(read, scan.sql) for scan in scans) else None
        if part is None:
            return [[found] for found in chunks.run(scans, self._here(self._over), threads=None)[0]]
        if any(scan.texts for scan in scans):
            found = [chunks.run(scans, page)[0] for page in part.pages()]
            parts = [[results[i] for results in found] for i in range(len(scans))]
        else:
            sent = part.send(scans, self._sums)
            parts = [[chunks.received(each) for each in sent.get(i, [])] for i in range(len(scans))]
        return parts if parts[0] else [[each] for each in chunks.run(scans, self._here(None))[0]]

    def _apart(self, read: Callable[[str, Facts], Certificate | RowSource], sql: str) -> bool:
        """Whether nobody's rows meet another's in a statement, by its own text."""
        return remembered(read, sql, self._kernel_facts).apart

    def _part(self, *, owned: bool = False) -> TablePart | None:
        """The table that holds the relation's rows person by person; None where rows of several tables meet."""
        name = _table_below(self._over, Where, Select, PerPerson)
        if name is None:
            return None
        table = self._table(name)
        plain = _table_below(self._over, Where, Select) is not None
        wanted = looked_at(self._over, self._tallies) if plain else Needed(table.facts.schema.names)
        whose = table.owned and (owned or not isinstance(self._over, Table))
        return TablePart(table, self._kept_name(table.facts.schema.table), wanted, whose)

    def _here(self, over: Relation | None) -> dict[str, chunks.TablePages]:
        """The whole tables that a relation is made of, for this process; all others have no rows."""
        read = {self._table(name).facts.schema.table for name in (() if over is None else _tables(over))}
        return {
            self._kept_name(name): chunks.TablePages(
                table.facts.schema, table.owned, table.whole() if name in read else ()
            )
            for name, table in self._tables.items()
        }

    def _table(self, name: str) -> Prepared:
        return self._tables[self._facts.table_of(name).schema.table]


def _matrix(found: bytes, cells: int) -> Integers:
    sums: Integers = np.frombuffer(found, "<i8").reshape(cells, -1)
    return sums


def _table_below(relation: Relation, *through: type) -> str | None:
    """The table under relations of these kinds; None where there is anything else on the way."""
    while isinstance(relation, through):
        (relation,) = relation.sources()
    return relation.name if isinstance(relation, Table) else None


def _tables(relation: Relation) -> set[str]:
    """The names of the tables a relation is made of."""
    if isinstance(relation, Table):
        return {relation.name}
    return {name for source in relation.sources() for name in _tables(source)}


def looked_at(relation: Relation, tallies: Sequence[Tally]) -> Needed:
    """What tallies over rows made one by one of a table's look at in the table's own rows."""
    found = needed(*tallies)
    while isinstance(relation, (Where, Select)):
        if isinstance(relation, Select):  # what is above it reads its columns, and all of these are worked out
            found.columns = set()
        found.add(*relation.parts())
        relation = relation.source
    return found
