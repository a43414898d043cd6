"""The DuckDB engine: questions as SQL over the prepared copy, vectors folded over streamed batches."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar, cast

import duckdb
import numpy as np

from sulq.curator.engines import derive_numpy, derive_sql, kept, prepare
from sulq.curator.engines.batch import Batch
from sulq.curator.engines.connection import Connection
from sulq.curator.engines.emit import NotInSql
from sulq.curator.engines.fold import fold
from sulq.curator.engines.group import group
from sulq.curator.engines.kept import PERSON, Rows
from sulq.curator.engines.listed import listed
from sulq.curator.engines.needed import Needed, needed
from sulq.curator.engines.parquet_cells import rewrite
from sulq.curator.engines.prepare import Progress
from sulq.curator.engines.question import BATCH, Question, alike, fetched, together
from sulq.curator.engines.resident import Resident, limit
from sulq.curator.engines.source import WILD, Origin, Registered
from sulq.curator.engines.tables import Dataset
from sulq.errors import AccessDenied, CuratorError, SetupError
from sulq.terms.domain import Schema
from sulq.terms.engine import Groups, Tally
from sulq.terms.kinds import Integers
from sulq.terms.private import Private
from sulq.terms.relation import Table
from sulq.terms.shape import shape

T = TypeVar("T")

_log = logging.getLogger(__name__)


class DuckEngine:
    """Rows in a private, locked DuckDB; one fresh cursor a question."""

    def __init__(
        self,
        dataset: Dataset,
        *,
        prepared: Path | bool | None = None,
        renew: bool = False,
        progress: Progress | None = None,
        threads: int | None = None,
        batch: int = BATCH,
        resident: int | None = None,
    ) -> None:
        paths = [given.origin.path for given in dataset.tables]
        if isinstance(prepared, Path) and None in paths:
            raise SetupError("bad-declaration", "A frame is prepared in memory; leave prepared= out.")
        if prepared is False and any(path is not None and WILD.search(str(path)) for path in paths):
            # Locked, DuckDB reads files named in advance, and to it such a name is a pattern.
            raise SetupError(
                "unreadable-data", "A path with * ? or [ needs a prepared copy.", "Rename it, or prepare it."
            )
        self._facts = dataset.facts
        self._prepared = prepared
        self._records: dict[Path | None, int | None] | None = None  # of each file, once checked
        if not isinstance(prepared, Path) or not prepared.exists():
            self._check(given.origin for given in dataset.tables)
        self._tables = dataset.registered()
        self._renew = renew
        self._progress = progress
        self._threads = threads
        self._batch = batch
        self._connection: Connection | None = None
        self._rows: dict[str, Rows] = {}
        # Without a prepared copy there is nothing whose rows have lasting numbers.
        self._resident = None if prepared is False else Resident(limit() if resident is None else resident)
        self._opening = threading.Lock()
        self._closed = False
        if self._records is None and not self._fits():
            self._check(registered.origin for registered in self._tables)

    @classmethod
    def of(
        cls, dataset: Dataset, *, prepared: Path | bool | None, renew: bool, progress: Progress | None
    ) -> DuckEngine:
        """Open files or frames."""
        return cls(dataset, prepared=prepared, renew=renew, progress=progress)

    def fingerprint(self, table: str = "") -> str:
        """What a table was read from: name, size and time of a file, or "frame"."""
        return self._registered(table).origin.fingerprint

    @property
    def unsure(self) -> bool:
        """Whether rows may hold ids that are not exact: their owner is to hear of it before anybody may ask."""
        return any(kept.inexact(item) is not None for item in self._tables)

    def _registered(self, name: str) -> Registered:
        return next(item for item in self._tables if name in ("", item.schema.table))

    def _check(self, origins: Iterable[Origin]) -> None:
        """Stop the owner, once, where a CSV file is malformed; a copy that was prepared is from checked files."""
        if self._records is None:
            self._records = {origin.path: origin.check() for origin in origins}

    def _counted(self) -> tuple[Registered, ...]:
        """The tables, each with the number of records that its file has."""
        records = self._records or {}
        return tuple(replace(item, records=records.get(item.origin.path)) for item in self._tables)

    def _fits(self) -> bool:
        """Whether there is a prepared copy of these very files."""
        connection = Connection(threads=1)
        try:
            return prepare.usable(connection, cast("Path", self._prepared), prepare.facts(self._tables), renew=True)
        finally:
            connection.close()

    def ready(self) -> None:
        """Prepare the copy if there is none, open it and lock the engine; all before any debit."""
        if self._closed:
            raise AccessDenied("closed", "The rows were let go of.")
        self._unchanged()
        with self._opening:  # of threads that ask first at once, one prepares
            if self._connection is None:
                self._connection, self._rows = self._open()
                self._renew = False

    def _unchanged(self) -> None:
        """Stop where a source changed underneath; nothing of it is kept then."""
        try:
            for registered in self._tables:
                registered.origin.unchanged()
        except SetupError:
            self._forget()
            raise

    def _forget(self) -> None:
        if self._resident is not None:
            self._resident.clear()

    def _open(self) -> tuple[Connection, dict[str, Rows]]:
        failed = ""
        for again in (False, True):
            connection = Connection(threads=self._threads)
            try:
                if again and not isinstance(self._prepared, Path):  # what is built in a file is tried again there
                    self._tables = rewrite(self._tables, connection.folder)
                if isinstance(self._prepared, Path):
                    connection = self._attached(connection, self._prepared)
                return connection, self._relations(connection)
            except duckdb.Error as error:
                failed = type(error).__name__
            except SetupError:
                connection.close()
                raise
            connection.close()
        _log.error("opening the rows failed: %s", failed)
        raise SetupError("unreadable-data", "The data could not be read to its end.")

    def _attached(self, connection: Connection, copy: Path) -> Connection:
        """A connection with the prepared copy, which is built where there is none that fits."""
        recorded = prepare.facts(self._tables)
        if prepare.usable(connection, copy, recorded, renew=self._renew):
            return connection
        connection.close()  # what is attached is not to be replaced underneath
        self._check(registered.origin for registered in self._tables)
        prepare.build(copy, self._counted(), recorded=recorded, progress=self._progress)
        connection = Connection(threads=self._threads)
        connection.attach(copy, "data")
        return connection

    def _relations(self, connection: Connection) -> dict[str, Rows]:
        """The kept rows of each table as a relation of a connection that is then locked."""
        if self._prepared is False:
            return self._unprepared(connection)
        filed = isinstance(self._prepared, Path)
        if not filed:
            prepare.fill(connection, self._counted(), into="", progress=self._progress)
            for registered in self._tables:
                registered.origin.unchanged()
            self._tables = tuple(registered.without_data() for registered in self._tables)
        connection.lock()
        found = {}
        for registered in self._tables:
            relation = f"data.{registered.kept}" if filed else registered.kept
            (count,) = connection.root.execute(f"SELECT count(*) FROM {relation}").fetchone() or (0,)
            spelled = kept.spelled(registered.schema) if filed else {}
            names = kept.names(registered.schema)
            found[registered.schema.table] = Rows(relation, {}, names, frozenset(), {}, int(count), spelled=spelled)
        return found

    def _unprepared(self, connection: Connection) -> dict[str, Rows]:
        prepare.open_sources(connection, self._tables)
        found = {item.schema.table: kept.select(item, stored=False) for item in self._tables}
        connection.lock(path for item in self._tables for path in item.source.files)
        prepare.check(connection, self._counted())
        for registered in self._tables:
            self._try_all(connection, registered, found[registered.schema.table])
        return found

    def _try_all(self, connection: Connection, registered: Registered, rows: Rows) -> None:
        """Read every needed cell once, so that a broken file stops its owner and not a question (T30)."""
        extra = [PERSON] if registered.unit.column is not None else []
        columns = ", ".join(f"max({name})" for name in [*rows.names.values(), *extra])
        cursor = self._cursor(connection, rows)
        cursor.execute(f"SELECT {columns} FROM {rows.relation}", rows.parameters).fetchall()
        cursor.close()

    @staticmethod
    def _cursor(connection: Connection, rows: Rows) -> duckdb.DuckDBPyConnection:
        cursor = connection.cursor()
        for name, frame in rows.frames.items():
            cursor.register(name, frame)
        return cursor

    def sums(self, tally: Tally) -> Private[Integers]:
        """Exact sums of a tally over the kept rows."""
        return Private(self._asked(tally, Question.sums, self._folded))

    def sums_of(self, tallies: Sequence[Tally]) -> tuple[Private[Integers], ...]:
        """Exact sums of several tallies; of those over the same rows what SQL does not sum is folded in one pass."""
        found: dict[int, Integers] = {}
        for places in alike(tallies):
            shared = self._shared([tallies[i] for i in places]) if len(places) > 1 else None
            found |= {} if shared is None else dict(zip(places, shared, strict=True))
        return tuple(Private(found[i]) if i in found else self.sums(tally) for i, tally in enumerate(tallies))

    def _shared(self, tallies: Sequence[Tally]) -> list[Integers] | None:
        """The sums of tallies over the same rows; None where each is better asked by itself."""
        self.ready()
        if self._connection is None:
            return None
        cursor: duckdb.DuckDBPyConnection | None = None
        try:
            schema, rows = self._over(*tallies, owned=False)
            cursor = self._cursor(self._connection, rows)
            return together([self._question(cursor, schema, rows, tally) for tally in tallies])
        except NotInSql:
            return None
        except Exception as error:  # noqa: BLE001 - asked one by one each has its outcome (T30)
            _log.error("asked again by hand, each alone: %s", type(error).__name__)  # no text, no trace (T31)
            return None
        finally:
            if cursor is not None:
                cursor.close()

    def _question(self, cursor: duckdb.DuckDBPyConnection, schema: Schema, rows: Rows, tally: Tally) -> Question:
        owned = shape(tally.over, self._facts).owned
        stored = self._resident if isinstance(tally.over, Table) else None
        return Question(cursor, schema, rows, tally, batch=self._batch, owned=owned, resident=stored)

    def groups(self, tally: Tally) -> Private[Groups]:
        """Exact sums of the groups that occur."""
        return Private(self._asked(tally, Question.groups, group))

    def listed(self, tally: Tally, *, blanks: bool = False) -> Private[Integers]:
        """The blocks of each row that counts, read from the kept rows as they are."""
        self.ready()
        try:
            if self._connection is not None:
                name = cast("Table", tally.over).name
                rows, places = self._reader(tally)(name), self._registered(name).places
                rows = rows.placed(places) if blanks and places is not None else rows
                return Private(listed(tally, rows, blanks=blanks))
        except Exception as error:  # noqa: BLE001 - whatever a row may cause has one outcome (T30)
            _log.error("the engine failed: %s", type(error).__name__)  # no text, no trace (T31)
        raise CuratorError("engine-failed", "The rows could not be read.")

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
        cursor = connection.cursor() if rows is None else self._cursor(connection, rows)
        try:
            found = cursor.execute(f"SELECT heavy, others FROM {relation} WHERE t = {place}").fetchone()
            return np.array(found, dtype=np.int64)
        finally:
            cursor.close()

    def _asked(self, tally: Tally, ask: Callable[[Question], T], by_hand: Callable[[Tally, Batch], T]) -> T:
        """Ask in SQL; what SQL does not say, or fails to work out, is worked out by hand from the kept rows.

        An error of DuckDB's arithmetic may depend on a row, so it must not be an
        outcome: the reference meaning of the same tally is total (T30).
        """
        self.ready()
        try:
            if self._connection is not None:
                try:
                    return self._in_sql(self._connection, tally, ask)
                except NotInSql:
                    pass
                except duckdb.Error as error:
                    _log.error("asked again by hand: %s", type(error).__name__)
                return by_hand(tally, derive_numpy.derive(tally.over, self._facts, self._reader(tally)))
        except Exception as error:  # noqa: BLE001 - whatever a row may cause has one outcome (T30)
            _log.error("the engine failed: %s", type(error).__name__)  # no text, no trace (T31)
        raise CuratorError("engine-failed", "The rows could not be summed.")

    def _in_sql(self, connection: Connection, tally: Tally, ask: Callable[[Question], T]) -> T:
        schema, rows = self._over(tally, owned=ask is Question.groups)
        cursor = self._cursor(connection, rows)
        try:
            return ask(self._question(cursor, schema, rows, tally))
        finally:
            cursor.close()

    def _over(self, *tallies: Tally, owned: bool) -> tuple[Schema, Rows]:
        """The rows that tallies over one relation run over, and their columns."""
        over = tallies[0].over
        if not isinstance(over, Table):
            return derive_sql.derive(over, self._facts, self._kept)
        schema = self._facts.table_of(over.name).schema
        rows = self._rows[schema.table]
        if self._prepared is False:
            asked = needed(*tallies).columns
            rows = kept.select(self._registered(schema.table), stored=False, needed=asked, owned=owned)
        return schema, rows

    def _kept(self, name: str) -> Rows:
        """A table's kept rows with their owners beside them."""
        table = self._facts.table_of(name).schema.table
        if self._prepared is False:
            return kept.select(self._registered(table), stored=False, owned=True)
        return self._rows[table]

    def _reader(self, tally: Tally) -> Callable[[str], Batch]:
        """How a table's kept rows come into memory; of a table asked itself, only what the tally looks at."""

        def read(name: str) -> Batch:
            if isinstance(tally.over, Table):
                (schema, rows), wanted = self._over(tally, owned=True), needed(tally)
            else:
                schema, rows = derive_sql.derive(Table(name), self._facts, self._kept)
                wanted = Needed(schema.names)
            cursor = self._cursor(cast("Connection", self._connection), rows)
            try:
                return fetched(cursor, schema, rows, wanted, owned=shape(Table(name), self._facts).owned)
            finally:
                cursor.close()

        return read

    def _folded(self, tally: Tally, rows: Batch) -> Integers:
        starts = range(0, rows.size, self._batch)
        return fold(tally, rows.schema, (rows.part(i, min(i + self._batch, rows.size)) for i in starts))

    def close(self) -> None:
        """Let go of files and memory."""
        self._closed = True
        if self._resident is not None:
            self._resident.clear(for_good=True)
        if self._connection is not None:
            self._connection.close()
            self._connection = None
            self._rows = {}
