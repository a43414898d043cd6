"""Neighbouring data sets, drawn at random: persons of all kinds, put in, taken out, exchanged or blanked.

The persons are those that break such systems: with no row or more rows than
are kept, alone in their cell, first in the file, with equal rows, with NULL, NaN,
infinite or extreme cells, with values no one declared. Rows of nobody lie among
them. Whoever draws brings the generator; nothing here protects anybody.
"""

from __future__ import annotations

import datetime
import math
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from sulq.language.domain import Bool, Category, Column, Date, Int, Real, Schema, Text, Timestamp
from sulq.language.privacy import Fold, Unit

Row = dict[str, object]
Rng = np.random.Generator

COLUMNS: Final[tuple[tuple[str, Column], ...]] = (
    ("age", Int(0, 100)),
    ("gain", Real(-50, 200)),
    ("debt", Real(-8, -2.5)),
    ("score", Real(10, 21, grid=0.25)),
    ("flag", Bool()),
    ("city", Category(("Haifa", "Lod", "Yafo"))),
    ("code", Category((1, 2, 5))),
    ("day", Date("2020-01-01", "2020-12-31")),
    ("moment", Timestamp("2020-01-01T00:00:00", "2021-01-01T00:00:00")),
    ("note", Text()),
)
SCHEMA: Final = Schema("data", COLUMNS)
PERSON: Final = "pid"

_TYPES: Final[dict[type, pa.DataType]] = {
    Int: pa.int64(),
    Real: pa.float64(),
    Bool: pa.bool_(),
    Category: pa.string(),
    Date: pa.date32(),
    Timestamp: pa.timestamp("us"),
    Text: pa.string(),
}
_MOMENT: Final = datetime.datetime(2020, 1, 1)  # noqa: DTZ001 - a moment on the grid is UTC and carries no zone

# Cells that have got past somebody's clamp, by the declared kind.
SPECIAL: Final[dict[type, tuple[object, ...]]] = {
    Int: (None, 2**63 - 1, -(2**63), -1, 101, 2**53 + 1),
    Real: (None, math.nan, math.inf, -math.inf, 1e308, -1e308, -0.0, 5e-324, 200.0, -50.0, 2.0**63),
    Bool: (None,),
    Category: (None, "", "haifa", "Lod ", "Jaffa", "NULL"),
    Date: (None, datetime.date(1, 1, 1), datetime.date(9999, 12, 31)),
    Timestamp: (None, datetime.datetime(1700, 1, 1), datetime.datetime(2200, 1, 1)),  # noqa: DTZ001 - likewise
    Text: (None, "", "a'b\";--", "\U0001f600", "x" * 300),
}


@dataclass(frozen=True, slots=True)
class NeighbourPair:
    """Two data sets that must look alike, and in what they differ."""

    what: str
    first: tuple[Row, ...]
    second: tuple[Row, ...]


def cell(rng: Rng, name: str, column: Column, *, special: float) -> object:
    """A cell a column may hold: with probability `special` one that fits badly."""
    if rng.random() < special:
        choices = SPECIAL[type(column)]
        if name == "code":
            choices = (None, 0, 4, 2**40)
        return choices[int(rng.integers(len(choices)))]
    if isinstance(column, (Int, Real)) and rng.random() < 0.4:  # the ends move sums the farthest
        end = (column.lo, column.hi)[int(rng.integers(2))]
        return end if isinstance(column, Int) else float(end)
    match column:
        case Int():
            return int(rng.integers(column.lo, column.hi + 1))
        case Real():
            return float(rng.uniform(float(column.lo), float(column.hi)))
        case Bool():
            return bool(rng.integers(2))
        case Category():
            return column.values[int(rng.integers(len(column.values)))]
        case Date():
            return _MOMENT.date() + datetime.timedelta(int(rng.integers(366)))
        case Timestamp():
            return _MOMENT + datetime.timedelta(seconds=int(rng.integers(366 * 86_400)))
        case Text():
            return ("ann", "bob", "cy")[int(rng.integers(3))]


def row(rng: Rng, person: object, *, special: float = 0.1) -> Row:
    """A row of some person."""
    cells: Row = {name: cell(rng, name, column, special=special) for name, column in COLUMNS}
    return cells | {PERSON: person}


def spelled(rng: Rng, person: str, fold: Fold | None) -> str:
    """One of the ways in which a person's id may be written, as the owner folds ids (T16)."""
    cased = person[0].upper() + person[1:]
    ways = (person, person, cased, f" {person}\t", unicodedata.normalize("NFD", person))
    drawn = ways[int(rng.integers(len(ways)))]
    return drawn if fold == "spelling" or (fold == "case" and drawn == cased) else person


def canonical(person: object, fold: Fold | None) -> object:
    """The id that all ways to write it stand for, which differ as the owner folds them."""
    if not isinstance(person, str) or fold is None:
        return person
    plain = unicodedata.normalize("NFC", person.strip()) if fold == "spelling" else person
    return "".join(x.lower() if x.isascii() else x for x in plain)


def someone(rng: Rng, person: str, rows: int, fold: Fold | None = None) -> list[Row]:
    """A person: any number of rows up to twice the kept ones, some of them equal, some made of bad cells only."""
    owned = int(rng.integers(1, 2 * rows + 2))
    special = float(rng.choice([0.0, 0.1, 1.0]))
    found = [row(rng, spelled(rng, person, fold), special=special) for _ in range(owned)]
    if owned > 1 and rng.random() < 0.3:
        found = [found[0] | {PERSON: one[PERSON]} for one in found]
    return found


def table(rng: Rng, unit: Unit, people: int) -> list[Row]:
    """Rows of several people and of nobody, in any order."""
    names = [_name(i) for i in range(people)]
    rows = [one for name in names for one in someone(rng, name, unit.rows, unit.fold)]
    rows += [row(rng, None) for _ in range(int(rng.integers(3)))]
    return [rows[i] for i in rng.permutation(len(rows))]


def pairs(rng: Rng, unit: Unit, rows: Sequence[Row]) -> Iterator[NeighbourPair]:
    """Neighbours of a data set under the unit's relation, of every kind this module knows."""
    makers = {"add_remove": _add_remove, "replace_one": _replace_one, "zero_out": _zero_out}
    for what, second in makers[unit.neighbors](rng, unit, list(rows)):
        yield NeighbourPair(what, tuple(rows), tuple(second))


def arrow(rows: Sequence[Row]) -> pa.Table:
    """Rows as an Arrow table with the types of the declared kinds."""
    types = {name: pa.int64() if name == "code" else _TYPES[type(column)] for name, column in COLUMNS}
    types[PERSON] = pa.string()
    return pa.table({name: pa.array([r[name] for r in rows], type=kind) for name, kind in types.items()})


def _name(number: int) -> str:
    return f"p\u00e9{number:03d}"


def _owners(unit: Unit, rows: Sequence[Row]) -> dict[object, list[int]]:
    """The places of each person's rows; where rows are people each has its own."""
    if unit.column is None:
        return {i: [i] for i in range(len(rows))}
    found: dict[object, list[int]] = {}
    for i, one in enumerate(rows):
        if one[PERSON] is not None:
            found.setdefault(canonical(one[PERSON], unit.fold), []).append(i)
    return found


def _chosen(rng: Rng, unit: Unit, rows: Sequence[Row]) -> list[tuple[str, list[int]]]:
    """Persons worth looking at: anyone, the heaviest, whoever is first in the file or alone in a cell."""
    owners = _owners(unit, rows)
    if not owners:
        return []
    places = list(owners.values())
    by_city: dict[object, list[list[int]]] = {}
    for owned in places:
        for city in {rows[i]["city"] for i in owned}:
            by_city.setdefault(city, []).append(owned)
    rarest = min(by_city.values(), key=len)
    return [
        ("anyone", places[int(rng.integers(len(places)))]),
        ("the heaviest", max(places, key=len)),
        ("the first in the file", min(places, key=min)),
        ("the rarest", rarest[0]),
    ]


def _scattered(rng: Rng, rows: list[Row], more: Sequence[Row]) -> list[Row]:
    """More rows at any places among the others, whose order stays."""
    places = set(rng.permutation(len(rows) + len(more))[: len(more)].tolist())
    old, new = iter(rows), iter(more)
    return [next(new) if i in places else next(old) for i in range(len(rows) + len(more))]


def _newcomer(rng: Rng, unit: Unit) -> list[Row]:
    rows = 1 if unit.column is None else unit.rows
    found = someone(rng, "new", rows, unit.fold)
    return found[:1] if unit.column is None else found


def _extreme(rng: Rng, unit: Unit) -> list[Row]:
    return [row(rng, "new", special=1.0) for _ in range(1 if unit.column is None else unit.rows + 1)]


def _add_remove(rng: Rng, unit: Unit, rows: list[Row]) -> Iterator[tuple[str, list[Row]]]:
    for who, places in _chosen(rng, unit, rows):
        yield f"without {who}", [one for i, one in enumerate(rows) if i not in places]
    yield "with a newcomer", _scattered(rng, rows, _newcomer(rng, unit))
    yield "with a newcomer of bad cells, first in the file", _extreme(rng, unit) + rows
    if unit.column is not None:
        yield "with rows of nobody", _scattered(rng, rows, [row(rng, None, special=0.5) for _ in range(3)])


def _replace_one(rng: Rng, unit: Unit, rows: list[Row]) -> Iterator[tuple[str, list[Row]]]:
    for who, places in _chosen(rng, unit, rows):
        for what, newcomer in (("a newcomer", _newcomer(rng, unit)), ("one of bad cells", _extreme(rng, unit))):
            if unit.column is None:  # a row is exchanged where it stands
                yield f"{what} for {who}", [newcomer[0] if i in places else one for i, one in enumerate(rows)]
                continue
            others = [one for i, one in enumerate(rows) if i not in places]
            yield f"{what} for {who}", _scattered(rng, others, newcomer)


def _zero_out(rng: Rng, unit: Unit, rows: list[Row]) -> Iterator[tuple[str, list[Row]]]:
    """Rows that count nothing and keep their places: nothing in any column, or nobody's."""
    blanks: list[tuple[str, Row]] = [("empty", {name: None for name, _ in COLUMNS})]
    if unit.column is not None:
        blanks.append(("nobody's", {PERSON: None}))
    for who, places in _chosen(rng, unit, rows):
        for what, blank in blanks:
            yield f"{who} made {what}", [one | blank if i in places else one for i, one in enumerate(rows)]
