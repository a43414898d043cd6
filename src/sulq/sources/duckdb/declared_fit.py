"""How declarations fit the rows of files and frames: counts by the same expressions that read cells into kept rows.

Privacy: these are exact. They go to the owner who may read the rows anyway, and nowhere else: no ledger, no log.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Final

import duckdb
import pyarrow as pa

from sulq.errors import SetupError
from sulq.language.domain import Category, Column, Date, Int, Real, Text, Timestamp, Vertices, may_be_missing
from sulq.language.rowfn.piece import double, whole
from sulq.sources import cell_reading
from sulq.sources.cell_reading import DAY, Cell
from sulq.sources.decode.person import Person
from sulq.sources.duckdb import kept_rows, prepare
from sulq.sources.duckdb.connection import Connection
from sulq.sources.engines import ELSEWHERE
from sulq.sources.source import RegisteredTable
from sulq.sources.tables import Dataset

MAX_SHOWN_VALUES: Final = 20  # declared values that never occur: so many are named, all are counted
Tree = dict[str, object]

_log = logging.getLogger("sulq")


def declared_fit(dataset: Dataset, *, chosen: bool = True) -> list[Tree]:
    """What becomes of each table's cells and rows.

    Args:
        dataset: Files or frames, as they are declared.
        chosen: Whether the number of rows of a person is fixed; else no row is counted as dropped.

    Raises:
        SetupError: the data is not there, not as declared, cannot be read, or lies elsewhere.
    """
    if any(given.origin.home in ELSEWHERE for given in dataset.tables):
        raise SetupError(
            "not-available",
            "Declarations are checked against files and frames; these tables lie in a database or on Spark.",
            "Check an export of them, or count there by the database's own means.",
        )
    tables = [_described(item) for item in dataset.registered()]
    try:
        return _found(tables, chosen=chosen)
    except duckdb.Error as error:  # a cell that Arrow may read
        _log.error("a check is tried again: %s", type(error).__name__)  # its text may hold a cell (T31)
    try:
        return _found(tables, chosen=chosen, rewritten=True)
    except duckdb.Error as error:
        _log.error("a check failed: %s", type(error).__name__)
    raise SetupError("unreadable-data", "The data could not be read to its end.")


def _described(registered: RegisteredTable) -> RegisteredTable:
    """A table whose missing cells stay missing, its CSV file checked."""
    columns = tuple((name, may_be_missing(column)) for name, column in registered.schema.columns)
    own = replace(registered, schema=replace(registered.schema, columns=columns))
    return own.examined(own.origin.check())


def _found(tables: Sequence[RegisteredTable], *, chosen: bool, rewritten: bool = False) -> list[Tree]:
    connection = Connection()
    try:
        if rewritten:
            tables = prepare.rewrite(tables, Path(connection.folder))
        prepare.open_sources(connection, tables)
        return [_checked(connection, item, chosen=chosen) for item in tables]
    finally:
        connection.close()


def _checked(connection: Connection, registered: RegisteredTable, *, chosen: bool) -> Tree:
    parameters: dict[str, object] = {}
    columns = list(registered.schema.columns)
    shown = [each for i, (_, column) in enumerate(columns) for each in _counts(registered, i, column)]
    with closing(connection.cursor()) as cursor:
        for name, frame in registered.frames.items():
            cursor.register(name, frame)
        for i, (_, column) in enumerate(columns):
            if isinstance(column, Category):
                near = pa.array(sorted({str(value).strip().lower() for value in column.values}), pa.string())
                cursor.register(f"near{i}", pa.table({"item": near}))
        cells = _cells(registered, parameters)
        row = cursor.execute(f"SELECT count(*), {', '.join(shown)} FROM {cells}", parameters).fetchone() or ()
        tree: Tree = {"name": registered.schema.table, "rows": row[0]}
        each = iter(row[1:])
        tree["columns"] = [_column(name, column, [next(each) for _ in range(8)]) for name, column in columns]
        return tree | _persons(cursor, registered, chosen=chosen)


def _column(name: str, column: Column, counts: list[object]) -> Tree:
    *found, occurring = counts
    named = ("missing", "unread", "unmatched", "nearly", "below", "above", "cut")
    tree: Tree = {"name": name, "kind": type(column).__name__} | dict(zip(named, found, strict=True))
    if isinstance(column, Category):
        seen = set(occurring) if isinstance(occurring, list) else set()
        never = [str(value) for code, value in enumerate(column.values) if code not in seen]
        tree |= {"unused": never[:MAX_SHOWN_VALUES], "never": len(never)}
    return tree


def _cells(registered: RegisteredTable, parameters: dict[str, object]) -> str:
    """Each record's cells three times: as the source has them `r`, as numbers or moments `b`, and as codes `c`."""
    layers = kept_rows.layers_of(registered, parameters, integers=True)
    raw = [f"{sql} AS r{i}" for i, (_, sql) in enumerate(registered.source.columns[n] for n in registered.schema.names)]
    kept = [f"r{i}" for i in range(len(raw))]
    values = [f"b{i}" for i in range(len(raw))]
    reading = kept_rows.reading_of(registered, layers, whole=False)
    first = f"(SELECT {', '.join([*layers[0], *raw])} FROM {reading.source})"
    second = f"(SELECT {', '.join([*layers[1], *kept])} FROM {first})"
    near = [
        f"lower(trim(CAST(r{i} AS VARCHAR))) IN (SELECT item FROM near{i}) AS h{i}"
        for i, (_, column) in enumerate(registered.schema.columns)
        if isinstance(column, Category)
    ]
    return f"(SELECT {', '.join([*layers[2], *kept, *values, *near])} FROM {second})"


def _counts(registered: RegisteredTable, i: int, column: Column) -> list[str]:
    """The aggregates of one column: missing, unread, unmatched, nearly, below, above, cut; codes that occur."""
    cell, _ = registered.source.columns[registered.schema.names[i]]
    value, _ = cell_reading.value(column, cell, f"r{i}")
    there = f"r{i} IS NOT NULL"
    there += f" AND trim(r{i}) <> ''" if cell == "text" else f" AND NOT isnan(r{i})" if cell == "number" else ""
    listed = isinstance(column, (Category, Vertices))
    lost = f"count(*) FILTER ({there} AND c{i} IS NULL)"
    nearly = f"count(*) FILTER ({there} AND c{i} IS NULL AND h{i})" if isinstance(column, Category) else "0"
    below, above = _beyond(column, value, f"b{i}")
    cut = f"count(*) FILTER (length(r{i}) > {column.longest})" if isinstance(column, Text) and cell == "text" else "0"
    occurring = f"list(DISTINCT c{i}) FILTER (c{i} IS NOT NULL)" if isinstance(column, Category) else "NULL"
    unread = "0" if listed or isinstance(column, Text) else lost
    return [
        f"count(*) - count(*) FILTER ({there})",
        unread,
        lost if listed else "0",
        nearly,
        below,
        above,
        cut,
        occurring,
    ]


def _beyond(column: Column, value: Cell, item: str) -> tuple[str, str]:
    """How many cells lie below the low bound, and above the high one."""
    low: str
    high: str
    if isinstance(column, Vertices) or not isinstance(column, (Int, Real, Date, Timestamp)):
        return "0", "0"
    if isinstance(column, (Int, Real)):
        low, high = (double(float(end * column.step)) for end in (column.low, column.high))
        item = f"CAST({'CAST(' + item + ' AS INTEGER)' if value == 'truth' else item} AS DOUBLE)"
        item = f"(CASE WHEN NOT isnan({item}) THEN {item} END)"
    else:
        moments = isinstance(column, Timestamp)
        ends = (
            (column.low, column.high) if moments or value == "date" else (column.low * DAY, (column.high + 1) * DAY - 1)
        )
        item = f"CAST({item} AS HUGEINT)" + (f" * {DAY}" if moments and value == "date" else "")
        low, high = map(whole, ends)
    return f"count(*) FILTER ({item} < {low})", f"count(*) FILTER ({item} > {high})"


def _persons(cursor: duckdb.DuckDBPyConnection, registered: RegisteredTable, *, chosen: bool) -> Tree:
    """Whose the rows are, and how many are past those that are kept."""
    unit = registered.unit
    if unit.column is None:
        return {}
    _, cell, text = registered.source.person or Person("nothing", "NULL", "a")
    most = unit.rows if chosen else 2**62
    whose = f"(SELECT {text} AS u FROM (SELECT {cell} AS a FROM {registered.source.relation}))"
    counted = f"(SELECT coalesce(u, '') AS u, count(*) AS n FROM {whose} GROUP BY coalesce(u, ''))"
    there = "FILTER (u <> '')"
    asked = f"count(*) {there}, sum(n) FILTER (u = ''), count(*) FILTER (u <> '' AND n > {most})"
    asked += f", sum(greatest(n - {most}, 0)) {there}"
    persons, nobody, heavy, dropped = cursor.execute(f"SELECT {asked} FROM {counted}").fetchone() or (0, 0, 0, 0)
    found: Tree = {"person": unit.column, "persons": persons, "nobody": int(nobody or 0)}
    return found | {"kept": unit.rows if chosen else None, "heavy": heavy, "dropped": int(dropped or 0)}
