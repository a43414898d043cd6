"""Small tables beside the records."""

from __future__ import annotations

import duckdb
import pytest

from sulq.sources.duckdb.connection import Connection
from sulq.sources.duckdb.listed_tables import put_erased
from sulq.sources.erasure import TABLE


def test_the_table_of_erased_persons_is_there_where_there_are_any() -> None:
    """With each digest once; without any there is none, and nothing refers to it."""
    connection = Connection(threads=1)
    try:
        put_erased(connection, ())
        with pytest.raises(duckdb.CatalogException):
            connection.root.execute(f"SELECT * FROM {TABLE}")
        put_erased(connection, ("d1", "d2"))
        assert connection.root.execute(f"SELECT item FROM {TABLE} ORDER BY item").fetchall() == [("d1",), ("d2",)]
    finally:
        connection.close()
