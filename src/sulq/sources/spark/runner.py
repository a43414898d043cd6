"""Where certified text runs on Spark: over each partition of whole persons, or over whole tables in this process.

A text of an analyst's is bound, never sent: statements with one read pages of whole persons in this process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa

from sulq.compile.statements.tally_functions import Needed
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
from sulq.language.tally import Tally
from sulq.sources.duckdb.runner import run_program
from sulq.sources.spark import chunks
from sulq.sources.spark.parts import Part, SharedPart, TablePart, joins, looked_at, pages, told_apart
from sulq.sources.spark.prepared import Prepared
from sulq.sources.spark.shared_rows import SharedRows


class PartitionRunner:
    """Runs what is asked of one relation over prepared tables."""

    def __init__(
        self,
        tables: Mapping[str, Prepared],
        shared: SharedRows | None,
        facts: tuple[Tables, Facts],
        kept_name: Callable[[str], str],
        tallies: Sequence[Tally],
    ) -> None:
        self._tables = tables
        self._shared = shared
        self._facts, self._kernel_facts = facts
        self._kept_name = kept_name
        self._over = tallies[0].over
        self._tallies = tallies
        self._sums = sum(tally.cells * tally.width for tally in tallies)

    def columns(self, asked: Sequence[Statement]) -> list[list[Stored]]:
        """The results of statements, of all parts one after the other."""
        found = self._run([each.scan for each in asked]) if asked else []
        return [chunks.columns(parts) for parts in found]

    def groups(self, asked: Statement) -> list[Stored]:
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
            with chunks.gathered(self._here()) as connection:
                return chunks.fold(asked, {}, connection)[0]
        sent = None if asked.texts else part.send(asked, self._sums)
        if sent is None:
            parts = part.here(lambda tables, connection: chunks.fold(asked, tables, connection, threads=None)[0])
        else:
            sums = asked.program.sums
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
            with chunks.gathered(self._here()) as connection:
                return [[found] for found in chunks.run(scans, {}, connection)[0]]
        sent = None if any(scan.texts for scan in scans) else part.send(scans, self._sums)
        if sent is None:
            here = part.here(lambda tables, connection: chunks.run(scans, tables, connection, threads=None)[0])
            parts = [[results[i] for results in here] for i in range(len(scans))]
        else:
            parts = [[chunks.received(each) for each in sent.get(i, [])] for i in range(len(scans))]
        return parts if parts[0] else [[each] for each in chunks.run(scans, self._none())[0]]

    def _apart(self, read: Callable[[str, Facts], Certificate | RowSource], sql: str) -> bool:
        """Whether nobody's rows meet another's in a statement, by its own text."""
        return remembered(read, sql, self._kernel_facts).apart

    def _part(self, *, owned: bool = False) -> Part | None:
        """The tables that hold the relation's rows person by person; None where there is no such part of them."""
        found = {self._kept_name(table.facts.schema.table): (table, need) for table, need in self._each(self._wanted())}
        private = {name: each for name, each in found.items() if not each[0].facts.public}
        public = {name: each for name, each in found.items() if name not in private}
        if len(private) > 1:
            shared = self._shared is not None and all(table in self._shared.tables for table, _ in private.values())
            return (
                SharedPart(self._shared, private, owned or told_apart(self._over), public=public)
                if self._shared is not None and shared
                else None
            )
        if not private and (len(public) > 1 or joins(self._over)):  # each row may meet any other
            return None
        ((name, (table, need)),) = (private or public).items()
        whose = table.owned and (owned or told_apart(self._over))
        return TablePart(table, name, need, whose, public=public if private else {})

    def _wanted(self) -> dict[str, Needed]:
        """What is looked at of each table."""
        return looked_at(self._over, self._tallies, self._facts)

    def _each(self, wanted: Mapping[str, Needed]) -> Iterator[tuple[Prepared, Needed]]:
        for name, needs in wanted.items():
            yield self._table(name), needs

    def _here(self) -> dict[str, chunks.TablePages]:
        """The whole tables that the relation is made of, no more columns than are looked at; others have no rows."""
        wanted = {table.facts.schema.table: need for table, need in self._each(self._wanted())}
        return self._none() | {self._kept_name(name): pages(self._tables[name], need) for name, need in wanted.items()}

    def _none(self) -> dict[str, chunks.TablePages]:
        """All tables, without rows."""
        tables = self._tables.items()
        return {self._kept_name(name): chunks.TablePages(table.facts.schema, table.owned) for name, table in tables}

    def _table(self, name: str) -> Prepared:
        return self._tables[self._facts.table_of(name).schema.table]


def _matrix(found: bytes, cells: int) -> Integers:
    sums: Integers = np.frombuffer(found, "<i8").reshape(cells, -1)
    return sums
