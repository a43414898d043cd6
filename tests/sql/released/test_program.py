"""The output half of a query is plain values: equal where they say the same."""

from __future__ import annotations

from sulq.sql.released.program import Aggregate, Apply, Cond, Const, Field, Grouping, Key, StatAt


def test_expressions_are_values():
    """Two expressions of the same parts are equal and hash alike, so they can be found again."""
    first, second = (
        Cond(((Apply(">", (StatAt(0), Const(1))), Key(0)),), Apply("+", (Field(1), Grouping(0)))) for _ in range(2)
    )
    assert first == second
    assert len({first, second}) == 1
    assert Aggregate("sum", Field(0)) == Aggregate("sum", Field(0))
