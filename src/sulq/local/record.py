"""A person's record as one of finitely many public cells: what is randomised, and nothing else leaves (SR19)."""

from __future__ import annotations

import datetime
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from sulq.errors import QuestionError, SetupError
from sulq.language import domain
from sulq.language.domain import Bool, Category, Column, Date, Schema, Text, Timestamp
from sulq.language.kinds import Integers, Truths
from sulq.local import coins, values

MAX_CELLS: Final = 2**16
ALONE: Final = "item"  # the column of a domain that is not a record of several


@dataclass(frozen=True, slots=True)
class Record:
    """Declared fields, each of finitely many values; a cell is a number below the product of their sizes.

    Numbers outside their bounds are clamped and put on their grid. What is missing, or is not declared, is replaced
    by a value of the field drawn uniformly: a mixture of reports that are private each is private, and
    whether a report was sent, or failed, tells nothing (docs/theory/local.md).
    """

    schema: Schema
    alone: bool = False  # whether values are given bare, not by column

    @classmethod
    def of(cls, given: object) -> Record:
        """Read a domain: a column, a list of values, a number of values, or columns by name."""
        if isinstance(given, Mapping):
            record = cls(Schema.of("reports", given))
        else:
            if isinstance(given, int) and not isinstance(given, bool):
                given = range(min(given, MAX_CELLS + 1))
            listed = list(given.tolist()) if isinstance(given, np.ndarray) else given
            record = cls(Schema.of("reports", {ALONE: listed}), alone=True)
        for name, column in record.schema.columns:
            if isinstance(column, (Text, Timestamp)):
                raise SetupError("bad-declaration", f"{name} has too many values to be reported.", _REMEDY)
        if not 2 <= record.cells <= MAX_CELLS:
            raise SetupError(
                "bad-declaration", f"A report is of 2 to {MAX_CELLS:,} values, not of {record.cells:,}.", _REMEDY
            )
        return record

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many values each field has."""
        return tuple(_size(column) for _, column in self.schema.columns)

    @property
    def cells(self) -> int:
        """How many records there are."""
        return math.prod(self.sizes)

    @property
    def labels(self) -> tuple[tuple[str, tuple[object, ...]], ...]:
        """Each field with its values, in the order of their codes."""
        return tuple((name, _labels(column)) for name, column in self.schema.columns)

    def read(self, given: object, *, alone: bool = False) -> tuple[Integers, bool]:
        """The cell of every record, and whether it was one record alone; with `alone` it is one, whatever it holds.

        Raises:
            QuestionError: `bad-table`: the fields are not those declared, of different lengths, or of a type that
                holds no declared value. What a record holds is never an error.
        """
        fields, single = self._fields(given, alone=alone)
        cells = np.zeros(fields[0][0].size, dtype=np.int64)
        for size, (codes, missing) in zip(self.sizes, fields, strict=True):
            drawn = coins.uniform(cells.size, size)  # for all of them: what is missing must not show
            cells = cells * size + np.where(missing, drawn, codes)
        return cells, single

    def cell(self, value: object) -> int:
        """The cell of one record whose values are all declared: of a record somebody thinks of, not of a person's."""
        fields, _ = self._fields(value, alone=True)
        if any(missing[0] for _, missing in fields):
            raise QuestionError("unknown-category", "This is no declared record.")
        found = 0
        for size, (codes, _) in zip(self.sizes, fields, strict=True):
            found = found * size + int(codes[0])
        return found

    def _fields(self, given: object, *, alone: bool) -> tuple[list[tuple[Integers, Truths]], bool]:
        """For each field the codes of all records, and where there are none; and whether it was one record alone."""
        held = [given] if self.alone else self._held(given)
        columns = [(values.one(item), False) if alone else values.array(item) for item in held]
        if any(raw.ndim == 0 for raw, _ in columns):  # one record: a list in it is a value, and not a declared one
            columns = [(values.one(item), False) for item in held]
        if len({raw.shape for raw, _ in columns}) != 1 or columns[0][0].ndim > 1:
            raise QuestionError("bad-table", "Records are one value a field, or columns of one length.", _RECORD)
        for (name, column), (raw, typed) in zip(self.schema.columns, columns, strict=True):
            if typed and not values.fits(raw, column):
                raise QuestionError(
                    "bad-table", f"The type {raw.dtype} of {name} holds no declared value.", "Give it as declared."
                )
        pairs = zip(self.schema.columns, columns, strict=True)
        return [values.codes(raw.reshape(-1), column) for (_, column), (raw, _) in pairs], columns[0][0].ndim == 0

    def _held(self, given: object) -> list[object]:
        """The fields of a mapping or a frame, in the order declared."""
        names = self.schema.names
        known = given if isinstance(given, Mapping) else getattr(given, "column_names", getattr(given, "columns", ()))
        if not set(names) <= set(known):
            raise QuestionError("bad-table", f"A record has the fields {', '.join(names)}.", _RECORD)
        return [given[name] for name in names]  # type: ignore[index]  # a mapping or a frame


_REMEDY: Final = "Declare fewer values: a coarser grid, narrower bounds, fewer columns."
_RECORD: Final = "Give a mapping or a frame with a column for each field, or a value alone where there is one field."


def _size(column: Column) -> int:
    return 0 if isinstance(column, Text) else column.high - column.low + 1


def _labels(column: Column) -> tuple[object, ...]:
    if isinstance(column, Category):
        return column.values
    if isinstance(column, Bool):
        return (False, True)
    if isinstance(column, Text):
        return ()
    units = range(column.low, column.high + 1)
    if isinstance(column, Date):
        return tuple((domain.EPOCH + datetime.timedelta(unit)).isoformat() for unit in units)
    return tuple(int(unit) if column.step == 1 else float(unit * column.step) for unit in units)
