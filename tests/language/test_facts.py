"""Facts: everything public about a database, in one printable value."""

from __future__ import annotations

from dataclasses import replace

from sulq.language.domain import Int, Schema
from sulq.language.privacy import Epsilon, EpsilonDelta, Queries, SubLinear, Unit, divided
from tests.stub import facts

SCHEMA = Schema.of("people", {"age": Int(0, 120)})


def test_the_table_is_named_as_registered():
    """The name stands in the schema."""
    assert facts(SCHEMA).table == "people"


def test_facts_print_unit_budget_and_declarations_T93():
    """Whoever reads them sees who is protected, how much may be spent, and whether the data is private (T93)."""
    told = facts(SCHEMA, Unit("who", 3, "replace_one"), Epsilon(2), size=1000)
    text = str(told)
    for word in (
        "people",
        "who",
        "3 rows",
        "replace_one",
        "epsilon 2",
        "spent epsilon 0",
        "Int(0, 120)",
        "declared size 1000",
    ):
        assert word in text
    assert "synthetic" not in text
    assert "synthetic" in str(replace(told, synthetic=True))
    assert "forgotten at exit" in str(replace(told, durable=False))


def test_facts_say_how_delta_is_divided():
    """One line says what each part is for; a budget without a division has no such line."""
    budget = EpsilonDelta(1, 1e-6)
    told = facts(SCHEMA, Unit(), budget)
    text = str(replace(told, split=divided(budget, open_keys=True)))
    line = "delta: 8.55e-07 for asks summed at one order, 4.5e-08 for asks added one by one, 1e-07 for open keys"
    assert line in text.split("\n")
    assert "one by one" not in str(replace(told, split=None))


def test_a_careless_budget_is_pointed_out_T93():
    """A delta of at least 1/size and an epsilon that protects little are said aloud (T93)."""
    careful = facts(SCHEMA, budget=EpsilonDelta(1, 1e-6), size=1000)
    assert careful.cautions == ()
    assert any("delta" in c for c in facts(SCHEMA, budget=EpsilonDelta(1, 1e-3), size=1000).cautions)
    assert any("epsilon" in c for c in facts(SCHEMA, budget=Epsilon(900)).cautions)
    loose = facts(SCHEMA, Unit(None, 1, "replace_one"), SubLinear(1, 0.01, 10), size=1000)
    assert any("delta" in c for c in loose.cautions)
    assert loose.remaining == Queries(10)
    assert "caution" in str(facts(SCHEMA, budget=Epsilon(900)))


def test_facts_of_a_budget_that_answers_nothing_are_printed():
    """No noise meets it, or its calibration needs a size that nobody declared: said, where printing had raised."""
    for budget in (SubLinear(1, 1, 10), SubLinear(1, 1e-100, 10), SubLinear(1, 1e-6, 10, "binomial-paper")):
        assert "nothing can be answered" in str(facts(SCHEMA, budget=budget))
    assert "Up to 393 queries" in str(facts(SCHEMA, budget=SubLinear(1, 1e-6, 10), size=10_000))
