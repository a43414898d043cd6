"""Tests of sulq.sql.released.grouped_query."""

from __future__ import annotations

import pytest

from sulq.sql.parse.syntax import Call, Place
from sulq.sql.released.program import GroupStatistics, KeyLabel, Regroup, StackedPrograms, StatAt, TableProgram
from tests.sql.asking import program, refused
from tests.sql.programs import aggregate, const

INNER = "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex"


def test_filters_and_columns_over_a_released_table() -> None:
    """A plain SELECT over a released table is a program over a program."""
    found = program(f"SELECT sex, n + 1 AS m FROM ({INNER}) AS t WHERE n > 3 ORDER BY m DESC LIMIT 1")
    assert isinstance(found.source, TableProgram)
    assert isinstance(found.source.source, GroupStatistics)
    assert found.columns == (("sex", Place(0)), ("m", Call("+", (Place(1), const(1)))))
    assert found.having == Call(">", (Place(1), const(3)))
    assert (found.order[0][1], found.limit) == (True, 1)


def test_groups_of_released_rows() -> None:
    """Aggregates over released rows, with keys, filters and HAVING, cost nothing."""
    found = program(
        f"WITH t AS ({INNER}) SELECT UPPER(sex), SUM(n) FILTER (WHERE n > 1), MAX(n) FROM t WHERE n > 0 "
        "GROUP BY UPPER(sex) HAVING COUNT(*) > 0"
    )
    source = found.source
    assert isinstance(source, Regroup)
    assert source.keys == (Call("upper", (Place(0),)),)
    assert source.where == Call(">", (Place(1), const(0)))
    assert source.stats[0] == aggregate("sum", Place(1), Call(">", (Place(1), const(1))))
    assert [expr for _, expr in found.columns] == [KeyLabel(0), StatAt(0), StatAt(1)]
    assert found.having == Call(">", (StatAt(2), const(0)))


def test_unions_of_released_tables() -> None:
    """One after the other; UNION without ALL leaves each different row once."""
    found = program("SELECT COUNT(*) AS n FROM people UNION ALL SELECT COUNT(*) FROM visits ORDER BY n LIMIT 1")
    assert isinstance(found.source, StackedPrograms)
    assert (found.columns, found.limit, found.distinct) == ((("n", Place(0)),), 1, False)
    assert program("SELECT COUNT(*) FROM people UNION SELECT COUNT(*) FROM visits").distinct
    assert isinstance(program("SELECT SUM(n) FROM (SELECT COUNT(*) AS n FROM people UNION ALL SELECT 2 FROM "
                              "(SELECT COUNT(*) FROM visits) AS v) AS t").source, Regroup)  # fmt: skip


@pytest.mark.parametrize(
    ("sql", "code"),
    [
        (f"SELECT age FROM ({INNER}) AS t", "unknown-column"),
        (f"SELECT sex, SUM(n) FROM ({INNER}) AS t", "not-grouped"),
        (f"SELECT CORR(n, n) FROM ({INNER}) AS t", "sql-unsupported"),
        (f"SELECT SUM(SUM(n)) FROM ({INNER}) AS t", "sql-syntax"),
        (f"SELECT n FROM ({INNER}) AS t WHERE EXISTS (SELECT 1 FROM visits)", "sql-unsupported"),
        ("SELECT COUNT(*), 1 FROM people UNION SELECT COUNT(*) FROM visits", "sql-syntax"),
        ("SELECT COUNT(*) FROM people UNION ALL SELECT age FROM people", "sql-unsupported"),
    ],
)
def test_what_is_refused_over_released_tables(sql: str, code: str) -> None:
    """The same rules of names and groups hold for released columns."""
    assert refused(sql).code == code
