"""A person's record as one of finitely many public cells: what is randomised, and nothing else leaves (SR19).

A field's values are read as codes by a total function, so that what somebody's own value is can never be an error
(T30). The form of what is given, arrays of a type, is the caller's and public: an array whose type holds no declared
value is refused. What stands in it is a person's: a value that is not declared, whatever it is, has no code, and
whoever asks for one draws it.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Final, cast

import numpy as np
import numpy.typing as npt

from sulq.errors import QuestionError, SetupError
from sulq.language import domain
from sulq.language.domain import Bool, Category, Column, Date, Schema, Text, Timestamp
from sulq.language.kinds import Floats, Integers, Truths
from sulq.local import coins

Raw = npt.NDArray[np.generic]
Numbers = (int, float, np.integer, np.floating, np.bool_, Decimal, Fraction)
TEXT_KINDS: Final = "UO"  # kinds of arrays that may hold texts
NUMERIC_KINDS: Final = "biuf" + TEXT_KINDS
DAY_KINDS: Final = "M" + TEXT_KINDS
PLAIN_TYPES: Final = ({str}, {bool}, {int}, {float}, {int, float})  # types of a list that are an array of one kind
MAX_TEXT_LETTERS: Final = 256  # letters of a text in an array of texts
SPELLED_TRUTHS: Final = {"true": 1.0, "false": 0.0}
MAX_CELLS: Final = 2**16
ALONE: Final = "item"  # the column of a domain that is not a record of several


def one_value(value: object) -> Raw:
    """A single value, whatever it is, as an array of no dimension."""
    return _objects([value]).reshape(())


def value_array(values: object) -> tuple[Raw, bool]:
    """A column of values, or one alone, as an array; and whether its type is the caller's and not read off values."""
    if isinstance(values, np.ndarray):
        return _text_as_objects(values), values.dtype.kind != "O"
    if isinstance(values, (list, tuple, range)):
        return _listed(list(values)), False
    if hasattr(values, "to_pylist"):  # pyarrow: its missing values are None
        return _listed(values.to_pylist()), False
    if hasattr(values, "to_numpy"):  # pandas, polars: readers of files take the type of a column off its values
        return _text_as_objects(np.asarray(values.to_numpy())), False
    return one_value(values), False


def type_fits(raw: Raw, column: Column) -> bool:
    """Whether an array of this type may hold a declared value at all."""
    if isinstance(column, Date):
        return raw.dtype.kind in DAY_KINDS
    texts = isinstance(column, Category) and isinstance(column.values[0], str)
    return raw.dtype.kind in (TEXT_KINDS if texts else NUMERIC_KINDS)


def value_codes(raw: Raw, column: Column) -> tuple[Integers, Truths]:
    """The code of each value, from 0, and where there is none; no value raises."""
    if isinstance(column, Category):
        return _places(raw, column.values)
    if isinstance(column, Text):
        raise QuestionError("bad-question", "Free text has no codes.")
    if isinstance(column, Bool):
        numbers = _numbers(raw, _truth)
        return (numbers != 0).astype(np.int64), np.isnan(numbers)
    numbers = _days(raw) if isinstance(column, Date) else _numbers(raw, _number)
    missing = np.isnan(numbers)
    with np.errstate(all="ignore"):
        units = np.floor(numbers * float(1 / column.step) + 0.5)
    # fmax, unlike clip, turns a missing cell's NaN into a bound, so that no cast may warn.
    units = np.fmin(np.fmax(units, column.low), column.high)
    return units.astype(np.int64) - column.low, missing


def _listed(values: list[object]) -> Raw:
    """A list as an array: of one kind where all its values are, else of objects, one each, whatever they are."""
    kinds = set(map(type, values))
    if (
        kinds == {str} and max(map(len, cast("list[str]", values))) > MAX_TEXT_LETTERS
    ):  # an array gives each text the room of the longest
        return _objects(values)
    if kinds in PLAIN_TYPES:
        return np.asarray(values)  # whole numbers past 64 bits become objects
    return _objects(values)


def _objects(values: list[object]) -> Raw:
    found = np.empty(len(values), dtype=object)
    for place, value in enumerate(values):  # one by one: NumPy would take a list of lists apart
        found[place] = value
    return found


def _text_as_objects(values: Raw) -> Raw:
    return values.astype(object) if values.dtype.kind == "T" else values


def _places(raw: Raw, labels: tuple[str | int, ...]) -> tuple[Integers, Truths]:
    """Places on the list; sorted search where the array is of the labels' own kind."""
    texts = isinstance(labels[0], str)
    raw = raw.astype(np.int64) if raw.dtype.kind == "b" else raw
    if raw.dtype.kind in ("U" if texts else "iu") and raw.dtype != np.uint64:
        known = np.array(labels)
        order = np.argsort(known)
        places = np.minimum(np.searchsorted(known, raw, sorter=order), known.size - 1)
        found = order[places].astype(np.int64)
        return found, known[found] != raw
    where: dict[object, int] = {label: place for place, label in enumerate(labels)}
    read = str if texts else _whole
    return _coded([_place(value, where, read) for value in raw.tolist()])


def _coded(places: list[int]) -> tuple[Integers, Truths]:
    found = np.array(places, dtype=np.int64)
    return found, found < 0


def _place(value: object, where: dict[object, int], read: Callable[[str], object]) -> int:
    """The place of a value, or -1; a number may be written out, as files of text have it."""
    try:
        return where.get(read(value) if isinstance(value, str) else value, -1)
    except Exception:  # noqa: BLE001 - whatever somebody's value does when it is looked at, it is one that is not declared
        return -1


def _whole(text: str) -> object:
    """A whole number that a text writes out, also as 3.0; else the text itself, which no number equals."""
    number = _number(text)
    return number if number.is_integer() else text


def _numbers(raw: Raw, read: Callable[[object], float]) -> Floats:
    """Values as doubles; what is no number is missing."""
    if raw.dtype.kind in "biuf":
        return raw.astype(np.float64)
    return np.array([_safely(read, value) for value in raw.tolist()], dtype=np.float64)


def _safely(read: Callable[[object], float], value: object) -> float:
    """What a value is read as; what cannot be read is missing."""
    try:
        return read(value)
    except Exception:  # noqa: BLE001 - as above: never an error
        return math.nan


def _number(value: object) -> float:
    if isinstance(value, str):
        return float(value)
    if not isinstance(value, Numbers):
        return math.nan
    try:
        return float(value)
    except OverflowError:  # a whole number past all doubles
        return math.inf if value > 0 else -math.inf


def _truth(value: object) -> float:
    """Zero or not, also in words, as files of text have it."""
    if isinstance(value, str):
        word = value.strip().lower()
        return SPELLED_TRUTHS[word] if word in SPELLED_TRUTHS else float(value)
    return _number(value)


def _days(raw: Raw) -> Floats:
    if raw.dtype.kind == "M":
        found = raw.astype("datetime64[D]")
        return np.where(np.isnat(found), np.nan, found.astype(np.int64).astype(np.float64))
    return np.array([_safely(_day, value) for value in raw.tolist()], dtype=np.float64)


def _day(value: object) -> float:
    if isinstance(value, np.datetime64):
        return float(_days(np.asarray([value]))[0])
    if isinstance(value, datetime.datetime):
        value = value.date()
    return float(domain.days(value))


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
        columns = [(one_value(item), False) if alone else value_array(item) for item in held]
        if any(raw.ndim == 0 for raw, _ in columns):  # one record: a list in it is a value, and not a declared one
            columns = [(one_value(item), False) for item in held]
        if len({raw.shape for raw, _ in columns}) != 1 or columns[0][0].ndim > 1:
            raise QuestionError("bad-table", "Records are one value a field, or columns of one length.", _RECORD)
        for (name, column), (raw, typed) in zip(self.schema.columns, columns, strict=True):
            if typed and not type_fits(raw, column):
                raise QuestionError(
                    "bad-table", f"The type {raw.dtype} of {name} holds no declared value.", "Give it as declared."
                )
        pairs = zip(self.schema.columns, columns, strict=True)
        return [value_codes(raw.reshape(-1), column) for (_, column), (raw, _) in pairs], columns[0][0].ndim == 0

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
