"""Which law an ask gets: the one of least foreseen error, or the one that is named; from public facts alone (SR3)."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import pytest

from sulq.answers.law_choice import cheapest, count_first, foreseen_of, kinds, nearest, portion
from sulq.answers.oracle import chosen
from sulq.compile.plan import draw
from sulq.errors import QuestionError
from sulq.kernel.ledger.filter import Filter, Totals
from sulq.kernel.mechanisms import MECHANISMS
from sulq.language.domain import Int, Schema, Text
from sulq.language.facts import Facts
from sulq.language.privacy import Epsilon, EpsilonDelta, EpsilonKeys, Queries, Rho, SubLinear, Unit, divided
from sulq.language.question import OpenSums, Sums
from sulq.language.rowfn import Col, Lit, Vector
from tests.stub import Stub, facts

SCHEMA = Schema.of("people", {"age": Int(0, 120), "name": Text()})
BUDGET = EpsilonDelta(3, 1e-6)


def sums(number: int) -> Sums:
    """So many numbers that one person moves all together."""
    return Sums((Vector(tuple(Col("age") > i for i in range(number))),))


def oracle(budget: object = BUDGET, rows: int = 1) -> Stub:
    return Stub(SCHEMA, [], unit=Unit("name", rows), budget=budget)


@pytest.mark.parametrize(("number", "law"), [(1, Epsilon), (8, Epsilon), (60, EpsilonDelta)])
def test_an_epsilon_and_delta_buy_the_law_of_least_error_SR3(number: int, law: type):
    """Laplace for few sums that one person moves together, Gaussian for many; the other one, the control, is worse."""
    asked, spend = oracle(), EpsilonDelta(1, 1e-6)
    found = chosen(asked, sums(number), spend)
    assert found == (Epsilon(1) if law is Epsilon else spend)
    errors = {type(one): foreseen_of(asked.foresee(sums(number), spend=one)).widths[0] for one in (Epsilon(1), spend)}
    assert errors[law] < min(error for kind, error in errors.items() if kind is not law)
    assert not asked.asked


def test_a_delta_too_small_for_gaussian_noise_leaves_the_pure_one():
    """Sixty sums, and next to no delta: Gaussian noise would be worse, or there is none at all."""
    assert chosen(oracle(), sums(60), EpsilonDelta(1, 1e-300)) == Epsilon(1)

    def off(one: object) -> list[float]:
        if isinstance(one, EpsilonDelta):
            raise QuestionError("too-little-noise", "none")
        return [1.0]

    assert nearest(EpsilonDelta(1, 1e-6), None, lambda: BUDGET, off) == Epsilon(1)


def test_the_choice_follows_how_many_rows_a_person_has_SR3():
    """The more rows of a person are kept, the sooner Gaussian noise is nearer: its scale grows by their root."""
    histogram = Sums((Lit(1),), None, (Col("age") > 60,))
    assert chosen(oracle(rows=1), histogram, EpsilonDelta(1, 1e-6)) == Epsilon(1)
    widths = [
        foreseen_of(oracle(rows=100).foresee(sums(8), spend=one)).widths[0]
        for one in (Epsilon(1), EpsilonDelta(1, 1e-6))
    ]
    best = (Epsilon(1), EpsilonDelta(1, 1e-6))[widths.index(min(widths))]
    assert chosen(oracle(rows=100), sums(8), EpsilonDelta(1, 1e-6)) == best


def test_a_named_law_is_bought_or_refused():
    """`law` decides; a pure spend is pure and a rho buys Gaussian noise, so the other name is refused."""
    asked, spend = oracle(), EpsilonDelta(1, 1e-6)
    for number in (1, 60):
        assert chosen(asked, sums(number), spend, "laplace") == Epsilon(1)
        assert chosen(asked, sums(number), spend, "gaussian") == spend
    assert chosen(asked, sums(60), Epsilon(1), "laplace") == Epsilon(1)
    assert chosen(asked, sums(1), Rho(1), "gaussian") == Rho(1)
    for one, law, code in (
        (Epsilon(1), "gaussian", "spend-kind"),
        (Rho(1), "laplace", "spend-kind"),
        (None, "laplace", "spend-kind"),
        (Queries(1), "laplace", "spend-kind"),
        (spend, "cauchy", "bad-question"),
        (spend, 7, "bad-question"),
    ):
        with pytest.raises(QuestionError) as refusal:
            chosen(asked, sums(1), one, law)
        assert refusal.value.code == code


@pytest.mark.parametrize("budget", [Epsilon(3), Rho(3)], ids=str)
def test_a_budget_without_delta_takes_no_epsilon_and_delta(budget: object):
    """It would be kept by pure noise; but the budget refuses the kind, whatever the law (SR3)."""
    for law in (None, "laplace", "gaussian"):
        spend = chosen(oracle(budget), sums(1), EpsilonDelta(1, 1e-6), law)
        with pytest.raises(QuestionError, match="cannot hold"):
            oracle(budget).foresee(sums(1), spend=spend)


@pytest.mark.parametrize(("rows", "law"), [(1, EpsilonKeys), (2, EpsilonKeys), (10, EpsilonDelta)])
def test_groups_found_in_the_data_get_the_law_of_the_least_threshold_SR14(rows: int, law: type):
    """Laplace where a person has few keys, Gaussian where many; a name decides. Control: the other's threshold."""
    spend, asked = EpsilonDelta(1, 1e-6), OpenSums((), None, (Col("name"),))
    pure = EpsilonKeys(1, 1e-6)
    assert chosen(oracle(rows=rows), asked, spend) == (pure if law is EpsilonKeys else spend)
    assert chosen(oracle(rows=rows), asked, spend, "laplace") == pure
    assert chosen(oracle(rows=rows), asked, spend, "gaussian") == spend
    found = {type(one): oracle(rows=rows).foresee(asked, spend=one).parts[0].people for one in (pure, spend)}
    assert found[law].threshold < min(one.threshold for kind, one in found.items() if kind is not law)
    assert chosen(oracle(rows=rows), sums(1), spend, "laplace") == Epsilon(1)  # without keys no delta is named


def test_errors_are_compared_by_their_geometric_mean_and_endless_ones_first():
    """A unit of measure does not count; what is known nowhere is worse than any width."""
    widths = {"Epsilon": [1.0, 1000.0], "EpsilonDelta": [2.0, 400.0]}
    spend = EpsilonDelta(1, 1e-6)

    def found(scale: float) -> object:
        def off(one: object) -> list[float]:
            first, second = widths[type(one).__name__]
            return [first, second * scale]

        return nearest(spend, None, lambda: BUDGET, off)

    assert found(1) == found(1e-6) == spend
    widths["EpsilonDelta"] = [2.0, math.inf]
    assert found(1) == Epsilon(1)


def test_the_kinds_of_a_price_follow_budget_cap_and_law():
    """Both laws have a price where budget and cap hold both; else one, or none."""
    both = (Epsilon, Rho)
    assert kinds(BUDGET, None, None) == kinds(BUDGET, EpsilonDelta(1, 1e-6), None) == both
    assert kinds(BUDGET, Rho(1), None) == kinds(BUDGET, None, "gaussian") == kinds(Rho(1), None, None) == (Rho,)
    assert (
        kinds(BUDGET, Epsilon(1), None) == kinds(BUDGET, None, "laplace") == kinds(Epsilon(1), None, None) == (Epsilon,)
    )
    for budget, cap, law in (
        (Epsilon(1), None, "gaussian"),
        (BUDGET, Epsilon(1), "gaussian"),
        (Rho(1), None, "laplace"),
    ):
        with pytest.raises(QuestionError) as refusal:
            kinds(budget, cap, law)
        assert refusal.value.code == "spend-kind"
    with pytest.raises(QuestionError, match="the noise is fixed"):
        kinds(SubLinear(queries=3, epsilon=1, delta=1e-6), None, None)


def known(budget: EpsilonDelta) -> Facts:
    split = divided(budget, open_keys=False)
    return replace(
        facts(SCHEMA, None, budget), remaining=Epsilon(budget.exact), split=split, rho=split.room / split.alpha
    )


@pytest.mark.parametrize("budget", [EpsilonDelta(0.5, 1e-6), EpsilonDelta(3, 1e-6), EpsilonDelta(1, 1e-9)], ids=str)
@pytest.mark.parametrize("within", [100, 30, 8, 2])
def test_the_law_of_the_smallest_portion_is_asked_most_often_SR3(budget: EpsilonDelta, within: int):
    """So many counts of this accuracy as the filter admits by either law: the cheaper one's are more, or as many."""
    facts_, question = known(budget), Sums((Lit(1),))

    def price(kind: type) -> Epsilon | Rho:
        amount = kind(1)
        while draw(question, facts_, amount).accuracy()[0][0] > within:
            amount = kind(amount.exact * Fraction(11, 10))
        while draw(question, facts_, amount).accuracy()[0][0] <= within:
            amount = kind(amount.exact * Fraction(10, 11))
        return kind(amount.exact * Fraction(11, 10))

    def event(loss: object) -> object:
        return draw(question, facts_, loss).event

    rule = Filter(budget, facts_.split, tuple(MECHANISMS))

    def number(loss: object) -> int:
        totals, asks = Totals(), -1
        while rule.holds(totals) and asks < 5000:
            totals, asks = totals + rule.cost(event(loss)), asks + 1
        return asks

    found = cheapest(facts_, (Epsilon, Rho), price, event)
    others = [price(kind) for kind in (Epsilon, Rho)]
    assert portion(event(found), facts_) == min(portion(event(one), facts_) for one in others)
    assert number(found) >= max(map(number, others)) - 1  # the last one may fit by the other branch


def test_the_parts_of_a_cap_add_up_to_it():
    """Of an epsilon and a delta the first part is pure, and the rest has all of delta."""
    assert count_first(EpsilonDelta(1, 1e-6)) == (Epsilon(0.1), EpsilonDelta(0.9, 1e-6))
    for cap in (Epsilon(1), Rho(1)):
        first, rest = count_first(cap)
        assert first.exact + rest.exact <= 1
        assert float(first.exact) == pytest.approx(0.1)
    for none in (None, Queries(3)):
        with pytest.raises(QuestionError, match="No count is known"):
            count_first(none)


def test_a_law_without_a_price_leaves_the_other_one():
    """Where both have none, the first refusal is told; another refusal is told at once."""

    def price(kind: type) -> Epsilon | Rho:
        if kind is Epsilon:
            raise QuestionError("too-costly", "first")
        return Rho(1)

    event = draw(Sums((Lit(1),)), known(BUDGET), Rho(1)).event
    assert cheapest(known(BUDGET), (Epsilon, Rho), price, lambda _: event) == Rho(1)
    with pytest.raises(QuestionError, match="first"):
        cheapest(known(BUDGET), (Epsilon, Epsilon), price, lambda _: event)
