"""The PostgreSQL engine: questions as SQL over a prepared copy in the same database, the rest over pages of it.

Rows stay where they are: the copy lies in a private schema beside them, and what
leaves the database for a question are sums, or the integers of pages that are folded
here. Joins and other derived tables are worked out in the curator's memory.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar, cast

import numpy as np
import psycopg

from sulq.curator.engines import derive_numpy, kept, postgres_schema
from sulq.curator.engines.batch import Batch
from sulq.curator.engines.fold import fold
from sulq.curator.engines.group import group
from sulq.curator.engines.kept import Rows
from sulq.curator.engines.listed import listed
from sulq.curator.engines.needed import Needed, needed
from sulq.curator.engines.postgres_copy import Progress, copied
from sulq.curator.engines.postgres_question import PostgresQuestion
from sulq.curator.engines.postgres_read import Reader
from sulq.curator.engines.postgres_schema import Copy
from sulq.curator.engines.postgres_session import Sessions
from sulq.curator.engines.question import BATCH, Question, alike
from sulq.curator.engines.tables import Dataset
from sulq.errors import AccessDenied, CuratorError, SetupError
from sulq.kernel.private import Private
from sulq.terms.domain import Schema
from sulq.terms.engine import Groups, Tally
from sulq.terms.kinds import Integers
from sulq.terms.postgres_address import Address
from sulq.terms.relation import Table
from sulq.terms.shape import MOST_ROWS_STORED, shape

T = TypeVar("T")

_log = logging.getLogger(__name__)


class PostgresEngine:
    """Tables of one PostgreSQL database; one session a question."""

    def __init__(
        self, dataset: Dataset, *, renew: bool = False, progress: Progress | None = None, batch: int = BATCH
    ) -> None:
        if dataset.unit.positions_are_public:  # one row replaced can move every other: a table has no order
            raise SetupError(
                "bad-declaration",
                "Rows of PostgreSQL have no places, which this unit would let questions speak of.",
                "Use neighbors='add_remove', or 'replace_one' with a person column.",
            )
        self._dataset = dataset
        self._address = _address(dataset)
        self._renew = renew
        self._progress = progress
        self._batch = batch
        self._copy: Copy | None = None
        self._rows: dict[str, Rows] = {}
        self._sessions = Sessions(self._address)
        self._opening = threading.Lock()
        self._closed = False

    @classmethod
    def of(
        cls, dataset: Dataset, *, prepared: Path | bool | None, renew: bool, progress: Progress | None
    ) -> PostgresEngine:
        """Open tables by the address that each of them has."""
        if prepared is False or isinstance(prepared, Path):
            raise SetupError("bad-declaration", "Tables in PostgreSQL are prepared there; leave prepared= out.")
        return cls(dataset, renew=renew, progress=progress)

    def fingerprint(self, table: str = "") -> str:
        """Which table a copy was made of, and which copy that is: other rows are another one."""
        self._open()
        copy = cast("Copy", self._copy)
        name = next(
            given.facts.schema.table for given in self._dataset.tables if table in ("", given.facts.schema.table)
        )
        return f"postgresql {copy.sources[name]} {copy.build}"

    def counted(self) -> Dataset:
        """The dataset with the number of rows that each public table has in the copy: the one snapshot there is."""
        self._open()
        return self._dataset

    def ready(self) -> None:
        """Find the copy or build it; then, before each debit, that it is still the one, in a session that works."""
        if not self._open():
            self._same()

    def _open(self) -> bool:
        """Whether the copy had to be opened."""
        if self._closed:
            raise AccessDenied("closed", "The rows were let go of.")
        with self._opening:  # of threads that ask first at once, one prepares
            if self._copy is not None:
                return False
            copy = copied(self._dataset, self._address, renew=self._renew, progress=self._progress)
            given = []
            for each in self._dataset.tables:
                schema, rows = each.facts.schema, copy.rows[each.facts.schema.table]
                names = kept.names(schema)
                most = rows if each.facts.public else MOST_ROWS_STORED
                self._rows[schema.table] = Rows(copy.tables[schema.table], {}, names, frozenset(), {}, most)
                given.append(replace(each, facts=replace(each.facts, rows=rows)) if each.facts.public else each)
            self._dataset = replace(self._dataset, tables=tuple(given))
            self._copy, self._renew = copy, False
        self._same()
        return True

    def _same(self) -> None:
        """Stop where the copy is gone, another, or open to others; a session that broke is made anew, at no cost."""
        copy = cast("Copy", self._copy)
        build: object = None
        others = reached = False
        for _ in range(2):
            try:
                with self._sessions.one() as db:
                    build, others = postgres_schema.still(db, copy, self._address.reader)
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
            raise postgres_schema.opened_to_others()

    def sums(self, tally: Tally) -> Private[Integers]:
        """Exact sums of a tally over the kept rows."""
        return Private(self._asked(tally, lambda question: question.sums()[0], self._summed))

    def sums_of(self, tallies: Sequence[Tally]) -> tuple[Private[Integers], ...]:
        """Exact sums of several tallies; of those over the same rows what SQL does not sum is folded in one pass."""
        found: dict[int, Integers] = {}
        for places in alike(tallies):
            if len(places) > 1 and isinstance(tallies[places[0]].over, Table):
                shared = self._shared([tallies[i] for i in places])
                found |= {} if shared is None else dict(zip(places, shared, strict=True))
        return tuple(Private(found[i]) if i in found else self.sums(tally) for i, tally in enumerate(tallies))

    def _shared(self, tallies: Sequence[Tally]) -> list[Integers] | None:
        """The sums of tallies over one table; None where each is better asked by itself."""
        self._open()
        try:
            with self._sessions.one() as db:
                return self._question(db, *tallies).sums()
        except Exception as error:  # noqa: BLE001 - asked one by one each has its outcome (T30)
            _log.error("asked again, each alone: %s", type(error).__name__)  # no text, no trace (T31)
        return None

    def groups(self, tally: Tally) -> Private[Groups]:
        """Exact sums of the groups that occur."""
        return Private(self._asked(tally, lambda question: question.groups(), self._grouped))

    def listed(self, tally: Tally, *, blanks: bool = False) -> Private[Integers]:
        """The blocks of each row that counts, read from the kept rows as they are."""
        self._open()
        try:
            rows = self._read(cast("Table", tally.over).name, needed(tally))
            return Private(listed(tally, rows, blanks=blanks))
        except Exception as error:  # noqa: BLE001 - whatever a row may cause has one outcome (T30)
            _log.error("the engine failed: %s", type(error).__name__)  # no text, no trace (T31)
        raise CuratorError("engine-failed", "The rows could not be read.")

    def heavy(self, table: str) -> Private[Integers]:
        """Persons of whom not all rows are kept, and the others, as the copy notes them."""
        self._open()
        name = self._dataset.facts.table_of(table).schema.table
        return cast("Copy", self._copy).heavy.map(lambda found: np.array(found[name], dtype=np.int64))

    def _asked(self, tally: Tally, ask: Callable[[Question], T], by_hand: Callable[[Tally], T]) -> T:
        """Ask in SQL; what SQL does not say, or fails to work out, is worked out by hand from the kept rows.

        An error of PostgreSQL's must not be an outcome: it may depend on a row, and the
        reference meaning of the same tally is total (T30).
        """
        self._open()
        try:
            for _ in range(2 if isinstance(tally.over, Table) else 0):
                try:
                    with self._sessions.one() as db:
                        return ask(self._question(db, tally))
                except psycopg.OperationalError as error:  # the session broke: there may be another
                    _log.error("asked again: %s", type(error).__name__)
                except psycopg.Error as error:
                    _log.error("asked again by hand: %s", type(error).__name__)
                    break
            return by_hand(tally)
        except Exception as error:  # noqa: BLE001 - whatever a row may cause has one outcome (T30)
            _log.error("the engine failed: %s", type(error).__name__)  # no text, no trace (T31)
        raise CuratorError("engine-failed", "The rows could not be summed.")

    def _question(self, db: psycopg.Connection, *tallies: Tally) -> PostgresQuestion:
        over = cast("Table", tallies[0].over)
        schema, rows, pages = self._table(over.name)
        owned = shape(over, self._dataset.facts).owned
        return PostgresQuestion(db, schema, rows, *tallies, pages=pages, batch=self._batch, owned=owned)

    def _table(self, name: str) -> tuple[Schema, Rows, int]:
        schema = self._dataset.facts.table_of(name).schema
        return schema, self._rows[schema.table], cast("Copy", self._copy).pages[schema.table]

    def _derived(self, tally: Tally) -> Batch:
        """The rows of a tally in memory; of a table asked itself, only what the tally looks at."""

        def read(name: str) -> Batch:
            asked = needed(tally) if isinstance(tally.over, Table) else Needed(self._table(name)[0].names)
            return self._read(name, asked)

        return derive_numpy.derive(tally.over, self._dataset.facts, read)

    def _grouped(self, tally: Tally) -> Groups:
        return group(tally, self._derived(tally))

    def _read(self, name: str, wanted: Needed) -> Batch:
        schema, rows, pages = self._table(name)
        owned = shape(Table(name), self._dataset.facts).owned
        with self._sessions.one() as db:
            return Reader(schema, rows, pages, wanted, owned=owned).whole(db)

    def _summed(self, tally: Tally) -> Integers:
        """Sums by hand: of a table page by page, of derived rows in memory."""
        if isinstance(tally.over, Table):
            with self._sessions.one() as db:
                return self._question(db, tally).by_hand()
        rows = self._derived(tally)
        starts = range(0, rows.size, self._batch)
        return fold(tally, rows.schema, (rows.part(i, min(i + self._batch, rows.size)) for i in starts))

    def close(self) -> None:
        """End the sessions; the copy stays."""
        self._closed = True
        self._sessions.close()


def _address(dataset: Dataset) -> Address:
    """The one database all tables lie in."""
    found = [given.origin.address for given in dataset.tables]
    first = found[0]
    if first is None or any(other is None or replace(other, table=first.table) != first for other in found):
        raise SetupError(
            "bad-declaration", "All tables must lie in one PostgreSQL database, at addresses alike but for table=."
        )
    return first
