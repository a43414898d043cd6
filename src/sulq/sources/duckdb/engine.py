"""The DuckDB engine: rows of files and frames, in a prepared copy that is asked, or read anew for each question."""

from __future__ import annotations

import logging
import threading
import weakref
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final, NoReturn, cast

import duckdb
import numpy as np
import pyarrow as pa

from sulq.compile.statements import kept_table
from sulq.compile.statements.kept_table import PERSON
from sulq.compile.statements.tally_functions import needed
from sulq.data_files import Files, unlike_part
from sulq.errors import AccessDenied, CuratorError, SetupError
from sulq.kernel import keep
from sulq.kernel.facts import Facts as KernelFacts
from sulq.kernel.facts import Table as KernelTable
from sulq.kernel.private import Private
from sulq.kernel.request import Outside, Proposed
from sulq.language.kinds import Integers
from sulq.language.privacy import Unit
from sulq.language.relation import Table
from sulq.language.rowfn.piece import NotInSql
from sulq.language.rowfn.writer import KeptRows
from sulq.language.shape import shape
from sulq.language.tally import Tally
from sulq.sources.cell_reading import places
from sulq.sources.decode import files, frames
from sulq.sources.duckdb import kept_rows as kept
from sulq.sources.duckdb import prepare
from sulq.sources.duckdb.connection import Connection, Stop, cores
from sulq.sources.duckdb.early_rows import MAX_ROWS_READ, EarlyPlace, EarlyRows, readable
from sulq.sources.duckdb.prepare import Progress, rewrite
from sulq.sources.duckdb.runner import MAX_BATCH_ROWS, CursorRunner, Resident, limit
from sulq.sources.fold import MAX_PART_ROWS
from sulq.sources.origin import Examined, Origin, suffix
from sulq.sources.source import RegisteredTable, describe
from sulq.sources.stored_engine import RowRunner, StoredEngine, alike
from sulq.sources.tables import Dataset, Given

MAX_FIRST_ANSWER_SECONDS: Final = 1.0  # for which what prepares rows aside waits

_log = logging.getLogger(__name__)


class DuckEngine(StoredEngine):
    """Rows of files and frames in a private, locked DuckDB; one fresh cursor a question."""

    bounded = True  # whether the kernel takes bounds from its tables

    def __init__(
        self,
        dataset: Dataset,
        *,
        prepared: Path | bool | None = None,
        renew: bool = False,
        progress: Progress | None = None,
        threads: int | None = None,
        batch: int = MAX_BATCH_ROWS,
        resident: int | None = None,
    ) -> None:
        super().__init__(dataset.facts, batch=batch)
        if prepared is not False:  # without a copy there is nothing whose rows have lasting numbers
            self._resident = Resident(limit() if resident is None else resident)
        paths = [given.origin.path for given in dataset.tables]
        if isinstance(prepared, Path) and None in paths:
            raise SetupError("bad-declaration", "A frame is prepared in memory; leave prepared= out.")
        named = [path for given in dataset.tables for path in given.origin.files]
        if prepared is False and any(files.WILD.search(str(path)) for path in named):
            # Locked, DuckDB reads files named in advance, and to it such a name is a pattern.
            raise SetupError(
                "unreadable-data", "A path with * ? or [ needs a prepared copy.", "Rename it, or prepare it."
            )
        self._prepared = prepared
        self.certifies = prepared is not False  # the types of rows that are read anew are the source's
        self._records: dict[tuple[Path | None, str], Examined | None] | None = None  # of each file, once checked
        if not isinstance(prepared, Path) or not prepared.exists():
            self._check(given.origin for given in dataset.tables)
        self._tables = self._described(dataset)
        self._renew = renew
        self._progress = progress
        self._threads = threads
        self._read: dict[RegisteredTable, KeptRows] = {}  # how tables are read without a copy
        self._early: EarlyRows | None = None  # records as they stand, while there is no copy
        self._early_opened: Callable[[], EarlyRows | None] = lambda: None  # the same, while something remembers it
        self._early_tables: tuple[KernelTable, ...] = ()  # their facts, which stay true
        self._known_facts: tuple[tuple[KernelTable, ...], KernelFacts] | None = None  # of these and of kept rows
        self._waits = prepared is False or not self.bounded  # no question comes before the rows are kept
        self._early_lock = threading.Lock()
        self._stop = Stop()
        if self._records is None and not self._fits():
            self._check(registered.origin for registered in self._tables)

    def _described(self, dataset: Dataset) -> tuple[RegisteredTable, ...]:
        """How each table is read; what is missing or of no declared kind is refused."""
        return dataset.registered()

    def fingerprint(self, table: str = "") -> str:
        """What a table was read from: name, size and time of a file, or "frame"."""
        return self._registered(table).origin.fingerprint

    def places(self, table: str = "") -> int | None:
        """How many rows a source has, where that is public (SR6)."""
        return self._registered(table).places

    @property
    def unsure(self) -> bool:
        """Whether rows may hold ids that are not exact: their owner is to hear of it before anybody may ask."""
        return any(kept.inexact(item) is not None for item in self._tables)

    def _registered(self, name: str) -> RegisteredTable:
        return next(item for item in self._tables if name in ("", item.schema.table))

    def _check(self, origins: Iterable[Origin]) -> None:
        """Stop the owner, once, where a CSV file is malformed; a copy that was prepared is from checked files."""
        if self._records is None:
            self._records = {(origin.path, origin.fingerprint): origin.check() for origin in origins}

    def _counted(self) -> tuple[RegisteredTable, ...]:
        """The tables, each with the number of records that its file has."""
        records = self._records or {}
        return tuple(item.examined(records.get((item.origin.path, item.origin.fingerprint))) for item in self._tables)

    def _fits(self, *, renew: bool = True) -> bool:
        """Whether there is a prepared copy of these very files."""
        if not isinstance(self._prepared, Path) or not self._prepared.exists():
            return False
        connection = Connection(threads=1)
        try:
            return prepare.usable(connection, self._prepared, prepare.facts(self._tables), renew=renew)
        finally:
            connection.close()

    def ready(self) -> None:
        """Prepare the copy if there is none, open it and lock the engine; all before any debit."""
        self._make_ready(self._threads)

    def ready_aside(self, *, at_once: bool) -> None:
        """The same by half of the cores, since questions are answered meanwhile.

        `at_once`: not only after the first of them was, or a moment went by.
        """
        early = self._early
        if early is not None and not at_once:
            early.asked.wait(MAX_FIRST_ANSWER_SECONDS)
        self._make_ready(max(1, cores() // 2))

    def _make_ready(self, threads: int | None) -> None:
        self._usable()
        with self._opening:
            if self._connection is None:
                try:
                    opened = self._open(threads)
                    self._connection, opened.stop = opened, None
                finally:  # what is asked from now on is asked of the copy, or why there is none is heard
                    self._waits, self._early = True, None
                self._known_facts = None  # plans are certified anew, of the copy; without one, a charged one is run
                self._renew = False

    def early(self) -> bool:
        """Whether certified questions are answered before rows are kept; by public facts, and by what there is yet."""
        self._usable()
        with self._early_lock:
            if self._early is None and not self._waits:
                self._waits = not all(map(readable, self._tables)) or self._fits(renew=self._renew)
                if not self._waits:
                    self._open_early()
        return self._early is not None

    @property
    def kernel_facts(self) -> KernelFacts:
        """The facts of its kept tables, and of records: text over these may be certified when the copy is there."""
        tables, known = self._early_tables, self._known_facts
        if known is None or known[0] is not tables:
            kept = super().kernel_facts
            known = self._known_facts = tables, replace(kept, tables=kept.tables + tables)
        return known[1]

    def sources(self, tallies: Sequence[Tally]) -> list[Proposed | None]:
        """Of each tally what the kernel is to run; of records as they stand, where there is no copy yet."""
        early = self._early
        found = None if early is None else early.sources(tallies, alike(tallies))
        return super().sources(tallies) if found is None else found

    def found(self, tally: Tally) -> Proposed | None:
        """As `sources`, of groups that are found in the data."""
        early = self._early
        found = None if early is None else early.found(tally)
        return super().found(tally) if found is None else found

    def _open_early(self) -> None:
        try:
            early = EarlyRows(self._tables, self._facts, threads=self._threads, batch=self._batch)
            self._early_tables, self._early = early.facts.tables, early
            self._early_opened = weakref.ref(early)
        except duckdb.Error as error:  # what becomes of the copy says why
            _log.error("the records are not read early: %s", type(error).__name__)
            self._waits = True

    def admits(self, sources: Sequence[Proposed | Outside]) -> bool:
        """Whether these can be run now: the rows are kept, or all are of records whose cells were read to their end."""
        if self._connection is not None or (self._early is None and not self._waits):  # or nobody is ready yet
            return True
        places = [source.place if isinstance(source, Proposed) else None for source in sources]
        return all(isinstance(place, EarlyPlace) and place.rows.holds(place) for place in places)

    def stop(self) -> None:
        """End what is being prepared: nothing is kept of it."""
        self._stop.set()

    def interrupt(self, threads: Collection[int]) -> None:
        """The same of records as they stand."""
        super().interrupt(threads)
        if (early := self._early_opened()) is not None:
            early.interrupt(threads)

    def close(self) -> None:
        """Let go of files and memory; of records too: an instance that is left to be collected ends its threads then.

        In a forked child, which has none of them, it would wait for ever.
        """
        super().close()
        if (early := self._early_opened()) is not None:
            early.close()

    def _usable(self) -> None:
        if self._closed:
            raise AccessDenied("closed", "The rows were let go of.")
        self._unchanged()

    def _unchanged(self) -> None:
        """Stop where a source changed underneath; nothing of it is kept then."""
        try:
            for registered in self._tables:
                registered.origin.unchanged()
        except SetupError:
            if self._resident is not None:
                self._resident.clear()
            raise

    def _open(self, threads: int | None) -> Connection:
        failed = ""
        for again in (False, True):
            self._stop.check()
            connection = Connection(threads=threads, stop=self._stop)
            try:
                if again and not isinstance(self._prepared, Path):  # what is built in a file is tried again there
                    self._tables = rewrite(self._tables, connection.folder)
                if isinstance(self._prepared, Path):
                    connection = self._attached(connection, self._prepared, threads)
                self._fill(connection)
            except duckdb.Error as error:
                failed = type(error).__name__
            except BaseException:
                connection.close()
                raise
            else:
                return connection
            connection.close()
        _log.error("opening the rows failed: %s", failed)
        raise SetupError("unreadable-data", "The data could not be read to its end.")

    def _attached(self, connection: Connection, copy: Path, threads: int | None) -> Connection:
        """A connection with the prepared copy, which is built where there is none that fits."""
        recorded = prepare.facts(self._tables)
        if prepare.usable(connection, copy, recorded, renew=self._renew):
            return connection
        connection.close()  # what is attached is not to be replaced underneath
        self._check(registered.origin for registered in self._tables)
        prepare.build(
            copy, self._counted(), recorded=recorded, progress=self._progress, threads=threads, stop=self._stop
        )
        connection = Connection(threads=threads, stop=self._stop)
        connection.attach(copy, "data")
        return connection

    def _fill(self, connection: Connection) -> None:
        """Give a connection the kept rows of each table under its name, checked against their facts, and lock it."""
        if self._prepared is False:
            self._view(connection)
            return
        filed = isinstance(self._prepared, Path)
        if not filed:
            prepare.fill(connection, self._counted(), into="", progress=self._progress)
        with closing(connection.cursor()) as cursor:
            if filed:  # all persons are counted, whom a copy in a file may have more of than memory holds
                connection.hold(prepare.MAX_BUILD_MEMORY_MIB)
            connection.count_persons(begin=True)
            keep.check(cursor, kept_table.stored_facts(self._facts, self._kept))
            connection.count_persons(begin=False)
            connection.hold()
        if not filed:
            for registered in self._tables:
                registered.origin.unchanged()
            self._tables = tuple(registered.without_data() for registered in self._tables)
        connection.use(self._threads)
        connection.lock()

    def _view(self, connection: Connection) -> None:
        """Without a copy kept rows are read anew for each question: views have the names that its tables would."""
        prepare.open_sources(connection, self._tables)
        for item in self._tables:
            rows = self._anew(item).relation
            with closing(self._cursor(connection)) as cursor:
                cursor.execute(f"CREATE VIEW {item.kept} AS SELECT * FROM {rows}")
        connection.lock(path for item in self._tables for path in item.source.files)
        prepare.check(connection, self._counted())
        for item in self._tables:
            self._try_all(connection, item, self._kept(item.schema.table))

    def _try_all(self, connection: Connection, registered: RegisteredTable, rows: KeptRows) -> None:
        """Read every needed cell once, so that a broken file stops its owner and not a question (T30)."""
        extra = [PERSON] if registered.unit.column is not None else []
        columns = ", ".join(["count(*)", *(f"max({name})" for name in [*rows.names.values(), *extra])])
        with closing(self._cursor(connection)) as cursor:
            found = cursor.execute(f"SELECT {columns} FROM {rows.relation}").fetchall()
        prepare.check_number(registered, found[0][0], rows.most)

    def _cursor(self, connection: Connection) -> duckdb.DuckDBPyConnection:
        cursor = connection.cursor()
        for item in self._tables if self._prepared is False else ():
            for name, frame in item.frames.items():
                cursor.register(name, frame)
        return cursor

    @contextmanager
    def _runner(self, tallies: Sequence[Tally]) -> Iterator[RowRunner]:
        """Where statements over one relation run; without a copy it has the columns that they name, and no others.

        DuckDB binds every column of a view for each question, which in a wide table takes longer than the question.
        """
        with super()._runner(tallies) as runner:
            over = tallies[0].over
            if self._prepared is False and isinstance(over, Table) and isinstance(runner, CursorRunner):
                self._narrow(runner.cursor, self._registered(self._facts.table_of(over.name).schema.table), tallies)
            yield runner

    def _narrow(self, cursor: duckdb.DuckDBPyConnection, item: RegisteredTable, tallies: Sequence[Tally]) -> None:
        wanted = needed(*tallies).columns & set(item.schema.names)
        # A person's rows are chosen, and blanked ones known, by all cells.
        if wanted and item.unit.column is None and item.unit.neighbors != "zero_out":
            rows = kept.select(item, stored=False, only=wanted)
            cursor.execute(f"CREATE TEMP VIEW {item.kept} AS SELECT * FROM {rows.relation}")

    def _anew(self, item: RegisteredTable) -> KeptRows:
        """How a table is read where each question does so; checked by the kernel once for each source."""
        if item not in self._read:
            self._read[item] = kept.select(item, stored=False)
        return self._read[item]

    def _kept(self, name: str) -> KeptRows:
        """A table's kept rows by their name, and how they stand there, owners beside them where they have any."""
        registered = self._registered(self._facts.table_of(name).schema.table)
        schema, most = registered.schema, shape(Table(name), self._facts).most
        if self._prepared is False:
            read = self._anew(registered)
            return replace(read, relation=registered.kept, most=min(most, MAX_ROWS_READ), frames={})
        names, filed = kept_table.names(schema), isinstance(self._prepared, Path)
        relation = f"data.{registered.kept}" if filed else registered.kept
        spelled = kept_table.spelled(schema) if filed else {}
        return KeptRows(relation, names=names, most=most, spelled=spelled)

    def heavy(self, table: str) -> Private[Integers]:
        """Persons of whom not all rows are kept, and the others: noted when rows were prepared, or counted now."""
        self.ready()
        try:
            if self._connection is not None:
                name = self._facts.table_of(table).schema.table
                place = [item.schema.table for item in self._tables].index(name)
                return Private(self._heavy(self._connection, place))
        except Exception as error:  # noqa: BLE001 - whatever a row may cause has one outcome (T30)
            _log.error("the engine failed: %s", type(error).__name__)  # no text, no trace (T31)
        raise CuratorError("engine-failed", "The rows could not be read.")

    def _heavy(self, connection: Connection, place: int) -> Integers:
        noted = f"{'data.' if isinstance(self._prepared, Path) else ''}{kept.HEAVY}"
        rows = kept.people(self._tables) if self._prepared is False else None
        relation = noted if rows is None else f"({kept.heavy(self._tables, rows.relation)})"
        with closing(self._cursor(connection)) as cursor:
            found = cursor.execute(f"SELECT heavy, others FROM {relation} WHERE t = {place}").fetchone()
            return np.array(found, dtype=np.int64)


class MemoryEngine(DuckEngine):
    """Rows of a copy in memory, summed by the row functions' own cells: another meaning of each sum (decision 0034).

    There is no statement to certify: what it sums rests on the plan. A prepared copy is not used.
    """

    bounded = False

    def __init__(self, dataset: Dataset, *, batch: int = MAX_PART_ROWS, **_: object) -> None:
        if any(given.origin.path is not None and suffix(given.origin.path) == ".duckdb" for given in dataset.tables):
            raise SetupError("engine-not-available", "The memory engine reads frames, Parquet and CSV.")
        super().__init__(dataset, batch=batch)
        self.certifies = False

    def _described(self, dataset: Dataset) -> tuple[RegisteredTable, ...]:
        """Parquet files are read by Arrow, as frames: it knows ids exactly that DuckDB reads as doubles."""
        given = [replace(each, origin=_by_arrow(each, each.unit(dataset.unit))) for each in dataset.tables]
        tables = zip(replace(dataset, tables=tuple(given)).registered(), dataset.tables, strict=True)
        return tuple(replace(item, origin=each.origin) for item, each in tables)

    def _runner(self, tallies: Sequence[Tally]) -> NoReturn:
        raise NotInSql("a sum of the reference meaning")


def _by_arrow(given: Given, unit: Unit) -> Origin:
    """The needed columns of Parquet files as a frame; any other origin as it is."""
    origin, path = given.origin, given.origin.path
    if path is None or suffix(path) != ".parquet":
        return origin
    if not isinstance(origin.data, Files):
        return Origin(None, _arrow_table(origin, given, unit))
    describe(origin, given.facts.schema, unit, None)  # refuses parts that are unlike
    tables: list[pa.Table] = []
    for part, values in zip(origin.files, origin.data.values, strict=True):
        table = _arrow_table(Origin.of(part), given, unit, beside=origin.data.names)
        for name, value in zip(origin.data.names, values, strict=True):
            table = table.append_column(name, pa.repeat(pa.scalar(value, pa.string()), table.num_rows))
        if tables and table.schema != tables[0].schema:  # which DuckDB may read alike
            raise unlike_part(part, origin.files[0], "columns of other types")
        tables.append(table)
    return Origin(None, pa.concat_tables(tables))


def _arrow_table(origin: Origin, given: Given, unit: Unit, beside: Sequence[str] = ()) -> pa.Table:
    """A Parquet file's needed columns but those that stand beside it, read by Arrow."""
    found, schema = origin.parquet(), given.facts.schema
    own = replace(schema, columns=tuple(item for item in schema.columns if item[0] not in beside))
    wanted = places(found.names, own, unit)
    for place, name in enumerate(found.names):
        if name == unit.column and found.stored[place] != found.schema.types[place]:  # INT96, read as microseconds
            frames.check_stored(found.stored[place], "TIMESTAMP", name)
    try:
        with frames.open_parquet(cast("Path", origin.path)) as file:
            return file.read(columns=list(wanted))
    except (pa.ArrowException, OSError, UnicodeError):
        pass
    raise SetupError("unreadable-data", "The Parquet file cannot be read.")
