"""Tests of sulq.sql.rows.joins."""

from __future__ import annotations

import pytest

from sulq.language.domain import Bool, Category, Date, Int, Real
from sulq.language.relation import Distinct, PerPerson, Union
from sulq.language.shape import shape
from tests.sql.asking import facts, groups, refused


@pytest.mark.parametrize(
    ("left", "right", "column"),
    [
        ("SELECT age AS x FROM people", "SELECT vid FROM visits", Int(0, 10_000)),
        ("SELECT income AS x FROM people", "SELECT age FROM people", Real(0, 1024, grid=0.25)),
        ("SELECT sex AS x FROM people", "SELECT kind FROM visits", Category(("blood", "eye", "f", "m"))),
        ("SELECT sex AS x FROM people", "SELECT 'x' FROM visits", Category(("f", "m", "x"))),
        ("SELECT 'a' AS x FROM people", "SELECT 'b' FROM visits", Category(("a", "b"))),
        ("SELECT married AS x FROM people", "SELECT NULL FROM visits", Bool()),
        ("SELECT NULL AS x FROM people", "SELECT kind FROM visits", Category(("blood", "eye"))),
        ("SELECT born AS x FROM people", "SELECT CAST(seen AS date) FROM people", Date("1990-01-01", "2021-01-01")),
    ],
)
def test_columns_are_made_alike(left: str, right: str, column: object) -> None:
    """The hull of two ranges, the labels of two categories: a union changes no value."""
    found = groups(f"SELECT COUNT(x) FROM ({left} UNION ALL {right}) AS u").over
    assert isinstance(found, Union)
    assert [known for _, known in shape(found, facts()).schema.columns] == [column]


def test_the_person_stays_through_a_union() -> None:
    """k1 + k2 rows of a person; UNION of the person's own column is one row for each person."""
    both = "SELECT pid, age AS x FROM people UNION ALL SELECT pid, vid FROM visits"
    found = groups(f"SELECT COUNT(DISTINCT pid), SUM(x) FROM ({both}) AS u")
    assert found.stats[0].name == "persons"
    assert shape(found.over, facts()).rows == 5
    once = groups("SELECT COUNT(*) FROM (SELECT pid FROM people UNION SELECT pid FROM visits) AS u").over
    assert isinstance(once, PerPerson)
    values = groups("SELECT COUNT(*) FROM (SELECT sex FROM people UNION SELECT kind FROM visits) AS u").over
    assert isinstance(values, Distinct)


@pytest.mark.parametrize(
    ("sql", "code"),
    [
        ("SELECT age FROM people UNION ALL SELECT kind FROM visits", "wrong-kind"),
        ("SELECT name FROM people UNION ALL SELECT kind FROM visits", "wrong-kind"),
        ("SELECT age, sex FROM people UNION ALL SELECT vid FROM visits", "sql-syntax"),
        ("SELECT pid FROM people UNION ALL SELECT vid FROM visits", "unknown-column"),
        ("SELECT age FROM people UNION ALL SELECT vid FROM visits LIMIT 3", "raw-rows"),
        ("SELECT born FROM people UNION ALL SELECT NULL FROM visits", "sql-unsupported"),
    ],
)
def test_unions_that_are_refused(sql: str, code: str) -> None:
    """Columns of different types, numbers of columns, rows picked by place."""
    assert refused(f"SELECT COUNT(*) FROM ({sql}) AS u").code == code
