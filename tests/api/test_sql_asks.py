"""SQL of an analyst goes through the Oracle like every other ask."""

from __future__ import annotations

from sulq.api.named_asks import NamedAsks
from sulq.language.privacy import Epsilon
from tests.api.test_named_asks import BUDGET, PEOPLE, SCHEMA
from tests.stub import Stub


def test_SQL_is_asked_of_any_oracle():
    """The named asks' SQL goes through the Oracle like every other ask: one question, one price, free explanations."""
    stub = Stub(SCHEMA, PEOPLE, budget=BUDGET)
    db = NamedAsks(stub)
    text = "SELECT city, COUNT(*) AS n, SUM(age) AS s FROM people WHERE age > 40 GROUP BY city"
    assert "expected accuracy" in str(db.explain(text, spend=Epsilon(1)))
    assert len(db.plan([text, "SELECT COUNT(*) FROM people"], spend=Epsilon(1))) == 2
    assert stub.asked == []
    answer = db.sql(text, spend=Epsilon(1))
    assert len(stub.asked) == 1
    older = [row for row in PEOPLE if row["age"] is not None and row["age"] > 40 and row["city"] == 0]
    assert {row[0]: row[1:] for row in answer.value}["Lod"] == (len(older), sum(row["age"] for row in older))
