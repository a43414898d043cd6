"""What all engines of kept rows share: proposals from public facts, where certified text runs, and sums by hand.

An engine's own room says how rows come to be kept and how a table is named. What is asked of them is proposed here,
certified by the kernel, and run by a `RowRunner`.
"""

from __future__ import annotations

import abc
import logging
import threading
import weakref
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Protocol, TypeVar, cast

import duckdb

from sulq.answers import wire
from sulq.compile.statements import derived_tables, kept_table
from sulq.compile.statements.proposer import Proposer
from sulq.compile.statements.tally_functions import needed, parted
from sulq.errors import CuratorError
from sulq.kernel.facts import Facts as KernelFacts
from sulq.kernel.facts import Refused
from sulq.kernel.layout import groups_of, joined, summed
from sulq.kernel.private import Private, Stored
from sulq.kernel.request import Asking, Proposal, Proposed, Scan, Statement
from sulq.kernel.whole.functions import Owned
from sulq.kernel.whole.listing import altered
from sulq.language.domain import Schema
from sulq.language.facts import Tables
from sulq.language.kinds import Integers
from sulq.language.relation import Relation, Table
from sulq.language.rowfn import Position
from sulq.language.rowfn.piece import NotInSql
from sulq.language.rowfn.writer import KeptRows
from sulq.language.shape import shape
from sulq.language.tally import Groups, Tally
from sulq.sources.derived_rows import derive, group, in_order, labelled
from sulq.sources.duckdb.connection import Connection
from sulq.sources.duckdb.runner import MAX_BATCH_ROWS, CursorRunner, Resident, fetch
from sulq.sources.fold import RowBatch, fold, listed, of_columns

if TYPE_CHECKING:
    from sulq.kernel.whole import asked as annex

T = TypeVar("T")

_log = logging.getLogger(__name__)


class RowRunner(Asking, Protocol):
    """Where certified text runs; beside what the kernel asks, it lists rows."""

    def rows(self, scan: Scan) -> tuple[list[Stored], int]:
        """The columns of the rows that a statement lists, and how many rows there are."""
        ...


class StoredEngine(abc.ABC):
    """Kept rows in a private, locked DuckDB: what is asked of them is proposed, certified and run, each on its cursor.

    How rows come there is a subclass's: it opens the connection in `ready`, and says in `_kept` how a table stands.
    """

    certifies = True  # whether rows stand as the kernel's facts say: then nothing is run but what it certified

    def __init__(self, facts: Tables, *, batch: int = MAX_BATCH_ROWS) -> None:
        self._facts = facts
        self._kernel_facts: KernelFacts | None = None
        self._connection: Connection | None = None
        self._resident: Resident | None = None  # columns in memory, where rows have lasting numbers
        self._batch = batch
        self._closed = False
        self._opening = threading.Lock()  # of threads that ask first at once, one makes the rows ready
        self._proposed: weakref.WeakKeyDictionary[Tally, list[tuple[tuple[weakref.ref[Tally], ...], object]]]
        self._proposed = weakref.WeakKeyDictionary()
        self._proposing = threading.Lock()

    # What a room says of its rows

    @abc.abstractmethod
    def ready(self) -> None:
        """Make the rows available, before any debit."""

    def _begin(self) -> None:
        """Make sure that the rows are there, for whoever did not pay."""
        self.ready()

    def _kept(self, name: str) -> KeptRows:
        """A table's kept rows by their name, and how they stand there, owners beside them where they have any."""
        schema = self._facts.table_of(name).schema
        most = shape(Table(name), self._facts).most
        return KeptRows(self._kept_name(schema.table), names=kept_table.names(schema), most=most)

    def _kept_name(self, table: str) -> str:
        """The generated name of a table's kept rows: no name of the owner's is part of SQL (T71)."""
        names = [facts.schema.table for facts in self._facts.tables]
        return f"kept{'' if len(names) == 1 else names.index(table)}"

    def _cursor(self, connection: Connection) -> duckdb.DuckDBPyConnection:
        return connection.cursor()

    def places(self, table: str = "") -> int | None:
        """How many rows a table's source has, where that is known and public (SR6)."""
        return None

    def _reader(self, tally: Tally) -> Callable[[str], RowBatch]:
        """How a table's kept rows come into memory; of a table asked itself, only what the tally looks at."""

        def read(name: str) -> RowBatch:
            wanted = parted(tally.over, name)
            schema, rows = derived_tables.derive(Table(name), self._facts, self._kept, person=wanted.person)
            wanted.columns = set(schema.names)
            if isinstance(tally.over, Table):
                (schema, rows), wanted = self._over(tally.over), needed(tally)
            with self._reading(name) as cursor:
                return fetch(cursor, schema, rows, wanted, owned=shape(Table(name), self._facts).owned)

        return read

    @contextmanager
    def _reading(self, name: str) -> Iterator[duckdb.DuckDBPyConnection]:
        """A cursor that a table's kept rows are read from by hand."""
        with closing(self._cursor(cast("Connection", self._connection))) as cursor:
            yield cursor

    @contextmanager
    def _runner(self, tallies: Sequence[Tally]) -> Iterator[RowRunner]:
        """Where certified text over one relation runs."""
        over = tallies[0].over
        resident = self._resident if isinstance(over, Table) else None
        with closing(self._cursor(cast("Connection", self._connection))) as cursor:
            yield CursorRunner(cursor, *self._over(over), batch=self._batch, resident=resident)

    def _over(self, over: Relation) -> tuple[Schema, KeptRows]:
        """The rows of a relation, and their columns."""
        if not isinstance(over, Table):
            return derived_tables.derive(over, self._facts, self._kept)
        return self._facts.table_of(over.name).schema, self._kept(over.name)

    # Proposals, from public facts alone: nothing is opened or read

    @property
    def tables(self) -> Tables:
        """The public facts of its tables."""
        return self._facts

    @property
    def kernel_facts(self) -> KernelFacts:
        """The facts of its kept tables, which never change."""
        if self._kernel_facts is None:
            self._kernel_facts = kept_table.stored_facts(self._facts, self._kept)
        return self._kernel_facts

    def proposer(self, over: Relation) -> Proposer:
        """Writes what is asked of a relation."""
        return Proposer(*self._over(over))

    def propose(self, *tallies: Tally) -> Proposal:
        """What is asked for tallies over one relation.

        Raises:
            NotInSql: a part of the relation is left to be worked out by hand.
        """
        return self._once(tallies, lambda: self.proposer(tallies[0].over).propose(tallies), Proposal)

    def propose_groups(self, tally: Tally) -> Statement:
        """As `propose`, of groups that are found in the data; where a person has one row, rows are people."""
        found = shape(tally.over, self._facts)
        several = found.owned and found.rows > 1
        return self._once((tally,), lambda: self.proposer(tally.over).groups(tally, owned=several), Statement)

    def listing(self, tally: Tally) -> Scan | None:
        """The statement that lists the rows of a tally over one table; None where they are read by hand.

        By hand is what SQL does not say, and all without a copy.
        """
        if not self.certifies:
            return None
        try:
            return self._once((tally,), lambda: self.proposer(tally.over).listing(tally), Scan)
        except NotInSql:
            return None

    def _once(self, tallies: tuple[Tally, ...], propose: Callable[[], T], kind: type[T]) -> T:
        """What was proposed for these very tallies already, or what is proposed now: what is certified is what runs.

        It is kept as long as the first of them is.
        """
        with self._proposing:
            known = self._proposed.setdefault(tallies[0], [])
        for others, made in known:
            if isinstance(made, kind) and [other() for other in others] == list(tallies):
                return made
        found = propose()
        known.append((tuple(map(weakref.ref, tallies)), found))
        return found

    def sources(self, tallies: Sequence[Tally]) -> list[Proposed | None]:
        """Of each tally what the kernel is to run; None where SQL does not say a part of its relation.

        Raises:
            Refused: what is proposed is none of the kernel's.
        """
        found: list[Proposed | None] = [None] * len(tallies)
        for places in alike(tallies) if self.certifies else ():
            several = [tallies[i] for i in places]
            try:
                self._over(several[0].over)
            except NotInSql:
                continue
            try:
                proposal = self.propose(*several)
            except NotInSql as part:
                raise Refused(f"no step of a program is {part}") from None
            where = partial(self._asking, several)
            for i, place in enumerate(places):
                found[place] = Proposed(proposal, where, i)
        return found

    def found(self, tally: Tally) -> Proposed | None:
        """As `sources`, of groups that are found in the data."""
        try:
            groups = self.propose_groups(tally) if self.certifies else None
        except NotInSql:
            return None
        if groups is None:
            return None
        proposal = Proposal(((0, (1, *(block.width for block in tally.blocks))),), (groups,))
        return Proposed(proposal, partial(self._asking, [tally]))

    def labelled(self, tally: Tally, keys: Sequence[list[object]]) -> tuple[list[list[object]], Integers | slice]:
        """Labels for the stored keys of groups, ascending, and the places of these in that order."""
        return labelled([key.fn for key in tally.by], shape(tally.over, self._facts).schema, keys)

    def certified_rows(self, asked: annex.Asked, tally: Tally, owners: Mapping[str, Owned]) -> int | None:
        """How many rows that a statistic of the whole table reads a person alters; None where they are read by hand.

        Raises:
            Refused: the statement that lists them has no certificate.
        """
        scan = self.listing(tally)
        if scan is None:
            return None
        kept = self._kept(cast("Table", tally.over).name)
        place, names = tuple(kept.relation.split(".")), kept.names
        known = {
            name: each._replace(table=place, columns=tuple(names[column] for column in each.columns))
            for name, each in owners.items()
        }
        return altered(asked, scan.sql, self.kernel_facts, known)

    # Exact numbers

    @contextmanager
    def _asking(self, tallies: Sequence[Tally]) -> Iterator[RowRunner]:
        """Where certified text over one relation runs, once the rows are there."""
        self._begin()
        with self._runner(tallies) as runner:
            yield runner

    def sums(self, tally: Tally) -> Private[Integers]:
        """Exact sums of a tally over the kept rows."""
        return self.sums_of((tally,))[0]

    def sums_of(self, tallies: Sequence[Tally]) -> tuple[Private[Integers], ...]:
        """Exact sums of several tallies; those over the same rows are proposed and run together."""
        found: dict[int, Integers] = {}
        for places in alike(tallies):
            found |= dict(zip(places, self._summed([tallies[i] for i in places]), strict=True))
        return tuple(Private(found[i]) for i in range(len(tallies)))

    def _summed(self, tallies: Sequence[Tally]) -> list[Integers]:
        """The sums of tallies over one relation; where they fail together, each is asked alone."""

        def ask(runner: RowRunner) -> list[Integers]:
            proposal = self.propose(*tallies)
            return joined(proposal, summed(proposal, runner))

        def by_hand() -> list[Integers]:
            if len(tallies) > 1:
                return [self._summed([tally])[0] for tally in tallies]
            return [fold(tallies[0], self._derived(tallies[0]), part_rows=self._batch)]

        return self._asked(tallies, ask, by_hand)

    def groups(self, tally: Tally) -> Private[Groups]:
        """Exact sums of the groups that occur."""

        def ask(runner: RowRunner) -> Groups:
            asked, schema = self.propose_groups(tally), shape(tally.over, self._facts).schema
            return in_order([key.fn for key in tally.by], schema, groups_of(asked, runner.groups(asked)))

        return Private(self._asked([tally], ask, lambda: group(tally, self._derived(tally))))

    def listed(self, tally: Tally, *, blanks: bool = False) -> Private[Integers]:
        """The blocks of each row that counts: by the certified statement that lists them, or by hand."""
        in_place = any(isinstance(block.fn, Position) for block in tally.blocks)
        places = self.places(cast("Table", tally.over).name) if in_place else None

        def ask(runner: RowRunner) -> Integers:
            scan = self.listing(tally)
            if scan is None:
                raise NotInSql("a list of rows")
            return of_columns(*runner.rows(scan), blanks=blanks, places=places)

        def by_hand() -> Integers:
            rows = self._derived(tally)
            rows = rows.placed(places) if blanks and places is not None else rows
            return listed(tally, rows, blanks=blanks)

        return Private(self._asked([tally], ask, by_hand))

    def _derived(self, tally: Tally) -> RowBatch:
        """The rows of a tally's relation in memory."""
        return derive(tally.over, self._facts, self._reader(tally))

    def _asked(self, tallies: Sequence[Tally], ask: Callable[[RowRunner], T], by_hand: Callable[[], T]) -> T:
        """Ask in SQL; what SQL does not say is worked out by hand from the kept rows.

        An error of DuckDB's arithmetic may depend on a row, so it must not be an
        outcome (T30): a certified statement has none. Rows that are read for each
        question have no certificate; there the reference meaning of the same tally, which is total, answers.
        """
        self._begin()
        try:
            try:
                with self._runner(tallies) as runner:
                    return ask(runner)
            except NotInSql:
                pass
            except Exception as error:
                if self.certifies:
                    raise
                each = "" if len(tallies) == 1 else ", each alone"
                _log.error("asked again by hand%s: %s", each, type(error).__name__)
            return by_hand()
        except Exception as error:  # noqa: BLE001 - whatever a row may cause has one outcome (T30)
            _log.error("the engine failed: %s", type(error).__name__)  # no text, no trace (T31)
        raise CuratorError("engine-failed", "The rows could not be summed.")

    def interrupt(self, threads: Collection[int]) -> None:
        """End the statements that these threads run; what they were asked for fails, charged."""
        connection = self._connection
        if connection is not None:
            connection.interrupt(threads)

    def close(self) -> None:
        """Let go of files and memory."""
        self._closed = True
        if self._resident is not None:
            self._resident.clear(for_good=True)
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def alike(tallies: Sequence[Tally]) -> list[list[int]]:
    """The places of tallies over the same relation."""
    found: dict[str, list[int]] = {}
    for i, tally in enumerate(tallies):
        found.setdefault(wire.encode(tally.over), []).append(i)
    return list(found.values())
