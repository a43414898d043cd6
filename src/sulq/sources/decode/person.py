"""Whom a cell names: one text for each value of a source's type, the same on every engine (SR25, T97).

Equal values have one text and others another: numbers by value whatever their type,
texts by their bytes, unless the owner folds them. What a source cannot say exactly
has no text: it names nobody, and its owner is stopped before anything is asked.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Literal, NamedTuple

from sulq.errors import SetupError
from sulq.kernel.facts import Fold

Form = Literal[
    "truth", "whole", "number", "figures", "double", "single", "half", "text", "uuid", "date", "time", "nothing",
]  # fmt: skip
"""What the column of persons holds.

whole: integers of 64 bits; number: the digits of an exact number, without needless zeros; figures: text declared a
number; double, single, half: floating point of 64, 32 and 16 bits, as doubles; uuid, date, time: text, the last two in
ISO form, in UTC, of the years 1 to 9999; nothing: all cells are missing.
"""

KINDS: Final = {"truth": "truth values", "text": "texts", "uuid": "UUIDs", "date": "dates", "time": "times"}
EXACT: Final[dict[str, int]] = {"double": 2**53, "single": 2**24, "half": 2**11}  # rounded from there on
BLANKS: Final = " \t\n\x0b\x0c\r"
FIGURES: Final = r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)"
PARTS: Final = r"([+-]?)0*([0-9]*)(?:\.([0-9]*?)0*)?"
UNSTABLE: Final = "\u11a7"  # dropped from persons: DuckDB's NFC and Python's differ on this one letter
WHOLE_TEXT: Final = r"(-?[0-9]+)\.0+"  # a person '7.0' is the person '7' (T16)
WHO: Final = "who"  # the column of a source that holds its persons, where they were read apart from the rest
HALF, DIGITS = "HALF", "DIGITS"  # types beside DuckDB's own: of 16 bits, as doubles, and an exact number's digits
_UPPER: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_TEXT, _DOUBLE = "CAST({0} AS VARCHAR)", "CAST({0} AS DOUBLE)"
_FIRST, _LAST = "0001-01-01 00:00:00", "9999-12-31 23:59:59"
_EARLY, _LATE = "1678-01-01 00:00:00", "2262-01-01 00:00:00"  # what nanoseconds tell apart
_UTC: Final = "CAST(make_timestamp(epoch_us({0})) AS VARCHAR)"
_REST: Final = "((epoch_ns({0}) % 1000000000 + 1000000000) % 1000000000)"
_SECONDS: Final = f"CAST(make_timestamp((epoch_ns({{0}}) - {_REST}) // 1000) AS VARCHAR)"
_FINE: Final = f"concat({_SECONDS}, '.', lpad(CAST({_REST} AS VARCHAR), 9, '0'))"
_NANOSECONDS: Final = f"rtrim(rtrim({_FINE}, '0'), '.')"


def _within(kind: str, first: str, last: str, text: str) -> str:
    """A text where a cell lies between two of its own type: beyond microseconds there is no other to compare in."""
    return f"CASE WHEN {{0}} >= {kind} '{first}' AND {{0}} <= {kind} '{last}' THEN {text} END"


_TYPES: Final[dict[str, tuple[Form, str]]] = {
    "BOOLEAN": ("truth", "{0}"),
    **dict.fromkeys(("TINYINT", "SMALLINT", "INTEGER", "BIGINT"), ("whole", "{0}")),
    **dict.fromkeys(("UTINYINT", "USMALLINT", "UINTEGER"), ("whole", "{0}")),
    **dict.fromkeys(("UBIGINT", "HUGEINT", "UHUGEINT", "BIGNUM", DIGITS), ("number", _TEXT)),
    "DOUBLE": ("double", _DOUBLE),
    "FLOAT": ("single", _DOUBLE),
    HALF: ("half", _DOUBLE),
    "VARCHAR": ("text", "{0}"),
    "ENUM": ("text", _TEXT),
    "UUID": ("uuid", _TEXT),
    '"NULL"': ("nothing", "CAST(NULL AS VARCHAR)"),
    "DATE": ("date", _within("DATE", "0001-01-01", "9999-12-31", _TEXT)),
    "TIMESTAMP": ("time", _within("TIMESTAMP", _FIRST, f"{_LAST}.999999", _TEXT)),
    "TIMESTAMP_S": ("time", _within("TIMESTAMP_S", _FIRST, _LAST, _TEXT)),
    "TIMESTAMP_MS": ("time", _within("TIMESTAMP_MS", _FIRST, f"{_LAST}.999", _TEXT)),
    "TIMESTAMP WITH TIME ZONE": ("time", _within("TIMESTAMPTZ", f"{_FIRST}+00", f"{_LAST}.999999+00", _UTC)),
    "TIMESTAMP_NS": ("time", _within("TIMESTAMP_NS", _EARLY, _LATE, _NANOSECONDS)),
    "TIMESTAMPTZ_NS": ("time", _within("TIMESTAMPTZ_NS", f"{_EARLY}+00", f"{_LATE}+00", _NANOSECONDS)),
}


class Person(NamedTuple):
    """How DuckDB reads the person of a record: the cell that names it, and its text of a cell `a`, where it has one."""

    form: Form
    cell: str
    text: str


def person(form: Form, cell: str, *, number: bool, fold: Fold | None) -> Person:
    """A person by what its column holds; texts that their owner declared numbers are such, unless spelling decides."""
    form = "figures" if form == "text" and number and fold != "spelling" else form
    return Person(form, cell, sql(form, "a", fold))


def agree(persons: Iterable[tuple[str, str, Form]], fold: Fold | None) -> None:
    """Refuse tables, each with its column of persons and what that holds, whose ids are of several kinds.

    One person under two of them would count twice (SR25). By spelling all kinds compare as texts; by case UUIDs do.
    """
    found: dict[str, str] = {}
    for table, column, form in persons:
        if form != "nothing":
            kind = "text" if form == "uuid" and fold == "case" else form
            found.setdefault(KINDS.get(kind, "numbers"), f"{table}.{column}")
    if len(found) > 1 and fold != "spelling":
        why = f"Ids are {' and '.join(f'{kind} in {where}' for kind, where in found.items())}: one person could be two."
        remedy = "Convert one of them, declare a column of digits in text as Int, or say Unit(..., fold='spelling')."
        raise SetupError("person-type", why, remedy)


def typed(kind: str, item: str, name: str) -> tuple[Form, str]:
    """What a column of a DuckDB type holds, and how to get at it exactly."""
    base, digits, _ = kind.partition("(")
    if base == "DECIMAL" and digits:
        text = f"CAST({item} AS VARCHAR)"
        return "number", text if kind.endswith(",0)") else figures(text)  # .500 is 0.5
    if base in _TYPES:
        form, cell = _TYPES[base]
        return form, cell.format(item)
    why = f"Column {name!r} of the data is of type {kind[:40]}, which sulq does not read."
    raise SetupError("bad-declaration", why)


def sql(form: Form, item: str, fold: Fold | None) -> str:
    """A person's text, of a cell that has a plain name; NULL or nothing where it names nobody."""
    if form == "text":
        return _folded(item, fold)
    if form in EXACT:
        return f"CASE WHEN {fits(form, item)} THEN CAST(TRY_CAST({item} AS BIGINT) AS VARCHAR) END"
    if form == "figures":
        return figures(trimmed(item))
    return f"CAST({item} AS VARCHAR)"


def fits(form: Form, item: str) -> str:
    """Whether a floating-point number is whole, and so small that no other was rounded to it."""
    return f"{item} = floor({item}) AND abs({item}) < {EXACT[form]}.0e0"


def trimmed(item: str) -> str:
    """Text without the ASCII blanks around it; where it begins and ends with no such character it is taken as it is."""
    inked = f"{item} >= '!' AND substr({item}, strlen({item}), 1) >= '!'"
    return f"CASE WHEN {inked} THEN {item} ELSE trim({item}, '{BLANKS}') END"


def lowered(item: str) -> str:
    """Text with the ASCII letters in lower case; other letters keep theirs on every engine."""
    return f"translate({item}, '{_UPPER}', '{_UPPER.lower()}')"


def _folded(item: str, fold: Fold | None) -> str:
    if fold is None:
        return item
    if fold == "case":
        return lowered(item)
    stable = f"nfc_normalize(replace({trimmed(item)}, '{UNSTABLE}', ''))"
    return f"regexp_replace({lowered(stable)}, '^{WHOLE_TEXT}$', '\\1')"


def figures(text: str) -> str:
    """The digits of a number without needless zeros; NULL where a text is none."""
    sign, whole, part = (f"regexp_extract({text}, '^{PARTS}$', {i})" for i in (1, 2, 3))
    digits = f"concat(CASE {whole} WHEN '' THEN '0' ELSE {whole} END, CASE {part} WHEN '' THEN '' ELSE '.' END, {part})"
    signed = f"CASE WHEN {sign} = '-' AND {digits} <> '0' THEN concat('-', {digits}) ELSE {digits} END"
    return f"CASE WHEN regexp_full_match({text}, '{FIGURES}') THEN {signed} END"
