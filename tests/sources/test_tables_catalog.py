"""What a data file offers, by its own schema: names and kinds, no value of a row."""

from __future__ import annotations

import gzip
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet
import pytest

from sulq.errors import SetupError
from sulq.sources.tables import list_tables


def test_each_kind_of_file_names_its_columns(tmp_path: Path) -> None:
    """Parquet by its types, CSV by its header, DuckDB by each of its tables."""
    pa.parquet.write_table(pa.table({"a": [1], "b": ["x"], "c": [1.5]}), tmp_path / "p.parquet")
    assert list_tables(tmp_path / "p.parquet") == [("p", [("a", "int64"), ("b", "string"), ("c", "double")])]
    (tmp_path / "c.csv").write_text('a,"b, c"\n1,2\n')
    assert list_tables(tmp_path / "c.csv") == [("c", [("a", "text"), ("b, c", "text")])]
    with gzip.open(tmp_path / "z.csv.gz", "wt") as file:
        file.write("a\n1\n")
    assert list_tables(tmp_path / "z.csv.gz") == [("z", [("a", "text")])]
    with duckdb.connect(str(tmp_path / "d.duckdb")) as db:
        db.execute("CREATE TABLE two AS SELECT 1 AS x, true AS y")
        db.execute("CREATE TABLE one AS SELECT 'a' AS z")
    found = list_tables(tmp_path / "d.duckdb")
    assert found == [("one", [("z", "VARCHAR")]), ("two", [("x", "INTEGER"), ("y", "BOOLEAN")])]


@pytest.mark.parametrize("name", ["p.parquet", "d.duckdb", "x.txt", "missing.csv"])
def test_what_is_no_data_file_is_refused(tmp_path: Path, name: str) -> None:
    """A broken file, one of another kind and one that is not there."""
    if name != "missing.csv":
        (tmp_path / name).write_bytes(b"nothing of the kind")
    with pytest.raises(SetupError):
        list_tables(tmp_path / name)
