"""A planned workload: what it shows is what it will ask."""

from __future__ import annotations

from sulq.language.domain import Int, Schema
from sulq.language.privacy import Epsilon
from sulq.sql.explain import Explanation
from sulq.sql.planned_total import Planned
from sulq.sql.workload import Workload
from tests.stub import facts

TOLD = facts(Schema.of("t", {"x": Int(0, 1)}))


def test_a_workload_shows_spends_and_accuracies_and_asks_in_order():
    """Each query is asked once at its own part of the total, in the order given."""
    asked = []
    made = tuple(
        Planned(text, Epsilon(spend), 0.25, (("n", 12.5),), Explanation(text, None, TOLD, ()))
        for text, spend in (("SELECT  a\nFROM t" + " " * 90 + "WHERE b", 0.1), ("SELECT " + "x" * 90, 0.4))
    )
    found = Workload(made, Epsilon(0.5), 10_000, lambda text, spend: asked.append((text, spend)) or "answer")
    assert asked == []
    text = repr(found)
    assert "2 queries for epsilon 0.5 together" in text
    assert "epsilon 0.1: SELECT a FROM t WHERE b" in text
    assert "..." in text
    assert "n  +- 12.5" in text
    assert "25.00%" in text
    assert "<pre>" in found._repr_html_()
    assert found.to_dict()["within"] == [12.5, 12.5]
    assert (len(found), found[1].spend, found.spends) == (2, Epsilon(0.4), (Epsilon(0.1), Epsilon(0.4)))
    assert found.ask() == ["answer", "answer"]
    assert asked == list(found)
