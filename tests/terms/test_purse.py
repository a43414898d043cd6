"""One spend over the asks of a fit: it costs that and no more, or nothing at all."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import sulq
from sulq import Epsilon, EpsilonDelta, Rho, SubLinear
from sulq.errors import BudgetExceeded
from sulq.terms.privacy import Split
from sulq.terms.purse import Purse
from sulq.terms.question import Sums
from sulq.terms.rowfn import Lit
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
        whole_spend = spend.rho if isinstance(spend, EpsilonDelta) else spend.exact
        assert 0 <= whole_spend - model.spent_.exact <= Fraction(3, 10**15)
        assert model.feature_names_in_ == tuple(ALL)
        assert len(model.counts_) == 3


@pytest.mark.parametrize("spend", [Epsilon(77), Epsilon(900), Rho(0.7)])
def test_parts_that_are_floats_take_all_of_a_budget(spend: object) -> None:
    """They may sum to a hair more than one: the last ask gives way, so that no fit ends without its last answer."""
    parts = [0.12, 0.06 + 0.1, 1.0 - 0.12 - 0.06 - 0.1, 2e-16]
    assert sum(map(Fraction, parts)) > 1  # control
    with opened(COLUMNS, DATA, spend) as db:
        purse = Purse(db["age"].oracle, spend)
        for part in parts[:-2]:
            purse.one(Sums((Lit(1),)), part)
        purse.one(Sums((Lit(1),)), Fraction(parts[-2]) + Fraction(parts[-1]))
        assert purse.spent.exact <= spend.exact
        assert purse.spent.exact == pytest.approx(float(spend.exact), rel=1e-12)
        assert db.spent.amount == purse.spent.exact


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
def test_SR3_what_was_spent_before_leaves_less_rho(pure: float, rho: float) -> None:
    """At the edge of what is left a fit is whole or not begun: never paid for in part and then refused.

    Control: somewhat below the edge it is whole.
    """
    columns = {name: column for name, column in COLUMNS.items() if not isinstance(column, sulq.Text)}
    split = Split.of(EpsilonDelta(1, 1e-6), open_keys=False)
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
