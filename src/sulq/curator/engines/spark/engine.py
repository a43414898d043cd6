"""The Spark engine: rows prepared on the cluster once, every question one job of our own kernels (decision 0021)."""

from __future__ import annotations

import functools
import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from sulq.curator.engines import derive_numpy
from sulq.curator.engines.batch import Batch
from sulq.curator.engines.fold import fold
from sulq.curator.engines.group import group
from sulq.curator.engines.listed import listed
from sulq.curator.engines.needed import Needed, needed
from sulq.curator.engines.prepare import Progress
from sulq.curator.engines.spark import frame as frames
from sulq.curator.engines.spark import jobs, settings
from sulq.curator.engines.spark.asked import Job
from sulq.curator.engines.spark.prepared import Prepared
from sulq.curator.engines.spark.work import row_by_row
from sulq.curator.engines.tables import Dataset
from sulq.errors import AccessDenied, CuratorError, SetupError
from sulq.terms import wire
from sulq.terms.engine import Groups, Tally
from sulq.terms.kinds import Integers
from sulq.terms.private import Private
from sulq.terms.relation import Table
from sulq.terms.shape import shape

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BATCH: Final = 65_536
T = TypeVar("T")

_log = logging.getLogger("sulq")


class SparkEngine:
    """Kept rows as a table of a Spark session; the session is the owner's, and stays open."""

    def __init__(
        self, dataset: Dataset, *, prepared: Path | bool | None = None, progress: Progress | None = None
    ) -> None:
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
        self._tables: dict[str, Prepared] = {}
        self._session: SparkSession | None = None
        self._opening = threading.Lock()
        self._closed = False
        self._sources()  # what is missing or of no declared kind is refused here

    @classmethod
    def of(
        cls, dataset: Dataset, *, prepared: Path | bool | None, progress: Progress | None, **_: object
    ) -> SparkEngine:
        """Open frames or tables of Spark."""
        return cls(dataset, prepared=prepared, progress=progress)

    def fingerprint(self, table: str = "") -> str:
        """What a table was read from: its name in Spark, or "frame"."""
        given = next(item for item in self._dataset.tables if table in ("", item.facts.schema.table))
        return given.origin.fingerprint

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
        if failed:
            _log.error("opening rows of Spark failed: %s", failed)
            raise SetupError("unreadable-data", "The Spark session does not answer.", "Open the data in a new session.")
        return found

    def ready(self) -> None:
        """Prepare the rows, once; a session that is open to others, or rows drawn by chance, are refused first."""
        if self._closed:
            raise AccessDenied("closed", "The rows were let go of.")
        with self._opening:  # of threads that ask first at once, one prepares
            if self._session is not None and jobs.stopped(self._session.sparkContext):
                self._session, self._tables = None, {}  # a table by its name is opened anew; a frame's session is gone
            if self._session is None:
                self._session, self._tables = self._open()
            self._unchanged()
            self._manned(self._session)

    def _unchanged(self) -> None:
        """Stop where a table that is known by its name is gone, or has other columns."""
        for given in self._dataset.tables:
            if isinstance(given.origin.data, frames.Named):
                given.origin.data.frame()

    @staticmethod
    def _manned(session: SparkSession) -> None:
        """Stop, before anything is paid, where the cluster has nobody to work."""
        if not jobs.manned(session.sparkContext):
            raise SetupError("unreadable-data", "The Spark cluster has no executors.", "Start its workers; try again.")

    def _open(self) -> tuple[SparkSession, dict[str, Prepared]]:
        tables = self._sources()
        first = next(iter(tables.values()))
        session = first.session
        if jobs.stopped(session.sparkContext):
            raise SetupError("unreadable-data", "The Spark session was stopped.", "Open the data in a new session.")
        settings.check(session.sparkContext)
        self._manned(session)
        failed = ""
        try:
            with jobs.watched(session.sparkContext):
                first.check_executors()
                for table in tables.values():
                    frames.check(table.frame)
                    table.check(tables)
                for i, table in enumerate(tables.values(), 1):
                    table.prepare(where=self._where)
                    if self._progress is not None:
                        self._progress(i / len(tables))
                return session, tables
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

    @staticmethod
    def _forget(tables: dict[str, Prepared]) -> None:
        for table in tables.values():
            table.forget()

    def sums(self, tally: Tally) -> Private[Integers]:
        """Exact sums of a tally over the kept rows."""
        return self.sums_of((tally,))[0]

    def sums_of(self, tallies: Sequence[Tally]) -> tuple[Private[Integers], ...]:
        """Exact sums of several tallies: those over the same rows are one job."""
        alike: dict[str, list[int]] = {}
        for i, tally in enumerate(tallies):
            alike.setdefault(wire.encode(tally.over), []).append(i)
        found: dict[int, Integers] = {}
        for places in alike.values():
            summed = self._asked(functools.partial(self._summed, [tallies[i] for i in places]))
            found |= dict(zip(places, summed, strict=True))
        return tuple(Private(found[i]) for i in range(len(tallies)))

    def groups(self, tally: Tally) -> Private[Groups]:
        """Exact sums of the groups that occur."""
        return Private(self._asked(lambda: self._grouped(tally)))

    def listed(self, tally: Tally, *, blanks: bool = False) -> Private[Integers]:
        """The blocks of each row that counts."""
        return Private(self._asked(lambda: listed(tally, self._derived(tally), blanks=blanks)))

    def _asked(self, work: Callable[[], T]) -> T:
        if self._session is None:  # whoever pays first has it made ready: this is for whoever does not
            self.ready()
        session = self._session
        if session is not None:
            try:
                with jobs.watched(session.sparkContext):
                    return work()
            except Exception as error:  # noqa: BLE001 - whatever a row or the cluster causes has one outcome (T30)
                _log.error("the Spark engine failed: %s", type(error).__name__)  # no text, no trace (T31)
        raise CuratorError("engine-failed", "The rows could not be summed.")

    def _summed(self, tallies: list[Tally]) -> Sequence[Integers]:
        table = row_by_row(tallies[0].over)
        if table is not None:
            return Job(self._table(table), tallies, self._facts).sums()
        rows = self._derived(*tallies)
        return [fold(tally, rows.schema, _cut(rows)) for tally in tallies]

    def _grouped(self, tally: Tally) -> Groups:
        table = row_by_row(tally.over)
        if table is not None:
            return Job(self._table(table), [tally], self._facts).groups(owned=shape(tally.over, self._facts).owned)
        return group(tally, self._derived(tally))

    def _derived(self, *tallies: Tally) -> Batch:
        """The rows of a relation in memory; of a table itself, only what is looked at."""
        over = tallies[0].over

        def read(name: str) -> Batch:
            table = self._table(name)
            wanted = needed(*tallies) if isinstance(over, Table) else Needed(table.facts.schema.names)
            return table.fetched(wanted)

        return derive_numpy.derive(over, self._facts, read)

    def _table(self, name: str) -> Prepared:
        return self._tables[self._facts.table_of(name).schema.table]

    def close(self) -> None:
        """Let go of the prepared rows; the session is the owner's."""
        self._closed = True
        self._forget(self._tables)
        self._tables = {}
        self._session = None


def _cut(rows: Batch) -> Iterator[Batch]:
    for start in range(0, rows.size, BATCH):
        yield rows.part(start, min(start + BATCH, rows.size))
