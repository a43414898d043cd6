"""One spend over the asks of a fit: it costs that and no more, or nothing at all."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import sulq
from sulq import Epsilon, EpsilonDelta, Rho, SubLinear
from sulq.answers.oracle import SpendPlan, affordable
from sulq.curator.ledger import registry, shares
from sulq.curator.ledger.shares import NOTHING, Accounts, Share
from sulq.errors import BudgetExceeded
from sulq.kernel.ledger.filter import Filter
from sulq.language.domain import Schema
from sulq.language.facts import Facts, TableFacts
from sulq.language.privacy import Event, divided
from sulq.language.question import Sums
from sulq.language.rowfn import Lit
from tests.counts import count
from tests.learn.cases import ALL, COLUMNS, DATA, opened, refused
from tests.learn.counter import Counter


@pytest.mark.parametrize(
    ("budget", "spend"),
    [
        (Epsilon(1), Epsilon(1)),
        (Rho(1), Rho(Fraction(1, 3))),
        (EpsilonDelta(2, 1e-6), EpsilonDelta(2, 5e-7)),  # half of delta is set aside for the free text
        (EpsilonDelta(2, 1e-6), Epsilon(0.7)),
    ],
)
def test_a_fit_costs_its_spend_and_no_more(budget: object, spend: object) -> None:
    """Three thirds never pass the whole, also where a third is no decimal; what was spent is what the ledger says."""
    with opened(COLUMNS, DATA, budget) as db:
        steps = []
        model = Counter().fit(db[ALL], spend=spend, progress=lambda done, planned: steps.append((done, planned)))
        assert steps == [(0, 3), (1, 3), (2, 3), (3, 3)]
        whole_spend = db.facts.counted(spend).rho if isinstance(spend, EpsilonDelta) else spend.exact
        assert 0 <= whole_spend - model.spent_.exact <= Fraction(6, 10**15)  # a grain more each at a budget's end
        assert model.feature_names_in_ == tuple(ALL)
        assert len(model.counts_) == 3


@pytest.mark.parametrize("spend", [Epsilon(77), Epsilon(900), Rho(0.7)])
def test_parts_that_are_floats_take_all_of_a_budget(spend: object) -> None:
    """They may sum to a hair more than one: the last ask gives way, so that no fit ends without its last answer."""
    parts = [0.12, 0.06 + 0.1, 1.0 - 0.12 - 0.06 - 0.1, 2e-16]
    assert sum(map(Fraction, parts)) > 1  # control
    with opened(COLUMNS, DATA, spend) as db:
        spending = SpendPlan(db["age"].oracle, spend)
        for part in parts[:-2]:
            spending.one(Sums((Lit(1),)), part)
        spending.one(Sums((Lit(1),)), Fraction(parts[-2]) + Fraction(parts[-1]))
        assert spending.spent.exact <= spend.exact
        assert spending.spent.exact == pytest.approx(float(spend.exact), rel=1e-12)
        assert db.spent.amount == spending.spent.exact


def test_a_fit_that_does_not_fit_asks_nothing() -> None:
    """Too little left, of any kind: refused before the first ask, and nothing is spent."""
    with opened(COLUMNS, DATA, Epsilon(1)) as db:
        refused("budget-exceeded", Counter().fit, db[ALL], spend=Epsilon(1.5))
        refused("spend-kind", Counter().fit, db[ALL], spend=Rho(0.1))
        refused("spend-missing", Counter().fit, db[ALL])
        refused("bad-loss", Counter().fit, db[ALL], spend=Epsilon(1e-6))
        refused("bad-parameter", Counter(rounds=0).fit, db[ALL], spend=Epsilon(1))
        refused("bad-question", Counter().fit, np.zeros((3, 2)), spend=Epsilon(1))
        refused("bad-question", Counter().fit, db[ALL], db["age"], spend=Epsilon(1))
        assert db.spent == Epsilon.total(Fraction(0))
    with opened(COLUMNS, DATA, EpsilonDelta(2, 1e-6)) as db:
        refused("budget-exceeded", Counter().fit, db[ALL], spend=EpsilonDelta(2.5, 1e-6))
        refused("budget-exceeded", Counter().fit, db[ALL], spend=EpsilonDelta(2, 1e-6))
        assert db.spent.amount == 0
    with opened(COLUMNS, DATA, SubLinear(epsilon=1, delta=1e-6, queries=5), unit=sulq.Unit(neighbors="zero_out")) as db:
        refused("budget-exceeded", Counter(rounds=6).fit, db[ALL])
        assert db.spent == sulq.Queries(0)
        assert Counter(rounds=5).fit(db[ALL]).spent_ == sulq.Queries(5)
        with pytest.raises(BudgetExceeded):
            Counter(rounds=1).fit(db[ALL])


@pytest.mark.parametrize("pure", [0.0, 0.01, 0.1, 0.3])
@pytest.mark.parametrize("rho", [0.0, 0.004])
def test_what_was_spent_before_leaves_less_rho_SR3(pure: float, rho: float) -> None:
    """At the edge of what is left a fit is whole or not begun: never paid for in part and then refused.

    Control: somewhat below the edge it is whole.
    """
    columns = {name: column for name, column in COLUMNS.items() if not isinstance(column, sulq.Text)}
    split = divided(EpsilonDelta(1, 1e-6), open_keys=False)
    room = (split.room - Fraction(pure) - split.alpha * Fraction(rho)) / split.alpha
    for part in (0.5, 0.97, 0.999, 1.0, 1.001, 1.05, 1.5, 4.0):
        with opened(columns, DATA, EpsilonDelta(1, 1e-6)) as db:
            if pure:
                db.ask(Sums((Lit(1),)), spend=Epsilon(pure))
            if rho:
                db.ask(Sums((Lit(1),)), spend=Rho(rho))
            before = db.spent
            try:
                model = Counter().fit(db[list(columns)], spend=Rho(float(room) * part))
            except BudgetExceeded:
                assert db.spent == before
                assert part > 0.97
            else:
                assert len(model.counts_) == 3
                assert part < 1.05


def asked(spend: Epsilon | Rho) -> Event:
    """What a spend costs as one ask."""
    return Event(spend.exact, spend.exact**2 / 2) if isinstance(spend, Epsilon) else Event(None, spend.exact)


def by_first_table(spend: Epsilon | Rho, facts: Facts) -> None:
    """The rule before: delta divided by the first table's free text alone."""
    left, budget = facts.remaining, facts.budget
    if not (isinstance(spend, Rho) and isinstance(budget, EpsilonDelta)):
        affordable(spend, facts)
        return
    split = divided(budget, open_keys=any(isinstance(column, sulq.Text) for _, column in facts.schema.columns))
    room = min(split.room, left.amount, split.alpha * left.amount**2 / 2)
    if split.alpha * spend.exact > room:
        raise BudgetExceeded("budget-exceeded", "")


def disagreements(check: Callable[[Epsilon | Rho, Facts], None], rounds: int) -> tuple[int, int]:
    """How often a pre-check and the ledger's filter differ over random budgets, tables and histories; and of how many.

    Spends lie near the edge of what is left, where they differ if anywhere.
    """
    rng = random.Random(8)
    wrong = tried = 0
    for _ in range(rounds):
        open_keys = rng.random() < 0.5
        listed = Schema("a", (("x", sulq.Int(0, 9)),))
        free = Schema("b", ((("t", sulq.Text()),) if rng.random() < 0.5 else (("n", sulq.Int(0, 2**40)),)))
        tables = tuple(TableFacts(s) for s in ([listed, free] if open_keys else [listed]))
        tables = tables[:: rng.choice((1, -1))]
        size = Fraction(rng.randint(1, 4000), 1000)
        budget = rng.choice((Epsilon(size), Rho(size), EpsilonDelta(size, 10.0 ** -rng.randint(5, 9))))
        split = None
        if isinstance(budget, EpsilonDelta):
            split = divided(budget, open_keys=registry.open_keys(table.schema for table in tables))
        rule = Filter(budget, split, ())
        share = Share(Fraction(rng.randint(1, 10), 10), Fraction(0))
        accounts = Accounts().given(rule, "ann", share).given(rule, "bob", Share(Fraction(1), Fraction(1, 20)))
        for _ in range(rng.randint(0, 6)):
            kinds: list[type] = [Epsilon] if isinstance(budget, Epsilon) else [Epsilon, Rho]
            loss = rng.choice(kinds)(Fraction(rng.randint(1, 300), 1000) * size)
            event = asked(loss)
            if open_keys and split is not None and rng.random() < 0.3:
                event = Event(None, event.rho, split.key_delta / 9)
            who = rng.choice(("ann", "bob", ""))
            after = accounts.charged(who, rule.cost(event))
            accounts = after if after.hold(rule, who) else accounts
        left = accounts.left(rule, "ann")
        facts = Facts(
            tables[0].schema, sulq.Unit(), budget, shares.spent_of(rule, accounts.spent.get("ann", NOTHING)),
            shares.loss(rule, left),
            tables=tables, rho=shares.rho(rule, left),
        )  # fmt: skip
        for kind in [Epsilon] if isinstance(budget, Epsilon) else [Epsilon, Rho]:
            edge = shares.loss(rule, left).amount if kind is Epsilon else shares.rho(rule, left)
            if kind is Epsilon and isinstance(budget, Rho):
                edge = Fraction(math.isqrt(int(2 * edge * 10**30)), 10**15)
            for part in (Fraction(rng.randint(1, 2000), 1000), 1 - Fraction(1, 10**6), 1 + Fraction(1, 10**6), 1):
                spend = Fraction(math.floor(edge * part * 10**15), 10**15)
                if not 0 < spend < 1000:
                    continue
                try:
                    check(kind(spend), facts)
                    said = True
                except BudgetExceeded:
                    said = False
                tried += 1
                wrong += said is not accounts.charged("ann", rule.cost(asked(kind(spend)))).hold(rule, "ann")
    return wrong, tried


def test_a_check_before_the_first_ask_says_what_the_ledger_says_SR3() -> None:
    """Over random budgets, tables with and without open keys, and histories of Epsilon, Rho and open keys.

    Control: the rule before, which divided delta by the first table's free text alone, refuses what the ledger takes.
    """
    wrong, tried = disagreements(affordable, count("pre-checks against the filter", short=400, long=20_000))
    assert tried > 1000
    assert wrong == 0
    assert disagreements(by_first_table, 400)[0] > 50


@pytest.mark.parametrize("parts", [2, 3, 7])
def test_a_fit_may_take_all_that_is_left_of_rho_SR3(parts: int) -> None:
    """Text in the second table alone, pure asks before: the last grain is taken, and no ask in the middle refused."""
    columns = {"a": {"age": COLUMNS["age"]}, "b": {"note": sulq.Text()}}
    data = {"a": pd.DataFrame({"age": [1, 2, 3]}), "b": pd.DataFrame({"note": ["x", "y"]})}
    with sulq.connect(data, columns=columns, budget=EpsilonDelta(1, 1e-6)) as db:
        db.ask(Sums((Lit(1),)), spend=Epsilon(0.01))
        db.ask(Sums((Lit(1),)), spend=Rho(0.001))
        whole = Rho(Fraction(math.floor(db.facts.rho * 10**15), 10**15))
        spending = SpendPlan(db._oracle, whole)
        for _ in range(parts):
            spending.one(Sums((Lit(1),)), Fraction(1, parts))
        assert float(spending.spent.amount) == pytest.approx(float(whole.exact), rel=1e-9)
        with pytest.raises(BudgetExceeded):
            SpendPlan(db._oracle, Rho(1e-6))


def test_a_plan_that_reuses_gets_stored_answers_free_SR12() -> None:
    """The same question at the same part is free the second time; without the switch it is new noise at full price."""
    with opened(COLUMNS, DATA, Epsilon(3)) as db:
        oracle, question = db["age"].oracle, Sums((Lit(1),))
        first = SpendPlan(oracle, Epsilon(1), reuse=True)
        value = first.one(question, 0.5).value
        again = SpendPlan(oracle, Epsilon(1), reuse=True)
        assert again.one(question, 0.5).value == value
        assert (first.spent, again.spent) == (Epsilon(0.5), Epsilon.total(Fraction(0)))
        fresh = SpendPlan(oracle, Epsilon(1))
        fresh.one(question, 0.5)
        assert fresh.spent == Epsilon(0.5)
