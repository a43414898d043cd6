"""The PostgreSQL engine: a prepared copy in the same database, read once into a private DuckDB and asked there.

What is asked is the text that the kernel certified, as of files and frames (decision 0036). The copy lies in a private
schema beside the tables: that it is still the one is looked at before each debit. It is read a few hundred pages a
statement, each column of them packed into one string of bytes; all statements see one snapshot.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Final, cast

import duckdb
import numpy as np
import psycopg
import pyarrow as pa

from sulq.addresses import TableAddress
from sulq.errors import AccessDenied, SetupError
from sulq.kernel import keep
from sulq.kernel.private import Private
from sulq.language.domain import Schema, Text
from sulq.language.kinds import Integers
from sulq.language.tally import BLANK
from sulq.sources.duckdb.connection import (
    CORE_MEMORY_MIB,
    Connection,
    create_table,
    insert_batches,
    stored_columns,
)
from sulq.sources.duckdb.runner import MAX_BATCH_ROWS, Resident, limit
from sulq.sources.postgres import session
from sulq.sources.postgres.copy import Progress, copied
from sulq.sources.postgres.session import PostgresCopy, Sessions, meaning
from sulq.sources.stored_engine import StoredEngine
from sulq.sources.tables import Dataset

_log = logging.getLogger(__name__)


class PostgresEngine(StoredEngine):
    """Tables of one PostgreSQL database."""

    def __init__(
        self,
        dataset: Dataset,
        *,
        prepared: Path | bool | None = None,
        renew: bool = False,
        progress: Progress | None = None,
        threads: int | None = None,
        batch: int = MAX_BATCH_ROWS,
    ) -> None:
        if prepared is False or isinstance(prepared, Path):
            raise SetupError("bad-declaration", "Tables in PostgreSQL are prepared there; leave prepared= out.")
        if dataset.unit.positions_are_public:  # one row replaced can move every other: a table has no order
            raise SetupError(
                "bad-declaration",
                "Rows of PostgreSQL have no places, which this unit would let questions speak of.",
                "Use neighbors='add_remove', or 'replace_one' with a person column.",
            )
        super().__init__(dataset.facts, batch=batch)
        self._resident = Resident(limit())
        self._dataset = dataset
        self._address = _address(dataset)
        self._renew = renew
        self._progress = progress
        self._threads = threads
        self._copy: PostgresCopy | None = None
        self._sessions = Sessions(self._address)

    def fingerprint(self, table: str = "") -> str:
        """Which table a copy was made of, and which copy that is: other rows are another one."""
        self._open()
        copy, name = cast("PostgresCopy", self._copy), self._dataset.find(table).facts.schema.table
        return f"postgresql {copy.sources[name]} {copy.build}"

    def counted(self) -> Dataset:
        """The dataset with the number of rows that each public table has in the copy: the one snapshot there is."""
        self._open()
        return self._dataset

    def ready(self) -> None:
        """Find the copy or build it, and read it, once; then, before each debit, that it is still the one."""
        self._begin()
        self._same()

    def _begin(self) -> None:
        """Find the copy or build it, and read it, once: from then on a question needs no session."""
        self._open()
        with self._opening:
            if self._connection is None:
                self._connection = self._filled(cast("PostgresCopy", self._copy))

    def _open(self) -> None:
        """Find the copy or build it."""
        if self._closed:
            raise AccessDenied("closed", "The rows were let go of.")
        with self._opening:
            if self._copy is not None:
                return
            copy = copied(self._dataset, self._address, renew=self._renew, progress=self._progress)
            self._dataset = self._dataset.with_rows(copy.rows)
            self._facts, self._kernel_facts = self._dataset.facts, None
            self._copy, self._renew = copy, False

    def _filled(self, copy: PostgresCopy) -> Connection:
        """The kept rows in a private, locked DuckDB; this is between the owner and all of the owner's rows."""
        connection = Connection(threads=self._threads, on_disk=True)
        failed: SetupError | None = None
        try:
            connection.hold(_while_read([given.facts.schema for given in self._dataset.tables]))
            with self._sessions.one() as db:
                for given in self._dataset.tables:
                    name, owned = given.facts.schema.table, given.unit(self._dataset.unit).column is not None
                    columns = stored_columns(given.facts.schema, owned=owned)
                    copied_to = copy.tables[name], copy.pages[name]
                    read = load(db, copied_to, connection, self._kept_name(name), columns)
                    if read != copy.rows[name]:
                        raise SetupError("prepared-unusable", "The copy in the database is not whole.")
            with closing(connection.cursor()) as cursor:
                keep.check(cursor, self.kernel_facts)
            connection.hold()
            connection.lock()
        except SetupError as refused:
            failed = refused
        except psycopg.errors.UndefinedTable:
            failed = SetupError("source-changed", "The copy of the rows was dropped or taken anew by another process.")
        except psycopg.Error as error:
            failed = meaning(error)
        except (duckdb.Error, pa.ArrowException, OSError) as error:
            _log.error("reading the copy failed: %s", type(error).__name__)  # its text may hold a cell (T31)
            failed = SetupError("unreadable-data", "The data could not be read to its end.")
        if failed is not None:
            connection.close()
            raise failed
        return connection

    def _same(self) -> None:
        """Stop where the copy is gone, another, or open to others; a session that broke is made anew, at no cost."""
        copy = cast("PostgresCopy", self._copy)
        build: object = None
        others = reached = False
        for _ in range(2):
            try:
                with self._sessions.one() as db:
                    build, others = session.still(db, copy, self._address.reader)
                reached = True
            except psycopg.OperationalError as error:
                _log.error("the session broke: %s", type(error).__name__)
                continue
            except psycopg.Error:
                reached = True
            break
        if not reached:
            raise SetupError("unreadable-data", f"The database {self._address} cannot be reached.", "Try again later.")
        if build != copy.build:
            raise SetupError("source-changed", "The copy of the rows was dropped or taken anew by another process.")
        if others:
            raise session.opened_to_others()

    def heavy(self, table: str) -> Private[Integers]:
        """Persons of whom not all rows are kept, and the others, as the copy notes them."""
        self._open()
        name = self._dataset.facts.table_of(table).schema.table
        return cast("PostgresCopy", self._copy).heavy.map(lambda found: np.array(found[name], dtype=np.int64))

    def close(self) -> None:
        """End the sessions and let go of memory; the copy stays in the database."""
        super().close()
        self._sessions.close()


def _address(dataset: Dataset) -> TableAddress:
    """The one database all tables lie in."""
    found = [given.origin.address for given in dataset.tables]
    first = found[0]
    if first is None or any(other is None or replace(other, table=first.table) != first for other in found):
        raise SetupError(
            "bad-declaration", "All tables must lie in one PostgreSQL database, at addresses alike but for table=."
        )
    return first


MAX_READ_PAGES: Final = 512  # read by one statement: about 4 MiB of the copy
MAX_READ_TEXT_PAGES: Final = 16  # where there are texts: a page can name 12 MB, and no value may pass 1 GB (T30)
READING_MEMORY_MIB: Final = 128  # of DuckDB's own while tables of numbers are read and checked; persons lie aside
TEXT: Final = "VARCHAR"


def _while_read(schemas: Sequence[Schema]) -> int | None:
    """How many MiB DuckDB may take while these tables are read; None where it may have what questions may.

    Beside 122,880 rows of each column, of 8 bytes, little is needed at one time; of texts nobody knows.
    """
    columns = [column for schema in schemas for _, column in schema.columns]
    most = READING_MEMORY_MIB + max(len(schema.columns) for schema in schemas)
    return None if any(isinstance(column, Text) for column in columns) or most > CORE_MEMORY_MIB else most


def load(
    db: psycopg.Connection, copy: tuple[str, int], connection: Connection, into: str, columns: dict[str, str]
) -> int:
    """Read a table of the copy, and its number of pages, into a new table of DuckDB; how many rows it has.

    A session that is left in the middle is in a transaction, so it is not used again.
    """
    create_table(connection, into, columns)
    texts, names = TEXT in columns.values(), ", ".join(columns)
    kinds = pa.schema({name: pa.string() if kind == TEXT else pa.int64() for name, kind in columns.items()})
    read = 0

    def batches() -> Iterator[pa.RecordBatch]:
        nonlocal read
        for cells, rows in _pages(db, copy, columns, MAX_READ_TEXT_PAGES if texts else MAX_READ_PAGES):
            read += rows
            yield pa.RecordBatch.from_arrays([*map(_unpacked, cells)], schema=kinds)

    with connection.writing():
        insert_batches(connection, f"INSERT INTO {into} ({names}) SELECT {names} FROM page", kinds, batches())
    return read


def _pages(
    db: psycopg.Connection, copy: tuple[str, int], columns: dict[str, str], step: int
) -> Iterator[tuple[Sequence[object], int]]:
    """The columns of so many pages at a time, each packed into one value, and how many rows they have."""
    relation, pages = copy
    asked = ", ".join(f"array_agg({name})" if kind == TEXT else _packed(name) for name, kind in columns.items())
    some = "ctid >= CAST(%(first)s AS tid) AND ctid < CAST(%(last)s AS tid)"
    statement = f"SELECT count(*), {asked} FROM {relation} WHERE {some}"
    with db.cursor(binary=True) as cursor:
        cursor.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        for first in range(0, pages, step):
            bound = {"first": f"({first},0)", "last": f"({min(first + step, pages)},0)"}
            found = cursor.execute(statement, bound).fetchone()
            if found is not None and found[0]:
                yield found[1:], int(found[0])
        cursor.execute("COMMIT")


def _packed(item: str) -> str:
    """A column of whole numbers as eight bytes each; one that is missing as the number no column holds."""
    return f"string_agg(int8send(coalesce(CAST({item} AS bigint), {BLANK + 1} - 1)), ''::bytea)"


def _unpacked(cells: object) -> pa.Array:
    if isinstance(cells, list):
        return pa.array(cells, pa.string())
    values = np.frombuffer(cast("bytes", cells), dtype=">i8").astype(np.int64)
    return pa.array(values, mask=values == BLANK)
