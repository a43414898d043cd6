"""Records as they stand in their source, for certified questions that come before rows are kept.

What is asked of them is one text, from the file's own columns to the sums: the kernel certifies how cells are read and
clamped with the rest of the statement (docs/theory/kernel.md, "Before rows are kept").
"""

from __future__ import annotations

import re
import threading
from collections.abc import Collection, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass, replace
from typing import Final, cast

import duckdb

from sulq.compile.statements.proposer import Proposer
from sulq.compile.statements.tally_functions import needed
from sulq.kernel import facts as kernel
from sulq.kernel import keep
from sulq.kernel.facts import ANY_CELL, Refused
from sulq.kernel.layout import of_proposal
from sulq.kernel.request import Proposal, Proposed, Statement
from sulq.language.domain import Schema
from sulq.language.facts import Tables
from sulq.language.relation import Table
from sulq.language.rowfn.piece import NotInSql
from sulq.language.rowfn.writer import KeptRows
from sulq.language.shape import shape
from sulq.language.tally import Tally
from sulq.sources.decode.files import WILD
from sulq.sources.duckdb import kept_rows
from sulq.sources.duckdb.connection import Connection
from sulq.sources.duckdb.runner import CursorRunner
from sulq.sources.origin import suffix
from sulq.sources.source import RegisteredTable

MAX_ROWS_READ: Final = 2**31  # of a table that is read anew: its doubles of 2^22 are summed as such, exactly
_COLUMN: Final = re.compile(r"\bs[0-9]+\b")


def readable(registered: RegisteredTable) -> bool:
    """Whether a table's records may be asked as they stand: Parquet or a frame whose rows are the persons.

    Of rows with a person some are chosen, of a key all are looked at, of blanked ones it must be known that they are; a
    CSV file is checked whole. None of this follows from the rows but for how many there are: of too many to be summed
    anew a copy is waited for, which is no refusal.
    """
    origin, unit = registered.origin, registered.unit
    few = registered.source.rows is not None and registered.source.rows <= MAX_ROWS_READ
    plain = origin.path is None or suffix(origin.path) == ".parquet"
    named = not any(WILD.search(str(path)) for path in origin.files)  # locked, DuckDB takes such a name for a pattern
    alone = unit.column is None and registered.unique is None and not registered.references
    return plain and named and alone and few and unit.neighbors != "zero_out"


class EarlyRows:
    """Views of sources, each of the columns whose types the kernel knows, and what is asked of them."""

    def __init__(self, tables: Sequence[RegisteredTable], public: Tables, *, threads: int | None, batch: int) -> None:
        self._tables = {item.schema.table: item for item in tables}
        self._public = public
        self._batch = batch
        self._connection = Connection(threads=threads)
        self._read: set[tuple[str, str]] = set()  # columns of sources that were read to their end
        self._lock = threading.Lock()
        self.asked = threading.Event()  # once a question was answered
        try:
            self._facts = tuple(self._view(item) for item in tables)
            self._connection.lock(path for item in tables for path in item.source.files)
            with closing(self._cursor()) as cursor:
                keep.check(cursor, self.facts)
        except BaseException:
            self._connection.close()
            raise

    @property
    def facts(self) -> kernel.Facts:
        """The facts of the records."""
        return kernel.Facts(self._facts, self._public.unit.neighbors, self._public.unit.column is None)

    def _view(self, item: RegisteredTable) -> kernel.Table:
        """Give a source's records a name, with the columns whose types are known, and say so."""
        declared = {name for _, sql in item.source.columns.values() for name in _COLUMN.findall(sql)}
        with closing(self._cursor()) as cursor:
            described = cursor.execute(f"DESCRIBE SELECT * FROM {item.source.relation}").fetchall()
            known = {name: kind for name, kind, *_ in described if name in declared and kind in ANY_CELL}
            listed = ", ".join(known) or "1 AS s"
            cursor.execute(f"CREATE VIEW {self._name(item)} AS SELECT {listed} FROM {item.source.relation}")
        table = self._public.table_of(item.schema.table)
        most = min(MAX_ROWS_READ, shape(Table(item.schema.table), self._public).most)
        columns = tuple((name, ANY_CELL[kind]) for name, kind in known.items())
        columns = columns or (("s", ANY_CELL["INTEGER"]),)
        return kernel.Table((self._name(item),), columns, int(not table.public), owned=False, size=most, source=True)

    def _name(self, item: RegisteredTable) -> str:
        return f"records{item.number}"

    def _cursor(self) -> duckdb.DuckDBPyConnection:
        cursor = self._connection.cursor()
        for item in self._tables.values():
            for name, frame in item.frames.items():
                cursor.register(name, frame)
        return cursor

    def sources(self, tallies: Sequence[Tally], places: Sequence[Sequence[int]]) -> list[Proposed | None] | None:
        """Of each tally what the kernel is to run, those over one relation together; None if any is to wait."""
        found: list[Proposed | None] = [None] * len(tallies)
        for each in places:
            several = [tallies[i] for i in each]
            rows = self._rows(several)
            if rows is None:
                return None
            try:
                proposal = Proposer(self._schema(several[0]), rows).propose(several)
                of_proposal(proposal, self.facts)
            except (NotInSql, Refused):
                return None
            place = EarlyPlace(self, several[0], rows, self._columns(several[0], rows))
            for i, at in enumerate(each):
                found[at] = Proposed(proposal, place, i)
        return found

    def found(self, tally: Tally) -> Proposed | None:
        """As `sources`, of groups that are found in the data."""
        rows = self._rows([tally])
        if rows is None:
            return None
        try:
            groups: Statement = Proposer(self._schema(tally), rows).groups(tally, owned=False)
            proposal = Proposal(((0, (1, *(block.width for block in tally.blocks))),), (groups,))
            of_proposal(proposal, self.facts)
        except (NotInSql, Refused):
            return None
        return Proposed(proposal, EarlyPlace(self, tally, rows, self._columns(tally, rows)))

    def _schema(self, tally: Tally) -> Schema:
        return shape(tally.over, self._public).schema

    def _rows(self, tallies: Sequence[Tally]) -> KeptRows | None:
        """The columns of a table that tallies look at, read from its records; None where they are not read early."""
        over, wanted = tallies[0].over, needed(*tallies)
        if not isinstance(over, Table) or wanted.person or wanted.place:
            return None
        item = self._tables[self._public.table_of(over.name).schema.table]
        slow = kept_rows.looked_up(item)  # long lists are joined, which takes longer than to wait
        if wanted.columns & slow:
            return None
        only = wanted.columns or set(item.schema.names[:1]) - slow
        rows = kept_rows.select(item, stored=False, only=only, view=self._name(item)) if only else None
        most = min(MAX_ROWS_READ, shape(over, self._public).most)
        return None if rows is None else replace(rows, most=most, frames={})

    def _columns(self, tally: Tally, rows: KeptRows) -> frozenset[tuple[str, str]]:
        """The columns of the source that rows are read from."""
        table = self._public.table_of(cast("Table", tally.over).name).schema.table
        (known,) = (dict(each.columns) for each in self._facts if each.name == (self._name(self._tables[table]),))
        return frozenset((table, name) for name in _COLUMN.findall(rows.relation) if name in known)

    def holds(self, place: EarlyPlace) -> bool:
        """Whether all cells that are looked at can be read: whoever asked has paid nothing yet.

        DuckDB stops at a text that is no UTF-8, and at a broken page: then what becomes of the copy is waited for.
        """
        with self._lock:
            for table in {table for table, _ in place.columns}:
                item, columns = self._tables[table], sorted(name for _, name in place.columns - self._read)
                if columns and item.origin.path is not None:
                    looked = ", ".join(f"count(*) FILTER (WHERE hash({name}) = 0)" for name in columns)
                    try:
                        with closing(self._cursor()) as cursor:
                            cursor.execute(f"SELECT {looked} FROM {self._name(item)}").fetchall()
                    except duckdb.Error:
                        return False
            self._read |= place.columns
        return True

    @contextmanager
    def asking(self, place: EarlyPlace) -> Iterator[CursorRunner]:
        """Where certified text runs; of a source that changed meanwhile nothing is told."""
        self._unchanged()
        with closing(self._cursor()) as cursor:
            yield CursorRunner(cursor, self._schema(place.tally), place.kept, batch=self._batch)
        self._unchanged()
        self.asked.set()

    def _unchanged(self) -> None:
        for item in self._tables.values():
            item.origin.unchanged()

    def interrupt(self, threads: Collection[int]) -> None:
        """End the statements that these threads run."""
        self._connection.interrupt(threads)

    def close(self) -> None:
        """Let go of the sources."""
        self._connection.close()


@dataclass(frozen=True, slots=True, eq=False)
class EarlyPlace:
    """Where a proposal over records runs, and which columns of their sources it reads."""

    rows: EarlyRows
    tally: Tally
    kept: KeptRows
    columns: frozenset[tuple[str, str]]

    def __call__(self) -> AbstractContextManager[CursorRunner]:
        """A runner, once."""
        return self.rows.asking(self)
