"""Whom a cell names: one text for each value of a source's type, the same on every engine (SR25, T97).

Equal values have one text and others another: numbers by value whatever their type,
texts by their bytes, unless the owner folds them. What a source cannot say exactly
has no text, and stops the owner before anything is asked.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from typing import Final, Literal, cast

import numpy as np

from sulq.curator.engines import arrow, grammar, read_numpy, read_sql
from sulq.errors import SetupError
from sulq.terms.domain import Column, Int, Real
from sulq.terms.kinds import Objects, Truths
from sulq.terms.privacy import Fold

Form = Literal[
    "truth", "whole", "number", "figures", "double", "single", "half", "text", "uuid", "date", "moment", "instant",
    "time", "nothing",
]  # fmt: skip
"""What the column of persons holds.

truth: booleans; whole: integers of 64 bits; number: the digits of an exact number, without needless zeros;
figures: text declared a number; double, single, half: floating point of 64, 32 and 16 bits, as doubles;
text; uuid: its text; date: days; moment: microseconds in UTC; instant: nanoseconds in UTC; time: a moment's
text; nothing: a column of no type, all missing.
"""

KINDS: Final[dict[Form, str]] = {
    "truth": "truth values", "whole": "numbers", "number": "numbers", "figures": "numbers", "double": "numbers",
    "single": "numbers", "half": "numbers", "text": "texts", "uuid": "UUIDs", "date": "dates", "moment": "times",
    "instant": "times", "time": "times",
}  # fmt: skip
EXACT: Final[dict[str, int]] = {
    "double": 2**53,
    "single": 2**24,
    "half": 2**11,
}  # from here on whole numbers are rounded
UNSURE: Final = frozenset({"figures", *EXACT})  # forms that have values of which no exact number can be told
FIGURES: Final = r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)"
_PARTS: Final = r"([+-]?)0*([0-9]*)(?:\.([0-9]*?)0*)?"
_FIGURES_PATTERN: Final = re.compile(FIGURES)
_PARTS_PATTERN: Final = re.compile(_PARTS)
_SECOND: Final = 10**9  # nanoseconds
Person = tuple[Form, str]  # a form, and the SQL of the cell


def declared(form: Form, column: Column | None, fold: Fold | None) -> Form:
    """Texts that their owner declared numbers are read as numbers, unless spelling decides."""
    return "figures" if form == "text" and isinstance(column, (Int, Real)) and fold != "spelling" else form


def agree(persons: Iterable[tuple[str, str, Form]], fold: Fold | None) -> None:
    """Refuse tables whose ids are of several kinds: one person under two of them would count twice (SR25).

    Args:
        persons: Of each private table its name, the column of persons and its form.
        fold: By "spelling" all kinds compare as texts; by "case" UUIDs do, which are written in small letters.
    """
    found: dict[str, str] = {}
    for table, column, form in persons:
        kind = KINDS.get(form)
        if kind is not None:
            found.setdefault("texts" if kind == "UUIDs" and fold == "case" else kind, f"{table}.{column}")
    if len(found) > 1 and fold != "spelling":
        told = " and ".join(f"{kind} in {where}" for kind, where in found.items())
        raise SetupError(
            "person-type",
            f"Ids are {told}: one person could be two.",
            "Convert one of them, declare a column of digits in text as Int, or say Unit(..., fold='spelling').",
        )


def inexact(table: str, column: str, form: Form) -> SetupError:
    """Stop the owner, who alone hears of it."""
    if form == "figures":
        why = "is declared a number and holds an id that is none"
    else:
        why = f"holds floating-point ids that are no whole numbers below 2^{EXACT[form].bit_length() - 1}"
    return SetupError("person-type", f"Column {column!r} of {table!r} {why}: ids may have been rounded to one.")


def typed(kind: str, item: str, name: str) -> Person:
    """What a column of a DuckDB type holds, and how to get at it exactly."""
    if kind in ("FLOAT", "DOUBLE"):
        return "single" if kind == "FLOAT" else "double", f"CAST({item} AS DOUBLE)"
    if kind in ("UBIGINT", "HUGEINT", "UHUGEINT", "BIGNUM"):
        return "number", f"CAST({item} AS VARCHAR)"
    if kind.startswith("DECIMAL"):
        digits = f"CAST({item} AS VARCHAR)"
        return "number", digits if kind.endswith(",0)") else _figures_sql(digits)  # .500 is 0.5
    if kind == "UUID":
        return "uuid", f"CAST({item} AS VARCHAR)"
    if kind == '"NULL"':
        return "nothing", "CAST(NULL AS VARCHAR)"
    cell, plain = read_sql.plain(kind, item, name)
    if kind in ("TIMESTAMP_NS", "TIMESTAMPTZ_NS"):
        return "instant", f"CASE WHEN abs({plain}) < {grammar.BEYOND} THEN epoch_ns({item}) END"
    return cast("Form", cell), plain


def sql(form: Form, item: str, fold: Fold | None) -> str:
    """A person's text, of a cell that has a plain name; NULL or nothing where it names nobody."""
    if form == "text":
        return _folded_sql(item, fold)
    if form in ("truth", "whole"):
        return f"CAST({item} AS VARCHAR)"
    if form in EXACT:
        return f"CASE WHEN {_fits(form, item)} THEN CAST(TRY_CAST({item} AS BIGINT) AS VARCHAR) END"
    if form == "figures":
        return _figures_sql(read_sql.trimmed(item))
    if form in ("date", "moment"):
        return read_sql.text(cast("grammar.Cell", form), item)
    return _instant_sql(item) if form == "instant" else item


def unfit_sql(form: Form, item: str) -> str:
    """Whether a cell holds something of which no exact number can be told; NaN, infinities and blanks are missing."""
    if form == "figures":
        text = read_sql.trimmed(item)
        return f"{text} <> '' AND NOT regexp_full_match({text}, '{FIGURES}')"
    return f"isfinite({item}) AND NOT ({_fits(form, item)})"


def _fits(form: Form, item: str) -> str:
    return f"{item} = floor({item}) AND abs({item}) < {read_sql.double(float(EXACT[form]))}"


def _folded_sql(item: str, fold: Fold | None) -> str:
    if fold is None:
        return item
    if fold == "case":
        return read_sql.lowered(item)
    stable = f"nfc_normalize(replace({read_sql.trimmed(item)}, '{grammar.UNSTABLE}', ''))"
    return f"regexp_replace({read_sql.lowered(stable)}, '^{grammar.WHOLE_TEXT}$', '\\1')"


def _figures_sql(text: str) -> str:
    sign, whole, part = (f"regexp_extract({text}, '^{_PARTS}$', {i})" for i in (1, 2, 3))
    digits = f"concat(CASE {whole} WHEN '' THEN '0' ELSE {whole} END, CASE {part} WHEN '' THEN '' ELSE '.' END, {part})"
    signed = f"CASE WHEN {sign} = '-' AND {digits} <> '0' THEN concat('-', {digits}) ELSE {digits} END"
    return f"CASE WHEN regexp_full_match({text}, '{FIGURES}') THEN {signed} END"


def _instant_sql(item: str) -> str:
    micros = f"CASE WHEN {item} >= 0 THEN {item} // 1000 ELSE (-((999 - {item}) // 1000)) END"
    moment = f"CAST(make_timestamp({micros}) AS VARCHAR)"
    rest = f"(({item} % {_SECOND} + {_SECOND}) % {_SECOND})"
    finer = f"concat(substr({moment}, 1, 19), '.', rtrim(lpad(CAST({rest} AS VARCHAR), 9, '0'), '0'))"
    return f"CASE WHEN {item} % 1000 = 0 THEN {moment} WHEN {item} % 1000 <> 0 THEN {finer} END"  # concat drops NULLs


def texts(form: Form, values: np.ndarray, missing: Truths | None, fold: Fold | None) -> Objects:
    """Each row's person, None where there is none; `sql` in plain Python."""
    found = np.empty(len(values), dtype=object)
    for i in range(len(values)) if missing is None else np.flatnonzero(~missing):
        found[i] = _text(form, values[i], fold) or None
    return found


def _text(form: Form, value: object, fold: Fold | None) -> str | None:
    if form == "text":
        return folded(str(value), fold)
    if form == "truth":
        return "true" if value else "false"
    if form in EXACT:
        number = float(cast("float", value))
        return str(int(number)) if abs(number) < EXACT[form] and number.is_integer() else None
    if form == "figures":
        return figures(str(value).strip(grammar.BLANKS))
    if form == "date":
        return arrow.day_text(int(cast("int", value)))
    if form in ("moment", "instant"):
        return instant_text(int(cast("int", value)) * (1000 if form == "moment" else 1))
    return str(value)


def unfit(form: Form, values: np.ndarray, missing: Truths | None) -> bool:
    """Whether any cell holds something of which no exact number can be told; `unfit_sql` in plain Python."""
    there = values if missing is None else values[~missing]
    if form in EXACT:
        finite = there[np.isfinite(there)]
        return bool(np.any((np.abs(finite) >= EXACT[form]) | (finite != np.floor(finite))))
    stripped = [str(text).strip(grammar.BLANKS) for text in there] if form == "figures" else []
    return any(text and figures(text) is None for text in stripped)


def folded(text: str, fold: Fold | None) -> str:
    """A text without what does not count."""
    if fold is None:
        return text
    if fold == "case":
        return read_numpy.lowered(text)
    text = unicodedata.normalize("NFC", text.strip(grammar.BLANKS).replace(grammar.UNSTABLE, ""))
    text = read_numpy.lowered(text)
    found = grammar.WHOLE_TEXT_PATTERN.fullmatch(text)
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
