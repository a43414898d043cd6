"""A field's values as codes: total, so that what somebody's own value is can never be an error (T30, SR19).

The form of what is given, arrays of a type, is the caller's and public: an array
whose type holds no declared value is refused. What stands in it is a person's: a value that is not
declared, whatever it is, has no code, and whoever asks for one draws it.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Final, cast

import numpy as np
import numpy.typing as npt

from sulq.errors import QuestionError
from sulq.language import domain
from sulq.language.domain import Bool, Category, Column, Date, Text
from sulq.language.kinds import Floats, Integers, Truths

Raw = npt.NDArray[np.generic]
Numbers = (int, float, np.integer, np.floating, np.bool_, Decimal, Fraction)
TEXT: Final = "UO"  # kinds of arrays that may hold texts
NUMERIC: Final = "biuf" + TEXT
DAYS: Final = "M" + TEXT
PLAIN: Final = ({str}, {bool}, {int}, {float}, {int, float})  # types of a list that are an array of one kind
LONGEST: Final = 256  # letters of a text in an array of texts
SPELLED: Final = {"true": 1.0, "false": 0.0}


def one(value: object) -> Raw:
    """A single value, whatever it is, as an array of no dimension."""
    return _objects([value]).reshape(())


def array(values: object) -> tuple[Raw, bool]:
    """A column of values, or one alone, as an array; and whether its type is the caller's and not read off values."""
    if isinstance(values, np.ndarray):
        return _text_as_objects(values), values.dtype.kind != "O"
    if isinstance(values, (list, tuple, range)):
        return _listed(list(values)), False
    if hasattr(values, "to_pylist"):  # pyarrow: its missing values are None
        return _listed(values.to_pylist()), False
    if hasattr(values, "to_numpy"):  # pandas, polars: readers of files take the type of a column off its values
        return _text_as_objects(np.asarray(values.to_numpy())), False
    return one(values), False


def fits(raw: Raw, column: Column) -> bool:
    """Whether an array of this type may hold a declared value at all."""
    if isinstance(column, Date):
        return raw.dtype.kind in DAYS
    texts = isinstance(column, Category) and isinstance(column.values[0], str)
    return raw.dtype.kind in (TEXT if texts else NUMERIC)


def codes(raw: Raw, column: Column) -> tuple[Integers, Truths]:
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
        kinds == {str} and max(map(len, cast("list[str]", values))) > LONGEST
    ):  # an array gives each text the room of the longest
        return _objects(values)
    if kinds in PLAIN:
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
        return SPELLED[word] if word in SPELLED else float(value)
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
