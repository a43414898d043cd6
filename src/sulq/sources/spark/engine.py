"""The Spark engine: rows prepared on the cluster once, every question one job of our own kernels (decision 0021)."""

from __future__ import annotations

import itertools
import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, NoReturn, TypeVar, cast

import pyarrow as pa

from sulq.answers import wire
from sulq.compile.emit.emitter import NotInSql
from sulq.compile.statements import kept_table
from sulq.compile.statements.column_demand import Needed, needed
from sulq.compile.statements.kept_table import Rows
from sulq.errors import AccessDenied, CuratorError, SetupError
from sulq.kernel.facts import Facts
from sulq.kernel.layout import groups_of, joined, summed
from sulq.kernel.private import Private, Stored
from sulq.kernel.programs import Fold
from sulq.kernel.relations import Certificate, certify
from sulq.kernel.relations import Relation as RowSource
from sulq.kernel.relations import rows as rows_of
from sulq.kernel.remembered import remembered
from sulq.kernel.request import Asking, Scan, Statement
from sulq.language.kinds import Integers
from sulq.language.relation import Relation, Table
from sulq.language.shape import shape
from sulq.language.tally import Groups, Tally
from sulq.sources.decode.person import agree
from sulq.sources.duckdb.engine import StoredEngine
from sulq.sources.duckdb.prepare import Progress
from sulq.sources.folds import derived_rows
from sulq.sources.folds.batch import Batch
from sulq.sources.folds.fold import fold
from sulq.sources.folds.open_groups import group, in_order
from sulq.sources.folds.row_listing import listed, of_columns
from sulq.sources.memory.persons import UNSURE
from sulq.sources.spark import files, jobs, settings, statements
from sulq.sources.spark import frame as frames
from sulq.sources.spark.asked import Job
from sulq.sources.spark.prepared import Prepared
from sulq.sources.spark.work import by_person, looked_at, row_by_row
from sulq.sources.tables import Dataset

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

BATCH: Final = 65_536
SEVERAL: Final = 16  # chunks that a statement reads at a time in this process
T = TypeVar("T")

_log = logging.getLogger("sulq")


class Copy(NamedTuple):
    """Prepared tables, and the session they are in."""

    session: SparkSession
    tables: dict[str, Prepared]


class SparkEngine(StoredEngine):
    """Kept rows as a table of a Spark session; the session is the owner's, and stays open.

    What is asked is the text that the kernel certified, run by DuckDB over each partition (decision 0036).
    """

    def __init__(
        self, dataset: Dataset, *, prepared: Path | bool | None = None, progress: Progress | None = None
    ) -> None:
        if isinstance(prepared, bool):
            raise SetupError(
                "bad-declaration",
                "Rows of Spark are prepared there, once, so that every question reads the same.",
                "Leave prepared= out.",
            )
        if dataset.unit.positions_are_public:
            raise SetupError(
                "bad-declaration",
                "Rows of Spark have no places, which this unit would let questions speak of.",
                "Use neighbors='add_remove', or 'replace_one' with a person column.",
            )
        for given in dataset.tables:
            if not isinstance(given.origin.data, frames.Named):
                if not frames.is_frame(given.origin.data):
                    raise SetupError(
                        "bad-declaration", "The Spark engine reads frames of Spark.", "Give spark.read.parquet(...)."
                    )
                frames.check_kind(given.origin.data)
        frames.spark_sql()
        self._facts = dataset.facts
        self._dataset = dataset
        self._where = prepared
        self._progress = progress
        self._copy: Copy | None = None
        names = [given.facts.schema.table for given in dataset.tables]
        self._names = {name: "kept" if len(names) == 1 else f"kept{i}" for i, name in enumerate(names)}
        self._counts: dict[str, int] = {}  # private: of each table's kept rows, once there were any
        self._opening = threading.Lock()
        self._closed = False
        # What is missing or of no declared kind is refused here; the files are to stay what they are now.
        sources = self._sources()
        self._stamps = {name: files.stamp(table.frame) for name, table in sources.items()}
        # Whether rows may hold ids that are not exact: their owner is to hear of it before anybody may ask.
        self.unsure = any(table.form in UNSURE for table in sources.values())

    @classmethod
    def of(
        cls, dataset: Dataset, *, prepared: Path | bool | None, progress: Progress | None, **_: object
    ) -> SparkEngine:
        """Open frames or tables of Spark."""
        return cls(dataset, prepared=prepared, progress=progress)

    def fingerprint(self, table: str = "") -> str:
        """What a table was read from: its name in Spark with its files' sizes and times, if it has any, or "frame"."""
        given = next(item for item in self._dataset.tables if table in ("", item.facts.schema.table))
        named = isinstance(given.origin.data, frames.Named)
        return " ".join(
            [given.origin.fingerprint, *([self._stamps[given.facts.schema.table]] if named else [])]
        ).strip()

    def counted(self) -> Dataset:
        """The dataset with the number of rows that each public table has in the copy that questions read (SR15)."""
        if any(given.facts.public for given in self._dataset.tables):
            self.ready()
        return self._dataset

    def _sources(self) -> dict[str, Prepared]:
        """How each table is read."""
        found, failed = {}, ""
        try:
            for given in self._dataset.tables:
                data = given.origin.data
                rows = data.frame() if isinstance(data, frames.Named) else data
                unit, schema = given.unit(self._dataset.unit), given.facts.schema
                found[schema.table] = Prepared(rows, given.facts, unit, self._dataset.key)
        except SetupError:
            raise
        except Exception as error:  # noqa: BLE001 - a session whose Java is gone fails in many ways
            failed = type(error).__name__
        if not failed:
            named = [(name, table.unit.column or "", table.form) for name, table in found.items() if table.form]
            agree(named, self._dataset.unit.fold)
        if failed:
            _log.error("opening rows of Spark failed: %s", failed)
            raise SetupError("unreadable-data", "The Spark session does not answer.", "Open the data in a new session.")
        return found

    def ready(self) -> None:
        """Prepare the rows, once; a session that is open to others, or rows drawn by chance, are refused first."""
        if self._closed:
            raise AccessDenied("closed", "The rows were let go of.")
        with self._opening:  # of threads that ask first at once, one prepares
            if self._copy is not None and jobs.stopped(self._copy.session.sparkContext):
                self._copy = None  # a table by its name is opened anew; a frame's session is gone
            if self._copy is None:
                self._copy = self._open()
            else:
                self._unchanged()
            self._manned(self._copy.session)

    def _unchanged(self) -> None:
        """Stop where a table known by its name is gone or has other columns, and where files are not what they were."""
        for given in self._dataset.tables:
            name, data = given.facts.schema.table, given.origin.data
            rows = data.frame() if isinstance(data, frames.Named) else cast("DataFrame", data)
            if files.stamp(rows) != self._stamps[name]:
                _changed(name)

    def _count(self, tables: dict[str, Prepared]) -> None:
        """Note how many rows there are; prepared again, they must be as many (SR12, SR15)."""
        found = {name: table.size for name, table in tables.items()}
        for name, size in found.items():
            if self._counts.get(name, size) != size:
                _changed(name)
        self._counts = found
        given = [
            replace(each, facts=replace(each.facts, rows=found[each.facts.schema.table])) if each.facts.public else each
            for each in self._dataset.tables
        ]
        self._dataset = replace(self._dataset, tables=tuple(given))
        self._facts, self._kernel_facts = self._dataset.facts, None

    @staticmethod
    def _manned(session: SparkSession) -> None:
        """Stop, before anything is paid, where the cluster has nobody to work."""
        if not jobs.manned(session.sparkContext):
            raise SetupError("unreadable-data", "The Spark cluster has no executors.", "Start its workers; try again.")

    def _open(self) -> Copy:
        tables = self._sources()
        first = next(iter(tables.values()))
        session = first.session
        if jobs.stopped(session.sparkContext):
            raise SetupError("unreadable-data", "The Spark session was stopped.", "Open the data in a new session.")
        settings.check(session.sparkContext)
        where = self._folder(session)
        self._manned(session)
        failed = ""
        try:
            with jobs.watched(session.sparkContext):
                first.check_executors()
                for table in tables.values():
                    frames.check(table.frame)
                for name in _looked_up(tables):
                    tables[name].hold()
                for table in tables.values():
                    table.check(tables)
                for i, table in enumerate(tables.values(), 1):
                    table.prepare(where=where)
                    table.let_go()
                    if self._progress is not None:
                        self._progress(i / len(tables))
                self._unchanged()
                self._count(tables)
                return Copy(session, tables)
        except SetupError:
            self._forget(tables)
            raise
        except Exception as error:  # noqa: BLE001 - an error of Spark's may hold a cell (T31)
            failed = type(error).__name__
        self._forget(tables)
        _log.error("preparing failed: %s", failed)
        raise SetupError(
            "unreadable-data", "The rows could not be read to their end.", "Check the table and the cluster."
        )

    def _folder(self, session: SparkSession) -> Path | None:
        """Where the copy is written to; on a cluster each node could write into a folder of its own, in clear."""
        if self._where is not None and not settings.local(str(session.sparkContext.master)):
            raise SetupError(
                "bad-declaration",
                "On a cluster rows are prepared in its memory: a folder may not be the same one on every node.",
                "Leave prepared= out.",
            )
        return self._where

    @staticmethod
    def _forget(tables: dict[str, Prepared]) -> None:
        for table in tables.values():
            table.forget()

    def sums(self, tally: Tally) -> Private[Integers]:
        """Exact sums of a tally over the kept rows."""
        return self.sums_of((tally,))[0]

    def sums_of(self, tallies: Sequence[Tally]) -> tuple[Private[Integers], ...]:
        """Exact sums of several tallies: those over the same rows are one job, and all read one copy."""
        alike: dict[str, list[int]] = {}
        for i, tally in enumerate(tallies):
            alike.setdefault(wire.encode(tally.over), []).append(i)

        def work(copy: Copy) -> dict[int, Integers]:
            found: dict[int, Integers] = {}
            for places in alike.values():
                found |= dict(zip(places, self._summed(copy, [tallies[i] for i in places]), strict=True))
            return found

        found = self._worked(work)
        return tuple(Private(found[i]) for i in range(len(tallies)))

    def groups(self, tally: Tally) -> Private[Groups]:
        """Exact sums of the groups that occur."""
        return Private(self._worked(lambda copy: self._grouped(copy, tally)))

    def listed(self, tally: Tally, *, blanks: bool = False) -> Private[Integers]:
        """The blocks of each row that counts, by the certified statement that lists them, or by hand."""
        return Private(self._worked(lambda copy: self._listed(copy, tally, blanks=blanks)))

    def _listed(self, copy: Copy, tally: Tally, *, blanks: bool) -> Integers:
        asked = self.listing(tally)
        if asked is None:
            return listed(tally, self._derived(copy, tally), blanks=blanks)
        (parts,) = self.stated(copy, [tally], [asked], read=rows_of)
        columns = statements.columns(parts)
        return of_columns(columns, sum(part.num_rows for part in parts), blanks=blanks, places=None)

    def heavy(self, table: str) -> Private[Integers]:
        """Persons of whom not all rows are kept, and the others, counted over the rows as they are read now."""
        return Private(self._worked(lambda copy: self._table(copy, table).heavy()))

    def _worked(self, work: Callable[[Copy], T]) -> T:
        if self._copy is None:  # whoever pays first has it made ready: this is for whoever does not
            self.ready()
        copy = self._copy  # one copy to the end, whatever is prepared meanwhile
        if copy is not None:
            try:
                with jobs.watched(copy.session.sparkContext):
                    return work(copy)
            except Exception as error:  # noqa: BLE001 - whatever a row or the cluster causes has one outcome (T30)
                _log.error("the Spark engine failed: %s", type(error).__name__)  # no text, no trace (T31)
        raise CuratorError("engine-failed", "The rows could not be summed.")

    def _kept(self, name: str) -> Rows:
        schema = self._facts.table_of(name).schema
        most = shape(Table(name), self._facts).most
        return Rows(self._names[schema.table], {}, kept_table.names(schema), frozenset(), {}, most)

    def _summed(self, copy: Copy, tallies: list[Tally]) -> Sequence[Integers]:
        """Certified text and programs over the partitions; a relation that SQL does not say by hand."""
        try:
            proposal = self.propose(*tallies)
        except NotInSql:
            return [self._by_hand(copy, tally) for tally in tallies]
        return joined(proposal, summed(proposal, _Partitions(self, copy, tallies)))

    @contextmanager
    def _asking(self, tallies: Sequence[Tally]) -> Iterator[Asking]:
        """Where certified text over one relation runs."""
        if self._copy is None:
            self.ready()
        copy = cast("Copy", self._copy)  # one copy to the end, whatever is prepared meanwhile
        with jobs.watched(copy.session.sparkContext):
            yield _Partitions(self, copy, tallies)

    def stated(
        self,
        copy: Copy,
        tallies: Sequence[Tally],
        scans: Sequence[Scan],
        *,
        owned: bool = False,
        read: Callable[[str, Facts], Certificate | RowSource] = certify,
    ) -> list[list[pa.Table]]:
        """The results of statements, of each as many as there were parts of whole persons; at least one.

        `read`: whether they sum rows or list them.
        """
        if not scans:
            return []
        apart = all(remembered(read, scan.sql, self.kernel_facts).apart for scan in scans)
        part = self._part(copy, tallies[0].over, tallies, owned=owned) if apart else None
        if part is None:
            return [[found] for found in statements.run(scans, self._here(copy, tallies[0].over), threads=None)[0]]
        table, into, wanted, owned = part
        if not any(scan.texts for scan in scans):
            parts = Job(table, tallies, self._facts).stated(scans, into, wanted=wanted, owned=owned)
        else:  # a text is not sent: chunk by chunk, each of whole persons
            found = [statements.run(scans, {into: page})[0] for page in _pages(table, wanted, owned=owned)]
            parts = [[results[i] for results in found] for i in range(len(scans))]
        return parts if parts[0] else [[each] for each in statements.run(scans, self._here(copy, None))[0]]

    def folded(self, copy: Copy, tallies: Sequence[Tally], asked: Fold) -> list[Integers]:
        """The sums of a program over the rows of its statement."""
        over = tallies[0].over
        apart = remembered(rows_of, asked.sql, self.kernel_facts).apart
        part = self._part(copy, over, tallies, owned=False) if apart else None
        if part is None:
            return statements.fold(asked, self._here(copy, over), threads=None)[0]
        table, into, wanted, owned = part
        if not asked.texts:
            parts = Job(table, tallies, self._facts).folded(asked, into, wanted=wanted, owned=owned)
        else:
            parts = [statements.fold(asked, {into: page})[0] for page in _pages(table, wanted, owned=owned)]
        return statements.added([statements.summed(asked, ()), *parts])

    def _part(
        self, copy: Copy, over: Relation, tallies: Sequence[Tally], *, owned: bool
    ) -> tuple[Prepared, str, Needed, bool] | None:
        """Of rows that are made person by person their table, its name in statements, and what is read of it.

        None where rows of several tables meet.
        """
        name = by_person(over)
        if name is None:
            return None
        table, plain = self._table(copy, name), row_by_row(over) is not None
        wanted = looked_at(over, tallies) if plain else Needed(table.facts.schema.names)
        whose = table.owned and (owned or not isinstance(over, Table))
        return table, self._names[table.facts.schema.table], wanted, whose

    def _here(self, copy: Copy, over: Relation | None) -> dict[str, statements.Pages]:
        """The whole tables that a relation is made of, for this process; all others have no rows."""
        read = {self._table(copy, name).facts.schema.table for name in (() if over is None else _tables(over))}
        every = {}
        for given in self._dataset.tables:
            schema = given.facts.schema
            owned = given.unit(self._dataset.unit).column is not None
            rows = copy.tables[schema.table].whole() if schema.table in read else ()
            every[self._names[schema.table]] = statements.Pages(schema, owned, rows)
        return every

    def _by_hand(self, copy: Copy, tally: Tally) -> Integers:
        """Sums over a relation that SQL does not say; what the plan says of them is not certified."""
        rows = self._derived(copy, tally)
        return fold(tally, rows.schema, _cut(rows))

    def _grouped(self, copy: Copy, tally: Tally) -> Groups:
        over = shape(tally.over, self._facts)
        try:
            asked = self.propose_groups(tally)
        except NotInSql:
            return group(tally, self._derived(copy, tally))
        rows = _Partitions(self, copy, [tally]).groups(asked)
        return in_order([key.fn for key in tally.by], over.schema, groups_of(asked, rows))

    def _derived(self, copy: Copy, *tallies: Tally) -> Batch:
        """The rows of a relation in memory; of a table itself, only what is looked at."""
        over = tallies[0].over

        def read(name: str) -> Batch:
            table = self._table(copy, name)
            wanted = needed(*tallies) if isinstance(over, Table) else Needed(table.facts.schema.names)
            return table.fetched(wanted)

        return derived_rows.derive(over, self._facts, read)

    def _table(self, copy: Copy, name: str) -> Prepared:
        return copy.tables[self._facts.table_of(name).schema.table]

    def close(self) -> None:
        """Let go of the prepared rows; the session is the owner's."""
        super().close()
        copy, self._copy = self._copy, None
        if copy is not None:
            self._forget(copy.tables)


class _Partitions:
    """Where certified text runs: over each partition, or over whole tables here."""

    def __init__(self, engine: SparkEngine, copy: Copy, tallies: Sequence[Tally]) -> None:
        self._engine = engine
        self._copy = copy
        self._tallies = tallies

    def columns(self, asked: Sequence[Statement]) -> list[list[Stored]]:
        """The results of statements, of all parts one after the other."""
        found = self._engine.stated(self._copy, self._tallies, [each.scan for each in asked])
        return [statements.columns(parts) for parts in found]

    def groups(self, asked: Statement) -> list[tuple[object, ...]]:
        """Groups found in the parts, those of the same keys added."""
        (parts,) = self._engine.stated(self._copy, self._tallies, [asked.scan], owned=True)
        return statements.groups(parts, asked.keys)

    def fold(self, asked: Fold) -> list[Integers]:
        """The sums of a program."""
        return self._engine.folded(self._copy, self._tallies, asked)


def _tables(relation: Relation) -> set[str]:
    """The names of the tables a relation is made of."""
    if isinstance(relation, Table):
        return {relation.name}
    return {name for source in relation.sources() for name in _tables(source)}


def _pages(table: Prepared, wanted: Needed, *, owned: bool) -> Iterator[statements.Pages]:
    """Chunks some at a time, each of whole persons."""
    chunks = table.streamed(wanted, owned=owned)
    while several := list(itertools.islice(chunks, SEVERAL)):
        yield statements.Pages(table.facts.schema, table.owned, several)


def _cut(rows: Batch) -> Iterator[Batch]:
    for start in range(0, rows.size, BATCH):
        yield rows.part(start, min(start + BATCH, rows.size))


def _looked_up(tables: dict[str, Prepared]) -> set[str]:
    """The tables that are checked over all their rows: those with keys and references, and those referred to."""
    links = {name for table in tables.values() for _, name in table.facts.references}
    return links | {n for n, table in tables.items() if table.facts.key is not None or table.facts.references}


def _changed(table: str) -> NoReturn:
    """Stop the owner."""
    raise SetupError(
        "source-changed",
        f"The rows of table {table!r} are not those that were opened.",
        "Connect again; with renew=True if they are meant to be others.",
    )
