"""Ordinary columns as row functions see them: for oracles on data that is nobody's secret."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from sulq.errors import QuestionError
from sulq.language.domain import Category, Schema, Text
from sulq.language.kinds import Cells, Integers
from sulq.learn.features import numbers_of
from sulq.learn.tables import cells


class Table:
    """An ordinary table with declared columns: a frame, or arrays by name."""

    def __init__(self, columns: Mapping[str, object], data: object) -> None:
        self.schema = Schema.of("table", columns)
        names = list(self.schema.names)
        if isinstance(data, Mapping):
            missing = [name for name in names if name not in data]
            if missing:
                raise QuestionError("bad-table", f"The table has no column {missing[0]!r}.")
            self._cells = {name: np.asarray(data[name]) for name in names}
        else:
            self._cells = cells(data, names)
        sizes = {len(column) for column in self._cells.values()}
        if len(sizes) != 1:
            raise QuestionError("bad-table", "The columns of a table are of one length.")
        self.size = sizes.pop()
        self.seen: dict[int, Cells] = {}

    def rows(self, start: int, stop: int) -> Table:
        """A part of the rows."""
        part = object.__new__(Table)
        part.schema = self.schema
        part._cells = {name: column[start:stop] for name, column in self._cells.items()}
        part.size = max(0, min(stop, self.size) - start)
        part.seen = {}
        return part

    def codes(self, name: str) -> Cells:
        """A column's cells in grid units, clamped to the declared bounds."""
        column, raw = self.schema.find(name), self._cells[name]
        if isinstance(column, (Text, Category)) or column is None:
            return _listed(raw, column)
        values = numbers_of(raw, column, name)
        missing = np.isnan(values)
        units = np.floor(np.where(missing, 0.0, values) / float(column.step) + 0.5)
        return Cells(np.clip(units, column.low, column.high).astype(np.int64), missing)

    def person(self) -> Integers:
        """Every row is a person."""
        return self.position()

    def position(self) -> Integers:
        """Each row's place."""
        return np.arange(self.size, dtype=np.int64)


def _listed(raw: npt.NDArray[np.generic], column: Text | Category | None) -> Cells:
    """Texts as they are, categories as their places on the list; what is not listed is missing (SR21)."""
    plain = [value.item() if isinstance(value, np.generic) else value for value in raw]
    if isinstance(column, Category):
        places = {label: place for place, label in enumerate(column.values)}
        found = np.array([places.get(value, -1) for value in plain], dtype=np.int64)
        return Cells(found, found < 0)
    missing = np.array([value is None for value in plain], dtype=np.bool_)
    return Cells(np.array(["" if value is None else str(value) for value in plain], dtype=object), missing)
