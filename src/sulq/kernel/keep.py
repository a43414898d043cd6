"""Kept rows: the statement that keeps them, and the check that prepared tables are what the facts say.

How cells are read is proposed, as expressions that must look at one record alone; whose a record is and which records
of a person are kept is written here. Certificates follow from facts alone, so no row may contradict them: the tables
themselves are asked, each time they are opened, before any debit.
Source: docs/theory/kernel.md, "Kept rows"; SR2, SR11, SR15.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import duckdb

from sulq.errors import SetupError
from sulq.kernel.facts import ANY_CELL, HASH, INTEGERS, OWNER, OWNER_TYPE, PLACE, Column, Facts, Refused, Table, require
from sulq.kernel.tree import EXPRESSIONS, parse
from sulq.kernel.values import FUNCTIONS

PEOPLE: Final = "people"  # the table of all persons of a dataset, while its rows are kept
POSITION: Final = "place"  # the column of a source that says where a record stands, if that is public
DIGITS: Final = ", ".join(f"'{code:03}'" for code in range(1000))  # codes as texts are looked up: no arithmetic a row
_NAMED: Final = re.compile(r"(?:[abc][0-9]+|one)\Z")  # what a projection may call its columns
_CELL: Final = re.compile(r"(?:[abcs][0-9]+|a|one|who)\Z")  # a column of a source, or of a projection of it
_ROW_WISE: Final = FUNCTIONS.keys() | {
    "chr", "concat", "enum_code", "epoch_ns", "isnan", "list_position", "list_value", "lpad", "nfc_normalize",
    "regexp_extract", "regexp_full_match", "regexp_replace", "replace", "rpad",
}  # fmt: skip
_CLASSES: Final = {None, *EXPRESSIONS} - {"STAR"}  # of expressions, and None of their parts that have no class


@dataclass(frozen=True, slots=True)
class Reading:
    """How the records of a source become cells.

    `source`: a relation of one row a record, which is trusted. `layers`: three projections, each over the one before;
    the last has the columns c0, c1, ... `person`: where records have one, the cell that names it, and the person's text
    of a cell `a`. `whole`: that cell is a whole number in all tables, and is compared instead of its text.
    `places`: where a record stands is public.
    """

    source: str
    layers: tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]
    person: tuple[str, str] | None = None
    whole: bool = False
    places: bool = False


Typed = Sequence[tuple[str, str]]  # the columns c0, c1, ... and the types they are stored as


def cells(reading: Reading) -> str:
    """The cells of all records of a source, each with its person's text `u` and, where `whole`, number `w`.

    Privacy: every proposed expression looks at one record alone, so a record's cells do not depend on other records.
    """
    own: list[list[str]] = [[], [], []]
    if reading.person is not None:
        cell, text = reading.person
        number = ["a AS w", "w"] if reading.whole else []
        own = [[f"{cell} AS a"], [f"{text} AS u", *number[:1]], ["u", *number[1:]]]
    _row_wise([*reading.layers, *((each,) for each in reading.person or ())], len(reading.layers))
    relation, place = reading.source, [POSITION] if reading.places else []
    for layer, person in zip(reading.layers, own, strict=True):
        relation = f"(SELECT {_list(*layer, *person, *place)} FROM {relation})"
    return relation


def _list(*items: str) -> str:
    return ",\n".join(items) + "\n"  # whatever an item ends in, the next begins anew


def _row_wise(layers: Sequence[Sequence[str]], projections: int) -> None:
    """Stop the owner where an expression may look at other records than its own.

    Columns of the first so many, which are projections, have names that the kernel's own beside them do not have.
    """
    try:
        for place, layer in enumerate(layers):
            node = parse(f"SELECT {_list(*layer)}").only("type", "select_list", "from_table", "aggregate_handling")
            require(node["type"] == "SELECT_NODE" and node["from_table"]["type"] == "EMPTY", "other than expressions")
            left = list(node.many("select_list"))
            require(len(left) == len(layer), "several expressions in one")
            named = [item.get("alias") or (item.get("column_names") or ("",))[-1] for item in left]
            own = len(set(named)) == len(named) and all(map(_NAMED.match, named))
            require(own or place >= projections, "a column without a name of its own")
            while left:
                part = left.pop()
                kind, path = part.get("class"), part.get("column_names") or ("",)
                require(kind in _CLASSES, f"an expression of class {kind}")
                require(kind != "COLUMN_REF" or (len(path) == 1 and _CELL.match(path[0])), "a column of another name")
                require(kind != "FUNCTION" or part.call()[0] in _ROW_WISE, "a function that is not listed")
                left += part.parts
    except Refused:
        raise SetupError("unfit-rows", "The records of a source would not be read one by one, so none is.") from None


def people(readings: Mapping[int, Reading]) -> str:
    """Every person of several sources, whose a record is by that record alone, and how many n0, n1, ... of each."""
    told = "w" if all(reading.whole for reading in readings.values()) else "u"
    parts = []
    for place, reading in readings.items():
        nothing = Reading(reading.source, (("1 AS one",), ("one",), ("one",)), reading.person, told == "w")
        parts.append(f"SELECT {told} AS person, {place} AS t FROM {cells(nothing)}")
    there = "person IS NOT NULL" if told == "w" else "person <> ''"
    counts = ", ".join(f"count(*) FILTER (WHERE t = {place}) AS n{place}" for place in readings)
    return f"(SELECT person, {counts} FROM ({' UNION ALL '.join(parts)}) WHERE {there} GROUP BY person)"


def keep(
    reading: Reading, columns: Typed, rows: int, *, spelled: Mapping[str, str], blanked: bool, key: str, stored: bool
) -> str:
    """The kept rows of a source: all, or of each person those with the least keyed hashes.

    Privacy: which records of a person are kept follows from that person's records and the key alone, since equal hashes
    mean equal cells (SR2); a record that names nobody is left out, and under zero_out (`blanked`) one without any cell.
    `rows`: of a person. `spelled`: names of further columns, each with the column whose codes it holds as text. `key`:
    as SQL. `stored`: whether types are narrowed and persons numbered (`people`), or else told by their text.
    """
    shown = [*outer(reading, columns, stored=stored)]
    shown += [f"list_extract([{DIGITS}], {code} + 1) AS {text}" for text, code in spelled.items()]
    query = f"FROM {cells(reading)}"
    if reading.person is None:
        return f"(SELECT {', '.join(shown)} {query}{present(reading, columns, blanked=blanked)}) AS kept"
    shown.append(OWNER if stored else f"u AS {OWNER}")
    query += f" JOIN {PEOPLE} ON {'w' if reading.whole else 'u'} = {PEOPLE}.person" if stored else ""
    query += present(reading, columns, blanked=blanked)
    # Equal rows are interchangeable, but where a place can be asked for it must be the same one every time.
    order = ordered(columns, key) + (f", {POSITION}" if reading.places else "")
    whose = OWNER if stored else "u"  # by number, so that a person's rows lie together and compress well
    query += f" QUALIFY row_number() OVER (PARTITION BY {whose} ORDER BY {order}) <= {rows}"
    return f"(SELECT {', '.join(shown)} {query}) AS kept"


def outer(reading: Reading, columns: Typed, *, stored: bool) -> list[str]:
    """What is kept of a record: its cells, its person's public hash and its place."""
    narrow = [f"TRY_CAST({name} AS {kind}) AS {name}" for name, kind in columns]
    found = [cast if stored and kind != "VARCHAR" else name for cast, (name, kind) in zip(narrow, columns, strict=True)]
    hashed = "u" if reading.person else f"CAST({POSITION} AS VARCHAR)" if reading.places else ""
    found += [f"TRY_CAST(concat('0x', substr(sha256({hashed}), 1, 15)) AS BIGINT) AS {HASH}"] if hashed else []
    return found + ([f"CAST({POSITION} AS BIGINT) AS {PLACE}"] if reading.places else [])


def present(reading: Reading, columns: Typed, *, blanked: bool) -> str:
    """The condition of records that count."""
    found = ["u <> ''"] if reading.person else []
    found += ["(" + " OR ".join(f"{name} IS NOT NULL" for name, _ in columns) + ")"] if blanked else []
    return f" WHERE {' AND '.join(found)}" if found else ""


def ordered(columns: Typed, key: str) -> str:
    """A keyed hash of the person and all cells; with its length no text passes for another column (SR2)."""
    parts = [key, "u"]
    for name, kind in columns:
        text = f"concat(strlen({name}), ':', {name})" if kind == "VARCHAR" else f"CAST({name} AS VARCHAR)"
        parts.append(f"CASE WHEN {name} IS NULL THEN '~' ELSE {text} END")
    return f"sha256(concat_ws(chr(31), {', '.join(parts)}))"


def check(cursor: duckdb.DuckDBPyConnection, facts: Facts) -> None:
    """Stop the owner where a kept table is not as its facts say.

    Privacy: runs before any debit, and its one message is constant. It fails only where whoever prepared the rows made
    a mistake, or the copy was altered; then nothing at all is answered.
    """
    if any((_unlike if table.source else unfit)(cursor, table) for table in facts.tables):
        raise SetupError("unfit-rows", "The kept rows are not as declared, so nothing is answered from them.")


def unfit(cursor: duckdb.DuckDBPyConnection, table: Table) -> str:
    """What of a kept table contradicts its facts; nothing where it is as they say."""
    *database, last = table.name
    of_name = "table_name = $name AND database_name IN (coalesce($database, current_database()), 'temp')"
    asked = {"name": last, "database": database[0] if database else None}
    made = cursor.execute(f"SELECT sql FROM duckdb_tables() WHERE {of_name}", asked).fetchall()
    columns = [f"{name} {column.type}" for name, column in table.columns]
    columns += [f"{OWNER} {OWNER_TYPE}"] if table.owned else []
    # One table of that name, with these columns in this order, none of them computed anew or with a collation.
    defined = len(database) < 2 and made == [(f"CREATE TABLE {last}({', '.join(columns)});",)]
    if not defined or not all(_checkable(column) for _, column in table.columns):
        return "columns"
    if table.owned != (table.rows > 0) and table.rows != 1:
        return "owners"  # several rows of a person whom nothing names, or public rows that name persons
    wrong = (why for why, rows in _contradictions(table) if cursor.execute(f"SELECT 1 FROM {rows} LIMIT 1").fetchall())
    return next(wrong, "")


def _unlike(cursor: duckdb.DuckDBPyConnection, table: Table) -> str:
    """As `unfit`, of records that are read as they stand: no cell is looked at, as any of its type is allowed for."""
    name, alone = ".".join(table.name), table.rows <= 1 and not table.owned and table.unique is None
    any_cells = [(column, ANY_CELL.get(kind)) for column, kind, *_ in cursor.execute(f"DESCRIBE {name}").fetchall()]
    few = alone and cursor.execute(f"SELECT count(*) <= {table.size} FROM {name}").fetchall() == [(True,)]
    return "" if few and any_cells == list(table.columns) else "records"


def _checkable(column: Column) -> bool:
    """Whether a column holds texts, or integers between two that are known."""
    known = {column.low is not None, column.high is not None}
    return known == {True} if column.type in INTEGERS else column.type == "VARCHAR" and len(known) == 1


def _contradictions(table: Table) -> Iterator[tuple[str, str]]:
    """Which rows contradict a fact; aggregates skip what is missing, and there may be no row at all."""
    name = ".".join(table.name)
    met = [f"count(*) <= {table.size}", *([f"count({OWNER}) = count(*)"] if table.owned else [])]
    for each, column in table.columns:
        met += [] if column.missing else [f"count({each}) = count(*)"]
        if column.type != "VARCHAR":
            met.append(f"coalesce(min({each}) >= {column.low} AND max({each}) <= {column.high}, true)")
        elif column.low is not None and column.high is not None:  # each different text is looked at once
            other = f"TRY_CAST(t AS INTEGER) NOT BETWEEN {column.low} AND {column.high}"
            other = f"bool_or(NOT regexp_full_match(t, '[0-9]{{1,9}}') OR {other})"
            several = f"count(t) > {column.high - column.low + 1}"
            texts = f"(SELECT DISTINCT {each} AS t FROM {name})"
            yield "codes", f"(SELECT {several} OR {other} AS unfit FROM {texts}) WHERE unfit"
    yield "cells", f"(SELECT {' AND '.join(met)} AS fit FROM {name}) WHERE NOT fit"
    if table.owned:
        one_hash = f" OR min({HASH}) <> max({HASH})" if HASH in dict(table.columns) else ""
        yield "persons", f"{name} GROUP BY {OWNER} HAVING count(*) > {table.rows}{one_hash}"
    if table.unique is not None and not (table.owned and table.rows == 1):  # a person's only row has no equal
        key = f"{OWNER}, {table.unique}" if table.owned else table.unique
        yield "unique", f"{name} WHERE {table.unique} IS NOT NULL GROUP BY {key} HAVING count(*) > 1"
