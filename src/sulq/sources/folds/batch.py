"""A batch of kept rows as NumPy columns: what the row functions are evaluated on."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from sulq.kernel.private import Stored
from sulq.language.domain import Schema
from sulq.language.kinds import Cells, Integers


class RowBatch:
    """Columns of one batch by name: whole numbers of any width (or objects for Text), and where they are missing."""

    __slots__ = ("_columns", "_person", "_position", "owner", "schema", "seen", "size")

    def __init__(
        self,
        schema: Schema,
        size: int,
        columns: Mapping[str, Stored],
        *,
        person: Integers | None = None,
        position: Integers | None = None,
        owner: np.ndarray | None = None,
    ) -> None:
        self.schema = schema
        self.size = size
        self.seen: dict[int, Cells] = {}
        self.owner = owner  # whose each row is: numbers or texts to be compared for equality, never shown
        self._columns = columns
        self._person = person
        self._position = position

    def stored(self, name: str) -> Stored:
        """A column as it is stored, in its own width."""
        return self._columns[name]

    def codes(self, name: str) -> Cells:
        """A column's cells: int64 grid units, or objects for Text."""
        values, missing = self._columns[name]
        return Cells(values if values.dtype == object else values.astype(np.int64, copy=False), missing)

    def person(self) -> Integers:
        """A 60-bit public hash of each row's person."""
        if self._person is None:
            raise LookupError("no persons")
        return self._person

    def position(self) -> Integers:
        """Each row's place in the source, from 0."""
        if self._position is None:
            raise LookupError("no positions")
        return self._position

    def part(self, start: int, stop: int) -> RowBatch:
        """Some consecutive rows."""
        return self._chosen(slice(start, stop), min(stop, self.size) - start)

    def placed(self, size: int) -> RowBatch:
        """All `size` rows of the source, each in its place: those that are not among these lack every cell.

        Privacy: only where places and `size` are public, which no neighbour changes; so no row moves another (SR6).
        """
        places = self.position()
        columns: dict[str, Stored] = {}
        for name, (values, missing) in self._columns.items():
            cells, none = np.zeros(size, dtype=values.dtype), np.ones(size, dtype=np.bool_)
            cells[places], none[places] = values, False if missing is None else missing
            columns[name] = cells, none
        return RowBatch(self.schema, size, columns, position=np.arange(size))

    def take(self, rows: Integers) -> RowBatch:
        """Rows by their places."""
        return self._chosen(rows, len(rows))

    def _chosen(self, rows: slice | Integers, size: int) -> RowBatch:
        columns = {
            name: (values[rows], None if missing is None else missing[rows])
            for name, (values, missing) in self._columns.items()
        }
        person = None if self._person is None else self._person[rows]
        position = None if self._position is None else self._position[rows]
        owner = None if self.owner is None else self.owner[rows]
        return RowBatch(self.schema, size, columns, person=person, position=position, owner=owner)
