"""The DuckDB engine: questions as SQL over the prepared copy, vectors folded over streamed batches."""

from __future__ import annotations

import abc
import logging
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self, TypeVar, cast

import duckdb
import numpy as np

from sulq.compile.emit.emitter import NotInSql
from sulq.compile.statements import derived_tables, kept_table, stored_facts
from sulq.compile.statements.column_demand import Needed, needed
from sulq.compile.statements.kept_table import PERSON, Rows
from sulq.compile.statements.proposer import Proposer
from sulq.errors import AccessDenied, CuratorError, SetupError
from sulq.kernel import keep
from sulq.kernel.facts import Facts as KernelFacts
from sulq.kernel.facts import Refused
from sulq.kernel.private import Private
from sulq.kernel.request import Asking, Proposal, Proposed, Scan, Statement
from sulq.kernel.whole.functions import Owned
from sulq.kernel.whole.listing import altered
from sulq.language.domain import Schema
from sulq.language.facts import Tables
from sulq.language.kinds import Integers
from sulq.language.relation import Relation, Table
from sulq.language.shape import shape
from sulq.language.tally import Groups, Tally
from sulq.sources.decode import files
from sulq.sources.duckdb import kept_rows as kept
from sulq.sources.duckdb import prepare, results
from sulq.sources.duckdb.connection import Connection
from sulq.sources.duckdb.parquet_cells import rewrite
from sulq.sources.duckdb.prepare import Progress
from sulq.sources.duckdb.question import BATCH, Question, alike, fetched
from sulq.sources.duckdb.resident import Resident, limit
from sulq.sources.folds import derived_rows
from sulq.sources.folds.batch import Batch
from sulq.sources.folds.fold import fold
from sulq.sources.folds.open_groups import group, labelled
from sulq.sources.folds.row_listing import listed, of_columns
from sulq.sources.source import Origin, Registered
from sulq.sources.tables import Dataset

if TYPE_CHECKING:
    from sulq.kernel.whole import asked as annex

MOST_ROWS_READ: Final = 2**31  # of a table without a copy: its doubles of 2^22 are summed as such, exactly

T = TypeVar("T")

_log = logging.getLogger(__name__)


class Files:
    """Where a DuckDB engine's rows come from: files and frames, prepared or read for each question."""

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
        if prepared is False and any(path is not None and files.WILD.search(str(path)) for path in paths):
            # Locked, DuckDB reads files named in advance, and to it such a name is a pattern.
            raise SetupError(
                "unreadable-data", "A path with * ? or [ needs a prepared copy.", "Rename it, or prepare it."
            )
        self._facts = dataset.facts
        self._kernel_facts: KernelFacts | None = None
        self._prepared = prepared
        self.certifies = prepared is not False  # the types of rows that are read anew are the source's
        self._records: dict[Path | None, int | None] | None = None  # of each file, once checked
        if not isinstance(prepared, Path) or not prepared.exists():
            self._check(given.origin for given in dataset.tables)
        self._tables = dataset.registered()
        self._renew = renew
        self._progress = progress
        self._threads = threads
        self._batch = batch
        self._connection: Connection | None = None
        self._read: dict[Registered, Rows] = {}  # how tables are read without a copy
        # Without a prepared copy there is nothing whose rows have lasting numbers.
        self._resident = None if prepared is False else Resident(limit() if resident is None else resident)
        self._opening = threading.Lock()
        self._closed = False
        if self._records is None and not self._fits():
            self._check(registered.origin for registered in self._tables)

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
                self._connection = self._open()
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

    def _open(self) -> Connection:
        failed = ""
        for again in (False, True):
            connection = Connection(threads=self._threads)
            try:
                if again and not isinstance(self._prepared, Path):  # what is built in a file is tried again there
                    self._tables = rewrite(self._tables, connection.folder)
                if isinstance(self._prepared, Path):
                    connection = self._attached(connection, self._prepared)
                self._fill(connection)
            except duckdb.Error as error:
                failed = type(error).__name__
            except SetupError:
                connection.close()
                raise
            else:
                return connection
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

    def _fill(self, connection: Connection) -> None:
        """Give a connection the kept rows of each table under its name, checked against their facts, and lock it."""
        if self._prepared is False:
            self._view(connection)
            return
        filed = isinstance(self._prepared, Path)
        if not filed:
            prepare.fill(connection, self._counted(), into="", progress=self._progress)
        with closing(connection.cursor()) as cursor:
            keep.check(cursor, stored_facts.facts(self._facts, self._kept))
        if not filed:
            for registered in self._tables:
                registered.origin.unchanged()
            self._tables = tuple(registered.without_data() for registered in self._tables)
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

    def _try_all(self, connection: Connection, registered: Registered, rows: Rows) -> None:
        """Read every needed cell once, so that a broken file stops its owner and not a question (T30)."""
        extra = [PERSON] if registered.unit.column is not None else []
        columns = ", ".join(["count(*)", *(f"max({name})" for name in [*rows.names.values(), *extra])])
        with closing(self._cursor(connection)) as cursor:
            found = cursor.execute(f"SELECT {columns} FROM {rows.relation}").fetchall()
        prepare.check_number(registered, found[0][0], rows.most)

    def _cursor(self, connection: Connection) -> duckdb.DuckDBPyConnection:
        cursor = connection.cursor()
        for item in self._tables if self._prepared is False else ():
            if item.source.frame is not None:
                cursor.register(f"source{item.number}", item.source.frame)
        return cursor

    def _anew(self, item: Registered) -> Rows:
        """How a table is read where each question does so; checked by the kernel once for each source."""
        if item not in self._read:
            self._read[item] = kept.select(item, stored=False)
        return self._read[item]

    def _kept(self, name: str) -> Rows:
        """A table's kept rows by their name, and how they stand there, owners beside them where they have any."""
        registered = self._registered(self._facts.table_of(name).schema.table)
        schema, most = registered.schema, shape(Table(name), self._facts).most
        if self._prepared is False:
            read = self._anew(registered)
            return replace(read, relation=registered.kept, most=min(most, MOST_ROWS_READ), frames={})
        names, filed = kept_table.names(schema), isinstance(self._prepared, Path)
        relation = f"data.{registered.kept}" if filed else registered.kept
        spelled = kept_table.spelled(schema) if filed else {}
        return Rows(relation, {}, names, frozenset(), {}, most, spelled=spelled)

    def _places(self, name: str) -> int | None:
        return self._registered(name).places

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


class StoredEngine(abc.ABC):
    """Kept rows in a private, locked DuckDB: what is asked of them is proposed, certified and run, each on its cursor.

    How rows come there is a subclass's: it opens the connection in `ready`, and says in `_kept` how a table stands.
    """

    certifies = True  # whether rows stand as the kernel's facts say: then nothing is run but what it certified
    _facts: Tables
    _kernel_facts: KernelFacts | None = None
    _connection: Connection | None = None
    _resident: Resident | None = None
    _batch: int = BATCH
    _closed = False

    _proposed: weakref.WeakKeyDictionary[Tally, list[tuple[tuple[weakref.ref[Tally], ...], object]]]
    _lock: threading.Lock

    def __new__(cls, *_given: object, **_more: object) -> Self:
        """With room for proposals, whatever a subclass is made of."""
        self = super().__new__(cls)
        self._proposed, self._lock = weakref.WeakKeyDictionary(), threading.Lock()
        return self

    @abc.abstractmethod
    def ready(self) -> None:
        """Make the rows available, before any debit."""

    def _begin(self) -> None:
        """Make sure that the rows are there, for whoever did not pay."""
        self.ready()

    @abc.abstractmethod
    def _kept(self, name: str) -> Rows:
        """A table's kept rows by their name, and how they stand there, owners beside them where they have any."""

    def _cursor(self, connection: Connection) -> duckdb.DuckDBPyConnection:
        return connection.cursor()

    def _places(self, name: str) -> int | None:
        """How many rows a table's source has, where that is public (SR6)."""
        return None

    def sums(self, tally: Tally) -> Private[Integers]:
        """Exact sums of a tally over the kept rows."""
        return Private(self._asked(tally, lambda question: question.sums(self.propose(tally))[0], self._folded))

    def sums_of(self, tallies: Sequence[Tally]) -> tuple[Private[Integers], ...]:
        """Exact sums of several tallies; of those over the same rows what SQL does not sum is folded in one pass."""
        found: dict[int, Integers] = {}
        for places in alike(tallies):
            shared = self._shared([tallies[i] for i in places]) if len(places) > 1 else None
            found |= {} if shared is None else dict(zip(places, shared, strict=True))
        return tuple(Private(found[i]) if i in found else self.sums(tally) for i, tally in enumerate(tallies))

    def _shared(self, tallies: Sequence[Tally]) -> list[Integers] | None:
        """The sums of tallies over the same rows; None where each is better asked by itself."""
        self._begin()
        if self._connection is None:
            return None
        try:
            with closing(self._cursor(self._connection)) as cursor:
                return self._question(cursor, *tallies).sums(self.propose(*tallies))
        except NotInSql:
            return None
        except Exception as error:  # noqa: BLE001 - asked one by one each has its outcome (T30)
            what = "the engine failed" if self.certifies else "asked again by hand, each alone"
            _log.error("%s: %s", what, type(error).__name__)  # no text, no trace (T31)
        if self.certifies:  # each alone is other text than what was certified
            raise CuratorError("engine-failed", "The rows could not be summed.")
        return None

    def _question(self, cursor: duckdb.DuckDBPyConnection, *tallies: Tally) -> Question:
        over = tallies[0].over
        stored = self._resident if isinstance(over, Table) else None
        return Question(cursor, *self._over(over), *tallies, batch=self._batch, resident=stored)

    def proposer(self, over: Relation) -> Proposer:
        """Writes what is asked of a relation."""
        return Proposer(*self._over(over), certified=self.certifies)

    def propose(self, *tallies: Tally) -> Proposal:
        """What is asked for tallies over one relation, from public facts alone: nothing is opened or read.

        Raises:
            NotInSql: a part of the relation is left to be worked out by hand.
        """
        return self._once(tallies, lambda: self.proposer(tallies[0].over).propose(tallies), Proposal)

    def propose_groups(self, tally: Tally) -> Statement:
        """As `propose`, of groups that are found in the data."""
        owned = shape(tally.over, self._facts).owned
        return self._once((tally,), lambda: self.proposer(tally.over).groups(tally, owned=owned), Statement)

    def _once(self, tallies: tuple[Tally, ...], propose: Callable[[], T], kind: type[T]) -> T:
        """What was proposed for these very tallies already, or what is proposed now: what is certified is what runs.

        It is kept as long as the first of them is.
        """
        with self._lock:
            known = self._proposed.setdefault(tallies[0], [])
        for others, made in known:
            if isinstance(made, kind) and [other() for other in others] == list(tallies):
                return made
        found = propose()
        known.append((tuple(map(weakref.ref, tallies)), found))
        return found

    @property
    def tables(self) -> Tables:
        """The public facts of its tables."""
        return self._facts

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

    def labelled(self, tally: Tally, keys: Sequence[tuple[object, ...]]) -> tuple[list[tuple[object, ...]], Integers]:
        """Labels for the stored keys of groups, ascending, and the places of these in that order."""
        return labelled([key.fn for key in tally.by], shape(tally.over, self._facts).schema, keys)

    @contextmanager
    def _asking(self, tallies: Sequence[Tally]) -> Iterator[Asking]:
        """Where certified text over one relation runs."""
        self._begin()
        with closing(self._cursor(cast("Connection", self._connection))) as cursor:
            yield self._question(cursor, *tallies)

    @property
    def kernel_facts(self) -> KernelFacts:
        """The facts of its kept tables, which never change."""
        if self._kernel_facts is None:
            self._kernel_facts = stored_facts.facts(self._facts, self._kept)
        return self._kernel_facts

    def groups(self, tally: Tally) -> Private[Groups]:
        """Exact sums of the groups that occur."""
        return Private(self._asked(tally, lambda question: question.labelled(self.propose_groups(tally)), group))

    def listed(self, tally: Tally, *, blanks: bool = False) -> Private[Integers]:
        """The blocks of each row that counts, read from the kept rows as they are."""
        self._begin()
        try:
            if self._connection is not None:
                name = cast("Table", tally.over).name
                asked, places = self.listing(tally), self._places(name)
                if asked is not None:
                    with closing(self._cursor(self._connection)) as cursor:
                        table = results.table(cursor, asked.sql, asked.bound)
                    columns = [results.numpy_column(column) for column in table.columns]
                    return Private(of_columns(columns, table.num_rows, blanks=blanks, places=places))
                rows = self._reader(tally)(name)
                rows = rows.placed(places) if blanks and places is not None else rows
                return Private(listed(tally, rows, blanks=blanks))
        except Exception as error:  # noqa: BLE001 - whatever a row may cause has one outcome (T30)
            _log.error("the engine failed: %s", type(error).__name__)  # no text, no trace (T31)
        raise CuratorError("engine-failed", "The rows could not be read.")

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

    def _asked(self, tally: Tally, ask: Callable[[Question], T], by_hand: Callable[[Tally, Batch], T]) -> T:
        """Ask in SQL; what SQL does not say is worked out by hand from the kept rows.

        An error of DuckDB's arithmetic may depend on a row, so it must not be an
        outcome (T30): a certified statement has none. Rows that are read for each
        question have no certificate; there the reference meaning of the same tally, which is total, answers.
        """
        self._begin()
        try:
            if self._connection is not None:
                try:
                    return self._in_sql(self._connection, tally, ask)
                except NotInSql:
                    pass
                except duckdb.Error as error:
                    if self.certifies:
                        raise
                    _log.error("asked again by hand: %s", type(error).__name__)
                return by_hand(tally, derived_rows.derive(tally.over, self._facts, self._reader(tally)))
        except Exception as error:  # noqa: BLE001 - whatever a row may cause has one outcome (T30)
            _log.error("the engine failed: %s", type(error).__name__)  # no text, no trace (T31)
        raise CuratorError("engine-failed", "The rows could not be summed.")

    def _in_sql(self, connection: Connection, tally: Tally, ask: Callable[[Question], T]) -> T:
        with closing(self._cursor(connection)) as cursor:
            return ask(self._question(cursor, tally))

    def _over(self, over: Relation) -> tuple[Schema, Rows]:
        """The rows of a relation, and their columns."""
        if not isinstance(over, Table):
            return derived_tables.derive(over, self._facts, self._kept)
        return self._facts.table_of(over.name).schema, self._kept(over.name)

    def _reader(self, tally: Tally) -> Callable[[str], Batch]:
        """How a table's kept rows come into memory; of a table asked itself, only what the tally looks at."""

        def read(name: str) -> Batch:
            if isinstance(tally.over, Table):
                (schema, rows), wanted = self._over(tally.over), needed(tally)
            else:
                schema, rows = derived_tables.derive(Table(name), self._facts, self._kept)
                wanted = Needed(schema.names)
            with closing(self._cursor(cast("Connection", self._connection))) as cursor:
                return fetched(cursor, schema, rows, wanted, owned=shape(Table(name), self._facts).owned)

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


class DuckEngine(Files, StoredEngine):
    """Rows of files and frames in a private, locked DuckDB; one fresh cursor a question."""

    @classmethod
    def of(
        cls, dataset: Dataset, *, prepared: Path | bool | None, renew: bool, progress: Progress | None
    ) -> DuckEngine:
        """Open files or frames."""
        return cls(dataset, prepared=prepared, renew=renew, progress=progress)
