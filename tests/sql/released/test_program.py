"""The output half of a query is plain values: equal where they say the same."""

from __future__ import annotations

from sulq.sql.parse.syntax import Call, Place
from sulq.sql.released.program import KeyLabel, LeftOut, StatAt
from tests.sql.programs import aggregate, const


def test_expressions_are_values():
    """Two expressions of the same parts are equal and hash alike, so they can be found again."""
    first, second = (
        Call("case", (Call(">", (StatAt(0), const(1))), KeyLabel(0), Call("+", (Place(1), LeftOut(0)))))
        for _ in range(2)
    )
    assert first == second
    assert len({first, second}) == 1
    assert aggregate("sum", Place(0)) == aggregate("sum", Place(0))
