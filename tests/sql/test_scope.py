"""Tests of sulq.sql.scope."""

from __future__ import annotations

import pytest

from sulq.language.relation import Join, PerPerson, Select, Table
from sulq.sql.released.program import GroupStatistics
from tests.sql.asking import facts, groups, program, refused
from tests.sql.suites import pums


def test_one_table_stays_a_table() -> None:
    """Subqueries and WITH that only filter and compute are put into the expressions of the same table."""
    for source in (
        "people",
        "(SELECT age + 1 AS older, sex FROM people WHERE age > 3) AS t",
        "(SELECT * FROM (SELECT * FROM people) AS a) AS b",
    ):
        assert groups(f"SELECT COUNT(*) FROM {source}").over == Table("people")
    assert groups("WITH t AS (SELECT * FROM people), s AS (SELECT age FROM t) SELECT SUM(age) FROM s").over == Table(
        "people"
    )
    assert groups("SELECT COUNT(*) FROM public.PUMS", pums()).over == Table("")


def test_with_queries_hide_tables_and_see_those_before_them() -> None:
    """A WITH query may bear a table's name; it does not see itself or what comes later."""
    found = groups("WITH people AS (SELECT cost FROM visits) SELECT SUM(cost) FROM people")
    assert found.over == Table("visits")
    assert (
        refused("WITH a AS (SELECT x FROM b), b AS (SELECT age AS x FROM people) SELECT SUM(x) FROM a").code
        == "unknown-table"
    )


def test_aliases_rename_tables_and_columns() -> None:
    """The old name is gone, listed columns have new ones."""
    assert groups("SELECT SUM(t.b) FROM (SELECT sex, age FROM people) AS t (a, b)").stats
    assert refused("SELECT SUM(people.age) FROM people AS p").code == "unknown-column"
    assert refused("SELECT SUM(a) FROM (SELECT age FROM people) AS t (a, b)").code == "sql-syntax"


def test_tables_with_commas_are_joined_in_an_order_that_links_them() -> None:
    """Regions first, linked only through people: no pair is made that WHERE does not ask for."""
    text = "SELECT zone, SUM(cost) FROM regions, visits, people WHERE people.pid = visits.pid AND region = regions.code"
    found = groups(f"{text} GROUP BY zone").over
    assert isinstance(found, Join)
    assert found.person
    assert isinstance(found.left, Join)
    assert not found.left.person


def test_using_makes_one_column_and_a_star_lists_it_once() -> None:
    """SELECT * after USING; both tables' own columns stay reachable."""
    inner = "SELECT * FROM people JOIN visits USING (pid)"
    assert groups(f"SELECT COUNT(DISTINCT pid), COUNT(kind) FROM ({inner}) AS t").stats[0].name == "persons"
    assert groups("SELECT COUNT(visits.pid), COUNT(people.pid) FROM people JOIN visits USING (pid)").stats


def test_an_inner_aggregate_over_several_persons_is_released_first() -> None:
    """Then the outer query is free; what is one person's own is not released at all (SR15)."""
    outer = program("SELECT MAX(n) FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) AS t")
    assert not isinstance(outer.source, GroupStatistics)
    own = groups("SELECT MAX(n) FROM (SELECT pid, COUNT(*) AS n FROM visits GROUP BY pid) AS t").over
    assert isinstance(own, PerPerson)
    assert isinstance(own.source, Select)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("SELECT COUNT(*) FROM (SELECT COUNT(*) AS n FROM people) AS a, visits", "sql-unsupported"),
        ("SELECT COUNT(*) FROM (SELECT age FROM people LIMIT 3) AS t", "raw-rows"),
        ("SELECT COUNT(*) FROM " + " JOIN ".join(["people"] + ["visits USING (pid)"] * 40), "too-large"),
        ("SELECT COUNT(*) FROM people p JOIN people p USING (pid) WHERE p.age > 3", "unknown-column"),
    ],
)
def test_sources_that_are_refused(text: str, code: str) -> None:
    """Released tables in joins, rows picked by place, too many tables, ambiguous names."""
    assert refused(text, facts()).code == code
