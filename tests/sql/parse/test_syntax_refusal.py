"""Tests of sulq.sql.parse.syntax."""

from __future__ import annotations

import pytest

from sulq.sql.parse.syntax import SqlRefused, unsupported


def test_a_place_becomes_line_and_column() -> None:
    """Counted from 1, in the text as it was given."""
    text = "SELECT\n  foo(x)\nFROM t"
    error = SqlRefused("sql-unsupported", "foo() is not answered.", text.index("foo")).located(text)
    assert error.code == "sql-unsupported"
    assert "line 2, column 3." in error.message


def test_a_construct_is_refused_by_name() -> None:
    """The remedy may say what to write instead."""
    with pytest.raises(SqlRefused) as caught:
        unsupported("OVER", 4, "Aggregate.")
    assert (caught.value.at, caught.value.remedy) == (4, "Aggregate.")
    assert "OVER" in caught.value.message
