"""Persons in plain Python, for the engine `memory`: the reference that the SQL must agree with."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

import numpy as np
import pyarrow as pa

from sulq.language.kinds import Objects
from sulq.language.privacy import Fold
from sulq.sources import cell_grammar
from sulq.sources.decode import person
from sulq.sources.decode.person import BLANKS, EXACT, FIGURES, Form
from sulq.sources.memory import arrow, reading

_FIGURES_PATTERN: Final = re.compile(FIGURES)
_PARTS_PATTERN: Final = re.compile(person.PARTS)
_WHOLE_PATTERN: Final = re.compile(person.WHOLE_TEXT)
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
        return [None if day is None else arrow.day_text(day) for day in column.cast(pa.int32()).to_pylist()]
    if pa.types.is_timestamp(kind):
        per = 1 if kind.unit == "ns" else 1000
        whole = cell_grammar.FIRST_MOMENT, cell_grammar.LAST_MOMENT
        first, last = cell_grammar.NANOSECOND_YEARS if per == 1 else whole
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
        return reading.lowered(text)
    text = unicodedata.normalize("NFC", text.strip(BLANKS).replace(person.UNSTABLE, ""))
    text = reading.lowered(text)
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
    text = arrow.moment_text(units // 1000)
    if text is None or units % 1000 == 0:
        return text
    return f"{text[:19]}.{units % _SECOND:09}".rstrip("0")
