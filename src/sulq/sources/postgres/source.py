"""A table of PostgreSQL as a source: what it offers, and how its rows come out of it in one snapshot.

Each column is streamed as text into DuckDB (`sulq.sources.decode.postgres`), which from there on
reads it as any other source.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import psycopg

from sulq.errors import SetupError
from sulq.language.domain import Schema, Text
from sulq.language.privacy import Unit
from sulq.sources import cell_grammar
from sulq.sources.cell_grammar import Cell
from sulq.sources.decode.postgres import PostgresColumn, Records, quoted, records
from sulq.sources.source import TableSource, whom

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


@dataclass(frozen=True, slots=True)
class OfferedTable:
    """A table as it stands: its oid and its columns, each with PostgreSQL's name of what is under its type."""

    oid: int
    kind: str
    relation: str  # quoted
    columns: tuple[tuple[str, str, str], ...]  # name, type, kind of type

    @property
    def lockable(self) -> bool:
        """Whether it can be locked against being altered."""
        return self.kind in ("r", "p", "v")


def offered(db: psycopg.Connection, schema: str, name: str) -> OfferedTable:
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
    return OfferedTable(int(found[0][0]), str(found[0][1]), f"{quoted(schema)}.{quoted(name)}", columns)


def stream(table: OfferedTable, schema: Schema, unit: Unit, number: str) -> tuple[TableSource, Records]:
    """How the needed columns of a table are selected, and how DuckDB reads them; refuses what is missing or unfit."""
    places = cell_grammar.places([name for name, _, _ in table.columns], schema, unit)
    wanted = [
        PostgresColumn(*table.columns[places[name]], column.longest if isinstance(column, Text) else None)
        for name, column in schema.columns
    ]
    named = None if unit.column is None else PostgresColumn(*table.columns[places[unit.column]])
    read = records(table.relation, wanted, named, unit.fold)
    columns = {column.name: _plain(column, f"s{i}") for i, column in enumerate(wanted)}
    for name, declared in schema.columns:
        numeric = table.columns[places[name]][1] == "numeric"
        cell_grammar.agree(name, declared, "number" if numeric else columns[name][0])
    return TableSource(f"origin.source{number}", columns, None, person=whom(read.named, schema, unit)), read


def _plain(column: PostgresColumn, item: str) -> tuple[Cell, str]:
    """What a column holds, and how DuckDB gets at it from PostgreSQL's text."""
    base = column.base
    if base == "boolean":
        return "truth", f"TRY_CAST({item} AS BOOLEAN)"
    if base in ("smallint", "integer", "bigint"):
        return "whole", f"TRY_CAST({item} AS BIGINT)"
    if base in ("real", "double precision"):
        return "number", f"TRY_CAST({item} AS DOUBLE)"
    if base == "numeric":
        ends = "WHEN 'NaN' THEN NULL WHEN 'Infinity' THEN '1e308' WHEN '-Infinity' THEN '-1e308'"
        return "text", f"CASE {item} {ends} ELSE {item} END"
    if base == "date":
        return "date", _saturated(item, f"(TRY_CAST({item} AS DATE) - DATE '1970-01-01')")
    if base.startswith("timestamp"):
        return "moment", _saturated(item, f"epoch_us(TRY_CAST({item} AS TIMESTAMP))")
    return "text", item


def _saturated(item: str, inside: str) -> str:
    """Days and moments of the years 1 to 9999; what lies beyond, infinities too, is past every bound."""
    low, high = f"({-cell_grammar.BEYOND})", cell_grammar.BEYOND
    early = f"WHEN regexp_full_match({item}, '-infinity|.* BC') THEN {low}"
    return f"CASE {early} WHEN regexp_full_match({item}, 'infinity|[0-9]{{5,}}-.*') THEN {high} ELSE {inside} END"
