"""The DuckDB engine: questions as SQL over the prepared copy, vectors folded over streamed batches."""

from __future__ import annotations

import logging
import threading
from pathlib import Path

import duckdb

from sulq.curator.engines import kept, prepare
from sulq.curator.engines.connection import Connection
from sulq.curator.engines.kept import PERSON, Rows
from sulq.curator.engines.prepare import Progress
from sulq.curator.engines.question import BATCH, Question, needed
from sulq.curator.engines.source import WILD, Origin, Registered, describe
from sulq.errors import AccessDenied, CuratorError, SetupError
from sulq.terms.domain import Schema
from sulq.terms.engine import Tally
from sulq.terms.kinds import Integers
from sulq.terms.privacy import Unit
from sulq.terms.private import Private

_log = logging.getLogger("sulq")


class DuckEngine:
    """Rows in a private, locked DuckDB; one fresh cursor a question."""

    def __init__(
        self,
        origin: Origin,
        schema: Schema,
        unit: Unit,
        key: bytes,
        *,
        table: str | None = None,
        space: str = "",
        prepared: Path | bool | None = None,
        renew: bool = False,
        progress: Progress | None = None,
        threads: int | None = None,
        batch: int = BATCH,
    ) -> None:
        if isinstance(prepared, Path) and origin.path is None:
            raise SetupError("bad-declaration", "A frame is prepared in memory; leave prepared= out.")
        if prepared is False and origin.path is not None and WILD.search(str(origin.path)):
            # Locked, DuckDB reads files named in advance, and to it such a name is a pattern.
            raise SetupError(
                "unreadable-data", "A path with * ? or [ needs a prepared copy.", "Rename it, or prepare it."
            )
        self._registered = Registered(origin, describe(origin, schema, unit, table), schema, unit, key, space)
        self._prepared = prepared
        self._renew = renew
        self._progress = progress
        self._threads = threads
        self._batch = batch
        self._connection: Connection | None = None
        self._rows: Rows | None = None
        self._opening = threading.Lock()
        self._closed = False

    @classmethod
    def of(
        cls,
        data: object,
        *,
        schema: Schema,
        unit: Unit,
        key: bytes,
        table: str | None,
        space: str,
        prepared: Path | bool | None,
        renew: bool,
        progress: Progress | None,
    ) -> DuckEngine:
        """Open a file or a frame."""
        return cls(
            Origin.of(data),
            schema,
            unit,
            key,
            table=table,
            space=space,
            prepared=prepared,
            renew=renew,
            progress=progress,
        )

    def fingerprint(self) -> str:
        """What the rows were read from: name, size and time of a file, or "frame"."""
        return self._registered.origin.fingerprint

    def ready(self) -> None:
        """Prepare the copy if there is none, open it and lock the engine; all before any debit."""
        if self._closed:
            raise AccessDenied("closed", "The rows were let go of.")
        self._registered.origin.unchanged()
        with self._opening:  # of threads that ask first at once, one prepares
            if self._connection is None:
                self._connection, self._rows = self._open()
                self._renew = False

    def _open(self) -> tuple[Connection, Rows]:
        if isinstance(self._prepared, Path):
            recorded = prepare.facts(self._registered)
            if not prepare.usable(self._prepared, recorded, renew=self._renew):
                prepare.build(self._prepared, self._registered, recorded=recorded, progress=self._progress)
        connection = Connection(threads=self._threads)
        failed = ""
        try:
            return connection, self._relation(connection)
        except duckdb.Error as error:
            failed = type(error).__name__
        connection.close()
        _log.error("opening the rows failed: %s", failed)
        raise SetupError("unreadable-data", "The data could not be read to its end.")

    def _relation(self, connection: Connection) -> Rows:
        """The kept rows as a relation of a connection that is then locked."""
        if self._prepared is False:
            prepare.open_source(connection, self._registered)
            rows = kept.select(self._registered, stored=False)
            connection.lock(self._registered.source.files)
            self._try_all(connection, rows)
            return rows
        spelled = {}
        if isinstance(self._prepared, Path):
            connection.attach(self._prepared, "data")
            relation, spelled = "data.kept", kept.spelled(self._registered.schema)
        else:
            prepare.fill(connection, self._registered, into="kept", progress=self._progress)
            relation = "kept"
            self._registered = self._registered.without_data()
        connection.lock()
        (count,) = connection.root.execute(f"SELECT count(*) FROM {relation}").fetchone() or (0,)
        names = kept.names(self._registered.schema)
        return Rows(relation, {}, names, frozenset(), {}, int(count), spelled=spelled)

    def _try_all(self, connection: Connection, rows: Rows) -> None:
        """Read every needed cell once, so that a broken file stops its owner and not a question (T30)."""
        extra = [PERSON] if self._registered.unit.column is not None else []
        columns = ", ".join(f"max({name})" for name in [*rows.names.values(), *extra])
        cursor = self._cursor(connection, rows)
        cursor.execute(f"SELECT {columns} FROM {rows.relation}", rows.parameters).fetchall()
        cursor.close()

    @staticmethod
    def _cursor(connection: Connection, rows: Rows) -> duckdb.DuckDBPyConnection:
        cursor = connection.cursor()
        if rows.frame is not None:
            cursor.register("source", rows.frame)
        return cursor

    def sums(self, tally: Tally) -> Private[Integers]:
        """Exact sums of a tally over the kept rows."""
        self.ready()
        try:
            if self._connection is not None and self._rows is not None:
                cursor = self._cursor(self._connection, self._rows)
                rows = self._rows
                if self._prepared is False:
                    rows = kept.select(self._registered, stored=False, needed=needed(tally).columns)
                try:
                    return Private(Question(cursor, self._registered.schema, rows, tally, batch=self._batch).sums())
                finally:
                    cursor.close()
        except Exception as error:  # noqa: BLE001 - whatever a row may cause has one outcome (T30)
            _log.error("the engine failed: %s", type(error).__name__)  # no text, no trace (T31)
        raise CuratorError("engine-failed", "The rows could not be summed.")

    def close(self) -> None:
        """Let go of files and memory."""
        self._closed = True
        if self._connection is not None:
            self._connection.close()
            self._connection = None
            self._rows = None
