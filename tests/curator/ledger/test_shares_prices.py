"""What is shown before an ask, what it is priced at and what the ledger debits agree, in random histories (T52)."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from fractions import Fraction

import pytest

from sulq.answers.budget import BudgetLeft
from sulq.compile.plan import draw
from sulq.curator.ledger import shares
from sulq.curator.ledger.ledger import Ledger
from sulq.curator.ledger.shares import Share
from sulq.errors import BudgetExceeded
from sulq.kernel.ledger import filter as filters
from sulq.kernel.ledger.filter import Filter, Totals, whole_units
from sulq.kernel.mechanisms import MECHANISMS
from sulq.language.domain import Int, Schema, Text
from sulq.language.facts import Facts
from sulq.language.privacy import GRAIN, Budget, Epsilon, EpsilonDelta, Event, Loss, Rho, Unit
from sulq.language.question import OpenSums, Sums
from sulq.language.rowfn import Col, Lit
from tests import counts
from tests.counts import count
from tests.curator.ledger.cases import gaussian, pure

SCHEMA = Schema("t", (("x", Int(0, 9)), ("name", Text())))
COUNT = Sums((Lit(1),))
BY_X = Sums((Lit(1),), None, (Col("x"),))
BY_NAME = OpenSums((), None, (Col("name"),))
KINDS = ("epsilon", "rho", "delta", "open keys")
MAX_ASKS = 12
SMALLEST = Fraction(1, 10**15)  # what may be spent in one ask


def budget_of(kind: str, chance: random.Random) -> Budget:
    """Epsilon from .1 to 10; rho and delta over several magnitudes."""
    epsilon = round(10 ** chance.uniform(-1, 1), 3)
    if kind == "epsilon":
        return Epsilon(epsilon)
    if kind == "rho":
        return Rho(round(epsilon**2 / 20, 6))
    return EpsilonDelta(epsilon, float(f"{10 ** chance.uniform(-12, -5):.3g}"))


def spend_of(budget: Budget, chance: random.Random, *, open_keys: bool) -> Loss:
    """A part of the budget, of a kind it holds; thirds and sevenths are no decimals."""
    part = Fraction(repr(round(10 ** chance.uniform(-3, -0.2), 5))) / chance.choice((1, 1, 3, 7))
    if isinstance(budget, Epsilon):
        return Epsilon(budget.exact * part)
    if isinstance(budget, Rho):
        amount = budget.exact * part
        return chance.choice(
            (Rho(amount), Epsilon(Fraction(math.sqrt(2 * amount)).limit_denominator(10**6) + SMALLEST))
        )
    kinds = ["pure", "rho", "delta"] + ["delta"] * open_keys
    match chance.choice(kinds):
        case "pure":
            return Epsilon(budget.exact * part)
        case "rho":
            return Rho(max(budget.rho * part, SMALLEST))
    return EpsilonDelta(budget.exact * part, budget.exact_delta * chance.choice((Fraction(1, 3), Fraction(1, 100))))


def foreseen(event: Event, alpha: Fraction) -> Totals:
    """What an event adds, each part exactly and then rounded up; no code of the filter's."""
    epsilon = event.basic if event.epsilon is None else event.epsilon
    renyi = alpha * event.rho if event.epsilon is None else min(alpha * event.rho, event.epsilon)
    up = [math.ceil(Fraction(each or 0) * GRAIN) for each in (epsilon, event.rho, renyi, event.key_delta, event.delta)]
    return Totals(up[0], epsilon is not None, *up[1:4], events=1, delta=up[4])


def grown(before: Totals, after: Totals) -> Totals:
    """The difference of two totals; whether the ask has a pair shows while all before it had one."""
    parts = [b - a for a, b in zip(before, after, strict=True)]
    return Totals(parts[0], after.pure, *parts[2:])


def largest(budget: Budget, amount: Fraction) -> Event:
    """One ask of so much of what is left, in the unit that it is shown in."""
    return gaussian(amount) if isinstance(budget, Rho) else pure(amount)


def refused(ledger: Ledger, event: Event) -> bool:
    """Whether an ask is refused by the ledger; it is debited otherwise."""
    try:
        ledger.debit(event, question="how many?", plan_digest="plan")
    except BudgetExceeded:
        return True
    return False


def check_shown(ledger: Ledger, budget: Budget) -> Fraction:
    """Spent and left add up, and what is left decides what is admitted; gives what is left."""
    left, spent, totals = ledger.remaining.amount, ledger.spent.amount, ledger.totals
    assert spent + left == budget.exact
    assert refused(ledger, largest(budget, left + Fraction(1, GRAIN)))
    assert ledger.totals == totals
    rule = Filter(budget, ledger.split, MECHANISMS)
    assert left == 0 or rule.holds(totals + rule.cost(largest(budget, left)))
    return left


def check_ask(ledger: Ledger, facts: Facts, spend: Loss, question: Sums | OpenSums) -> None:
    """The totals grow by the price foreseen or not at all, and what is spent grows by what is left less."""
    event = draw(question, facts, spend).event
    before, spent, left = ledger.totals, ledger.spent.amount, ledger.remaining.amount
    (foretold,) = ledger.after([event])
    if refused(ledger, event):
        assert foretold is None
        assert ledger.totals == before
        assert event.epsilon is None or isinstance(facts.budget, Rho) or event.epsilon > left  # as was shown
        return
    assert foretold == BudgetLeft(ledger.remaining, ledger.rho_left())
    price = foreseen(event, Fraction(0) if ledger.split is None else ledger.split.alpha)
    assert grown(before, ledger.totals) == price._replace(pure=before.pure and price.pure)
    fell = left - ledger.remaining.amount
    assert fell == ledger.spent.amount - spent >= 0
    if not isinstance(facts.budget, EpsilonDelta):
        amount = event.rho if isinstance(facts.budget, Rho) else event.epsilon
        assert fell == Fraction(math.ceil(amount * GRAIN), GRAIN)


def play(kind: str, chance: random.Random) -> None:
    """One history: random asks, then all that is left."""
    budget, open_keys = budget_of(kind, chance), kind == "open keys"
    with Ledger.open(None, unit=Unit(), budget=budget, mechanisms=MECHANISMS, open_keys=open_keys) as ledger:
        facts = Facts(SCHEMA, Unit(), budget, ledger.spent, ledger.remaining, split=ledger.split)
        for _ in range(chance.randint(1, MAX_ASKS)):
            check_shown(ledger, budget)
            spend = spend_of(budget, chance, open_keys=open_keys)
            by_name = open_keys and isinstance(spend, EpsilonDelta) and chance.random() < 0.7
            check_ask(ledger, facts, spend, BY_NAME if by_name else chance.choice((COUNT, BY_X)))
        left = check_shown(ledger, budget)
        if left >= SMALLEST:
            assert not refused(ledger, largest(budget, left))
            assert refused(ledger, largest(budget, left))


def play_all(kind: str) -> None:
    """As many histories as a control is given to fail."""
    for seed in range(25):
        play(kind, random.Random(seed))


def histories(kind: str) -> Iterator[random.Random]:
    """Where each history is drawn from."""
    chance = counts.generator(f"prices {kind}")
    number = count(f"T52 histories of prices, {kind}", short=25, long=2_500)
    return (random.Random(chance.random()) for _ in range(number))


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_shown_before_an_ask_and_what_is_debited_agree_T52(kind: str) -> None:
    """The price foreseen is what the totals grow by; what is left decides; the rest of the budget is what is spent."""
    for chance in histories(kind):
        play(kind, chance)


@pytest.mark.parametrize("kind", KINDS)
def test_totals_that_are_rounded_down_do_not_agree_T52(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Control: a counter that drops parts of a unit falls below the price foreseen."""
    monkeypatch.setattr(filters, "units", whole_units)
    with pytest.raises(AssertionError, match="Totals"):
        play_all(kind)


@pytest.mark.parametrize("kind", KINDS)
def test_a_unit_more_than_is_left_does_not_agree_T52(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Control: what is shown is one unit too much."""
    honest = shares.left_of
    monkeypatch.setattr(shares, "left_of", lambda *told: (honest(*told)[0] + 1, *honest(*told)[1:]))
    with pytest.raises(AssertionError, match="Fraction"):
        play_all(kind)


def test_a_run_is_foretold_for_each_analyst_as_it_is_made_T54() -> None:
    """Shares, reserves and refusals in between: the forecast of the whole run is what happens, ask by ask."""
    chance = random.Random(54)
    for kind in KINDS:
        budget, open_keys = budget_of(kind, chance), kind == "open keys"
        with Ledger.open(None, unit=Unit(), budget=budget, mechanisms=MECHANISMS, open_keys=open_keys) as ledger:
            ledger.share("ann", Share.of("1/2", "1/4"))
            ledger.share("bob", Share.of("3/4"))
            facts = Facts(SCHEMA, Unit(), budget, ledger.spent, ledger.remaining, split=ledger.split)
            for name in ("ann", "bob", "carl", "ann"):
                spends = [spend_of(budget, chance, open_keys=False) for _ in range(5)]
                events = [draw(COUNT, facts, spend).event for spend in spends]
                for event, left in zip(events, ledger.after(events, name), strict=True):
                    try:
                        ledger.debit(event, question="how many?", plan_digest="plan", analyst=name)
                    except BudgetExceeded:
                        assert left is None
                    else:
                        assert left == BudgetLeft(ledger.standing(analyst=name)[2], ledger.rho_left(name))
