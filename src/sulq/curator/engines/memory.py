"""The reference engine: all rows in memory, read by plain Python and NumPy; small, slow and easy to check."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from sulq.curator.engines import arrow, grammar, read_numpy
from sulq.curator.engines.batch import Batch, Stored
from sulq.curator.engines.fold import fold
from sulq.curator.engines.source import Origin, suffix
from sulq.errors import AccessDenied, CuratorError, SetupError
from sulq.terms.domain import Schema
from sulq.terms.engine import Tally
from sulq.terms.kinds import Integers, Truths
from sulq.terms.privacy import Unit
from sulq.terms.private import Private

BATCH: Final = 65_536

_log = logging.getLogger("sulq")


class MemoryEngine:
    """Kept rows as NumPy columns, folded batch by batch."""

    def __init__(self, origin: Origin, schema: Schema, unit: Unit, key: bytes, *, batch: int = BATCH) -> None:
        self._origin = origin
        self._schema = schema
        self._unit = unit
        self._key = key
        self._batch = batch
        self._places = grammar.places(_names(origin), schema, unit)
        self._rows: Batch | None = None
        self._opening = threading.Lock()
        self._closed = False

    @classmethod
    def of(cls, data: object, *, schema: Schema, unit: Unit, key: bytes, **_: object) -> MemoryEngine:
        """Open a frame, Parquet or CSV file; there is nothing to prepare."""
        return cls(Origin.of(data), schema, unit, key)

    def fingerprint(self) -> str:
        """What the rows were read from: name, size and time of a file, or "frame"."""
        return self._origin.fingerprint

    def ready(self) -> None:
        """Read the rows, once."""
        if self._closed:
            raise AccessDenied("closed", "The rows were let go of.")
        self._origin.unchanged()
        with self._opening:  # of threads that ask first at once, one reads
            if self._rows is None:
                self._rows = self._read()

    def _read(self) -> Batch:
        table, cells = self._table()
        read = {}
        stored = dict(zip(self._places, (arrow.numpy_column(column) for column in table.columns), strict=True))
        for name, column in self._schema.columns:
            grammar.agree(name, column, cells[name])
            read[name] = read_numpy.codes(column, cells[name], *stored[name])
        size = table.num_rows
        rows = np.arange(size)
        if self._unit.neighbors == "zero_out":  # a blanked row is no row, but keeps its place
            blank = np.ones(size, dtype=np.bool_)
            for _, missing in read.values():
                blank &= missing
            rows = rows[~blank]
        person: Integers | None = None
        if self._unit.column is not None:
            people = read_numpy.persons(cells[self._unit.column], *stored[self._unit.column])
            mine = [(codes[rows], missing[rows]) for codes, missing in read.values()]
            rows = rows[read_numpy.kept(self._key, self._unit.rows, people[rows], mine)]
            person = np.array([read_numpy.person_hash(str(people[i])) for i in rows], dtype=np.int64)
        elif self._unit.positions_are_public:
            person = np.array([read_numpy.person_hash(str(i)) for i in rows], dtype=np.int64)
        columns: dict[str, Stored] = {
            name: (codes[rows], _some(missing[rows])) for name, (codes, missing) in read.items()
        }
        position = rows if self._unit.positions_are_public else None
        return Batch(self._schema, len(rows), columns, person=person, position=position)

    def _table(self) -> tuple[pa.Table, dict[str, grammar.Cell]]:
        path = self._origin.path
        if path is None:
            return arrow.plain_table(self._origin.data, self._places)
        if suffix(path) == ".csv":
            return arrow.csv_table(path, self._places)
        try:
            table = pa.parquet.read_table(path, columns=list(self._places), partitioning=None)
        except (pa.ArrowException, OSError, UnicodeError):
            table = None
        if table is None:
            raise SetupError("unreadable-data", "The Parquet file cannot be read.")
        return arrow.plain_table(table.select(list(self._places)), {name: i for i, name in enumerate(self._places)})

    def sums(self, tally: Tally) -> Private[Integers]:
        """Exact sums of a tally over the kept rows."""
        self.ready()
        if self._rows is not None:
            try:
                return Private(fold(tally, self._schema, self._batches(self._rows)))
            except Exception as error:  # noqa: BLE001 - whatever a row may cause has one outcome (T30)
                _log.error("the memory engine failed: %s", type(error).__name__)  # no text, no trace (T31)
        raise CuratorError("engine-failed", "The rows could not be summed.")

    def _batches(self, rows: Batch) -> Iterator[Batch]:
        for start in range(0, rows.size, self._batch):
            yield rows.part(start, min(start + self._batch, rows.size))

    def close(self) -> None:
        """Forget the rows."""
        self._closed = True
        self._rows = None


def _names(origin: Origin) -> list[str]:
    if origin.path is None:
        return arrow.column_names(origin.data) or []
    if suffix(origin.path) == ".csv":
        return arrow.csv_header(origin.path)
    if suffix(origin.path) == ".parquet":
        return origin.parquet().names
    raise SetupError("engine-not-available", "The memory engine reads frames, Parquet and CSV.")


def _some(missing: Truths) -> Truths | None:
    return missing if missing.any() else None
