"""Tests of sulq.sql.rows.row_set."""

from __future__ import annotations

import pytest

from sulq.language.relation import Table
from sulq.sql.parse.syntax import ColumnRef, Name, SqlRefused, Star
from sulq.sql.rows.row_set import Item, expand, find, refers
from sulq.sql.rows.values import Fixed
from tests.sql.asking import groups, program, refused


def item(name: str, table: str | None = None, **more: object) -> Item:
    return Item(name, table, term=Fixed(1, "int"), **more)  # type: ignore[arg-type]


def names(sql: str) -> list[str]:
    return [name for name, _ in program(sql).columns]


def test_names_are_found_as_postgresql_finds_them() -> None:
    """Any case unquoted, exactly quoted; the exact spelling first; several are refused."""
    items = (item("Age", "p"), item("age", "v"), item("sex", "p"))
    assert find(ColumnRef(Name("SEX")), items) == 2
    assert find(ColumnRef(Name("age")), items) == 1
    assert find(ColumnRef(Name("AGE"), Name("P")), items) == 0
    assert find(ColumnRef(Name("AGE", quoted=True)), items) is None
    assert find(ColumnRef(Name("sex"), Name("v")), items) is None
    with pytest.raises(SqlRefused, match="several"):
        find(ColumnRef(Name("AGE")), items)


def test_hidden_columns_are_reached_by_their_table_alone() -> None:
    """Of two columns that USING made one, the second has no name of its own."""
    items = (item("pid", "a"), item("pid", "b", hidden=True))
    assert find(ColumnRef(Name("pid")), items) == 0
    assert find(ColumnRef(Name("pid"), Name("b")), items) == 1
    assert [name for _, name in expand(Star(), items)] == ["pid"]
    assert len(expand(Star(Name("b")), items)) == 1
    with pytest.raises(SqlRefused):
        expand(Star(Name("c")), items)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("sex", "sex"), ("SEX", "sex"), ("p.sex", "sex"), ("sex AS s", "s"), ('sex AS "My S"', "My S"), ("sex s", "s"),
        ("COUNT(*)", "count"), ("AVG(age)", "avg"), ("VARIANCE(age)", "variance"), ("MEDIAN(age)", "median"),
        ("SUM(age) + 1", "?column?"), ("-COUNT(*)", "?column?"), ("1", "?column?"), ("COUNT(*) > 3", "?column?"),
        ("COALESCE(SUM(age), 0)", "coalesce"), ("ROUND(AVG(age), 1)", "round"), ("UPPER(sex)", "upper"),
        ("CASE WHEN COUNT(*) > 1 THEN 'a' ELSE 'b' END", "case"),
        ("CASE WHEN COUNT(*) > 1 THEN 'a' ELSE sex END", "sex"),
        ("CAST(SUM(age) AS text)", "sum"), ("CAST(1 AS int)", "int4"), ("DATE '2020-01-01'", "date"),
        ("sex || 'x'", "?column?"), ("PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY age)", "percentile_cont"),
        ("(SELECT COUNT(*) AS n FROM visits)", "n"), ("GROUPING(sex)", "grouping"), ("NULLIF(COUNT(*), 0)", "nullif"),
    ],
)  # fmt: skip
def test_results_are_named_as_postgresql_names_them(text: str, name: str) -> None:
    """An alias, a column's name, a function's, or ?column?."""
    assert names(f"SELECT {text} FROM people AS p GROUP BY sex") == [name]


def test_names_that_are_not_known_are_answered_by_those_that_are() -> None:
    """There is no schema but the usual one, and behind that no WITH query; a column's and a table's name is told."""
    assert names("SELECT COUNT(*) FROM public.people") == ["count"]
    assert groups("WITH people AS (SELECT * FROM visits) SELECT COUNT(*) FROM public.people").over == Table("people")
    for wrong in ("nonsense.people", "nonsense.public.people", '"PUBLIC".people'):
        assert refused(f"SELECT COUNT(*) FROM {wrong}").code == "unknown-table"
    assert refused("SELECT SUM(nonsense.people.age) FROM people").code == "unknown-table"
    error = refused("SELECT SUM(height) FROM people")
    assert error.code == "unknown-column"
    assert "age" in error.message
    assert refused("SELECT COUNT(*) FROM persons").code == "unknown-table"
    assert refused("SELECT COUNT(*) FROM people WHERE people.x = 1").code == "unknown-column"


def test_names_are_no_declaration_SR15() -> None:
    """Equating columns says that two rows are one person's only along a key and what is declared to refer to it."""
    key = item("o_orderkey", key_of="orders")
    line = item("l_orderkey", refers_to="orders")
    assert refers(key, line)
    assert refers(line, key)
    assert refers(key, key)
    for other in (item("l_orderkey"), item("o_orderkey"), item("orders_id"), item("k", key_of="lines", refers_to="k")):
        assert not refers(key, other)
        assert not refers(other, key)
    assert not refers(line, line)  # both may lead to an order that is nobody's
    assert not refers(item("a"), item("a"))
