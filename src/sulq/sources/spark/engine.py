"""The Spark engine: rows prepared on the cluster once; certified text runs over their partitions (decision 0036)."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, NoReturn, cast

import duckdb

from sulq.errors import AccessDenied, CuratorError, SetupError
from sulq.kernel.private import Private
from sulq.language.domain import Schema
from sulq.language.kinds import Integers
from sulq.language.relation import Relation
from sulq.language.rowfn.writer import KeptRows
from sulq.language.tally import Tally
from sulq.sources.decode.person import agree
from sulq.sources.duckdb.prepare import Progress
from sulq.sources.spark import chunks, frame
from sulq.sources.spark.parts import pages
from sulq.sources.spark.prepared import Prepared
from sulq.sources.spark.runner import PartitionRunner
from sulq.sources.spark.shared_rows import SharedRows
from sulq.sources.stored_engine import RowRunner, StoredEngine
from sulq.sources.tables import UNSURE, Dataset

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_log = logging.getLogger("sulq")


class SparkCopy(NamedTuple):
    """Prepared tables, those of the same persons side by side, and the session they are in."""

    session: SparkSession
    tables: dict[str, Prepared]
    shared: SharedRows | None


class SparkEngine(StoredEngine):
    """Kept rows as a table of a Spark session; the session is the owner's, and stays open.

    What is asked is the text that the kernel certified, run by DuckDB over each partition (decision 0036).
    """

    def __init__(
        self,
        dataset: Dataset,
        *,
        prepared: Path | bool | None = None,
        renew: bool = False,
        progress: Progress | None = None,
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
            if not isinstance(given.origin.data, frame.NamedTable):
                if not frame.is_frame(given.origin.data):
                    raise SetupError(
                        "bad-declaration", "The Spark engine reads frames of Spark.", "Give spark.read.parquet(...)."
                    )
                frame.check_kind(given.origin.data)
        frame.spark_sql()
        super().__init__(dataset.facts)
        self._dataset = dataset
        self._where = prepared
        self._progress = progress
        self._copy: SparkCopy | None = None
        self._counts: dict[str, int] = {}  # private: of each table's kept rows, once there were any
        # What is missing or of no declared kind is refused here; the files are to stay what they are now.
        sources = self._sources()
        self._stamps = {name: frame.stamp(table.frame) for name, table in sources.items()}
        # Whether rows may hold ids that are not exact: their owner is to hear of it before anybody may ask.
        self.unsure = any(table.form in UNSURE for table in sources.values())

    def fingerprint(self, table: str = "") -> str:
        """What a table was read from: its name in Spark with its files' sizes and times, if it has any, or "frame"."""
        given = self._dataset.find(table)
        named = isinstance(given.origin.data, frame.NamedTable)
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
                rows = data.frame() if isinstance(data, frame.NamedTable) else data
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
        with self._opening:
            if self._copy is not None and frame.stopped(self._copy.session.sparkContext):
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
            rows = data.frame() if isinstance(data, frame.NamedTable) else cast("DataFrame", data)
            if frame.stamp(rows) != self._stamps[name]:
                _changed(name)

    def _count(self, tables: dict[str, Prepared]) -> None:
        """Note how many rows there are; prepared again, they must be as many (SR12, SR15)."""
        found = {name: table.size for name, table in tables.items()}
        for name, size in found.items():
            if self._counts.get(name, size) != size:
                _changed(name)
        self._counts = found
        self._dataset = self._dataset.with_rows(found)
        self._facts, self._kernel_facts = self._dataset.facts, None

    @staticmethod
    def _manned(session: SparkSession) -> None:
        """Stop, before anything is paid, where the cluster has nobody to work."""
        if not frame.manned(session.sparkContext):
            raise SetupError("unreadable-data", "The Spark cluster has no executors.", "Start its workers; try again.")

    def _open(self) -> SparkCopy:
        tables = self._sources()
        first = next(iter(tables.values()))
        session = first.session
        owned = [table for table in tables.values() if table.owned]
        shared = SharedRows(owned) if len(owned) > 1 else None
        if frame.stopped(session.sparkContext):
            raise SetupError("unreadable-data", "The Spark session was stopped.", "Open the data in a new session.")
        frame.check_settings(session.sparkContext)
        where = self._folder(session)
        self._manned(session)
        failed = ""
        try:
            with frame.watched(session.sparkContext):
                first.check_executors()
                for table in tables.values():
                    frame.check(table.frame)
                for name in _looked_up(tables):
                    tables[name].hold()
                for table in tables.values():
                    table.check(tables)
                beside = {} if shared is None or where is not None else shared.prepare()
                for i, table in enumerate(tables.values(), 1):
                    buckets = shared.buckets if shared is not None and table.owned else 0
                    table.prepare(where=where, kept=beside.get(table), buckets=buckets)
                    table.let_go()
                    if self._progress is not None:
                        self._progress(i / len(tables))
                if shared is not None:
                    shared.check()
                self._unchanged()
                self._count(tables)
                return SparkCopy(session, tables, shared)
        except SetupError:
            self._forget(tables, shared)
            raise
        except Exception as error:  # noqa: BLE001 - an error of Spark's may hold a cell (T31)
            failed = type(error).__name__
        self._forget(tables, shared)
        _log.error("preparing failed: %s", failed)
        raise SetupError(
            "unreadable-data", "The rows could not be read to their end.", "Check the table and the cluster."
        )

    def _folder(self, session: SparkSession) -> Path | None:
        """Where the copy is written to; on a cluster each node could write into a folder of its own, in clear."""
        if self._where is not None and not frame.local(str(session.sparkContext.master)):
            raise SetupError(
                "bad-declaration",
                "On a cluster rows are prepared in its memory: a folder may not be the same one on every node.",
                "Leave prepared= out.",
            )
        return self._where

    @staticmethod
    def _forget(tables: dict[str, Prepared], shared: SharedRows | None) -> None:
        for table in tables.values():
            table.forget()
        if shared is not None:
            shared.forget()

    def heavy(self, table: str) -> Private[Integers]:
        """Persons of whom not all rows are kept, and the others, counted over the rows as they are read now."""
        copy, name = self._same_copy(), self._facts.table_of(table).schema.table
        try:
            with frame.watched(copy.session.sparkContext):
                return Private(copy.tables[name].heavy())
        except Exception as error:  # noqa: BLE001 - whatever a row or the cluster causes has one outcome (T30)
            _log.error("the engine failed: %s", type(error).__name__)  # no text, no trace (T31)
        raise CuratorError("engine-failed", "The rows could not be summed.")

    def _begin(self) -> None:
        """Prepare the rows for whoever did not pay: whoever pays first has them made ready."""
        if self._copy is None:
            self.ready()

    def _same_copy(self) -> SparkCopy:
        """The copy that one ask reads to its end, whatever is prepared meanwhile."""
        self._begin()
        return cast("SparkCopy", self._copy)

    def _over(self, over: Relation) -> tuple[Schema, KeptRows]:
        """The same, for statements whose numbers are spelled out: one with a bound text has all rows come here."""
        schema, rows = super()._over(over)
        return schema, replace(rows, sent=True)

    @contextmanager
    def _runner(self, tallies: Sequence[Tally]) -> Iterator[RowRunner]:
        copy = self._same_copy()
        with frame.watched(copy.session.sparkContext):
            yield PartitionRunner(copy.tables, copy.shared, (self._facts, self.kernel_facts), self._kept_name, tallies)

    @contextmanager
    def _reading(self, name: str) -> Iterator[duckdb.DuckDBPyConnection]:
        copy, facts = self._same_copy(), self._facts.table_of(name)
        name = self._kept_name(facts.schema.table)
        with (
            frame.watched(copy.session.sparkContext),
            chunks.gathered({name: pages(copy.tables[facts.schema.table])}) as connection,
            closing(connection.cursor()) as cursor,
        ):
            yield cursor

    def close(self) -> None:
        """Let go of the prepared rows; the session is the owner's."""
        super().close()
        copy, self._copy = self._copy, None
        if copy is not None:
            self._forget(copy.tables, copy.shared)


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
