"""The Oracle: one door of three members."""

from __future__ import annotations

import inspect
from fractions import Fraction

from sulq import Epsilon
from sulq.answers.oracle import MAX_FORESEEN, Oracle, SpendPlan
from sulq.curator.reuse import ReusingOracle
from sulq.language.domain import Schema
from sulq.language.question import Sums
from sulq.language.rowfn import Lit
from tests.stub import Stub


def test_the_door_is_facts_foresee_and_ask():
    """Nothing else is asked of an Oracle, and the curator and the stub of these tests have it."""
    members = {name for name in vars(Oracle) if not name.startswith("_")}
    assert members == {"facts", "foresee", "ask"}
    for cls in (ReusingOracle, Stub):
        for name in ("foresee", "ask"):
            asked = list(inspect.signature(getattr(Oracle, name)).parameters)
            assert list(inspect.signature(getattr(cls, name)).parameters) == asked
        assert isinstance(vars(cls)["facts"], property)


def test_a_plan_that_is_looked_at_again_is_foreseen_once() -> None:
    """Of the same question and part; control: of another question, another part, or after many others it is anew."""
    seen: list[object] = []

    class Foreseeing(Stub):
        def foresee(self, question: object, *, spend: object = None) -> object:
            seen.append((question, spend))
            return len(seen)

    spending = SpendPlan(Foreseeing(Schema("t", ()), [], budget=Epsilon(1)), Epsilon(1))
    one, other = Sums((Lit(1),)), Sums((Lit(1),))
    assert [spending.foresee(one, 0.5), spending.foresee(one, 0.5)] == [1, 1]
    assert [spending.foresee(one), spending.foresee(other, 0.5)] == [2, 3]
    for part in range(1, MAX_FORESEEN + 1):
        spending.foresee(other, Fraction(1, part + 2))
    assert spending.foresee(one, 0.5) == 4 + MAX_FORESEEN
