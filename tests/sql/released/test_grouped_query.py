"""Tests of sulq.sql.released.grouped_query."""

from __future__ import annotations

from fractions import Fraction

import pytest

from sulq.language.rowfn import Arith, Col, IsMissing, Lit, Not
from sulq.sql.parse.syntax import Call
from sulq.sql.released.program import KeyLabel, LeftOut, StatAt
from tests.sql.asking import groups, program, refused, same
from tests.sql.programs import const


def test_statistics_are_collected_once() -> None:
    """Equal aggregates are one statistic, wherever they stand."""
    sql = "SELECT sex, SUM(age), SUM(people.AGE) / COUNT(*) FROM people GROUP BY sex"
    found = program(f"{sql} HAVING COUNT(*) > 3 ORDER BY SUM(age)")
    source = groups(sql)
    assert [stat.name for stat in source.stats] == ["sum", "rows"]
    assert dict(found.columns)["?column?"] == Call("/", (StatAt(0), StatAt(1)))
    assert found.having == Call(">", (StatAt(1), const(3)))
    assert found.order == ((StatAt(0), False, False),)


def test_each_aggregate_is_its_statistic() -> None:
    """Names, arguments, filters, DISTINCT and quantiles."""
    sql = (
        "SELECT COUNT(age), COUNT(DISTINCT age), COUNT(DISTINCT pid), COUNT(pid), COUNT(1), AVG(age + 1), "
        "SUM(DISTINCT age), MIN(DISTINCT age), STDDEV(age), CORR(age, income), MEDIAN(age), SUM(code), "
        "SUM(age) FILTER (WHERE married), MAX(born) FROM people"
    )
    stats = groups(sql).stats
    assert [stat.name for stat in stats] == (
        "count count persons rows rows mean sum min std_samp corr quantile_cont sum sum max".split()  # noqa: SIM905
    )
    assert [stat.distinct for stat in stats[:8]] == [False, True, False, False, False, False, True, False]
    assert same(stats[5].args[0], Arith("+", Col("age"), Lit(1)))
    assert stats[10].q == Fraction(1, 2)
    assert same(stats[12].where, Col("married"))


def test_optional_persons_are_counted_where_they_are() -> None:
    """After a LEFT JOIN only matched rows have a person on the right."""
    sql = "SELECT COUNT(*), COUNT(v.pid), COUNT(DISTINCT v.pid) FROM people p LEFT JOIN visits v ON p.pid = v.pid"
    rows, matched, persons = groups(sql).stats
    assert (rows.name, rows.where) == ("rows", None)
    assert (matched.name, persons.name) == ("rows", "persons")
    assert isinstance(matched.where, Not)
    assert isinstance(matched.where.item, IsMissing)


@pytest.mark.parametrize(
    "group",
    ["sex", "1", "s", "people.sex", "UPPER(sex), sex"],
)
def test_keys_by_name_position_and_alias(group: str) -> None:
    """However a key is written it is the same key."""
    found = program(f"SELECT sex AS s, COUNT(*) FROM people GROUP BY {group}")
    key = found.columns[0][1]
    assert isinstance(key, KeyLabel)


def test_a_column_goes_before_an_alias_in_group_by_and_after_it_in_order_by() -> None:
    """PostgreSQL's rule: GROUP BY age is the column, ORDER BY age the result."""
    found = program("SELECT age / 10 AS age, COUNT(*) AS n FROM people GROUP BY 1 ORDER BY age, n DESC")
    assert found.order == ((KeyLabel(0), False, False), (StatAt(0), True, True))
    assert refused("SELECT age / 10 AS age, income FROM people GROUP BY age").code == "not-grouped"


def test_expressions_of_keys_are_worked_out_on_released_labels() -> None:
    """Functions of a grouped column, and grouped expressions inside others."""
    found = program("SELECT UPPER(sex), age + 1 + 2, EXTRACT(YEAR FROM born) FROM people GROUP BY sex, age + 1, born")
    upper, more, year = (expr for _, expr in found.columns)
    assert upper == Call("upper", (KeyLabel(0),))
    assert more == Call("+", (KeyLabel(1), const(2)))
    assert year == Call("date_part", (const("year"), Call("cast date", (KeyLabel(2),))))


def test_grouping_sets() -> None:
    """Each set by the places of its keys; GROUPING tells which keys are left out."""
    found = program("SELECT sex, educ, GROUPING(sex, educ) FROM people GROUP BY ROLLUP (sex, educ)")
    source = groups("SELECT sex FROM people GROUP BY ROLLUP (sex, educ)")
    assert source.sets == ((0, 1), (0,), ())
    bits = found.columns[2][1]
    assert bits == Call("+", (Call("*", (LeftOut(0), const(2))), LeftOut(1)))
    crossed = groups("SELECT sex FROM people GROUP BY sex, CUBE (educ), GROUPING SETS ((married), ())")
    assert crossed.sets == ((0, 1, 2), (0, 1), (0, 2), (0,))


@pytest.mark.parametrize(
    ("sql", "code", "place"),
    [
        ("SELECT sex, age FROM people GROUP BY sex", "not-grouped", 13),
        ("SELECT married, AVG(age) FROM people", "not-grouped", 8),
        ("SELECT *, COUNT(*) FROM people", "not-grouped", 8),
        ("SELECT AVG(age) FROM people GROUP BY sex HAVING income > 3", "not-grouped", 49),
        ("SELECT AVG(age) FROM people GROUP BY sex ORDER BY income", "not-grouped", 51),
        ("SELECT COUNT(*) FROM people GROUP BY pid", "raw-rows", 38),
        ("SELECT PID % 7, COUNT(*) FROM bills GROUP BY 1", "raw-rows", 8),
        ("SELECT CASE WHEN PID = 1 THEN 0 ELSE 1 END, COUNT(*) FROM bills GROUP BY 1", "raw-rows", 8),
        ("SELECT DISTINCT PID FROM bills", "raw-rows", 17),
        ("SELECT SUM(AVG(age)) FROM people", "sql-syntax", 8),
        ("SELECT COUNT(*) FROM people GROUP BY COUNT(*)", "sql-syntax", 38),
        ("SELECT COUNT(*) FROM people GROUP BY 3", "sql-syntax", 38),
        ("SELECT COUNT(*) FROM people WHERE COUNT(*) > 1", "sql-syntax", 35),
        ("SELECT SUM(sex) FROM people", "wrong-kind", 12),
        ("SELECT SUM(born) FROM people", "sql-unsupported", 8),
        ("SELECT BOOL_AND(married) FROM people", "sql-unsupported", 8),
        ("SELECT SUM(income / age) FROM people", "unbounded", 12),
        ("SELECT MAX(name) FROM people", "wrong-kind", 12),
    ],
)
def test_what_cannot_be_released_is_refused(sql: str, code: str, place: int) -> None:
    """Ungrouped columns, the person as a key, aggregates where none can be; each with its place."""
    error = refused(sql)
    assert error.code == code
    assert f"line 1, column {place}." in error.message


def test_a_persons_identity_is_no_key_through_a_subquery_either_T11() -> None:
    """What is made of the person's column stays personal through joins, unions and per-person groups."""
    inner = {
        "SELECT PID + 1 AS k FROM bills": "raw-rows",
        "SELECT b.PID + 1 AS k FROM bills b JOIN visits v ON b.vid = v.vid": "raw-rows",
        "SELECT PID AS k FROM bills UNION ALL SELECT PID FROM bills": "raw-rows",
        "SELECT PID + 0 AS k, COUNT(*) AS n FROM bills GROUP BY PID": "raw-rows",
    }
    for sql, code in inner.items():
        assert refused(f"SELECT k, COUNT(*) FROM ({sql}) AS t GROUP BY k").code == code
    assert groups("SELECT k, COUNT(*) FROM (SELECT vid / 100 AS k FROM bills) AS t GROUP BY k")
