"""The SELECTs by which persons' rows are kept: persons are counted first, then only heavy persons' rows are chosen.

Persons are taken in parts, so that those of one part have room in memory. Whose a row is and which rows are kept is
written by the kernel (kernel/keep.py); how cells are read, by kept_rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import cast

from sulq.compile.statements import kept_table
from sulq.compile.statements.kept_table import OWNER, names, spelled
from sulq.kernel import keep
from sulq.language.rowfn.writer import KeptRows
from sulq.sources.decode.person import WHO, Person
from sulq.sources.duckdb import kept_rows
from sulq.sources.duckdb.kept_rows import ORDER, TEXT, stored_types
from sulq.sources.origin import suffix
from sulq.sources.source import RegisteredTable

PEOPLE = keep.PEOPLE
EVERYONE = "everyone"  # the persons of one part, while their rows are kept
CANDIDATES = "candidates"  # all rows of those who have more than are kept
LASTS = "lasts"  # of each of these, where the hash of the last kept row begins
LEAST = "least"  # candidates that may be kept, of persons for whom the beginnings of hashes do not decide
MAX_LEAST = 1_000_000  # from so many on DuckDB has no least ones of a group
PREFIX_DIGITS = 15  # of a row's hash, which fit a BIGINT without its sign


@dataclass(frozen=True, slots=True)
class Part:
    """One of so many parts of a dataset's persons, by a hash of whom they are, which all tables share.

    Privacy: a person is in one part with all rows, by that person alone.
    """

    tables: tuple[RegisteredTable, ...]
    place: int = 0
    of: int = 1

    @property
    def whole(self) -> bool:
        """Whether persons are whole numbers in all tables, and compared as such."""
        return kept_rows.whole_persons(self.tables)

    @property
    def numbered(self) -> str:
        """Its persons, each with a number that no other has."""
        return f"(SELECT *, rowid * {self.of} + {self.place} AS {OWNER} FROM {EVERYONE})"

    def only(self, relation: str, person: str) -> str:
        """The rows of a relation that are of its persons. Whole numbers of any size have one hash as 64 bits."""
        told = f"CAST({person} AS BIGINT)" if self.whole else person
        return relation if self.of == 1 else f"(SELECT * FROM {relation} WHERE hash({told}) % {self.of} = {self.place})"


def everyone(part: Part) -> KeptRows:
    """Its persons, each with the public hash, which the kernel writes: once for each, not for each row."""
    counted = cast("KeptRows", kept_rows.people(part.tables))
    (hashed,) = keep.outer(keep.Reading("", ((), (), ()), ("a", "a")), (), stored=True)
    told = f"(SELECT *, CAST(person AS VARCHAR) AS {TEXT} FROM {part.only(counted.relation, 'person')})"
    return replace(counted, relation=f"(SELECT * EXCLUDE ({TEXT}), {hashed} FROM {told})")


def about(tables: Sequence[RegisteredTable]) -> KeptRows:
    """One row `n`: about how many persons there are. It decides how many parts are made, and no row that is kept."""
    told = "w" if kept_rows.whole_persons(tables) else TEXT
    private = [item for item in tables if item.unit.column is not None]
    layers = (("1 AS one",), ("one",), ("one",))
    readings = [kept_rows.reading_of(item, layers, whole=told == "w") for item in private]
    parts = " UNION ALL ".join(f"SELECT {told} AS person FROM {keep.cells(each)}" for each in readings)
    frames = {name: frame for item in private for name, frame in item.frames.items()}
    return KeptRows(f"(SELECT approx_count_distinct(person) AS n FROM ({parts}))", frames=frames)


def slow(registered: RegisteredTable) -> bool:
    """Whether reading a table takes so long that it is read once, into codes: text with persons."""
    return registered.unit.column is not None and any(suffix(path) == ".csv" for path in registered.source.files)


def codes(registered: RegisteredTable) -> KeptRows:
    """All records of a source as codes s0, s1, ... and persons' texts."""
    parameters: dict[str, object] = {}
    layers = kept_rows.layers_of(registered, parameters, integers=True)
    reading = kept_rows.reading_of(registered, layers, whole=False)
    shown = [f"TRY_CAST({name} AS {kind}) AS s{name[1:]}" for name, kind in stored_types(registered.schema)]
    shown += [f"{TEXT} AS {WHO}", *([keep.POSITION] if reading.places else [])]
    return KeptRows(f"(SELECT {', '.join(shown)} FROM {keep.cells(reading)})", parameters, frames=registered.frames)


def coded(registered: RegisteredTable, relation: str, rows: int) -> RegisteredTable:
    """The same table, its records read from their codes."""
    person = Person(kept_rows.form(registered), WHO, "a")
    source = replace(
        registered.source, relation=relation, columns={}, rows=rows, files=(), person=person, plain=None, coded=True
    )
    return replace(registered, source=source, records=None)


def light(registered: RegisteredTable, part: Part, *, spell: bool) -> KeptRows:
    """All rows of the persons who have no more than are kept: there is nothing to choose, and no row is hashed.

    Privacy: a person's rows are here or among the candidates, never in both, by the number of that person's rows alone.
    """
    parameters: dict[str, object] = {}
    reading = _reading(registered, part, parameters)
    rows = _of_persons(registered, reading, part, f"<= {registered.unit.rows}")
    shown = _shown(registered, reading, spell=spell)
    return KeptRows(f"(SELECT {shown} FROM {rows}) AS kept", parameters, frames=registered.frames)


def _reading(registered: RegisteredTable, part: Part, parameters: dict[str, object]) -> keep.Reading:
    if registered.source.coded:
        return _again(registered, registered.source.relation)
    layers = kept_rows.layers_of(registered, parameters, integers=True)
    return kept_rows.reading_of(registered, layers, whole=part.whole)


def _shown(registered: RegisteredTable, reading: keep.Reading, *, spell: bool) -> str:
    """What is kept of a record, the public hash as it stands beside its person."""
    columns, found = stored_types(registered.schema), spelled(registered.schema) if spell else {}
    shown = keep.outer(reading, columns, stored=True)
    shown[len(columns)] = kept_table.PERSON
    shown += [f"list_extract([{keep.DIGITS}], {code} + 1) AS {text}" for code, text in found.items()]
    return ", ".join([*shown, OWNER])


def _of_persons(registered: RegisteredTable, reading: keep.Reading, part: Part, number: str) -> str:
    """The cells of records whose person has such a number of them; a record that names nobody meets no person."""
    blanked = registered.unit.neighbors == "zero_out"
    there = keep.present(replace(reading, person=None), stored_types(registered.schema), blanked=blanked)
    told = "w" if reading.whole else TEXT
    met = f"{told} = person AND n{part.tables.index(registered)} {number}"
    return f"{part.only(keep.cells(reading), told)} JOIN {part.numbered} ON {met}{there}"


def candidates(registered: RegisteredTable, part: Part) -> KeptRows:
    """All rows of the persons who have more than are kept, as cells, each with the beginning of its hash (SR2)."""
    parameters: dict[str, object] = {"key": registered.key.hex()}
    reading, columns = _reading(registered, part, parameters), stored_types(registered.schema)
    digits = f"substr({keep.ordered(columns, '$key')}, 1, {PREFIX_DIGITS})"
    shown = [*keep.outer(reading, columns, stored=True)[: len(columns)], kept_table.PERSON, OWNER]
    shown += [*([keep.POSITION] if reading.places else []), f"TRY_CAST(concat('0x', {digits}) AS BIGINT) AS {ORDER}"]
    rows = _of_persons(registered, reading, part, f"> {registered.unit.rows}")
    return KeptRows(f"(SELECT {', '.join(shown)} FROM {rows})", parameters, frames=registered.frames)


def lasts(registered: RegisteredTable) -> str:
    """Where the hash of each person's last kept row begins, and whether one that is left out begins alike: a tie.

    Privacy: hashes are ordered as their beginnings are, so no row that would be kept of all begins with a larger one.
    """
    most = registered.unit.rows
    if most + 1 >= MAX_LEAST:  # the kernel's statement chooses among all of them
        found = f"max({ORDER}) AS last, count(*) > {most} AS tied"
        return f"(SELECT {OWNER} AS whose, {found} FROM {CANDIDATES} GROUP BY {OWNER})"
    first = f"(SELECT {OWNER} AS whose, min({ORDER}, {most + 1}) AS found FROM {CANDIDATES} GROUP BY {OWNER})"
    tied = f"coalesce(found[{most + 1}] = found[{most}], false) AS tied"
    return f"(SELECT whose, found[least(len(found), {most})] AS last, {tied} FROM {first})"


def _least(condition: str) -> str:
    """The candidates that are kept for certain, or may be, of persons for whom a condition holds."""
    met = f"{OWNER} = whose AND {ORDER} <= last AND {condition}"
    return f"(SELECT {CANDIDATES}.* FROM {CANDIDATES} JOIN {LASTS} ON {met})"


def untied(registered: RegisteredTable, *, spell: bool) -> KeptRows:
    """The kept rows of persons of whom the beginnings of hashes decide."""
    least = _least("NOT tied")
    return KeptRows(f"(SELECT {_shown(registered, _again(registered, least), spell=spell)} FROM {least})")


def tied() -> KeptRows:
    """The candidates of the other persons that may be kept."""
    return KeptRows(_least("tied"))


def undecided(part: Part) -> str:
    """The other persons, by their texts."""
    whose = f"SELECT whose FROM {LASTS} WHERE tied"
    return f"SELECT CAST(person AS VARCHAR) AS person, {OWNER} FROM {part.numbered} WHERE {OWNER} IN ({whose})"


def chosen(registered: RegisteredTable, *, spell: bool, part: int = 0, of: int = 1) -> KeptRows:
    """The kept rows of tied persons, who are the PEOPLE here: chosen by whole hashes, by the kernel's statement.

    `part`: one of so many parts of these persons, so that what is put in order at once has room.
    """
    schema, unit = registered.schema, registered.unit
    cells = [f"{name} AS s{name[1:]}" for name in names(schema).values()]
    shown = ", ".join([*cells, f"person AS {WHO}", *([keep.POSITION] if unit.positions_are_public else [])])
    query = keep.keep(
        _again(
            registered, f"(SELECT {shown} FROM {LEAST} JOIN {PEOPLE} USING ({OWNER}) WHERE {OWNER} % {of} = {part})"
        ),
        stored_types(schema),
        unit.rows,
        spelled={text: code for code, text in spelled(schema).items()} if spell else {},
        blanked=unit.neighbors == "zero_out",
        key="$key",
        stored=True,
    )
    return KeptRows(query, {"key": registered.key.hex()})


def _again(registered: RegisteredTable, source: str) -> keep.Reading:
    """Cells that were read once: s0, s1, ... and the person's text."""
    places = range(len(registered.schema.columns))
    layers = (
        ("1 AS one", *(f"s{i} AS a{i}" for i in places)),
        ("one", *(f"a{i} AS b{i}" for i in places)),
        ("one", *(f"b{i} AS c{i}" for i in places)),
    )
    return keep.Reading(source, layers, (WHO, "a"), places=registered.unit.positions_are_public)
