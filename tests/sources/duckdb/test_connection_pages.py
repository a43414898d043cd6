"""Pages of kept rows become a table of DuckDB's with the types that the kernel's facts name."""

from __future__ import annotations

from contextlib import closing

import duckdb
import pyarrow as pa
import pytest

from sulq.language.domain import Int, Schema, Text
from sulq.sources.duckdb.connection import Connection, create_table, insert_page, stored_columns

SCHEMA = Schema.of("data", {"a": Int(0, 9), "b": Int(0, 2**40), "c": Text()})


def test_pages_are_added_one_after_the_other() -> None:
    """Each row as it is; a column that no page brings is missing; a number too wide for its type fails."""
    columns = stored_columns(SCHEMA, owned=True)
    assert columns == {"c0": "TINYINT", "c1": "BIGINT", "c2": "VARCHAR", "h": "BIGINT", "o": "BIGINT"}
    assert stored_columns(SCHEMA, owned=False).keys() == {"c0", "c1", "c2"}
    assert stored_columns(SCHEMA, owned=True, owner="BLOB")["o"] == "BLOB"
    with closing(Connection()) as made:
        create_table(made, "kept", columns)
        for cell in (1, None, 3):
            insert_page(made, "kept", pa.table({"c0": pa.array([cell], pa.int64()), "o": [7]}))
        found = made.root.execute("SELECT c0, c1, c2, o FROM kept").fetchall()
        assert found == [(1, None, None, 7), (None, None, None, 7), (3, None, None, 7)]
        with pytest.raises(duckdb.Error):
            insert_page(made, "kept", pa.table({"c0": [300]}))
