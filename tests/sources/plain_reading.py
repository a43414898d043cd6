"""The rules of reading a cell, in NumPy and plain Python: the reference the SQL must agree with."""

from __future__ import annotations

import csv
import datetime
import gzip
import hashlib
import itertools
import re
import sys
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Final, cast

import numpy as np
import pyarrow as pa

from sulq.language.domain import Bool, Category, Column, Date, Int, Real, Text, Timestamp, Vertices
from sulq.language.kinds import Floats, Integers, Objects, Truths
from sulq.language.privacy import Fold
from sulq.sources import cell_reading
from sulq.sources.cell_reading import Cell
from sulq.sources.decode import csv_file
from sulq.sources.decode.frames import number_text
from sulq.sources.decode.person import BLANKS, EXACT, FIGURES, PARTS, UNSTABLE, WHOLE_TEXT, Form

Read = tuple[np.ndarray, Truths]  # codes (objects for Text) and where they are missing

NUMBER_PATTERN: Final = re.compile(cell_reading.NUMBER)
MOMENT_PATTERN: Final = re.compile(cell_reading.MOMENT)
NANOSECOND_YEARS: Final = (-106_650 * cell_reading.DAY, 106_651 * cell_reading.DAY)  # moments so counted: 1678 to 2262
SEPARATOR: Final = "\x1f"
MISSING: Final = "~"
HASH_DIGITS: Final = 15  # hex digits of a person's public hash: 60 bits
_ASCII_LOWER: Final = str.maketrans("ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyz")


def codes(column: Column, cell: Cell, values: np.ndarray, missing: Truths | None) -> Read:
    """Grid units of a source's cells, and where they are missing; never where the column says so."""
    found, absent = _codes(column, cell, values, missing)
    if column.missing:
        return found, absent
    return np.where(absent, np.array(column.filled, dtype=found.dtype), found), np.zeros_like(absent)


def _codes(column: Column, cell: Cell, values: np.ndarray, missing: Truths | None) -> Read:
    absent = np.zeros(len(values), dtype=np.bool_) if missing is None else missing
    if isinstance(column, Text):
        texts, absent = _settled(_texts(cell, values, absent), absent)
        return _each(lambda text: cast("str", text)[: column.longest], texts, absent), absent
    if isinstance(column, Bool):
        return _truths(cell, values, absent)
    if isinstance(column, Category):
        return _categories(column, cell, values, absent)
    if isinstance(column, (Date, Timestamp)):
        return _clock(column, cell, values, absent)
    if isinstance(column, Vertices):
        return _vertices(column, cell, values, absent)
    if isinstance(column, Int) and cell in ("truth", "whole", "wide"):
        wide = values.astype(object if cell == "wide" else np.int64)  # bounds below zero and uint64 do not mix
        return np.clip(wide, column.low, column.high).astype(np.int64), absent
    numbers, absent = _numbers(cell, values, absent)
    return on_grid(numbers, column, absent)


def on_grid(numbers: Floats, column: Int | Real, absent: Truths) -> Read:
    """Doubles on a column's grid: floor(x/step + 1/2) inside the bounds, clamped outside, missing where NaN."""
    low, high = float(column.low * column.step), float(column.high * column.step)
    with np.errstate(all="ignore"):
        units = np.floor(numbers * float(1 / column.step) + 0.5)
        if max(abs(column.low), abs(column.high)) > 2**51:  # x + 0.5 would itself round
            units = np.where(np.abs(numbers) < 2.0**51, units, np.floor(numbers))
        inside = (numbers >= low) & (numbers <= high)
        found = np.where(inside, units, np.where(numbers < low, float(column.low), float(column.high)))
    absent = absent | np.isnan(numbers)
    return np.where(absent, 0.0, found).astype(np.int64), absent


def _vertices(column: Vertices, cell: Cell, values: np.ndarray, absent: Truths) -> Read:
    """Vertices by number; what is no whole number within the bounds is missing."""
    if cell in ("truth", "whole", "wide"):
        numbers = values.astype(object if cell == "wide" else np.int64)
    else:
        numbers, absent = _numbers(cell, values, absent)
        with np.errstate(all="ignore"):
            absent = absent | (numbers != np.floor(numbers))  # NaN among them
    inside = np.asarray((numbers >= column.low) & (numbers <= column.high), dtype=np.bool_)
    absent = absent | ~inside
    return np.where(absent, 0, numbers).astype(np.int64), absent


def _settled(values: Objects, absent: Truths) -> Read:
    absent = absent | np.array([value is None for value in values], dtype=np.bool_)
    values[absent] = None
    return values, absent


def _each(function: Callable[[object], object], values: np.ndarray, absent: Truths) -> Objects:
    """Apply a function to the cells that are there."""
    found = np.empty(len(values), dtype=object)
    for i in np.flatnonzero(~absent):
        found[i] = function(values[i])
    return found


def _numbers(cell: Cell, values: np.ndarray, absent: Truths) -> tuple[Floats, Truths]:
    if cell == "text":
        read = _each(lambda text: read_number(cast("str", text)), values, absent)
        absent = absent | np.array([number is None for number in read], dtype=np.bool_)
        return np.where(absent, 0.0, read).astype(np.float64), absent
    return values.astype(np.float64), absent


def read_number(text: str) -> float | None:
    """A number in the strict grammar, blanks around it allowed."""
    text = text.strip(BLANKS)
    return float(text) if NUMBER_PATTERN.fullmatch(text) else None


def read_moment(text: str) -> int | None:
    """Microseconds of an ISO date or moment; a moment without a zone is UTC."""
    found = MOMENT_PATTERN.fullmatch(text.strip(BLANKS))
    if not found:
        return None
    try:
        day = (datetime.date.fromisoformat(found[1]) - datetime.date(1970, 1, 1)).days
    except ValueError:
        return None
    hours, minutes, seconds, zone_hours, zone_minutes = (int(found[i] or 0) for i in (2, 3, 4, 7, 8))
    zone = (zone_hours * 60 + zone_minutes) * (-60 if found[6] == "-" else 60)
    fraction = int((found[5] or "")[:6].ljust(6, "0"))
    return (day * 86_400 + hours * 3600 + minutes * 60 + seconds - zone) * 1_000_000 + fraction


def _truths(cell: Cell, values: np.ndarray, absent: Truths) -> Read:
    if cell == "text":
        words = dict.fromkeys(cell_reading.TRUE, 1) | dict.fromkeys(cell_reading.FALSE, 0)
        read = _each(lambda text: words.get(lowered(cast("str", text).strip(BLANKS))), values, absent)
        absent = absent | np.array([value is None for value in read], dtype=np.bool_)
        return np.where(absent, 0, read).astype(np.int64), absent
    absent = absent | ~np.isin(values, (0, 1))
    return np.where(absent, 0, values).astype(np.int64), absent


def lowered(text: str) -> str:
    """Text with the ASCII letters in lower case."""
    return text.translate(_ASCII_LOWER)


def _categories(column: Category, cell: Cell, values: np.ndarray, absent: Truths) -> Read:
    places: dict[object, int] = {value: place for place, value in enumerate(column.values)}
    if not cell_reading.whole_values(column):
        keys = _texts(cell, values, absent)
    elif cell in ("truth", "whole", "wide"):
        keys = values.astype(np.int64 if cell == "truth" else values.dtype).astype(object)
    else:
        numbers, absent = _numbers(cell, values, absent)
        whole = np.isfinite(numbers) & (np.abs(numbers) <= 2.0**53) & (numbers == np.floor(numbers))
        absent = absent | ~whole
        keys = np.where(absent, 0.0, numbers).astype(np.int64).astype(object)
    read = _each(places.get, keys, absent)
    absent = absent | np.array([place is None for place in read], dtype=np.bool_)
    return np.where(absent, 0, read).astype(np.int64), absent


def _clock(column: Date | Timestamp, cell: Cell, values: np.ndarray, absent: Truths) -> Read:
    if cell == "text":
        read = _each(lambda text: read_moment(cast("str", text)), values, absent)
        absent = absent | np.array([moment is None for moment in read], dtype=np.bool_)
        units = np.where(absent, 0, read).astype(np.int64)
    else:
        units = values.astype(np.int64)
    if isinstance(column, Date) and cell != "date":
        units = units // cell_reading.DAY
    elif isinstance(column, Timestamp) and cell == "date":
        units = np.clip(units, cell_reading.FIRST_DAY - 1, cell_reading.LAST_DAY + 1) * cell_reading.DAY
    return np.clip(units, column.low, column.high), absent


def _texts(cell: Cell, values: np.ndarray, absent: Truths) -> Objects:
    writers: dict[str, Callable[[object], object]] = {
        "truth": lambda value: "true" if value else "false",
        "number": lambda value: number_text(float(cast("float", value))),
        "date": lambda value: day_text(int(cast("int", value))),
        "moment": lambda value: moment_text(int(cast("int", value))),
    }
    return _each(writers.get(cell, str), values, absent)


def person_hash(text: str) -> int:
    """The public 60-bit hash of a person's text."""
    return int(hashlib.sha256(text.encode()).hexdigest()[:HASH_DIGITS], 16)


def row_hash(key: bytes, person: str, row: Sequence[object]) -> str:
    """What orders a person's rows: a keyed hash of the person and all declared columns, never a place (SR2)."""
    parts = [key.hex(), person]
    for code in row:
        if code is None:
            parts.append(MISSING)
        elif isinstance(code, str):  # with its length, so that no text can be taken for another row's columns
            parts.append(f"{len(code.encode())}:{code}")
        else:
            parts.append(str(code))
    return hashlib.sha256(SEPARATOR.join(parts).encode()).hexdigest()


def kept(key: bytes, rows: int, people: Objects, columns: Sequence[Read]) -> Integers:
    """The places of the rows that count: all of a light person's, the `rows` of least hash of a heavy one's."""
    owned: dict[str, list[int]] = {}
    for i, person in enumerate(people):
        if person is not None:
            owned.setdefault(cast("str", person), []).append(i)
    chosen: list[int] = []
    for person, mine in owned.items():
        if len(mine) > rows:
            hashes = {
                i: row_hash(key, person, [None if gone[i] else _item(codes[i]) for codes, gone in columns])
                for i in mine
            }
            mine = sorted(mine, key=hashes.__getitem__)[:rows]  # noqa: PLW2901 - the same person's rows, fewer
        chosen.extend(mine)
    return np.array(sorted(chosen), dtype=np.int64)


def _item(code: object) -> object:
    return code if isinstance(code, str) else int(cast("int", code))


def plain(kind: str, column: pa.ChunkedArray, name: str) -> tuple[Cell, pa.ChunkedArray]:
    """What a column of a DuckDB type holds, and the same as a plain one: `cell_reading.plain` in Python."""
    cell, _ = cell_reading.plain(kind, "", name)
    if cell == "number":
        digits = pa.types.is_decimal(column.type)  # one rounding, from the digits
        return cell, (column.cast(pa.string()) if digits else column).cast(pa.float64())
    if cell == "date":
        days = column.cast(pa.int32()).fill_null(0).to_numpy().astype(np.int64)
        return cell, _saturated(days, days, (cell_reading.FIRST_DAY, cell_reading.LAST_DAY), column)
    if cell == "moment":
        units = column.cast(pa.int64()).fill_null(0).to_numpy()
        if column.type.unit == "ns":
            first, last = NANOSECOND_YEARS
            return cell, _saturated(units, units // 1000, (first * 1000, last * 1000), column)
        return cell, _saturated(units, units, (cell_reading.FIRST_MOMENT, cell_reading.LAST_MOMENT), column)
    return cell, column


def csv_table(path: Path, places: Iterable[int]) -> pa.Table:
    """The needed columns of a checked file as text by Python's reader, a row a record; an empty cell is missing."""
    csv_file.check(path)
    csv.field_size_limit(sys.maxsize)
    opened, taken = gzip.open if path.suffix.lower() == ".gz" else open, list(places)
    with opened(path, "rt", encoding="utf-8-sig", newline="") as lines:
        records = itertools.islice(csv.reader(lines), 1, None)
        rows = [[record[place] or None for place in taken] for record in records]
    columns = zip(*rows, strict=True) if rows else [()] * len(taken)
    names = [f"s{i}" for i in range(len(taken))]
    return pa.table([pa.array(cells, pa.large_string()) for cells in columns], names=names)


def _saturated(units: np.ndarray, found: np.ndarray, ends: tuple[int, int], column: pa.ChunkedArray) -> pa.ChunkedArray:
    first, last = ends
    found = np.where(units < first, -cell_reading.BEYOND, np.where(units > last, cell_reading.BEYOND, found))
    return pa.chunked_array([pa.array(found, pa.int64(), mask=column.is_null().to_numpy())])


def day_text(day: int) -> str | None:
    """A day counted from 1970 in ISO form, within the years 1 to 9999."""
    if not cell_reading.FIRST_DAY <= day <= cell_reading.LAST_DAY:
        return None
    return (datetime.date(1970, 1, 1) + datetime.timedelta(day)).isoformat()


def moment_text(moment: int) -> str | None:
    """A moment in microseconds from 1970 in ISO form with a space, within the years 1 to 9999."""
    if not cell_reading.FIRST_MOMENT <= moment <= cell_reading.LAST_MOMENT:
        return None
    day, rest = divmod(moment, cell_reading.DAY)
    seconds, fraction = divmod(rest, 1_000_000)
    clock = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    return f"{day_text(day)} {clock}" + (f".{fraction:06}".rstrip("0") if fraction else "")


_FIGURES_PATTERN: Final = re.compile(FIGURES)
_PARTS_PATTERN: Final = re.compile(PARTS)
_WHOLE_PATTERN: Final = re.compile(WHOLE_TEXT)
_SECOND: Final = 10**9  # nanoseconds


def unfit(form: Form, column: pa.ChunkedArray) -> bool:
    """Whether any cell holds something of which no exact number can be told; `unfit_sql` in plain Python."""
    there = [cell for cell in column.to_pylist() if cell is not None]
    if form in EXACT:
        return any(np.isfinite(cell) and _text(form, cell, None) is None for cell in there)
    stripped = [str(text).strip(BLANKS) for text in there] if form == "figures" else []
    return any(text and figures(text) is None for text in stripped)


def texts(form: Form, column: pa.ChunkedArray, fold: Fold | None) -> Objects:
    """Each row's person, None where there is none; `person.sql` in plain Python."""
    found = np.empty(len(column), dtype=object)
    for i, value in enumerate(_values(column)):
        found[i] = None if value is None else _text(form, value, fold) or None
    return found


def _values(column: pa.ChunkedArray) -> list[object]:
    """The cells, those that Python's own types do not hold as texts."""
    kind = column.type
    if pa.types.is_date(kind):
        return [None if day is None else day_text(day) for day in column.cast(pa.int32()).to_pylist()]
    if pa.types.is_timestamp(kind):
        per = 1 if kind.unit == "ns" else 1000
        whole = cell_reading.FIRST_MOMENT, cell_reading.LAST_MOMENT
        first, last = NANOSECOND_YEARS if per == 1 else whole
        units = [None if unit is None else unit * per for unit in column.cast(pa.int64()).to_pylist()]
        return [
            None if unit is None or not 1000 * first <= unit <= 1000 * last else instant_text(unit) for unit in units
        ]
    if pa.types.is_decimal(kind):
        return [None if cell is None else format(cell, "f") for cell in column.to_pylist()]
    return column.to_pylist()  # type: ignore[no-any-return]


def _text(form: Form, value: object, fold: Fold | None) -> str | None:
    if form == "text":
        return folded(str(value), fold)
    if form in EXACT:
        number = float(str(value))
        return str(int(number)) if abs(number) < EXACT[form] and number.is_integer() else None
    if form in ("figures", "number"):
        return figures(str(value).strip(BLANKS))
    return str(value).lower() if form == "truth" else str(value)


def folded(text: str, fold: Fold | None) -> str:
    """A text without what does not count."""
    if fold is None:
        return text
    if fold == "case":
        return lowered(text)
    text = unicodedata.normalize("NFC", text.strip(BLANKS).replace(UNSTABLE, ""))
    text = lowered(text)
    found = _WHOLE_PATTERN.fullmatch(text)
    return found[1] if found else text


def figures(text: str) -> str | None:
    """The digits of a number without needless zeros; None where it is none."""
    found = _PARTS_PATTERN.fullmatch(text) if _FIGURES_PATTERN.fullmatch(text) else None
    if found is None:
        return None
    digits = (found[2] or "0") + (f".{found[3]}" if found[3] else "")
    return f"-{digits}" if found[1] == "-" and digits != "0" else digits


def instant_text(units: int) -> str | None:
    """A moment in nanoseconds from 1970 in ISO form with a space, within the years 1 to 9999."""
    text = moment_text(units // 1000)
    if text is None or units % 1000 == 0:
        return text
    return f"{text[:19]}.{units % _SECOND:09}".rstrip("0")
