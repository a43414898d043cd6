"""The parse tree is read strictly: equal parts are one object, unknown fields are refused."""

from __future__ import annotations

import pytest

from sulq.kernel.facts import Refused
from sulq.kernel.tree import parse


def test_equal_parts_are_one_object_wherever_they_stand() -> None:
    """Control: other parts are not."""
    first, second, third = parse("SELECT abs(c0 + 1), abs(c0   +  1), abs(c0 + 2) FROM kept")["select_list"]
    assert first is second
    assert first is not third


def test_a_field_that_is_not_named_is_refused() -> None:
    """A reader names all fields it understands."""
    (call,) = parse("SELECT count(DISTINCT c0) FROM kept")["select_list"]
    with pytest.raises(Refused):
        call.only("class", "type", "function_name", "arguments", "qualified_name")
    assert call.only("class", "type", "function_name", "arguments", "qualified_name", "distinct") is call


def test_columns_that_are_referred_to() -> None:
    """Of a part, each once."""
    (item,) = parse("SELECT CASE WHEN c0 > 1 THEN c1 ELSE c0 END FROM kept")["select_list"]
    assert sorted(ref["column_names"] for ref in item.refs) == [("c0",), ("c1",)]


@pytest.mark.parametrize(
    "sql", ["", "SELECT", "INSERT INTO x VALUES (1)", "SELECT 1; SELECT 2", "x" * 2**23, "SELECT '"]
)
def test_what_is_not_one_select_is_refused(sql: str) -> None:
    """By one exception."""
    with pytest.raises(Refused):
        parse(sql)
