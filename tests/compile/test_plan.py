"""Questions to plans: from public facts alone, the same for every table that shares them."""

from __future__ import annotations

import sys
import time
from dataclasses import replace
from fractions import Fraction

import pytest

from sulq.answers import wire
from sulq.compile import plan as planning
from sulq.compile.plan import STEPS, draw
from sulq.errors import QuestionError
from sulq.kernel.laws import gaussian_holds
from sulq.kernel.mechanisms import cost_of
from sulq.language.domain import Bool, Category, Int, Schema
from sulq.language.privacy import Epsilon, EpsilonDelta, Event, Rho, Unit, divided
from sulq.language.question import Sums, Together
from sulq.language.rowfn import Bernstein, Col, Each, Lit, Lookup, Nearest, Vector
from tests.stub import facts

SCHEMA = Schema.of("people", {"age": Int(0, 120), "smoker": Bool(), "city": Category(["Lod", "Yafo"])})
FACTS = facts(SCHEMA, Unit("who", 2), EpsilonDelta(10, 1e-6))
QUESTION = Sums((Lit(1), Col("age")), Col("smoker"), (Col("city"),), (Fraction(1), Fraction(3)))


def test_a_plan_needs_no_rows_T58():
    """Planning imports no engine and holds nothing but its question, facts and spend (T58, T21)."""
    assert not [name for name in vars(planning) if "engine" in name.lower()]
    modules = {name for name in sys.modules if name.startswith("sulq.compile.plan")}
    for name in modules:
        assert not [
            n for n, v in vars(sys.modules[name]).items() if getattr(v, "__name__", "").startswith("duckdb") and n
        ]
    first, again = (draw(QUESTION, FACTS, Epsilon(1)) for _ in range(2))
    assert wire.encode(first) == wire.encode(again)


def test_the_steps_stand_in_order():
    """bind, bound, contribution, sensitivity, calibrate."""
    assert [step.__name__ for step in STEPS] == ["bind", "bound", "contribution", "sensitivity", "calibrate"]


def test_nothing_of_a_plan_follows_the_number_of_rows_T17():
    """The declared size and what is spent change no scale: a plan is the same for every table of these facts (T17)."""
    one = draw(QUESTION, FACTS, Epsilon(1))
    for other in (replace(FACTS, size=17), replace(FACTS, synthetic=True), replace(FACTS, version=9)):
        assert wire.encode(draw(QUESTION, other, Epsilon(1))) == wire.encode(one)


def test_a_plan_carries_its_price_event_and_unit():
    """The event debits what was asked, with the draws and versions that produced it (SR3, decision 0009)."""
    versions = (("numpy", "1"),)
    plan = draw(QUESTION, FACTS, Epsilon(0.1), versions)
    assert plan.spend == Epsilon(0.1)
    spent = sum(cost_of(record).rho for record in plan.event.draws)
    assert spent <= plan.event.rho < spent * (1 + Fraction(1, 10**9))
    assert plan.event == Event(Fraction(1, 10), plan.event.rho, draws=plan.event.draws)
    assert plan.event.versions == versions
    assert [record.cells for record in plan.event.draws] == [2, 2]
    assert {record.mechanism for record in plan.event.draws} == {"laplace"}
    assert {record.neighbors for record in plan.event.draws} == {"add_remove"}
    assert plan.unit == FACTS.unit
    assert plan.guarantee == "dp"
    assert plan.question is QUESTION
    gaussian = draw(QUESTION, FACTS, EpsilonDelta(1, 1e-6))
    assert gaussian.event.epsilon is None
    assert gaussian.event.rho == EpsilonDelta(1, 1e-6).rho
    assert draw(QUESTION, FACTS, Rho(1)).event.rho == 1


@pytest.mark.parametrize("together", [False, True])
def test_a_pure_loss_of_many_draws_costs_the_sum_of_their_rhos(*, together: bool):
    """Ten sums at a tenth of epsilon each: a tenth of the rho of one draw for all of it, in one question or ten."""
    values = tuple(Col("age") > i for i in range(10))
    question = Together(tuple(Sums((value,)) for value in values)) if together else Sums(values)
    event = draw(question, FACTS, Epsilon(1)).event
    assert event.epsilon == 1
    assert float(event.rho) == pytest.approx(0.05)
    assert draw(Sums(values[:1]), FACTS, Epsilon(1)).event.rho == Fraction(1, 2)


def test_the_rho_of_thousands_of_draws_is_a_number_that_is_kept():
    """Fractions of many scales are rounded up one by one: a ledger keeps no number of more than 1200 bits."""
    values = tuple(Col("age") > i / 7 for i in range(2000))
    event = draw(Sums(values, shares=tuple(Fraction(i + 1) for i in range(2000))), FACTS, Epsilon(1)).event
    assert event.rho.denominator.bit_length() < 120
    assert event.rho >= sum(cost_of(record).rho for record in event.draws)


def test_the_parts_of_a_plan_are_its_questions():
    """Together makes one part a question, in order, with its own table, cells and laws."""
    plan = draw(Together((QUESTION, Sums((Lit(1),)))), FACTS, Epsilon(1))
    assert [part.tally.cells for part in plan.parts] == [2, 1]
    assert [len(part.laws) for part in plan.parts] == [2, 1]
    assert {part.tally.over.name for part in plan.parts} <= {"", "people"}
    assert len(plan.accuracy(0.05)) == 2
    assert plan.parts[0].tally.width == 2


@pytest.mark.parametrize("bad", [None, "SELECT 1", 3, Col("age"), [QUESTION], (QUESTION,)])
def test_only_questions_are_planned(bad):
    """Anything but Sums and Together is refused with a code."""
    with pytest.raises(QuestionError) as refusal:
        draw(bad, FACTS, Epsilon(1))
    assert refusal.value.code == "bad-question"


def test_large_questions_are_planned_in_moderate_time_T74():
    """A table of a million numbers and a thousand cells are planned in seconds, not hours (T74)."""
    start = time.process_time()
    wide = Lookup(
        (Each(Col("age").clip(0, 120)), Each(Col("smoker"))), tuple((float(i % 7),) * 2000 for i in range(242))
    )
    draw(Sums((wide,)), FACTS, Epsilon(1))
    centres = tuple((float(i), float(i)) for i in range(1000))
    pair = Vector((Col("age"), Col("age")))
    draw(Sums((Lit(1), pair), None, (Nearest(pair, centres),)), FACTS, Rho(1))
    draw(Sums((Bernstein(Col("age"), 2),) * 200), FACTS, Epsilon(1))
    assert time.process_time() - start < 10


@pytest.mark.parametrize("spend", [Rho(0.001), EpsilonDelta(0.1, 1e-12), EpsilonDelta(0.1, 1e-6)], ids=str)
def test_a_loss_that_is_not_pure_has_a_pair_fixed_before_its_debit_SR26(spend: object):
    """At a sixteenth of the share for it or the spend's own delta, and the least epsilon that holds its rho."""
    split = divided(FACTS.budget, open_keys=False)
    share = split.basic_delta
    question = Sums((Vector(tuple(Col("age") > i for i in range(60))),))
    event = draw(question, replace(FACTS, split=split), spend).event
    own = spend.exact_delta * Fraction(19, 20) if isinstance(spend, EpsilonDelta) else share
    assert event.delta == min(own, share / 16)
    assert gaussian_holds(event.rho, event.draws, event.basic, event.delta)
    less = event.basic * Fraction(999, 1000)  # control: not much more than must be
    assert not gaussian_holds(event.rho, event.draws, less, event.delta)
    old = draw(question, FACTS, spend).event  # a ledger without such a share
    assert (old.basic, old.delta) == (None, 0)
