"""Tests of sulq.sql.rows.joins."""

from __future__ import annotations

import pytest

from sulq.language.relation import Join, Relation, Select, Where
from sulq.language.shape import shape
from tests.sql.asking import facts, groups, refused


def joined(relation: Relation) -> Join:
    while not isinstance(relation, Join):
        assert isinstance(relation, (Select, Where))
        relation = relation.source
    return relation


@pytest.mark.parametrize(
    ("text", "person", "rows"),
    [
        ("people p JOIN visits v ON p.pid = v.pid", True, 4),
        ("people JOIN visits USING (pid)", True, 4),
        ("people NATURAL JOIN visits", True, 4),
        ("people p, visits v WHERE v.pid = p.pid", True, 4),
        ("people p LEFT JOIN visits v ON p.pid = v.pid", True, 4),
        ("visits v RIGHT JOIN people p ON p.pid = v.pid", True, 4),
        ("visits a JOIN visits b ON a.pid = b.pid", True, 16),
        ("visits a JOIN visits b ON a.vid = b.vid", True, 4),
        ("visits v JOIN bills b ON v.vid = b.vid", True, 4),
        ("bills b JOIN visits v ON v.vid = b.vid", True, 4),
        ("visits v LEFT JOIN bills b ON v.vid = b.vid", True, 16),
        ("bills b LEFT JOIN visits v ON v.vid = b.vid", True, 4),
        ("people JOIN bills ON pid = bills.PID", True, 4),
        ("people p JOIN regions r ON p.region = r.code", False, 1),
        ("regions r JOIN people p ON p.region = r.code", False, 1),
        ("people LEFT JOIN regions ON region = regions.code", False, 1),
        ("people CROSS JOIN regions", False, 10),
        ("regions a JOIN regions b ON a.code = b.code", False, 0),
        ("regions a JOIN regions b ON a.code = b.code JOIN people p ON p.region = a.code", False, 1),
        ("regions a, regions b, people p WHERE a.size = b.code AND p.region = a.code", False, 1),
        (
            "people p JOIN (SELECT a.code FROM regions a JOIN regions b ON a.size = b.code) x ON region = x.code",
            False,
            1,
        ),
        ("regions a LEFT JOIN regions b ON a.size = b.size JOIN people p ON p.region = a.code", False, 10),
    ],
)
def test_joins_keep_the_person(text: str, person: bool, rows: int) -> None:  # noqa: FBT001
    """Private tables on the person, said or along a declared key; public ones by their key or by their size."""
    found = groups(f"SELECT COUNT(*) FROM {text}").over
    assert joined(found).person is person
    assert shape(found, facts()).rows == rows


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("people, visits", "person-lost"),
        ("people CROSS JOIN visits", "person-lost"),
        ("people p JOIN visits v ON p.age = v.cost", "person-lost"),
        ("people p JOIN visits v ON p.age = v.vid", "person-lost"),
        ("bills a JOIN bills b ON a.vid = b.vid", "person-lost"),
        ("people p JOIN bills b ON p.pid = b.vid", "person-lost"),
        ("people p JOIN visits v ON p.pid = v.pid OR p.age = 3", "person-lost"),
        ("people p LEFT JOIN visits v ON p.pid = v.pid AND p.age > 3", "sql-unsupported"),
        ("regions r LEFT JOIN people p ON p.region = r.code", "person-lost"),
        ("people p JOIN visits v ON p.pid = v.vid", "person-lost"),
        ("people JOIN visits USING (age)", "unknown-column"),
        ("people p JOIN visits v ON p.pid = v.pid AND p.sex = v.kind", "wrong-kind"),
    ],
)
def test_joins_that_lose_the_person_are_refused_T15(text: str, code: str) -> None:
    """No pair of two persons' rows is ever made; the control is the test above."""
    error = refused(f"SELECT COUNT(*) FROM {text}")
    assert error.code == code
    assert "line 1" in error.message


def test_conditions_go_where_they_belong() -> None:
    """Equalities match rows, other conditions filter the pairs, and of LEFT JOIN those of the right its rows."""
    found = groups(
        "SELECT COUNT(*) FROM visits a JOIN visits b ON a.pid = b.pid AND a.kind = b.kind AND a.cost < b.cost"
    )
    assert len(joined(found.over).on) == 1
    assert found.where is not None
    left = joined(groups("SELECT COUNT(*) FROM people p LEFT JOIN visits v ON p.pid = v.pid AND v.paid").over)
    assert isinstance(left.right, Select)
    assert isinstance(left.right.source, Where)
    assert left.how == "left"
