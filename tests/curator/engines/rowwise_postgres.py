"""A row function's values row by row, from PostgreSQL by the SQL we write."""

from __future__ import annotations

import atexit
import functools

import psycopg

from sulq.curator.engines import kept
from sulq.curator.engines.kept import PERSON, PLACE, Rows
from sulq.curator.engines.postgres_emit import PostgresEmitter
from sulq.terms.domain import Schema, Text
from sulq.terms.rowfn import RowFn
from tests.curator.engines.rowwise import written
from tests.expressions import SCHEMA
from tests.frames import Row
from tests.loaded import address


@functools.cache
def session() -> psycopg.Connection:
    """One session with the tests' database, in which nothing stays."""
    db = psycopg.connect(address(), autocommit=True)
    atexit.register(db.close)
    return db


def in_postgres(fn: RowFn, rows: list[Row], schema: Schema = SCHEMA) -> list[object] | None:
    """What PostgreSQL gives each row; None where the function is left to the batch path."""
    names = kept.names(schema)
    emitter = PostgresEmitter(schema, Rows("pg_temp.kept", {}, names, frozenset(), {}, len(rows)))
    piece = written(emitter, fn, schema)
    if piece is None:
        return None
    kinds = ['text COLLATE "C"' if isinstance(column, Text) else "bigint" for _, column in schema.columns]
    stored = [*zip(names.values(), kinds, strict=True), (PERSON, "bigint"), (PLACE, "bigint")]
    scan = emitter.scan(f"SELECT {piece.sql} FROM {emitter.relation()} ORDER BY {PLACE}")
    db = session()
    with db.transaction(force_rollback=True):
        db.execute(f"CREATE TEMPORARY TABLE kept ({', '.join(' '.join(pair) for pair in stored)})")
        with db.cursor().copy("COPY pg_temp.kept FROM STDIN") as copy:
            for row in rows:
                copy.write_row([row[name] for name in (*schema.names, "person", "position")])
        return [value for (value,) in db.execute(scan.sql, scan.bound).fetchall()]
