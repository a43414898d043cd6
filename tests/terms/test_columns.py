"""Handles on columns: names, domains and the Oracle; never rows."""

from __future__ import annotations

import pytest

from sulq.errors import QuestionError
from sulq.terms.columns import Columns
from sulq.terms.domain import Bool, Int, Schema
from tests.stub import Stub

ORACLE = Stub(Schema.of("people", {"age": Int(0, 120), "smoker": Bool()}), [{"age": 77, "smoker": 1}])


def test_a_handle_knows_its_columns():
    """Names, domains and row functions, in order."""
    handle = Columns(("smoker", "age"), ORACLE)
    assert handle.domain == (Bool(), Int(0, 120))
    assert [fn.name for fn in handle.row] == ["smoker", "age"]
    assert len(handle) == 2


def test_S0_1_a_handle_shows_no_row():
    """Its text names columns and table only (S0.1)."""
    text = repr(Columns(("age",), ORACLE))
    assert text == "Columns(age of people; private)"
    assert "77" not in text


@pytest.mark.parametrize("names", [("income",), ("age", "x" * 10_000), (3,), (None,)])
def test_undeclared_columns_are_refused(names):
    """A name that is not declared, or no name, is refused with a code."""
    with pytest.raises(QuestionError) as refusal:
        Columns(names, ORACLE)
    assert refusal.value.code in {"unknown-column", "bad-question"}
    assert len(str(refusal.value)) < 400
