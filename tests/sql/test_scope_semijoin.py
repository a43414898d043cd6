"""Tests of sulq.sql.scope: subqueries in WHERE."""

from __future__ import annotations

import pytest

from sulq.language.relation import Distinct, Join, PerPerson, Relation, Select, Table
from sulq.language.shape import shape
from tests.sql.asking import facts, groups, refused


def beside(sql: str) -> tuple[Join, Relation]:
    """The join of a subquery, and what the rows are joined with."""
    found = groups(sql).over
    assert isinstance(found, Join)
    inner = found.right
    return found, inner.source if isinstance(inner, Select) else inner


@pytest.mark.parametrize(
    ("where", "how"),
    [
        ("pid IN (SELECT pid FROM visits WHERE cost > 3)", "inner"),
        ("EXISTS (SELECT 1 FROM visits v WHERE v.pid = people.pid)", "inner"),
        ("pid IN (SELECT pid FROM visits GROUP BY pid HAVING COUNT(*) > 2)", "inner"),
        ("NOT EXISTS (SELECT 1 FROM visits v WHERE v.pid = people.pid AND v.paid)", "left"),
        ("pid NOT IN (SELECT pid FROM visits)", "left"),
        ("age > 40 OR pid IN (SELECT pid FROM visits)", "left"),
    ],
)
def test_private_subqueries_become_one_row_for_each_person(where: str, how: str) -> None:
    """So a person still has no more rows than before."""
    join, inner = beside(f"SELECT COUNT(*) FROM people WHERE {where}")
    assert isinstance(inner, PerPerson)
    assert (join.how, join.person) == (how, True)
    assert shape(join, facts()).rows == 1


def test_further_equalities_are_keys_of_the_match() -> None:
    """EXISTS with the person and another column: one row for each person and value."""
    sql = "SELECT COUNT(*) FROM visits a WHERE EXISTS (SELECT 1 FROM bills b WHERE b.PID = a.pid AND b.vid = a.vid)"
    join, inner = beside(sql)
    assert isinstance(inner, PerPerson)
    assert len(inner.keys) == len(join.on) == 1
    assert shape(join, facts()).rows == 4  # one match for each visit, not one for each of a person's bills
    along, _ = beside("SELECT COUNT(*) FROM visits WHERE vid IN (SELECT vid FROM bills)")
    assert along.person


@pytest.mark.parametrize("column", ["code", "size"])
def test_public_subqueries_are_joined_by_what_they_are_matched_on(column: str) -> None:
    """Key or not, the different values are matched once."""
    join, inner = beside(
        f"SELECT COUNT(*) FROM people WHERE region IN (SELECT {column} FROM regions WHERE zone = 'east')"
    )
    assert isinstance(inner, Distinct)
    assert not join.person
    assert shape(join, facts()).rows == 1


def joins(relation: Relation) -> list[Join]:
    """The joins of a relation's left sides, from the outside in."""
    found = []
    while not isinstance(relation, Table):
        if isinstance(relation, Join):
            found.append(relation)
            relation = relation.left
        else:
            relation = relation.source
    return found


@pytest.mark.parametrize(
    ("where", "several"),
    [
        ("age IN (SELECT vid FROM visits v WHERE v.pid = people.pid)", 1),
        ("age IN (SELECT vid FROM visits v WHERE v.pid = people.pid) OR age IN (SELECT size FROM regions)", 2),
        ("age NOT IN (SELECT vid FROM visits v WHERE v.pid = people.pid)", 3),
        ("(age IN (SELECT size FROM regions)) IS NULL", 3),
        ("age NOT IN (SELECT r.size FROM regions r WHERE r.code = people.region)", 3),
        ("pid NOT IN (SELECT pid FROM visits)", 1),
        ("NOT EXISTS (SELECT 1 FROM visits v WHERE v.pid = people.pid AND v.vid = people.age)", 1),
    ],
)
def test_what_is_missing_is_asked_where_it_matters(where: str, several: int) -> None:
    """Under NOT or IS, IN needs whether any value is there and whether one is missing; under AND and OR it does not.

    That the answers are right: tests/conformance/test_sql.py.
    """
    found = groups(f"SELECT COUNT(*) FROM people WHERE {where}").over
    assert len(joins(found)) == several
    assert shape(found, facts()).rows == 1


@pytest.mark.parametrize(
    "where", ["vid NOT IN (SELECT vid FROM bills)", "(vid IN (SELECT vid FROM bills)) IS NOT TRUE"]
)
def test_what_is_missing_in_others_rows_decides_nothing_SR15(where: str) -> None:
    """One missing value of anybody's would make NOT IN unknown for everybody; the person's own are matched instead."""
    assert refused(f"SELECT COUNT(*) FROM visits WHERE {where}").code == "person-lost"
    own = "due NOT IN (SELECT v.cost FROM visits v WHERE v.vid = bills.vid)"
    assert groups(f"SELECT COUNT(*) FROM bills WHERE {own}")
    assert groups("SELECT COUNT(*) FROM visits WHERE NOT EXISTS (SELECT 1 FROM bills b WHERE b.vid = visits.vid)")


@pytest.mark.parametrize(
    ("where", "code"),
    [
        ("age IN (SELECT vid FROM visits)", "person-lost"),
        ("EXISTS (SELECT 1 FROM visits)", "person-lost"),
        ("EXISTS (SELECT 1 FROM regions)", "sql-unsupported"),
        ("EXISTS (SELECT 1 FROM visits v WHERE v.pid = people.pid AND v.cost > people.age)", "sql-unsupported"),
        ("sex IN (SELECT kind FROM visits GROUP BY kind)", "sql-unsupported"),
        ("pid IN (SELECT pid FROM visits LIMIT 3)", "raw-rows"),
        ("region IN (SELECT zone FROM regions)", "wrong-kind"),
        ("pid IN (SELECT pid, vid FROM visits)", "sql-unsupported"),
        ("3 IN (SELECT code FROM regions)", "sql-unsupported"),
        ("age > (SELECT AVG(age) FROM people)", "sql-unsupported"),
    ],
)
def test_subqueries_that_would_lose_the_person_are_refused(where: str, code: str) -> None:
    """Another person's rows never decide about a row; the controls are the tests above."""
    error = refused(f"SELECT COUNT(*) FROM people WHERE {where}")
    assert error.code == code
    assert "line 1" in error.message
