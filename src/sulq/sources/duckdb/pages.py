"""Kept rows that come in pages, as a table of DuckDB: its columns have the types that the kernel's facts name."""

from __future__ import annotations

import pyarrow as pa

from sulq.compile.statements import kept_table
from sulq.compile.statements.kept_table import OWNER, PERSON
from sulq.language.domain import Schema
from sulq.sources.duckdb.connection import Connection


def columns_of(schema: Schema, *, owned: bool, owner: str = "BIGINT") -> dict[str, str]:
    """The columns of a table of kept rows, and their types; `owner`: that of the column which says whose a row is."""
    names = kept_table.names(schema)
    found = {names[name]: kept_table.smallest(column) for name, column in schema.columns}
    return found | ({PERSON: "BIGINT", OWNER: owner} if owned else {})


def create(connection: Connection, into: str, columns: dict[str, str]) -> None:
    """An empty table."""
    connection.root.execute(f"CREATE TABLE {into} ({', '.join(f'{name} {kind}' for name, kind in columns.items())})")


def insert(connection: Connection, into: str, page: pa.Table) -> None:
    """Add a page's rows; a number that its column's type does not hold fails. Other columns are left missing."""
    names = ", ".join(page.column_names)
    connection.root.register("page", page)
    connection.root.execute(f"INSERT INTO {into} ({names}) SELECT {names} FROM page")
    connection.root.unregister("page")
