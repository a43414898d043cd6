"""The tables of one dataset as its owner gave them: where each is read from, whose its rows are, what is public."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, NoReturn

import pyarrow as pa
import pyarrow.parquet

from sulq.errors import SetupError
from sulq.language.domain import Schema
from sulq.language.facts import TableFacts, Tables
from sulq.language.privacy import Unit
from sulq.sources.decode import csv_file, person
from sulq.sources.decode.person import EXACT, FIGURES, Form
from sulq.sources.erasure import without_erased
from sulq.sources.origin import Origin, suffix
from sulq.sources.source import RegisteredTable, Shapes, TableSource, describe


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Given:
    """One table: its data, its public facts, and its name inside a file of several tables."""

    origin: Origin
    facts: TableFacts
    inside: str | None = None

    def unit(self, whole: Unit) -> Unit:
        """Whom this table's rows belong to: nobody where it is public, one row a person where the person is its key."""
        if self.facts.public:  # every row is kept; places are there where a question may speak of them
            return Unit(neighbors="replace_one" if whole.positions_are_public else "add_remove")
        person = self.facts.person or whole.column
        if person is None:
            return whole
        return replace(whole, column=person, rows=1 if self.facts.key == person else whole.rows)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Dataset:
    """All tables of a dataset, the person space they belong to and its key for choosing kept rows (SR2)."""

    tables: tuple[Given, ...]
    unit: Unit
    key: bytes
    space: str = ""
    erased: tuple[str, ...] = ()  # digests of persons whose rows are left out (erasure.py)

    def __post_init__(self) -> None:
        columns = [c for given in self.tables if not given.facts.public for _, c in given.facts.schema.columns]
        if self.unit.neighbors == "zero_out" and not all(column.missing for column in columns):
            # A blanked row is known by its missing cells; with defaults in them it would move sums past their bounds.
            why = "Under zero_out a person's row may be blanked, so every column may be missing."
            raise SetupError("bad-declaration", why, "Leave out missing=False.")

    @classmethod
    def one(
        cls, origin: Origin, schema: Schema, unit: Unit, key: bytes, *, inside: str | None = None, space: str = ""
    ) -> Dataset:
        """A dataset of one table."""
        return cls((Given(origin, TableFacts(schema), inside),), unit, key, space)

    @property
    def facts(self) -> Tables:
        """What is public of the tables."""
        return Tables(self.unit, tuple(given.facts for given in self.tables))

    def find(self, table: str = "") -> Given:
        """A table by its name; without one, the first."""
        return next(given for given in self.tables if table in ("", given.facts.schema.table))

    def with_rows(self, rows: Mapping[str, int]) -> Dataset:
        """The same dataset with the numbers of rows that its public tables have."""
        tables = (
            replace(given, facts=replace(given.facts, rows=rows[given.facts.schema.table]))
            if given.facts.public
            else given
            for given in self.tables
        )
        return replace(self, tables=tuple(tables))

    def registered(self) -> tuple[RegisteredTable, ...]:
        """How each table of files and frames is read; what is missing or of no declared kind is refused."""
        files: dict[object, str] = {}  # a file that holds several of the tables is attached once
        with Shapes() as shapes:

            def read(given: Given, unit: Unit, number: str) -> TableSource:
                attached = files.setdefault(given.origin.path, f"origin{number}")
                schema = given.facts.schema
                return describe(
                    given.origin, schema, unit, given.inside, number=number, attached=attached, shapes=shapes
                )

            return self.register(read)

    def register(self, read: Callable[[Given, Unit, str], TableSource]) -> tuple[RegisteredTable, ...]:
        """Each table with how it is read; `read` is told whom its rows belong to, and the table's number."""
        found: list[RegisteredTable] = []
        first = 0
        for i, given in enumerate(self.tables):
            number = "" if len(self.tables) == 1 else str(i)
            unit, schema = given.unit(self.unit), given.facts.schema
            facts = given.facts.key, given.facts.references
            source = read(given, unit, number)
            source = without_erased(source, self.key) if self.erased else source
            table = RegisteredTable(given.origin, source, schema, unit, self.key, self.space, number, first, *facts)
            found.append(replace(table, erased=self.erased))
            first += len(schema.columns)
        check_persons(found, self.unit)
        return tuple(found)


def check_persons(tables: Sequence[RegisteredTable], unit: Unit) -> None:
    """Refuse tables that name persons by several kinds of ids."""
    named = [(item, item.source.person) for item in tables if item.source.person is not None]
    person.agree([(item.schema.table, item.unit.column or "", found.form) for item, found in named], unit.fold)


def rows_at_most(origin: Origin, schema: Schema, inside: str | None) -> int:
    """How many rows a public table has, at most: of a CSV file the records.

    Of a table in a database, or on Spark, nothing is known before it is copied: its engine says it then.
    """
    if origin.home:
        return 0
    examined = origin.check()
    if examined is not None:
        return examined.records
    return describe(origin, schema, Unit(), inside).rows or 0


def not_unique(table: str, column: str) -> NoReturn:
    """Stop the owner."""
    raise SetupError(
        "key-not-unique",
        f"Column {column!r} of table {table!r} is declared its key, but a value stands there more than once.",
        "Leave the table out of keys=, or remove the duplicates.",
    )


def not_own(table: str, column: str, other: str) -> NoReturn:
    """Stop the owner."""
    raise SetupError(
        "reference-not-own",
        f"Column {column!r} of table {table!r} is declared to refer to {other!r}, but a row leads to another person's.",
        "Leave the column out of references=, or mend the rows.",
    )


UNSURE: Final = frozenset({"figures", *EXACT})  # forms that have values of which no exact number can be told


def inexact(table: str, column: str, form: Form) -> SetupError:
    """Stop the owner, who alone hears of it."""
    if form == "figures":
        why = "is declared a number and holds an id that is none"
    else:
        why = f"holds floating-point ids that are no whole numbers below 2^{EXACT[form].bit_length() - 1}"
    return SetupError("person-type", f"Column {column!r} of {table!r} {why}: ids may have been rounded to one.")


def unfit_sql(form: Form, item: str) -> str:
    """Whether a cell holds something of which no exact number can be told; NaN, infinities and blanks are missing."""
    if form == "figures":
        text = person.trimmed(item)
        return f"{text} <> '' AND NOT regexp_full_match({text}, '{FIGURES}')"
    return f"isfinite({item}) AND NOT ({person.fits(form, item)})"


Columns = list[tuple[str, str]]


def list_tables(path: Path) -> list[tuple[str, Columns]]:
    """Each table of a file with its columns: name and kind. A file of one table has it under the file's own name."""
    origin = Origin.of(path)
    place = path.resolve()
    alone = place.name.removesuffix(".gz").rsplit(".", 1)[0]
    if suffix(place) == ".csv":
        return [(alone, [(name, "text") for name in csv_file.header(place)])]
    if suffix(place) == ".parquet":
        origin.parquet()  # refuses what is not whole
        schema = pa.parquet.read_schema(place)
        return [(alone, [(str(field.name), str(field.type)) for field in schema])]
    if suffix(place) == ".duckdb":
        return _duckdb_tables(place)
    raise SetupError("unreadable-data", f"{path.name!r} is of no kind that is read here.")


def _duckdb_tables(path: Path) -> list[tuple[str, Columns]]:
    with Shapes() as shapes, shapes.attached(path):
        rows = shapes.ask(
            "SELECT table_name, column_name, data_type FROM duckdb_columns() "
            "WHERE database_name = 'origin' AND NOT internal ORDER BY table_name, column_index",
        )
    found: dict[str, Columns] = {}
    for table, column, kind in rows:
        found.setdefault(str(table), []).append((str(column), str(kind)))
    return list(found.items())
