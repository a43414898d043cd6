"""Plans of open keys: what is set aside, what a person moves, what is refused (SR3, SR14)."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from sulq import Category, Epsilon, EpsilonDelta, Int, OpenSums, Rho, SubLinear, Sums, Text, Together, Unit, col
from sulq.answers.plan import Plan
from sulq.compile.plan import draw
from sulq.compile.plan.calibration import least_laplace_threshold, least_threshold
from sulq.errors import QuestionError
from sulq.kernel.facts import converts, rho_within
from sulq.kernel.ledger.filter import Filter
from sulq.kernel.mechanisms import MECHANISMS, cost_of
from sulq.language.domain import Schema
from sulq.language.facts import Facts
from sulq.language.law import GaussianLaw, PassedGaussianLaw
from sulq.language.privacy import EpsilonKeys, divided
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
    assert (first.mechanism, first.sensitivity, first.alone, first.cells) == ("passed_gaussian", people, alone, 0)
    assert (second.mechanism, second.sensitivity, second.alone) == ("gaussian", value, 0)
    assert first.threshold == plan.parts[0].people.threshold
    total = sum(cost_of(item).rho for item in plan.event.draws)
    if unit.neighbors != "replace_one":  # a person in k groups has a row in each, one whose rows are in one is in one
        gathered = (cost_of(replace(first, sensitivity=Fraction(1))), cost_of(second))
        spread = (cost_of(first), cost_of(replace(second, sensitivity=second.sensitivity / unit.rows)))
        total = max(sum(item.rho for item in way) for way in (gathered, spread))
    assert plan.event.rho * Fraction(999, 1000) < total <= plan.event.rho
    assert cost_of(first).key_delta <= plan.event.key_delta == SPEND.exact_delta / 10


@pytest.mark.parametrize(
    ("unit", "people", "value", "alone"),
    [(Unit(), 1, 10, 1), (Unit("pid", 4), 4, 40, 4), (Unit("pid", 4, "replace_one"), 8, 80, 8)],
)
def test_laplace_noise_needs_no_delta_but_for_keys_SR14(unit: Unit, people: int, value: int, alone: int) -> None:
    """A pure event, in L1, and the keys' part of delta; the plan's price is no more than that. Control: Gaussian."""
    plan = planned(BY_NOTE, unit, EpsilonKeys(1, 2e-6))
    first, second = plan.event.draws
    assert (first.mechanism, first.norm, first.sensitivity, first.alone) == ("passed_laplace", "l1", people, alone)
    assert (second.mechanism, second.sensitivity) == ("laplace", value)
    assert Fraction(999, 1000) < sum(cost_of(item).epsilon for item in plan.event.draws) <= plan.event.epsilon == 1
    assert cost_of(first).key_delta <= plan.event.key_delta == SPEND.exact_delta / 10
    assert plan.spend == EpsilonDelta(1, plan.event.key_delta)
    assert first.threshold == least_laplace_threshold(first.scale, plan.event.key_delta, alone)
    assert planned(BY_NOTE, unit).event.epsilon is None
    assert planned(Sums((Lit(1),)), Unit(), EpsilonKeys(1, 2e-6)).spend == Epsilon(1)


def test_people_and_rows_of_many_groups_cost_hardly_more_than_one_of_both_SR14() -> None:
    """At k rows a person both scales are as if each had k/(k + 1) of the spend; two maxima would take half each.

    Control: under replace_one they do.
    """
    rows, alone = OpenSums((Lit(1),), None, (col("note"),)), OpenSums((), None, (col("note"),))
    for neighbors, part in (("add_remove", 10 / 11), ("replace_one", 1 / 2)):
        both, one = (planned(question, Unit("pid", 10, neighbors)).parts[0] for question in (rows, alone))
        assert float(one.people.scale / both.people.scale) ** 2 == pytest.approx(part)
        whole = planned(
            Sums((Lit(1),), None, (col("g"),)), Unit("pid", 10, neighbors), Rho(planned(rows, Unit()).event.rho)
        )
        assert float(whole.parts[0].laws[0].scale / both.laws[0].scale) ** 2 == pytest.approx(part)


@pytest.mark.parametrize("rows", [1, 10])
def test_where_pairs_are_added_the_normal_curve_says_how_much_noise_SR26(rows: int) -> None:
    """With most of delta for added pairs an ask of the whole budget is less noisy, and its ledger still admits it.

    Control: with a twentieth for them the conversion's rho stays.
    """
    budget, spend = EpsilonDelta(1, 1e-5), EpsilonDelta(1, 1e-5)
    events = {}
    for part in (Fraction(1, 20), Fraction(9, 10)):
        split = divided(budget, open_keys=True, keys=Fraction(1, 2), basic=part)
        facts = replace(Facts(SCHEMA, Unit("pid", rows), budget, budget, budget), split=split)
        events[part] = draw(BY_NOTE, facts, spend).event
        rule = Filter(budget, split, MECHANISMS)
        rule.check(events[part])
        assert rule.holds(rule.cost(events[part]))
    plain, curved = events.values()
    assert plain.rho == rho_within(1.0, float(Fraction(19, 4 * 10**6)))
    assert 1.02 < float(curved.rho / plain.rho) < 1.2
    assert (curved.basic, curved.delta) == (1, Fraction(9, 2 * 10**6))
    assert not converts(curved.rho, curved.basic, curved.delta)


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
    assert isinstance(part.people, PassedGaussianLaw)
    assert [type(noise.law) for noise in part.noise] == [PassedGaussianLaw, GaussianLaw]
    assert len(part.accuracy(0.05)) == len(part.sensitivity) == 2
    assert part.cells == 0


def test_a_delta_past_all_measure_is_refused() -> None:
    """A threshold for a delta below what doubles hold would be none."""
    assert code(BY_NOTE, spend=EpsilonDelta(1, Fraction(1, 10**300))) == "bad-loss"
