"""Arrow tables as tables of the tests' PostgreSQL, each cell what it was; for engines that read a database."""

from __future__ import annotations

import itertools
import os

import pyarrow as pa

from tests import postgres
from tests.postgres import server

_names = itertools.count(1)
_MICROSECONDS = 86_400_000_000
_MOMENT = (
    "{kind} '1970-01-01 00:00:00{zone}' + make_interval(days => floor({{0}} / 86400000000.0)::integer)"
    " + ({{0}} - floor({{0}} / 86400000000.0)::bigint * 86400000000) * interval '1 microsecond'"
)


class Unholdable(Exception):
    """PostgreSQL has no such cell."""


def available() -> bool:
    """Whether there is a PostgreSQL for the tests; under .ci/run there must be."""
    return isinstance(postgres._server(), postgres.Server) or os.environ.get("SULQ_CI") == "1"


def address(**words: str) -> str:
    """The address of the tests' database."""
    url = server().url().partition("&ledger=")[0]
    return url + "".join(f"&{name}={value}" for name, value in words.items())


def loaded(table: pa.Table, name: str = "", **words: str) -> str:
    """A table in PostgreSQL, and the address that names it."""
    import psycopg

    name = name or f"loaded_{os.getpid()}_{next(_names)}"
    forms = [_form(field.type) for field in table.schema]
    try:
        with psycopg.connect(address(), autocommit=True) as db:
            _fill(db, table, name, forms)
    except (psycopg.DataError, psycopg.errors.UntranslatableCharacter):
        raise Unholdable from None
    return address(table=name, **words)


def _fill(db: object, table: pa.Table, name: str, forms: list[tuple[str, str]]) -> None:
    with db.transaction():
        db.execute(f"CREATE TEMPORARY TABLE raw ({', '.join(f'c{i} text' for i in range(len(forms)))}) ON COMMIT DROP")
        columns = [_texts(column) for column in table.columns]
        with db.cursor().copy("COPY raw FROM STDIN") as copy:
            for row in zip(*columns, strict=True):
                copy.write_row(row)
        made = ", ".join(
            f"{form.format(f'c{i}::{kind}')} AS " + '"' + str(column).replace('"', '""') + '"'
            for i, (column, (kind, form)) in enumerate(zip(table.column_names, forms, strict=True))
        )
        db.execute(f'CREATE TABLE public."{name}" AS SELECT {made} FROM raw')


def _form(kind: pa.DataType) -> tuple[str, str]:
    """What a cell's text is first read as, and what is made of that."""
    types = pa.types
    if types.is_boolean(kind):
        return "boolean", "{0}"
    if types.is_uint64(kind) or types.is_decimal(kind):
        return "numeric", "{0}"
    if types.is_integer(kind):
        return {1: "smallint", 2: "smallint", 4: "integer"}.get(kind.bit_width // 8, "bigint"), "{0}"
    if types.is_floating(kind):
        return "real" if types.is_float32(kind) else "double precision", "{0}"
    if types.is_date(kind):
        return "integer", "(date '1970-01-01' + {0})"
    if types.is_timestamp(kind):
        if kind.unit == "ns":
            raise Unholdable
        zone = "+00" if kind.tz is not None else ""
        return "bigint", "(" + _MOMENT.format(kind="timestamptz" if zone else "timestamp", zone=zone) + ")"
    return "text", "{0}"


def _texts(column: pa.ChunkedArray) -> list[str | None]:
    kind = column.type
    if pa.types.is_date(kind):
        cells = column.cast(pa.date32()).cast(pa.int32()).to_pylist()
    elif pa.types.is_timestamp(kind):
        scale = {"s": 1_000_000, "ms": 1_000, "us": 1}[kind.unit]
        cells = [None if cell is None else cell * scale for cell in column.cast(pa.int64()).to_pylist()]
    else:
        cells = column.to_pylist()
    if any(isinstance(cell, str) and "\x00" in cell for cell in cells):
        raise Unholdable
    return [None if cell is None else str(cell) for cell in cells]
