"""Plans of open keys: what is set aside, what a person moves, what is refused (SR3, SR14)."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from sulq import Category, Epsilon, EpsilonDelta, Int, OpenSums, Rho, SubLinear, Sums, Text, Together, Unit, col
from sulq.answers.plan import Plan
from sulq.compile.plan import draw
from sulq.compile.plan.calibration import least_threshold
from sulq.errors import QuestionError
from sulq.kernel.facts import rho_within
from sulq.kernel.mechanisms import cost_of
from sulq.language.domain import Schema
from sulq.language.facts import Facts
from sulq.language.law import GaussianLaw, PassedLaw
from sulq.language.privacy import divided
from sulq.language.relation import Distinct, Select, Table
from sulq.language.rowfn import Lit, Vector

SCHEMA = Schema.of("t", {"x": Int(0, 10), "g": Category(["a", "b"]), "note": Text()})
BUDGET = EpsilonDelta(100, 1e-4)
SPEND = EpsilonDelta(1, 2e-6)
BY_NOTE = OpenSums((col("x"),), None, (col("note"),))


def planned(question: object, unit: Unit, spend: object = SPEND, budget: object = BUDGET) -> Plan:
    return draw(question, Facts(SCHEMA, unit, budget, budget, budget), spend)


def code(question: object, unit: Unit = Unit(), **given: object) -> str:  # noqa: B008 - a frozen value
    with pytest.raises(QuestionError) as refused:
        planned(question, unit, **given)
    return refused.value.code


@pytest.mark.parametrize(
    ("unit", "people", "value", "alone"),
    [
        (Unit(), 1, 100, 1),
        (Unit("pid", 4), 4, 1600, 4),
        (Unit("pid", 4, "zero_out"), 4, 1600, 4),
        (Unit("pid", 4, "replace_one"), 8, 3200, 8),
        (Unit(None, 1, "replace_one"), 2, 200, 2),
    ],
)
def test_a_person_moves_up_to_k_groups_SR14(unit: Unit, people: int, value: int, alone: int) -> None:
    """People: one in each of k groups, both sides under replace_one; values as in any partition (SR1, SR13, SR14)."""
    plan = planned(BY_NOTE, unit)
    first, second = plan.event.draws
    assert (first.mechanism, first.sensitivity, first.alone, first.cells) == ("passed", people, alone, 0)
    assert (second.mechanism, second.sensitivity, second.alone) == ("gaussian", value, 0)
    assert first.threshold == plan.parts[0].people.threshold
    total = sum(cost_of(item).rho for item in plan.event.draws)
    assert plan.event.rho * Fraction(999, 1000) < total <= plan.event.rho
    assert cost_of(first).key_delta <= plan.event.key_delta == SPEND.exact_delta / 10


def test_the_budgets_part_of_the_spends_delta_goes_to_the_keys_SR3() -> None:
    """The rest of delta buys the noise; several questions with open keys share the part (SR3, SR14, SR26)."""
    plan = planned(BY_NOTE, Unit())
    assert plan.event.key_delta == SPEND.exact_delta / 10
    assert plan.event.rho == rho_within(1.0, float(SPEND.exact_delta * 9 / 10))
    assert plan.event.epsilon is None
    assert plan.spend == SPEND
    several = planned(Together((BY_NOTE, Sums((Lit(1),)), BY_NOTE)), Unit())
    assert several.event.key_delta == plan.event.key_delta
    assert [part.people is None for part in several.parts] == [False, True, False]
    first, last = several.parts[0].people, several.parts[2].people
    assert first.threshold == last.threshold == least_threshold(first.scale, SPEND.exact_delta / 20, 1)
    assert planned(Sums((Lit(1),)), Unit()).event.key_delta == 0


@pytest.mark.parametrize("part", [Fraction(1, 2), Fraction(1, 10), Fraction(3, 10)])
def test_asks_with_open_keys_use_a_budget_up_together_with_its_delta_SR26(part: Fraction) -> None:
    """Ten asks of a tenth of the budget's delta fit what it has for keys, whatever part that is; an eleventh does not.

    Ledgers of format 1 have half of delta for keys.
    """
    budget = EpsilonDelta(10, 2e-6)
    split = divided(budget, open_keys=True, keys=part)
    known = replace(Facts(SCHEMA, Unit(), budget, budget, budget), split=split)
    event = draw(BY_NOTE, known, EpsilonDelta(0.1, 2e-7)).event
    assert event.key_delta == Fraction(2, 10**7) * part
    assert 10 * event.key_delta == split.key_delta


def test_a_spend_without_a_delta_is_refused_SR14() -> None:
    """Pure and concentrated spends have no delta to give; SubLinear answers sums over declared keys alone (SR8)."""
    assert code(BY_NOTE, spend=Epsilon(1)) == "open-keys"
    assert code(BY_NOTE, spend=Rho(0.1)) == "open-keys"
    assert code(BY_NOTE, spend=Epsilon(1), budget=Epsilon(10)) == "open-keys"
    assert code(Together((Sums((Lit(1),)), BY_NOTE)), spend=Epsilon(1)) == "open-keys"
    assert code(BY_NOTE, spend=None, budget=SubLinear(1, 1e-6, 10)) == "not-a-noisy-sum"
    assert code(Sums((Lit(1),), None, (col("note"),))) == "open-keys"


def test_what_keys_may_be() -> None:
    """Any kind but vectors; at least one; and rows that are one person's each."""
    planned(OpenSums((), None, (col("x"), col("g"), col("x") > 3, col("note"))), Unit())
    assert code(OpenSums((), None, (Vector((col("x"), col("x"))),))) == "wrong-kind"
    with pytest.raises(QuestionError) as refused:
        OpenSums((Lit(1),))
    assert refused.value.code == "bad-question"
    nobodys = Distinct(Select(Table(), (("note", col("note")),)))
    assert code(OpenSums((), None, (col("note"),), (), nobodys), Unit("pid", 2)) == "person-lost"
    planned(OpenSums((), None, (col("note"),), (), nobodys), Unit())


def test_shares_divide_the_spend_over_people_and_values() -> None:
    """The first share is the people's; without values they have it all."""
    alone = planned(OpenSums((), None, (col("note"),)), Unit())
    even = planned(BY_NOTE, Unit())
    uneven = planned(OpenSums((col("x"),), None, (col("note"),), (3, 1)), Unit())
    scales = [float(plan.parts[0].people.scale) for plan in (alone, uneven, even)]
    assert scales == sorted(scales)
    assert scales[2] / scales[0] == pytest.approx(2**0.5)
    assert scales[1] / scales[0] == pytest.approx((4 / 3) ** 0.5)
    with pytest.raises(QuestionError):
        OpenSums((col("x"),), None, (col("note"),), (1,))


def test_a_plan_tells_the_threshold() -> None:
    """What `explain` shows: the threshold, the noise of people and values."""
    plan = planned(BY_NOTE, Unit("pid", 2))
    part = plan.parts[0]
    assert f"groups of more than {part.people.threshold} (noisy) people" in str(plan)
    assert isinstance(part.people, PassedLaw)
    assert [type(noise.law) for noise in part.noise] == [PassedLaw, GaussianLaw]
    assert len(part.accuracy(0.05)) == len(part.sensitivity) == 2
    assert part.cells == 0


def test_a_delta_past_all_measure_is_refused() -> None:
    """A threshold for a delta below what doubles hold would be none."""
    assert code(BY_NOTE, spend=EpsilonDelta(1, Fraction(1, 10**300))) == "bad-loss"
