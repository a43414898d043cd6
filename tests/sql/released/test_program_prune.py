"""Tests of sulq.sql.released.program."""

from __future__ import annotations

from sulq.language.relation import Distinct, Join, PerPerson, Select, Table, Where
from sulq.language.rowfn import Col
from sulq.language.shape import shape
from sulq.sql.parse.syntax import Call
from sulq.sql.released.program import GroupStatistics, Regroup, SubqueryValue, needed
from tests.sql.asking import facts, groups, program

AGE = Select(Table("people"), (("a", Col("age")), ("b", Col("sex")), ("c", Col("married"))))


def test_columns_nobody_reads_are_left_out() -> None:
    """A join works out the columns of the question and of its conditions, no others."""
    found = groups("SELECT SUM(v.cost) FROM people p JOIN visits v ON p.pid = v.pid WHERE p.sex = 'f'").over
    assert isinstance(found, Join)
    assert [len(shape(side, facts()).schema.columns) for side in (found.left, found.right)] == [1, 1]


def test_what_decides_about_rows_stays() -> None:
    """Conditions, keys of a person's groups and every column below DISTINCT."""
    assert needed(Where(AGE, Col("c")), {"a"}).source.columns == (AGE.columns[0], AGE.columns[2])  # type: ignore[union-attr]
    own = needed(PerPerson(AGE, ("b",), (("n", "count", None), ("s", "sum", Col("a")))), {"n"})
    assert isinstance(own, PerPerson)
    assert [name for name, _, _ in own.values] == ["n"]
    assert own.source.columns == (AGE.columns[1],)  # type: ignore[union-attr]
    different = needed(Distinct(AGE), {"a"})
    assert isinstance(different, Distinct)
    assert different.source.columns == AGE.columns  # type: ignore[union-attr]
    assert needed(AGE, set()).columns == AGE.columns[:1]  # type: ignore[union-attr]


def test_every_question_of_a_program_is_pruned() -> None:
    """Subqueries used as values and inner programs too."""
    join = "people p JOIN visits v ON p.pid = v.pid"
    outer = program(
        f"SELECT SUM(n) + (SELECT COUNT(*) FROM {join}) FROM (SELECT sex, COUNT(*) AS n FROM {join} GROUP BY 1) AS t"
    )
    assert isinstance(outer.source, Regroup)
    inner = outer.source.source.source
    value = outer.columns[0][1]
    assert isinstance(value, Call)
    single = value.args[1]
    assert isinstance(single, SubqueryValue)
    for source in (inner, single.program.source):
        assert isinstance(source, GroupStatistics)
        assert len(shape(source.over, facts()).schema.columns) <= 2
