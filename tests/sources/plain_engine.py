"""The reference engine of the tests: rows read by plain Python and NumPy; another meaning of each cell."""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Callable
from typing import TypeVar, cast

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from sulq.errors import AccessDenied, CuratorError, SetupError
from sulq.kernel.private import Private, Stored
from sulq.language.domain import Int, Real
from sulq.language.kinds import Integers, Objects, Truths
from sulq.language.privacy import Unit
from sulq.language.relation import Table
from sulq.language.tally import Groups, Tally
from sulq.sources import cell_reading, tables
from sulq.sources.decode import csv_file, frames, person
from sulq.sources.decode.person import WHO
from sulq.sources.derived_rows import derive, group
from sulq.sources.duckdb.connection import numpy_column
from sulq.sources.fold import MAX_PART_ROWS, RowBatch, fold, listed
from sulq.sources.origin import Origin, column_names, suffix
from sulq.sources.tables import Dataset, Given, not_own, not_unique
from tests.sources import plain_reading as reading

T = TypeVar("T")

_log = logging.getLogger("sulq")


class PlainEngine:
    """Kept rows as NumPy columns, folded batch by batch: another meaning of each sum, to compare others with."""

    certifies = False  # there is no statement to certify: what it sums rests on the plan

    def __init__(self, dataset: Dataset, *, batch: int = MAX_PART_ROWS) -> None:
        self._facts = dataset.facts
        self._tables = [_Table(given, dataset) for given in dataset.tables]
        named = [(table.schema.table, table.named_by or "", table.form) for table in self._tables]
        person.agree(named, dataset.unit.fold)
        self._batch = batch
        self._rows: dict[str, RowBatch] | None = None
        self._opening = threading.Lock()
        self._closed = False

    @classmethod
    def of(cls, dataset: Dataset, **_: object) -> PlainEngine:
        """Open frames, Parquet or CSV files; there is nothing to prepare."""
        return cls(dataset)

    def fingerprint(self, table: str = "") -> str:
        """What a table was read from: name, size and time of a file, or "frame"."""
        return next(item.origin.fingerprint for item in self._tables if table in ("", item.schema.table))

    @property
    def unsure(self) -> bool:
        """Whether rows may hold ids that are not exact: their owner is to hear of it before anybody may ask."""
        return any(table.form in tables.UNSURE for table in self._tables)

    def ready(self) -> None:
        """Read the rows, once."""
        if self._closed:
            raise AccessDenied("closed", "The rows were let go of.")
        for table in self._tables:
            table.origin.unchanged()
        with self._opening:  # of threads that ask first at once, one reads
            if self._rows is None:
                people: dict[str, int] = {}
                rows = {table.schema.table: table.read(people) for table in self._tables}
                self._check()
                for table in self._tables:
                    table.origin.unchanged()
                self._rows = rows

    def _check(self) -> None:
        """Refuse a row that refers to another person's, over all rows (SR15)."""
        for table in self._tables:
            for column, name in table.references:
                other = next(item for item in self._tables if item.schema.table == name)
                owners = dict(other.named(other.unique or ""))
                if any(owners.get(value, who) != who for value, who in table.named(column)):
                    not_own(table.schema.table, column, name)
        for table in self._tables:
            table.forget()

    def sums(self, tally: Tally) -> Private[Integers]:
        """Exact sums of a tally over the kept rows."""
        return Private(self._asked(tally, lambda rows: fold(tally, rows, part_rows=self._batch)))

    def groups(self, tally: Tally) -> Private[Groups]:
        """Exact sums of the groups that occur."""
        return Private(self._asked(tally, lambda rows: group(tally, rows)))

    def listed(self, tally: Tally, *, blanks: bool = False) -> Private[Integers]:
        """The blocks of each row that counts."""
        return Private(
            self._asked(tally, lambda rows: listed(tally, self._placed(tally, rows) if blanks else rows, blanks=blanks))
        )

    def _placed(self, tally: Tally, rows: RowBatch) -> RowBatch:
        """With the blanked rows, each in its place, where places are public."""
        places = self._table(cast("Table", tally.over).name).places
        return rows if places is None else rows.placed(places)

    def heavy(self, table: str) -> Private[Integers]:
        """Persons of whom not all rows are kept, and the others."""
        self.ready()
        return self._table(table).heavy

    def _table(self, name: str) -> _Table:
        table = self._facts.table_of(name).schema.table
        return next(item for item in self._tables if item.schema.table == table)

    def _asked(self, tally: Tally, answer: Callable[[RowBatch], T]) -> T:
        self.ready()
        if self._rows is not None:
            try:
                return answer(derive(tally.over, self._facts, self._kept))
            except Exception as error:  # noqa: BLE001 - whatever a row may cause has one outcome (T30)
                _log.error("the memory engine failed: %s", type(error).__name__)  # no text, no trace (T31)
        raise CuratorError("engine-failed", "The rows could not be summed.")

    def _kept(self, name: str) -> RowBatch:
        return (self._rows or {})[self._table(name).schema.table]

    def close(self) -> None:
        """Forget the rows."""
        self._closed = True
        self._rows = None


class _Table:
    """One table of the dataset, and how its kept rows are read."""

    def __init__(self, given: Given, dataset: Dataset) -> None:
        self.origin = given.origin
        self.schema = given.facts.schema
        self.unique = given.facts.key
        self.references = given.facts.references
        self._unit = given.unit(dataset.unit)
        self.named_by = self._unit.column
        self._key = dataset.key
        self.origin.check()
        self._places = cell_reading.places(_names(given.origin), self.schema, self._unit)
        self.form: person.Form = "nothing"
        if self.named_by is not None:
            found = _form(given.origin, self._places[self.named_by], self._unit)
            number = isinstance(self.schema.find(self.named_by), (Int, Real))
            self.form = person.person(found, WHO, number=number, fold=self._unit.fold).form
        self._all: tuple[dict[str, reading.Read], Objects | None] = {}, None
        self.heavy: Private[Integers] = Private(np.zeros(2, dtype=np.int64))
        self.places: int | None = None  # how many rows the source has, where that is public (SR6)

    def named(self, column: str) -> list[tuple[object, object]]:
        """Of all rows read, the column's codes and whose they are, where both are there."""
        read, people = self._all
        codes, missing = read[column]
        pairs = zip(codes.tolist(), missing.tolist(), [] if people is None else people, strict=True)
        return [(code, who) for code, gone, who in pairs if not gone and who is not None]

    def forget(self) -> None:
        """Let go of rows that are not kept."""
        self._all = {}, None

    def read(self, numbers: dict[str, int]) -> RowBatch:
        """The kept rows, each with its person's number; `numbers` holds those of all tables."""
        table, cells, named = self._table()
        read = {}
        stored = {name: numpy_column(table.column(place)) for place, name in enumerate(self.schema.names)}
        for name, column in self.schema.columns:
            cell_reading.agree(name, column, cells[name])
            read[name] = reading.codes(column, cells[name], *stored[name])
        size = table.num_rows
        rows = np.arange(size)
        if self._unit.neighbors == "zero_out":  # a blanked row is no row, but keeps its place
            blank = np.ones(size, dtype=np.bool_)
            for _, missing in read.values():
                blank &= missing
            rows = rows[~blank]
        hashes: Integers | None = None
        owner: Integers | None = None
        people: Objects | None = None
        if named is not None:
            if self.form in tables.UNSURE and reading.unfit(self.form, named):
                raise tables.inexact(self.schema.table, self.named_by or "", self.form)
            people = reading.texts(self.form, named, self._unit.fold)
        self._check(read, people)
        self._all = read, people
        if people is not None:
            often = Counter(person for person in people if person is not None)
            heavy = sum(count > self._unit.rows for count in often.values())
            self.heavy = Private(np.array([heavy, len(often) - heavy], dtype=np.int64))
            mine = [(codes[rows], missing[rows]) for codes, missing in read.values()]
            rows = rows[reading.kept(self._key, self._unit.rows, people[rows], mine)]
            texts = [str(people[i]) for i in rows]
            hashes = np.array([reading.person_hash(text) for text in texts], dtype=np.int64)
            owner = np.array([numbers.setdefault(text, len(numbers)) for text in texts], dtype=np.int64)
        elif self._unit.positions_are_public:
            hashes = np.array([reading.person_hash(str(i)) for i in rows], dtype=np.int64)
        columns: dict[str, Stored] = {
            name: (codes[rows], _some(missing[rows])) for name, (codes, missing) in read.items()
        }
        position = rows if self._unit.positions_are_public else None
        self.places = size if self._unit.positions_are_public else None
        return RowBatch(self.schema, len(rows), columns, person=hashes, position=position, owner=owner)

    def _check(self, read: dict[str, reading.Read], people: Objects | None) -> None:
        """Refuse a unique column that is not, over all rows."""
        if self.unique is None:
            return
        if people is not None and self.unique == self._unit.column:
            values = [who for who in people if who is not None]
        else:
            codes, missing = read[self.unique]
            values = codes[~missing].tolist()
        if len(set(values)) < len(values):
            not_unique(self.schema.table, self.unique)

    def _table(self) -> tuple[pa.Table, dict[str, cell_reading.Cell], pa.ChunkedArray | None]:
        """The declared columns, what each holds, and the persons."""
        path = self.origin.path
        if path is None:
            return self._plain(self.origin.data, self._places)
        if suffix(path) == ".csv":
            table = reading.csv_table(path, self._places.values())
            named = None if self.named_by is None else table.column(list(self._places).index(self.named_by))
            return table, dict.fromkeys(self._places, "text"), named
        try:
            with frames.open_parquet(path) as file:
                table = file.read(columns=list(self._places))
        except (pa.ArrowException, OSError, UnicodeError):
            table = None
        if table is None:
            raise SetupError("unreadable-data", "The Parquet file cannot be read.")
        return self._plain(table.select(list(self._places)), {name: i for i, name in enumerate(self._places)})

    def _plain(
        self, data: object, places: dict[str, int]
    ) -> tuple[pa.Table, dict[str, cell_reading.Cell], pa.ChunkedArray | None]:
        who = None if self.named_by is None else (self.named_by, places[self.named_by])
        wanted = {name: places[name] for name in self.schema.names}
        table, kinds, named = frames.records(data, wanted, who, self._unit.fold)
        read = [
            reading.plain(kind, table.column(i), name) for i, (name, kind) in enumerate(zip(wanted, kinds, strict=True))
        ]
        cells = {name: cell for name, (cell, _) in zip(wanted, read, strict=True)}
        plain = pa.table([column for _, column in read], names=[f"s{i}" for i in range(len(read))])
        return plain, cells, None if named is None else table.column(WHO)


def _names(origin: Origin) -> list[str]:
    if origin.path is None:
        return column_names(origin.data) or []
    if suffix(origin.path) == ".csv":
        return csv_file.header(origin.path)
    if suffix(origin.path) == ".parquet":
        return origin.parquet().names
    raise SetupError("engine-not-available", "The memory engine reads frames, Parquet and CSV.")


def _form(origin: Origin, place: int, unit: Unit) -> person.Form:
    """What the column of persons holds."""
    if origin.path is not None and suffix(origin.path) == ".csv":
        return "text"
    data, name = origin.data, unit.column or ""
    if origin.path is not None:
        found = origin.parquet()
        if found.stored[place] != found.schema.types[place]:
            frames.check_stored(found.stored[place], "TIMESTAMP", name)  # INT96, read as microseconds
        data = found.schema.empty_table()
    named = frames.records(data, {}, (name, place), unit.fold).named
    return "nothing" if named is None else named[0]


def _some(missing: Truths) -> Truths | None:
    return missing if missing.any() else None
