"""Columns and tables of a registration under way: kinds as the look suggests them, bounds asked for."""

from __future__ import annotations

import pytest

from sulq import Bool, Category, Date, Int, Real, Text, Timestamp
from sulq.service.console.guard import Fields
from sulq.service.console.pages.table_draft import ColumnDraft, TableDraft, looked, looked_tables


@pytest.mark.parametrize("kind", ["int", "category", ""])
def test_a_column_begins_as_the_look_suggests(kind: str) -> None:
    """With no bound and no value."""
    (column,) = looked({"columns": [{"name": "c", "type": "text", "suggests": kind}]})
    assert (column.kind, column.low, column.high, column.values) == (kind, "", "", "")


def test_a_column_of_which_nothing_is_known_is_to_be_chosen() -> None:
    """It is not taken for one of a list, nor left out without a word."""
    (column,) = looked({"columns": [{"name": "fnlwgt", "type": "text", "suggests": ""}]})
    assert column.column() is None
    assert "Choose what it holds" in column.problem


@pytest.mark.parametrize(
    ("one", "column"),
    [
        (ColumnDraft("c", "INT", "int", "0", "1,000"), Int(0, 1000)),
        (ColumnDraft("c", "DOUBLE", "real", "-1.5", "2"), Real(-1.5, 2.0)),
        (ColumnDraft("c", "VARCHAR", "category", values="a\n\n b \n"), Category(["a", "b"])),
        (ColumnDraft("c", "INTEGER", "category", values="1\n2"), Category([1, 2])),
        (ColumnDraft("c", "VARCHAR", "category", values="1\n2"), Category(["1", "2"])),
        (ColumnDraft("c", "DATE", "date", "2020-01-01", "2021-01-01"), Date("2020-01-01", "2021-01-01")),
        (ColumnDraft("c", "TIMESTAMP", "timestamp", "2020-01-01", "2021-01-01"), Timestamp("2020-01-01", "2021-01-01")),
        (ColumnDraft("c", "BOOLEAN", "bool"), Bool()),
        (ColumnDraft("c", "VARCHAR", "text"), Text()),
        (ColumnDraft("c", "VARCHAR", "text", longest="2,000"), Text(2000)),
        (ColumnDraft("c", "X", "skip"), None),
    ],
)
def test_a_column_is_declared_as_it_is_written(one: ColumnDraft, column: object) -> None:
    """The form's texts become the declaration they say."""
    assert one.column() == column
    assert one.problem == ""


@pytest.mark.parametrize(
    "one",
    [
        ColumnDraft("c", "INT", "int", "0", ""),
        ColumnDraft("c", "INT", "int", "a", "b"),
        ColumnDraft("c", "INT", "int", "9", "0"),
        ColumnDraft("c", "DOUBLE", "real", "nan", "1"),
        ColumnDraft("c", "DATE", "date", "soon", "later"),
        ColumnDraft("c", "VARCHAR", "category", values="\n"),
        ColumnDraft("c", "VARCHAR", "category", values="a\na"),
        ColumnDraft("c", "VARCHAR", "text", longest="20,000"),
        ColumnDraft("c", "VARCHAR", "text", longest="long"),
    ],
)
def test_what_is_not_right_says_so(one: ColumnDraft) -> None:
    """No declaration is guessed: what is missing or wrong is said beside the column."""
    assert one.column() is None
    assert one.problem


def test_a_column_may_be_never_missing() -> None:
    """The form says so, and what a missing cell counts as; a default of another kind is a problem of its column."""
    made = [
        (ColumnDraft("c", "INT", "int", "0", "9", never=True, default="4"), Int(0, 9, missing=False, default=4)),
        (ColumnDraft("c", "DOUBLE", "real", "0", "9", never=True), Real(0.0, 9.0, missing=False)),
        (ColumnDraft("c", "BOOL", "bool", never=True, default="True"), Bool(missing=False, default=True)),
        (ColumnDraft("c", "INTEGER", "category", values="1\n2", never=True, default="2"),
         Category([1, 2], missing=False, default=2)),
        (ColumnDraft("c", "TEXT", "text", never=True, default="none"), Text(missing=False, default="none")),
    ]  # fmt: skip
    for declared, column in made:
        assert declared.column() == column, declared.problem
    for wrong in (
        ColumnDraft("c", "INT", "int", "0", "9", never=True, default="40"),
        ColumnDraft("c", "INT", "int", "0", "9", never=True, default="x"),
        ColumnDraft("c", "INT", "int", "0", "9", default="4"),
        ColumnDraft("c", "BOOL", "bool", never=True, default="yes"),
    ):
        assert wrong.column() is None
        assert wrong.problem


def test_files_looked_at_become_tables_with_their_columns() -> None:
    """One of each file, several of a DuckDB file; a look that names no tables is one."""
    column = {"name": "c", "type": "INTEGER", "suggests": "int"}
    several = {"tables": [{"table": name, "columns": [column]} for name in ("a", "b")], "columns": [column]}
    tables, columns = looked_tables([("x.duckdb", several), ("y.csv", {"columns": [column, column]})])
    assert [(table.name, table.file, table.inside) for table in tables] == [
        ("a", "x.duckdb", True), ("b", "x.duckdb", True), ("", "y.csv", False),
    ]  # fmt: skip
    assert [one.table for one in columns] == [0, 1, 2, 2]


def test_a_table_is_told_as_the_api_takes_it() -> None:
    """What was not said is left out; references stand one on a line; all of it is carried from step to step."""
    table = TableDraft("lines", "l.csv", "", "line", "who", "order = orders\r\n\n code=codes ")
    assert TableDraft.of(Fields(table.hidden(3)), 3) == table
    assert table.body({"x": 1}) == {
        "file": "l.csv", "columns": {"x": 1}, "public": False, "key": "line", "person": "who",
        "references": {"order": "orders", "code": "codes"},
    }  # fmt: skip
    assert TableDraft("a", "a.csv", "yes").body({}) == {"file": "a.csv", "columns": {}, "public": True}
