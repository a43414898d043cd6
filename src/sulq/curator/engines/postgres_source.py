"""A table of PostgreSQL as a source: what it offers, and how its rows come out of it in one snapshot.

Each column is selected as one of a few plain kinds, by expressions that no cell can
make fail, and streamed as text into DuckDB, which from there on reads it as any
other source. Numerics stay text: not a digit of a long identifier is lost.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, cast

import psycopg
import pyarrow as pa
import pyarrow.csv

from sulq.curator.engines import grammar
from sulq.curator.engines.grammar import Cell
from sulq.curator.engines.person import Form, Person
from sulq.curator.engines.source import WHO, Source, whom
from sulq.errors import SetupError
from sulq.terms.domain import Schema, Text
from sulq.terms.privacy import Fold, Unit

BLOCK: Final = 1 << 24  # bytes of text parsed at a time
BLOCK_OF_CELL: Final = 1 << 18  # and so many for each column: no row is longer, whatever its cells hold
MAX_CELL_BYTES: Final = 1 << 16  # of a text that is not cut; a longer one is missing
KINDS: Final = ("r", "p", "v", "m", "f")  # tables, partitioned or not, views, foreign tables
SHAPE: Final = """
SELECT c.oid::bigint, c.relkind::text, a.attname::text, base.name, base.kind
FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
LEFT JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
LEFT JOIN LATERAL (
    WITH RECURSIVE under (oid, up) AS (
        SELECT t.oid, t.typbasetype FROM pg_type AS t WHERE t.oid = a.atttypid
        UNION ALL SELECT t.oid, t.typbasetype FROM under JOIN pg_type AS t ON t.oid = under.up
    )
    SELECT format_type(t.oid, NULL), t.typtype::text
    FROM under JOIN pg_type AS t ON t.oid = under.oid WHERE under.up = 0
) AS base (name, kind) ON true
WHERE n.nspname = %s AND c.relname = %s ORDER BY a.attnum
"""
# What a view calls, itself or through views it reads, that may hide rows from one role and show them to another, or
# draw them by chance: functions that run with the rights or settings of another (row-level policies of theirs apply,
# whatever this session says), volatile ones, and the owner's own that are not immutable; and TABLESAMPLE.
HIDING: Final = r"""
WITH RECURSIVE viewed (oid) AS (
    SELECT %s::oid
    UNION SELECT found.oid::oid FROM viewed JOIN pg_rewrite AS rule ON rule.ev_class = viewed.oid,
        LATERAL (SELECT (regexp_matches(rule.ev_action::text, ':relid (\d+)', 'g'))[1]) AS found (oid)
), defined (action) AS (
    SELECT ev_action::text FROM viewed JOIN pg_class ON pg_class.oid = viewed.oid AND relkind = 'v'
    JOIN pg_rewrite ON ev_class = viewed.oid
)
SELECT proname::text FROM defined,
    LATERAL (SELECT (regexp_matches(action, ':(?:op|)funcid (\d+)', 'g'))[1]) AS called (oid)
    JOIN pg_proc ON pg_proc.oid = called.oid::oid
WHERE prosecdef OR proconfig IS NOT NULL OR provolatile = 'v' OR (pg_proc.oid >= 16384 AND provolatile <> 'i')
UNION ALL SELECT 'TABLESAMPLE' FROM defined WHERE action LIKE '%%:tablesample {%%'
ORDER BY 1 LIMIT 1
"""
_TEXTS: Final = ("text", "character varying", "character", "name", "citext", "uuid")
_WHOLE: Final = ("smallint", "integer", "bigint")
_BEYOND: Final = f"({-grammar.BEYOND})", str(grammar.BEYOND)


@dataclass(frozen=True, slots=True)
class Offered:
    """A table as it stands: its oid and its columns, each with PostgreSQL's name of what is under its type."""

    oid: int
    kind: str
    relation: str  # quoted
    columns: tuple[tuple[str, str, str], ...]  # name, type, kind of type

    @property
    def lockable(self) -> bool:
        """Whether it can be locked against being altered."""
        return self.kind in ("r", "p", "v")


def quoted(name: str) -> str:
    """An owner's name as an identifier."""
    return '"' + name.replace('"', '""') + '"'


def offered(db: psycopg.Connection, schema: str, name: str) -> Offered:
    """A table's columns by the catalogue; no row is read.

    Raises:
        SetupError: there is no such table, nothing rows can be read from, or a view whose rows may be hidden or drawn
            by chance.
    """
    found = db.execute(SHAPE, [schema, name]).fetchall()
    if not found or found[0][1] not in KINDS:
        raise SetupError(
            "unreadable-data",
            f"The database has no table {name[:63]!r} in its schema {schema[:63]!r}.",
            "Name the table: table=NAME, or ?table=SCHEMA.NAME in the address.",
        )
    hiding = db.execute(HIDING, [found[0][0]]).fetchone() if found[0][1] == "v" else None
    if hiding is not None:
        raise SetupError(
            "bad-declaration",
            f"The view {name[:63]!r} calls {str(hiding[0])[:63]}, which may hide rows or draw them by chance.",
            "Give the tables it reads, or a copy: CREATE TABLE ... AS SELECT, as a role that sees all rows.",
        )
    columns = tuple((str(row[2]), str(row[3]), str(row[4])) for row in found if row[2] is not None)
    return Offered(int(found[0][0]), str(found[0][1]), f"{quoted(schema)}.{quoted(name)}", columns)


@dataclass(frozen=True, slots=True)
class Stream:
    """How a table's rows are selected, and what DuckDB makes of them."""

    source: Source
    select: str
    forced: str  # the columns whose texts are always quoted
    kinds: dict[str, pa.DataType]

    def batches(self, db: psycopg.Connection) -> Iterator[pa.RecordBatch]:
        """The rows of the session's snapshot."""
        force = f", FORCE_QUOTE ({self.forced})" if self.forced else ""
        with db.cursor().copy(f"COPY ({self.select}) TO STDOUT (FORMAT csv{force})") as copy:
            text = _Text(copy)
            if not text.empty:
                yield from _parsed(text, self.kinds)

    @property
    def schema(self) -> pa.Schema:
        """The columns as Arrow's."""
        return pa.schema(list(self.kinds.items()))


def _parsed(text: io.RawIOBase, kinds: dict[str, pa.DataType]) -> Iterator[pa.RecordBatch]:
    yield from pa.csv.open_csv(
        text,
        pa.csv.ReadOptions(
            use_threads=False, block_size=max(BLOCK, len(kinds) * BLOCK_OF_CELL), column_names=list(kinds)
        ),
        pa.csv.ParseOptions(newlines_in_values=True, ignore_empty_lines=False),
        pa.csv.ConvertOptions(
            column_types=kinds,
            null_values=[""],
            true_values=["t"],
            false_values=["f"],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    )


class _Text(io.RawIOBase):
    """What a COPY sends, as a file."""

    def __init__(self, copy: psycopg.Copy) -> None:
        super().__init__()
        self._copy = copy
        self._left = bytes(copy.read())
        self.empty = not self._left

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: object) -> int:
        view = memoryview(buffer).cast("B")  # type: ignore[arg-type]
        parts, size = [self._left], len(self._left)
        while size < len(view):
            part = bytes(self._copy.read())
            if not part:
                break
            parts.append(part)
            size += len(part)
        whole = b"".join(parts)
        taken, self._left = whole[: len(view)], whole[len(view) :]
        view[: len(taken)] = taken
        return len(taken)


def stream(table: Offered, schema: Schema, unit: Unit, number: str) -> Stream:
    """How the needed columns of a table are read; refuses what is missing or of no declared kind."""
    places = grammar.places([name for name, _, _ in table.columns], schema, unit)
    columns: dict[str, tuple[Cell, str]] = {}
    selected, kinds, forced = [], {}, []
    for i, name in enumerate(schema.names):
        place = places[name]
        _, base, category = table.columns[place]
        cell, sql, kind = _plain(name, base, category, quoted(name))
        declared = schema.find(name)
        if declared is not None:
            grammar.agree(name, declared, "number" if base == "numeric" else cell)
        if cell == "text" and base != "numeric":
            sql = f"left({sql}, {declared.longest})" if isinstance(declared, Text) else _short(sql)
        columns[name] = cell, f"s{i}"
        kinds[f"s{i}"] = kind
        selected.append(f"{sql} AS s{i}")
        forced += [f"s{i}"] if cell == "text" else []
    named: Person | None = None
    if unit.column is not None:
        _, base, category = table.columns[places[unit.column]]
        form, sql, kinds[WHO] = _named(unit.column, base, category, unit.fold)
        named = whom((form, WHO), schema, unit)
        selected.append(f"{sql} AS {WHO}")
        forced += [WHO] if pa.types.is_large_string(kinds[WHO]) else []
    select = f"SELECT {', '.join(selected)} FROM {table.relation}"
    source = Source(f"origin.source{number}", columns, None, person=named)
    return Stream(source, select, ", ".join(forced), kinds)


def _named(name: str, base: str, category: str, fold: Fold | None) -> tuple[Form, str, pa.DataType]:
    """What the column of persons holds, how to select it exactly and what it is in Arrow."""
    cell, sql, kind = _plain(name, base, category, quoted(name))
    if base == "numeric":
        none = "'NaN', 'Infinity', '-Infinity'"
        digits = f"CASE WHEN {quoted(name)} IN ({none}) THEN NULL ELSE trim_scale({quoted(name)})::text END"
        return "number", digits, kind
    if base.rpartition(".")[2] == "citext" and fold is None:
        raise SetupError("person-type", f"Column {name!r} is of type citext, to which the case of letters is nothing.")
    if cell == "number":
        return "single" if base == "real" else "double", sql, kind
    return "uuid" if base == "uuid" else cast("Form", cell), _short(sql) if cell == "text" else sql, kind


def _short(item: str) -> str:
    return f"CASE WHEN octet_length({item}) <= {MAX_CELL_BYTES} THEN {item} END"


def _plain(name: str, base: str, category: str, item: str) -> tuple[Cell, str, pa.DataType]:
    """What a column holds, how to select it and what it is in Arrow."""
    if base == "boolean":
        return "truth", item, pa.bool_()
    if base in _WHOLE:
        return "whole", f"{item}::bigint", pa.int64()
    if base in ("real", "double precision"):
        return "number", f"{item}::double precision", pa.float64()
    if base == "numeric":
        ends = "WHEN 'NaN' THEN NULL WHEN 'Infinity' THEN '1e308' WHEN '-Infinity' THEN '-1e308'"
        return "text", f"CASE {item} {ends} ELSE trim_scale({item})::text END", pa.large_string()
    if base.rpartition(".")[2] in _TEXTS or category == "e":  # citext lies in a schema of its owner's choice
        return "text", f"{item}::text", pa.large_string()
    if base == "date":
        inside = f"({item} - date '1970-01-01')::bigint"
        return "date", _saturated(item, "date '0001-01-01'", "date '9999-12-31'", inside), pa.int64()
    if base in ("timestamp without time zone", "timestamp with time zone"):
        kind, zone = ("timestamptz", "+00") if base.endswith("with time zone") else ("timestamp", "")
        first, last = f"{kind} '0001-01-01 00:00:00{zone}'", f"{kind} '9999-12-31 23:59:59.999999{zone}'"
        inside = f"(extract(epoch FROM {item}) * 1000000)::bigint"  # a numeric: exact
        return "moment", _saturated(item, first, last, inside), pa.int64()
    raise SetupError(
        "bad-declaration", f"Column {name!r} of the data is of type {base[:40]}, which sulq does not read."
    )


def _saturated(item: str, first: str, last: str, inside: str) -> str:
    """Days and moments of the years 1 to 9999; what lies beyond, infinities too, is past every bound."""
    low, high = _BEYOND
    return f"CASE WHEN {item} < {first} THEN {low} WHEN {item} > {last} THEN {high} ELSE {inside} END"
