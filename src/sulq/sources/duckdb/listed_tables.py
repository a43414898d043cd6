"""Small tables that relations name while records are read: long lists of categories, digests of erased persons."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from sulq.sources.duckdb.connection import Connection
from sulq.sources.erasure import TABLE


def put_table(connection: Connection, name: str, rows: pa.Table) -> None:
    """Make a table of these rows."""
    connection.root.register("listed", rows)
    connection.root.execute(f"CREATE TABLE {name} AS SELECT * FROM listed")
    connection.root.unregister("listed")


def put_erased(connection: Connection, digests: Sequence[str]) -> None:
    """Make the table of erased persons, where there are any."""
    if digests:
        put_table(connection, TABLE, pa.table({"item": pa.array(digests, pa.string())}))
