"""A table of PostgreSQL as records: each column as text by an expression of its own row.

No cell can make an expression fail. Of a number not a digit is lost: DuckDB reads the texts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import psycopg
import pyarrow as pa

from sulq.errors import SetupError
from sulq.kernel.facts import Fold
from sulq.sources.decode.person import WHO, Form, figures

BATCH_ROWS: Final = 1000
MAX_CELL_BYTES: Final = 1 << 16  # of a text that is not cut; a longer one is missing
_TEXTS: Final = ("text", "character varying", "character", "name", "citext")  # the last in a schema of any name
_DAY, _CLOCK = "[0-9]{4}-[0-9]{2}-[0-9]{2}", r"[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]+)?"
_TYPES: Final[dict[str, tuple[Form, str]]] = {  # by type; what is past the years 1 to 9999 names nobody
    "boolean": ("truth", WHO),
    **dict.fromkeys(("smallint", "integer", "bigint"), ("whole", f"TRY_CAST({WHO} AS BIGINT)")),
    "numeric": ("number", figures(WHO)),
    "real": ("single", f"TRY_CAST({WHO} AS DOUBLE)"),
    "double precision": ("double", f"TRY_CAST({WHO} AS DOUBLE)"),
    "uuid": ("uuid", WHO),
    "date": ("date", f"CASE WHEN regexp_full_match({WHO}, '{_DAY}') THEN {WHO} END"),
    **dict.fromkeys(
        ("timestamp without time zone", "timestamp with time zone"),
        ("time", f"CASE WHEN regexp_full_match({WHO}, '{_DAY} {_CLOCK}') THEN {WHO} END"),
    ),
}
_EXPRESSIONS: Final = {
    "real": "{0}::double precision",
    "numeric": "trim_scale({0})",
    "timestamp with time zone": "{0} AT TIME ZONE 'UTC'",
}


class PostgresColumn(NamedTuple):
    """A column by the catalogue: its type's name and kind. `longest`: how many characters of a text are wanted."""

    name: str
    base: str
    category: str
    longest: int | None = None


class Records(NamedTuple):
    """How rows are selected, as texts s0, s1, ... and WHO, and how DuckDB gets at the person."""

    select: str
    schema: pa.Schema
    named: tuple[Form, str] | None

    def batches(self, db: psycopg.Connection) -> Iterator[pa.RecordBatch]:
        """The rows of the session's snapshot."""
        with db.cursor("records", binary=True) as cursor:
            cursor.execute(self.select)
            while rows := cursor.fetchmany(BATCH_ROWS):
                columns = [pa.array(cells, pa.large_string()) for cells in zip(*rows, strict=True)]
                yield pa.RecordBatch.from_arrays(columns, schema=self.schema)


def quoted(name: str) -> str:
    """An owner's name as an identifier."""
    return '"' + name.replace('"', '""') + '"'


def records(
    relation: str, columns: Sequence[PostgresColumn], named: PostgresColumn | None, fold: Fold | None
) -> Records:
    """How some columns of a table are read, and the one that names persons."""
    selected = {f"s{i}": _selected(column) for i, column in enumerate(columns)}
    if named is not None:
        selected[WHO] = _selected(named)
        if named.base.rpartition(".")[2] == "citext" and fold is None:
            why = f"Column {named.name!r} is of type citext, to which the case of letters is nothing."
            raise SetupError("person-type", why)
    shown = ", ".join(f"{item} AS {name}" for name, item in selected.items())
    person = None if named is None else _TYPES.get(named.base, ("text", WHO))
    schema = pa.schema(dict.fromkeys(selected, pa.large_string()))
    return Records(f"SELECT {shown} FROM {relation}", schema, person)


def _selected(column: PostgresColumn) -> str:
    """A column as text; refuses a type that is not read."""
    name, base, category, longest = column
    text = f"({_EXPRESSIONS.get(base, '{0}').format(quoted(name))})::text"
    if base in _TYPES:
        return text
    if base.rpartition(".")[2] in _TEXTS or category == "e":
        short = f"CASE WHEN octet_length({text}) <= {MAX_CELL_BYTES} THEN {text} END"
        return short if longest is None else f"left({text}, {longest})"
    why = f"Column {name!r} of the data is of type {base[:40]}, which sulq does not read."
    raise SetupError("bad-declaration", why)
