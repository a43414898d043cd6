"""An open dataset: engine, ledger and curator assembled under the named asks."""

from __future__ import annotations

import atexit
import os
import weakref
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from types import TracebackType
from typing import NoReturn, Self

from sulq.answers.call import check_going_on
from sulq.answers.waits import Waits
from sulq.api.declarations import OwnedTable
from sulq.api.erasure import Erasure
from sulq.api.named_asks import NamedAsks
from sulq.api.transcript import TranscriptList
from sulq.compile.plan.estimators import load
from sulq.curator.curator import Curator
from sulq.curator.ledger.ledger import Ledger
from sulq.curator.ledger.opening import ledger_place, sources_of
from sulq.curator.ledger.registry import open_keys, register
from sulq.curator.ledger.sources import Source
from sulq.curator.reuse import ReusingOracle
from sulq.curator.rows_choice import choose_rows
from sulq.curator.run import Rows
from sulq.display.progress import Working, of_preparing, screen
from sulq.errors import AccessDenied, SetupError, SulqError
from sulq.kernel.mechanisms import MECHANISMS
from sulq.language.privacy import Budget, Unit
from sulq.language.sublinear import check_size
from sulq.sources.duckdb.erased_persons import drop_copies, find_persons
from sulq.sources.engines import Counting, Early, Interruptible, OpenEngine, Preparation, check_rows, open_dataset
from sulq.sources.origin import Origin
from sulq.sources.tables import Dataset, Given, rows_at_most
from sulq.version import noise_versions

__all__ = ["Database", "ledger_place", "sources_of"]


def _given(table: OwnedTable) -> Given:
    """A table as engines take it; of a public one it is known how many rows there are."""
    origin, facts = Origin.of(table.source), table.facts
    if facts.public:
        facts = replace(facts, rows=rows_at_most(origin, facts.schema, table.inside))
    return Given(origin, facts, table.inside)


class Database(NamedAsks):
    """Private tables that answer questions with noise, and a count of what they told.

    Made by `sulq.connect`. It may be shared between threads; after a fork the
    child must open its own. No attribute, repr or error shows a row (S0.1).
    """

    _engine: OpenEngine

    def __init__(
        self,
        tables: Sequence[OwnedTable],
        *,
        unit: Unit,
        budget: Budget | None,
        synthetic: bool,
        ledger: Path | str | None,
        prepared: Path | bool | None,
        engine: str,
        renew: bool,
        progress: Callable[[float], None] | None,
        anchor: Path | None = None,
        covered: Sequence[Source] = (),
        new_people: bool = False,
        basic_share: Fraction | None = None,
        key_share: Fraction | None = None,
    ) -> None:
        given = [_given(table) for table in tables]
        own = load([table.facts for table in given], unit)
        self._process = os.getpid()
        self._closed = False
        self._waits = Waits()
        self._ledger = Ledger.open(
            ledger,
            unit=unit,
            budget=budget,
            synthetic=synthetic,
            open_keys=open_keys(item.facts.schema for item in given),
            basic_share=basic_share,
            key_share=key_share,
            mechanisms=tuple(MECHANISMS),
            anchor=anchor,
        )
        self._preparation = Preparation(self._made_ready, progress, of_preparing() if progress is None else None)

        def opened(*, renew: bool) -> tuple[ReusingOracle, Unit]:
            """The curator of rows kept by the ledger's own unit, and that: an older one may fold ids itself."""
            dataset = self._rows_of(given)
            rows = self._engine = open_dataset(
                dataset, prepared=prepared, renew=renew, engine=engine, progress=self._preparation.tell
            )
            self._preparation.of(rows)
            check_rows(dataset, tables[0].size, rows)
            if isinstance(rows, Counting) or any(item.facts.key is not None for item in given):
                # What a row makes fail is the owner's to hear of, not an analyst's: a key that is not unique, a cast in
                # a view of the database's or in a frame of Spark's.
                rows.ready()
            if isinstance(rows, Counting):
                dataset = rows.counted()
            first = dataset.tables[0].facts
            check_going_on()  # where opening is interrupted nothing is registered
            self._ledger.cover(covered, new_people=new_people)
            for item, size in zip(dataset.tables, (table.size for table in tables), strict=True):
                source = rows.fingerprint(item.facts.schema.table)
                register(self._ledger, item.facts, source=source, size=size, renew=renew)
            redeem, ready = self._ledger.redeem, self._preparation.ready
            curator = Curator(
                Rows(
                    rows,
                    redeem,
                    own=own,
                    ready=ready,
                    prepared=self._preparation.finish,
                    budget=self._ledger.budget,
                    unit=dataset.unit,
                ),
                self._ledger,
                first.schema,
                size=tables[0].size,
                versions=noise_versions(),
                tables=() if tables[0].alone and first.plain else dataset.facts.tables,
                certified=rows.certifies,
            )
            return ReusingOracle(curator, waits=self._waits), dataset.unit

        self._given, self._copy = tuple(given), prepared

        def assembled() -> ReusingOracle:
            check_size(self._ledger.budget, tables[0].size)
            oracle, kept_by = opened(renew=renew)
            # Another opening may have chosen while rows were made ready here.
            while self._ledger.histogram_share is not None or kept_by != self._ledger.unit:
                choose_rows(oracle.curator, self._ledger)
                self._engine.close()
                # A copy in PostgreSQL is another one where its rows are kept otherwise.
                oracle, kept_by = opened(renew=given[0].origin.home == "postgres")
            return oracle

        try:
            super().__init__(self._waits.run(assembled))
        except BaseException:
            self._waits.end(self._interrupt_for_good)
            self._ledger.give_up()
            raise
        _open.add(self)

    def prepare(self, *, wait: bool = True) -> None:
        """Build the prepared copy now rather than at the first ask.

        With `wait=False` it is built aside: `preparing` says how far it has come. A question asked meanwhile
        is answered from the source where it can be (docs/operate/prepared.md), or waits for it; so does
        `close`. If it cannot be built, whatever is asked next raises why, before anything is spent.
        Interrupted by Ctrl-C it goes on aside, and `close` ends it.
        """
        self._open()
        if wait:
            self._waits.run(self._preparation.finish)
        else:
            self._preparation.start()

    @property
    def preparing(self) -> float | None:
        """How far `prepare(wait=False)` has come, from 0 to 1; None when it is done. The owner's to know."""
        self._open()
        return self._preparation.part

    def forget(self, persons: Iterable[object]) -> Erasure:
        """Erase persons' rows, for good, under the same ledger, and close: open it again to ask without them.

        Prepared copies that hold them are deleted, and every copy made from now on leaves them out, even while the
        source still holds them. The ledger notes a keyed digest of each id, whether any row names it or not; nothing
        is given back of the budget, and no stored answer is given again (docs/operate/forget.md).

        Raises:
            SetupError: rows name no persons, the ledger is in memory, or the tables lie in a database or on Spark.
        """
        self._open()
        if isinstance(persons, (str, bytes)) or not isinstance(persons, Iterable):
            raise SetupError("bad-declaration", "Persons are a list of ids.", 'db.forget(["p17", "p23"]).')
        ids = [str(each) for each in persons]
        if self._ledger.path is None:
            why = "The ledger is in memory and forgotten at exit, and who was erased with it."
            raise SetupError("not-available", why, "Leave their rows out of the frame, or name a ledger: ledger=...")
        digests, there = find_persons(replace(self._rows_of(self._given), erased=()), ids)
        space, places = self._ledger.space, [self._copy, self._ledger.path]
        try:
            # An answer over rows with these persons would be stored under the version without them.
            if not self._waits.end(self._interrupt_for_good):
                why = "Questions under way did not end, so nobody was erased."
                raise SetupError("not-ready", why, "Open the database again and name the persons again.")
            self._ledger.erase({digest for each in digests for digest in each})
        finally:
            self.close()
        used = self._copy if isinstance(self._copy, Path) else None
        unread = drop_copies({path.resolve().parent for path in places if isinstance(path, Path)}, space, used=used)
        return Erasure(len(ids), tuple(i for i, found in enumerate(there, 1) if not found), tuple(map(str, unread)))

    def _rows_of(self, given: Sequence[Given]) -> Dataset:
        ledger = self._ledger
        return Dataset(tuple(given), ledger.unit, ledger.hash_key, ledger.space, ledger.erased)

    def transcript(self) -> TranscriptList:
        """All questions and answers of this ledger, in order: dictionaries, printed as a table."""
        self._open()
        return TranscriptList(entry._asdict() for entry in self._ledger.transcript())

    def verify(self, *, whole: bool = False) -> object:
        """Check the ledger from its file: chain, totals, budget; asks go on meanwhile.

        The first time it reads every entry, later on from the last checkpoint that it came past. With `whole=True`,
        and by `sulq ledger verify`, it always reads every entry.
        """
        self._open()
        with Working("verifying the ledger", screen()):
            return self._ledger.verify(whole=whole)

    def cancel(self) -> None:
        """End all calls under way, from another thread: they raise `cancelled`, and say what they were charged.

        What runs in DuckDB is interrupted. A debit stands, and a question that was interrupted has no answer.
        """
        self._open()
        self._waits.cancel(self._interrupt)

    def close(self) -> None:
        """End calls under way as `cancel` does, write what is still to be written and let go of the files."""
        if not self._closed and os.getpid() == self._process:
            self._closed = True
            try:
                self._waits.end(self._interrupt_for_good)
                self._preparation.close()
                self._engine.close()
            finally:
                self._ledger.close()

    def _interrupt(self, threads: Collection[int]) -> None:
        engine = getattr(self, "_engine", None)  # none yet where opening it is interrupted
        if isinstance(engine, Interruptible):
            engine.interrupt(threads)

    def _interrupt_for_good(self, threads: Collection[int]) -> None:
        """The same, and end what is being prepared, where rows will not be asked any more."""
        engine = getattr(self, "_engine", None)
        if isinstance(engine, Early):
            engine.stop()
        self._interrupt(threads)

    def _made_ready(self) -> None:
        self._engine.ready()

    def _open(self) -> None:
        if os.getpid() != self._process:
            raise AccessDenied("forked", "This database was opened in another process.")
        if self._closed:
            raise AccessDenied("closed", "This database is closed.")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __reduce__(self) -> NoReturn:
        raise AccessDenied("private-value", "A database cannot be pickled.")

    def __repr__(self) -> str:
        try:
            self._open()
        except SulqError as error:
            return f"<sulq database: {error.code}>"
        return f"<sulq database {self.facts}>"


_open: weakref.WeakSet[Database] = weakref.WeakSet()


def _end_all() -> None:
    """End what still runs aside when the process ends: a question that nobody waits for any more keeps nobody."""
    for database in list(_open):
        database._waits.cancel(database._interrupt_for_good)  # noqa: SLF001 - of this module


atexit.register(_end_all)
