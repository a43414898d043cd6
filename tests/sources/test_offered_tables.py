"""The tables of an owner's data, by names and types: of a file, a folder, a pattern, a DuckDB file."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sulq.errors import SetupError
from sulq.sources.offered_tables import offered_tables


def test_a_file_offers_its_columns_and_what_they_suggest(tmp_path: Path) -> None:
    """Parquet by its types; CSV by the names in its header, whatever stands below."""
    pq.write_table(pa.table({"age": [1.5], "who": ["a"]}), tmp_path / "a.parquet")
    (tmp_path / "b.csv").write_text("age,who\nx,y\n", encoding="utf-8")
    (typed,), (untyped,) = offered_tables(str(tmp_path / "a.parquet")), offered_tables(str(tmp_path / "b.csv"))
    assert (typed.name, typed.kinds) == ("a", {"age": "real", "who": "category"})
    assert (untyped.name, untyped.kinds, untyped.inside) == ("b", {"age": "int", "who": ""}, False)


def test_parts_with_the_same_columns_are_one_table_and_others_are_several(tmp_path: Path) -> None:
    """A folder of parts has its own name and its partitions as columns; a folder of different files holds tables."""
    for year in ("2023", "2024"):
        (tmp_path / "visits" / f"year={year}").mkdir(parents=True)
        (tmp_path / "visits" / f"year={year}" / "a.csv").write_text("pid,cost\n", encoding="utf-8")
    (whole,) = offered_tables(str(tmp_path / "visits"))
    assert (whole.name, whole.columns) == ("visits", [("pid", "text"), ("cost", "text"), ("year", "text")])
    (tmp_path / "visits" / "year=2024" / "a.csv").write_text("pid,price\n", encoding="utf-8")
    with pytest.raises(SetupError, match="other columns"):
        offered_tables(str(tmp_path / "visits"))
    (tmp_path / "clinic").mkdir()
    (tmp_path / "clinic" / "people.csv").write_text("pid,age\n", encoding="utf-8")
    (tmp_path / "clinic" / "stays.csv").write_text("pid,days\n", encoding="utf-8")
    found = offered_tables(str(tmp_path / "clinic"))
    assert [(table.name, table.data) for table in found] == [
        (name, tmp_path / "clinic" / f"{name}.csv") for name in ("people", "stays")
    ]


def test_a_duckdb_file_offers_each_of_its_tables(tmp_path: Path) -> None:
    """Each by its name inside, which a declaration must tell."""
    with duckdb.connect(str(tmp_path / "a.duckdb")) as db:
        db.execute("CREATE TABLE people(pid BIGINT, day DATE); CREATE TABLE stays(pid BIGINT, ok BOOLEAN)")
    people, stays = offered_tables(str(tmp_path / "a.duckdb"))
    assert (people.name, people.kinds, people.inside) == ("people", {"pid": "int", "day": "date"}, True)
    assert stays.kinds["ok"] == "bool"
