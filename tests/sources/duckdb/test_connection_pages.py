"""Pages of kept rows become a table of DuckDB's with the types that the kernel's facts name."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from sulq.language.domain import Int, Schema, Text
from sulq.sources.duckdb import connection as module
from sulq.sources.duckdb.connection import Connection, create_table, insert_batches, insert_page, stored_columns

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


@pytest.mark.parametrize("on_disk", [True, False])
def test_rows_on_disk_and_their_join_take_a_bounded_part_of_memory(
    *, on_disk: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many they are; sums are the same. Control: in memory they take more than that."""
    limit, pages, size = 40, 14, 122_880
    monkeypatch.setattr(module, "CORE_MEMORY_MIB", limit)
    with closing(Connection(threads=1, on_disk=on_disk)) as made:
        for name in ("kept0", "kept1"):
            create_table(made, name, {"c0": "BIGINT", "o": "BIGINT"})
            with made.writing():
                for page in range(pages):
                    cells = np.random.default_rng(page).integers(0, 2**62, size)  # nothing that can be packed
                    owners = np.arange(page * size, (page + 1) * size) * 2_654_435_761 % 2**40
                    insert_page(made, name, pa.table({"c0": cells, "o": owners}))
        made.lock()
        cursor = made.cursor()
        joined = "SELECT count(*), sum(l.c0 - r.c0) FROM kept0 AS l JOIN kept1 AS r ON l.o = r.o"
        assert cursor.execute(joined).fetchone() == (pages * size, 0)
        held = sum(row[0] for row in cursor.execute("SELECT memory_usage_bytes FROM duckdb_memory()").fetchall())
    assert (held <= limit * 2**20) == on_disk


def test_what_fails_on_the_way_is_raised_as_it_was() -> None:
    """An error of the source's is no error of DuckDB's; one of DuckDB's stays it. Control: rows that fit are there."""
    schema = pa.schema({"c0": pa.int64()})

    class Lost(Exception):
        pass

    def broken() -> Iterator[pa.RecordBatch]:
        yield pa.RecordBatch.from_pydict({"c0": [1]}, schema=schema)
        raise Lost

    with closing(Connection()) as made:
        create_table(made, "kept", {"c0": "TINYINT"})
        told = "INSERT INTO kept (c0) SELECT c0 FROM page"
        with pytest.raises(Lost):
            insert_batches(made, told, schema, broken())
        with pytest.raises(duckdb.Error):
            insert_batches(made, told, schema, [pa.RecordBatch.from_pydict({"c0": [300]}, schema=schema)])
        insert_batches(made, told, schema, [pa.RecordBatch.from_pydict({"c0": [n]}, schema=schema) for n in (7, None)])
        assert made.root.execute("SELECT c0 FROM kept").fetchall() == [(7,), (None,)]


@pytest.mark.skipif(sys.platform != "linux", reason="what a process holds is read from /proc")
def test_rows_on_their_way_to_the_disk_take_little_memory() -> None:
    """A few bytes each where one statement writes them all. Control: one statement for each page takes far more."""

    def taken(how: str) -> float:
        command = [sys.executable, "-m", "tests.sources.inserted", how, str(rows)]
        return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout) * 1024 / rows

    rows = 6_000_000
    assert taken("together") < 8
    assert taken("apart") > 12
