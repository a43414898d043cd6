"""A row function's values row by row: from DuckDB by the SQL we write, and from NumPy."""

from __future__ import annotations

import duckdb
import numpy as np
import pyarrow as pa

from sulq.compile.statements import kept_table
from sulq.compile.statements.emitter import Emitter
from sulq.compile.statements.kept_table import PERSON, PLACE
from sulq.language.domain import Schema, Text
from sulq.language.kinds import Code, Scalar, Truth, Words
from sulq.language.rowfn import RowFn
from sulq.language.rowfn.base import evaluate
from sulq.language.rowfn.piece import NotInSql, Piece
from sulq.language.rowfn.writer import KeptRows
from tests.expressions import SCHEMA
from tests.frames import Frame, Row


def filled(cells: dict[str, list[object]], schema: Schema = SCHEMA) -> list[Row]:
    """Rows of the columns that are given; all others are missing."""
    rows = [dict(zip(cells, values, strict=True)) for values in zip(*cells.values(), strict=True)]
    blank = dict.fromkeys(schema.names) | {"person": 0}
    return [{**blank, **row, "position": i} for i, row in enumerate(rows)]


def written(emitter: Emitter, fn: RowFn, schema: Schema) -> Piece | None:
    """A row function as SQL; None where it is left to the batch path."""
    write = {Scalar: emitter.number, Truth: emitter.truth, Code: emitter.code, Words: emitter.words}
    kind = type(fn.kind(schema))
    try:
        return write[kind](fn) if kind in write else None
    except NotInSql:
        return None


def in_sql(fn: RowFn, rows: list[Row], schema: Schema = SCHEMA) -> list[object] | None:
    """What DuckDB gives each row; None where the function is left to the batch path."""
    names = kept_table.names(schema)
    emitter = Emitter(schema, KeptRows("kept", {}, names, frozenset(), {}, len(rows)))
    piece = written(emitter, fn, schema)
    if piece is None:
        return None
    columns = [
        pa.array([row[name] for row in rows], pa.string() if isinstance(column, Text) else pa.int64())
        for name, column in schema.columns
    ]
    columns += [pa.array([row[name] for row in rows], pa.int64()) for name in ("person", "position")]
    data = pa.table(columns, names=[*names.values(), PERSON, PLACE])
    scan = emitter.scan(f"SELECT {piece.sql} FROM {emitter.relation()} ORDER BY {PLACE}")
    with duckdb.cursor() as cursor:
        cursor.register("kept", data)
        return [value for (value,) in cursor.execute(scan.sql, scan.bound).fetchall()]


def in_numpy(fn: RowFn, rows: list[Row], schema: Schema = SCHEMA) -> list[object]:
    """What NumPy gives each row."""
    cells = evaluate(fn, Frame(schema, rows))
    none = np.zeros(len(rows), dtype=np.bool_) if cells.missing is None else cells.missing
    return [None if gone else value for value, gone in zip(cells.values.tolist(), none, strict=True)]
