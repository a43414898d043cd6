"""Tests of sulq.sql.compile: whole queries, the constructs other engines were measured with, and their suites."""

from __future__ import annotations

import pytest

from sulq.errors import QuestionError
from sulq.language.relation import Distinct, PerPerson
from sulq.language.shape import shape
from sulq.sql.compile import compile as compiled_of
from tests.sql import constructs
from tests.sql.asking import facts, groups, program, refused
from tests.sql.suites import Case, cases


def test_a_query_is_compiled_from_public_facts() -> None:
    """The program, its text and what was asked for."""
    found = compiled_of("EXPLAIN SELECT COUNT(*) FROM people", facts())
    assert (found.kind, found.explain) == ("explain", True)
    assert compiled_of("SELECT COUNT(*) FROM people", facts()).kind == "select"


@pytest.mark.parametrize("one", constructs.CONSTRUCTS, ids=lambda one: one.name)
def test_the_constructs_others_were_measured_with(one: constructs.Construct) -> None:
    """Answered, or refused with the code the table says."""
    try:
        compiled_of(one.sql, constructs.facts())
        verdict = constructs.ANSWERED
    except QuestionError as error:
        verdict = error.code
    assert verdict == one.expect


def test_most_constructs_are_answered() -> None:
    """Bar: 58 of the 62."""
    assert len(constructs.CONSTRUCTS) == 62
    assert sum(one.expect == constructs.ANSWERED for one in constructs.CONSTRUCTS) >= 58


def test_the_suites_of_other_projects() -> None:
    """Bar: at least 97% of the accepts, and every refusal of kind privacy or parameter."""
    wrong: dict[bool, list[Case]] = {True: [], False: []}
    several = cases()
    for case in several:
        try:
            compiled_of(case.sql, case.facts)
            accepted = True
        except QuestionError:
            accepted = False
        if accepted != case.accept:
            wrong[case.accept].append(case)
    accepts = sum(case.accept for case in several)
    print(f"accepted {accepts - len(wrong[True])} of {accepts}, refused {len(several) - accepts - len(wrong[False])}")
    assert wrong[False] == []
    assert len(wrong[True]) <= 0.03 * accepts, [case.id for case in wrong[True]]


def test_a_persons_own_groups() -> None:
    """GROUP BY the person in a subquery: keys, values, HAVING as a filter on the person's row."""
    found = groups(
        "SELECT kind, AVG(n / 2), SUM(most) FROM (SELECT pid, kind, COUNT(*) AS n, MAX(cost) AS most, "
        "COUNT(DISTINCT paid) AS d, SUM(cost) FILTER (WHERE paid) AS s FROM visits GROUP BY pid, kind "
        "HAVING COUNT(*) > 1) AS t WHERE s > 0 GROUP BY kind"
    )
    own = found.over
    assert isinstance(own, PerPerson)
    assert len(own.keys) == 1
    assert sorted(how for _, how, _ in own.values) == ["count", "max", "sum"]
    assert found.where is not None


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT AVG(n) FROM (SELECT {p}, COUNT(*) AS n FROM {t} GROUP BY {p}) AS u",
        "SELECT AVG(n) FROM (SELECT {p}, COUNT(*) AS n FROM {t} GROUP BY {p}) AS u WHERE n > 1",
        "SELECT COUNT(*) FROM (SELECT DISTINCT {p} FROM {t}) AS u",
        "SELECT COUNT(*) FROM (SELECT {p} FROM {t} UNION SELECT {p} FROM {t}) AS u",
        (
            "SELECT COUNT(*) FROM (SELECT {p}, COUNT(*) AS n FROM {t} GROUP BY {p}) a JOIN "
            "(SELECT {p}, COUNT(*) AS m FROM {t} GROUP BY {p}) b ON a.{p} = b.{p}"
        ),
    ],
)
@pytest.mark.parametrize(("person", "table"), [("pid", "visits"), ("PID", "bills")])  # not declared, and declared
def test_grouping_by_the_person_gives_one_row_a_person_SR13(sql: str, person: str, table: str) -> None:
    """Whether or not the person's column is declared."""
    assert shape(groups(sql.format(p=person, t=table)).over, facts()).rows == 1


def test_a_declared_persons_cell_is_a_value_of_the_persons_row() -> None:
    """Read where it is asked for, still no key of a released table; another key beside it is one."""
    found = groups("SELECT SUM(n) FROM (SELECT PID, COUNT(*) AS n FROM bills GROUP BY PID HAVING PID > 3) AS u")
    assert isinstance(found.over, PerPerson)
    assert found.over.keys == ()
    assert sorted(how for _, how, _ in found.over.values) == ["count", "min"]
    both = groups("SELECT COUNT(*) FROM (SELECT PID, vid FROM bills GROUP BY PID, vid) AS u")
    assert shape(both.over, facts()).rows == 4
    own = "(SELECT PID, COUNT(*) AS n FROM bills GROUP BY PID) AS u"
    assert refused(f"SELECT PID, COUNT(*) FROM {own} GROUP BY PID").code == "raw-rows"
    assert refused(f"SELECT PID + 1, COUNT(*) FROM {own} GROUP BY 1").code == "raw-rows"


def test_different_rows() -> None:
    """SELECT DISTINCT inside counts different rows, with the person those of each person; outside it is GROUP BY."""
    assert isinstance(groups("SELECT COUNT(*) FROM (SELECT DISTINCT kind, paid FROM visits) AS t").over, Distinct)
    assert isinstance(groups("SELECT COUNT(*) FROM (SELECT DISTINCT pid, kind FROM visits) AS t").over, PerPerson)
    outer = program("SELECT DISTINCT kind, paid FROM visits ORDER BY kind DESC")
    assert [name for name, _ in outer.columns] == ["kind", "paid"]
    assert program("SELECT DISTINCT COUNT(*) FROM visits GROUP BY kind").distinct


@pytest.mark.parametrize(
    ("sql", "code"),
    [
        ("SELECT age FROM people", "raw-rows"),
        ("SELECT 1 FROM people", "raw-rows"),
        ("SELECT * FROM regions", "raw-rows"),
        ("SELECT age FROM people UNION ALL SELECT vid FROM visits", "raw-rows"),
        ("SELECT pid, COUNT(*) FROM visits GROUP BY pid", "raw-rows"),
        ("SELECT n FROM (SELECT pid, COUNT(*) AS n FROM visits GROUP BY pid) AS t", "raw-rows"),
        ("SELECT AVG(n) FROM (SELECT pid, STDDEV(cost) AS n FROM visits GROUP BY pid) AS t", "sql-unsupported"),
        ("SELECT AVG(n) FROM (SELECT pid, COUNT(*) AS n FROM visits GROUP BY pid LIMIT 3) AS t", "raw-rows"),
        ("SELECT AVG(n) FROM (SELECT pid, COUNT(*) AS n FROM visits GROUP BY ROLLUP (pid)) AS t", "sql-unsupported"),
        ("SELECT 1", "sql-unsupported"),
        ("SELECT COUNT(*) FROM people WHERE SUM(age) > 3", "sql-syntax"),
    ],
)
def test_what_would_show_rows_is_refused(sql: str, code: str) -> None:
    """Row-level queries, rows of single persons, and what cannot be answered at all."""
    assert refused(sql).code == code


def test_a_tower_of_with_queries_is_refused_T74() -> None:
    """Each WITH query uses the one before twice: 2^20 tables in a short text."""
    tower = ["t0 AS (SELECT pid FROM people)"]
    tower += [f"t{i} AS (SELECT a.pid FROM t{i - 1} a JOIN t{i - 1} b ON a.pid = b.pid)" for i in range(1, 21)]
    error = refused(f"WITH {', '.join(tower)} SELECT COUNT(*) FROM t20")
    assert error.code == "too-large"


def test_a_column_that_another_table_has_is_refused_with_its_name() -> None:
    """Whatever its case; one that no table has is refused as before."""
    for column in ("cost", "COST", "p.cost"):
        found = refused(f"SELECT AVG({column}) AS a FROM people p")
        assert found.code == "unknown-column"
        assert "; table visits has it, at line 1, column 12." in found.message
        assert "FROM" in found.remedy
    assert "has it" not in refused("SELECT AVG(height) AS a FROM people").message
