"""What a column may hold, by its type and its name alone: a suggestion that its owner confirms, never a declaration.

A CSV file has no types, so there the header's names are all that is looked at; a cell never is. The console and
`sulq init` suggest the same.
"""

from __future__ import annotations

import re
from typing import Final

UNTYPED: Final = "text"  # what a CSV file's columns are called: anything may stand in them
UNKNOWN: Final = ""  # neither type nor name says anything
_TYPES: Final = (
    (("bool",), "bool"),
    (("timestamp", "datetime"), "timestamp"),
    (("date",), "date"),
    (("uint", "int", "long", "short", "serial"), "int"),
    (("float", "double", "decimal", "real", "numeric"), "real"),
    (("str", "varchar", "text", "utf8", "char", "enum", "dictionary"), "category"),
)
"""Beginnings of types, and the kind of column each suggests."""

_NAMES: Final = {
    "skip": "id ids uid uuid guid pid key ssn passport email mail phone address tailnum rowid index",
    "timestamp": "timestamp datetime created updated modified at",
    "date": "date birthday dob birthdate",
    "bool": "is has was flag smoker active deleted survived married employed parttime",
    "category": """
        sex gender city town country state region province district race ethnicity nationality education edu degree
        occupation job industry sector workclass marital status class type kind category group level grade stage
        department dept ward service brand model color colour language currency product item species diagnosis
        relationship religion party carrier origin dest destination code""",
    "real": """
        income salary wage wages price amount cost costs fee total revenue sales balance charge charges payment
        weight height length width depth distance speed temperature temp pressure score rate ratio share percent
        pct fraction lat latitude lon lng longitude bmi mean average avg value gain loss variance entropy volume
        area""",
    "int": """
        age ages year years month months day days hour hours minute minutes second seconds week weeks count n num
        number nr no qty quantity size persons people children siblings visits orders rows items rooms doors rank
        position population delay duration wgt""",
    "text": "name title note notes comment comments description text message remark remarks subject body summary",
}
"""Words of names by the kind that each suggests; of several words in a name the first kind that has one decides."""

_WORDS: Final = {word: kind for kind, words in reversed(_NAMES.items()) for word in words.split()}
_ORDER: Final = list(_NAMES)
_PERSON: Final = (
    "pid", "person", "patient", "respondent", "customer", "client", "user", "member", "subject", "student",
)  # fmt: skip


def suggested(kind: str, name: str = "") -> str:
    """The kind of column that a type suggests, or of a column without one its name; UNKNOWN where nothing does.

    One of int, real, bool, category, date, timestamp, text; `skip` for ids, and for types that are not read.
    """
    low = kind.lower()
    if low == UNTYPED:
        return named(name)
    return next((found for starts, found in _TYPES if any(start in low for start in starts)), "skip")


def named(name: str) -> str:
    """The kind that a column's name suggests."""
    words = _words(name)
    found = [_WORDS[word] for word in words if word in _WORDS]
    if found and words[-1] == "num":  # education_num: a number, whatever it is of
        return "int"
    return min(found, key=_ORDER.index, default=UNKNOWN)


def person_of(names: list[str]) -> str | None:
    """The column that most likely says whose row it is: an id of a person, else the first id."""
    ids = [name for name in names if named(name) == "skip"]
    persons = [
        name
        for name in names
        if any(word in _PERSON for word in _words(name)) and (name in ids or len(_words(name)) == 1)
    ]
    return next(iter(persons), None) or next((name for name in ids if _words(name)[-1] in ("id", "uid", "uuid")), None)


def _words(name: str) -> list[str]:
    """The words of a name: parted by what is no letter, and where a capital follows a small letter."""
    apart = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name)
    return [word.lower() for word in re.split(r"[^A-Za-z]+", apart) if word] or [""]
