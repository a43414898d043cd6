"""Tests of sulq.sql.released.columns."""

from __future__ import annotations

from sulq.language.privacy import Epsilon
from sulq.language.question import WHOLE
from sulq.language.rowfn import Col, Each, Lit
from sulq.sql.released.columns import RowGroups, SumCollector, is_whole, labels
from tests.sql.programs import database

AGE, INCOME, VISIT, SMOKER = Col("age"), Col("income"), Col("visit"), Col("smoker")


def test_a_sum_is_put_once_at_its_largest_weight():
    """Equal sums over equal rows are one value of one question; other rows make another question."""
    collector = SumCollector(database().facts, Epsilon(1))
    assert collector.question() is None
    rows = RowGroups(WHOLE, None, ())
    assert collector.put(rows, AGE + 1) == collector.put(rows, AGE + 1, 3) == (0, 0)
    assert collector.put(rows, Lit(1)) == (0, 1)
    assert collector.put(RowGroups(WHOLE, SMOKER, ()), Lit(1)) == (1, 0)
    first, _ = collector.question().questions
    assert first.shares == (3, 1)


def test_keys_are_read_and_whole_numbers_known():
    """Keys have labels and perhaps a clock; what is whole is so by its type."""
    schema = database().facts.schema
    assert labels(Col("city"), schema)[1] == ("Yafo", "Haifa", "Lod")
    fitted, found, clock = labels(VISIT, schema)
    assert isinstance(fitted, Each)
    assert (len(found), clock) == (366, "date")
    assert is_whole(AGE * 2 + 1, schema)
    assert is_whole(SMOKER, schema)
    assert not is_whole(INCOME, schema)
    assert not is_whole(AGE * 2.0, schema)
    assert not is_whole(Col("city"), schema)
