"""Files as relations: a row for each record, in the file's order where places are asked for."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet
import pytest

from sulq.sources.decode import files

ROWS = 300_000


def test_a_path_is_no_pattern(tmp_path: Path) -> None:
    """Wildcards and quotes in a name are letters; control: another file that the pattern would match is not read."""
    path = tmp_path / "a[bc]*'.csv"
    path.write_text("x\n1\n")
    (tmp_path / "ab'.csv").write_text("x\n2\n")
    with duckdb.connect() as connection:
        assert connection.execute(f"SELECT * FROM {files.csv_records(path, 1, places=False)}").fetchall() == [("1",)]


@pytest.mark.parametrize("kind", ["csv", "parquet", "duckdb"])
def test_places_are_those_of_the_file(kind: str, tmp_path: Path) -> None:
    """Of every record, on all threads, also where the statement around it filters and orders otherwise."""
    path = tmp_path / f"t.{kind}"
    with duckdb.connect() as connection:
        if kind == "csv":
            path.write_text("x\n" + "\n".join(map(str, range(ROWS))) + "\n")
            relation = files.csv_records(path, 1, places=True)
        elif kind == "parquet":
            pa.parquet.write_table(pa.table({"x": range(ROWS)}), path, row_group_size=10_000)
            relation = files.parquet_records(path, ["s0"], places=True)
        else:
            connection.execute(f"CREATE TABLE t AS SELECT range AS x FROM range({ROWS})")
            relation = files.table_records("t", ["s0"], places=True)
        wrong = f"SELECT count(*) FROM {relation} WHERE CAST(s0 AS BIGINT) <> place"
        assert connection.execute(wrong).fetchone() == (0,)
        kept = (
            f"CREATE TABLE kept AS SELECT s0, place FROM {relation} WHERE CAST(s0 AS BIGINT) % 7 = 3 ORDER BY hash(s0)"
        )
        connection.execute(kept)
        found = "SELECT count(*), count(*) FILTER (WHERE CAST(s0 AS BIGINT) <> place) FROM kept"
        assert connection.execute(found).fetchone() == (len(range(3, ROWS, 7)), 0)
