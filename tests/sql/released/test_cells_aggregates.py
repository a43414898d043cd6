"""Aggregates of released rows: values, and ranges that stay open where the noise leaves membership open."""

from __future__ import annotations

from fractions import Fraction

import pytest

from sulq.errors import QuestionError
from sulq.language.privacy import Epsilon
from sulq.language.relation import Table
from sulq.language.rowfn import Col
from sulq.sql.parse.syntax import Aggregate, Place
from sulq.sql.released.cells import AggregatedCells, GroupCells, Unclear, value_of
from sulq.sql.released.program import GroupStatistics, KeyLabel, Regroup, Stat, StatAt, TableProgram
from tests.sql.programs import aggregate, apply, const, truth


@pytest.mark.parametrize(
    ("name", "values", "expected"),
    [
        ("count", [], 0),
        ("sum", [], None),
        ("sum", [1, 2], 3),
        ("sum", [1, 2.5], 3.5),
        ("mean", [1, 2], 1.5),
        ("min", ["b", "a"], "a"),
        ("max", [1, 3, 2], 3),
        ("var_pop", [1, 3], 1.0),
        ("var_samp", [1, 3], 2.0),
        ("var_samp", [1], None),
        ("std_pop", [1, 3], 1.0),
        ("std_samp", [4], None),
        ("quantile_cont", [1, 2], 1.25),
        ("quantile_disc", [3, 1, 2], 1),
        ("bool_and", [True, False], False),
        ("bool_or", [True, False], True),
        ("bool_or", [], None),
    ],
)
def test_aggregates_are_those_of_sql(name, values, expected):
    """Of no values only a count is known; whole sums stay whole."""
    found = value_of(name, values, Fraction(1, 4))
    assert found == expected
    assert type(found) is type(expected)


def test_an_unknown_aggregate_is_refused():
    """What is no aggregate is refused with a code."""
    with pytest.raises(QuestionError):
        value_of("mode", [1], None)


def inner(**more: object) -> TableProgram:
    groups = GroupStatistics(Table(), None, (Col("city"),), (), (Stat("rows"),))
    return TableProgram(groups, (("city", KeyLabel(0)), ("n", StatAt(0))), **more)  # type: ignore[arg-type]


def origins(source: TableProgram, *stats: Aggregate, keys: tuple[object, ...] = ()) -> list[object]:
    program = TableProgram(
        Regroup(source, None, keys, (), stats),
        tuple((f"s{i}", StatAt(i)) for i in range(len(stats))),  # type: ignore[arg-type]
    )
    asked, released = truth(program, Epsilon(1))
    return [figure.origin for figure in asked.read(released).shown()[0]]


def test_ranges_know_what_they_rest_on():
    """A plain sum has the law of a sum; membership that noise decides is kept; what is cut off has no range."""
    total, rows, different = origins(
        inner(), aggregate("sum", Place(1)), aggregate("rows"), aggregate("count", Place(1), distinct=True)
    )
    assert isinstance(total, GroupCells)
    assert rows is None
    assert isinstance(different, Unclear)
    kept = inner(having=apply(">", StatAt(0), const(100)))
    assert all(
        isinstance(origin, AggregatedCells) for origin in origins(kept, aggregate("rows"), aggregate("sum", Place(1)))
    )
    cut = inner(limit=1)
    assert isinstance(origins(cut, aggregate("rows"))[0], Unclear)
    by_noise = origins(inner(), aggregate("rows"), keys=(apply(">", Place(1), const(100)),))
    assert isinstance(by_noise[0], Unclear)
    mixed = origins(inner(), aggregate("sum", apply("*", Place(1), const(2))))
    assert isinstance(mixed[0], AggregatedCells)
