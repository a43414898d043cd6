"""The rules of reading a cell, in NumPy and plain Python: the reference the SQL must agree with."""

from __future__ import annotations

import datetime
import hashlib
from collections.abc import Callable, Sequence
from typing import Final, cast

import numpy as np

from sulq.language.domain import Bool, Category, Column, Date, Int, Real, Text, Timestamp, Vertices
from sulq.language.kinds import Floats, Integers, Objects, Truths
from sulq.sources import cell_grammar
from sulq.sources.cell_grammar import Cell
from sulq.sources.decode.frames import number_text
from sulq.sources.decode.person import BLANKS
from sulq.sources.memory import arrow

Read = tuple[np.ndarray, Truths]  # codes (objects for Text) and where they are missing

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
    return float(text) if cell_grammar.NUMBER_PATTERN.fullmatch(text) else None


def read_moment(text: str) -> int | None:
    """Microseconds of an ISO date or moment; a moment without a zone is UTC."""
    found = cell_grammar.MOMENT_PATTERN.fullmatch(text.strip(BLANKS))
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
        words = dict.fromkeys(cell_grammar.TRUE, 1) | dict.fromkeys(cell_grammar.FALSE, 0)
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
    if not cell_grammar.whole_values(column):
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
        units = units // cell_grammar.DAY
    elif isinstance(column, Timestamp) and cell == "date":
        units = np.clip(units, cell_grammar.FIRST_DAY - 1, cell_grammar.LAST_DAY + 1) * cell_grammar.DAY
    return np.clip(units, column.low, column.high), absent


def _texts(cell: Cell, values: np.ndarray, absent: Truths) -> Objects:
    writers: dict[str, Callable[[object], object]] = {
        "truth": lambda value: "true" if value else "false",
        "number": lambda value: number_text(float(cast("float", value))),
        "date": lambda value: arrow.day_text(int(cast("int", value))),
        "moment": lambda value: arrow.moment_text(int(cast("int", value))),
    }
    return _each(writers.get(cell, str), values, absent)


def person_hash(text: str) -> int:
    """The public 60-bit hash of a person's text."""
    return int(hashlib.sha256(text.encode()).hexdigest()[: cell_grammar.HASH_DIGITS], 16)


def row_hash(key: bytes, person: str, row: Sequence[object]) -> str:
    """What orders a person's rows: a keyed hash of the person and all declared columns, never a place (SR2)."""
    parts = [key.hex(), person]
    for code in row:
        if code is None:
            parts.append(cell_grammar.MISSING)
        elif isinstance(code, str):  # with its length, so that no text can be taken for another row's columns
            parts.append(f"{len(code.encode())}:{code}")
        else:
            parts.append(str(code))
    return hashlib.sha256(cell_grammar.SEPARATOR.join(parts).encode()).hexdigest()


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
