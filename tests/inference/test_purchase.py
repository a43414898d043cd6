"""How an inference pays: parts of one spend, each debited, none of them more than was named."""

from __future__ import annotations

import pytest

import sulq
from sulq import Epsilon, EpsilonDelta, Rho, SubLinear
from sulq.errors import QuestionError
from tests.inference.cases import COLUMNS, frame, opened

ASKS = {
    "ols": (lambda db, **pay: db.ols("y", ["x"], **pay), 2),
    "logit": (lambda db, **pay: db.logit("won", ["x"], **pay), 3),
    "ttest": (lambda db, **pay: db.ttest("y", "won", **pay), 1),
    "proportions": (lambda db, **pay: db.proportions("won", "plan", **pay), 1),
    "chi2": (lambda db, **pay: db.chi2(["won", "plan"], **pay), 1),
}


@pytest.mark.parametrize("spend", [Epsilon(2), Rho(0.3), EpsilonDelta(2, 1e-7)], ids=str)
@pytest.mark.parametrize("name", ASKS)
def test_what_is_spent_is_what_was_named(name: str, spend: object) -> None:
    """A receipt for each question; together they cost the spend, of an (epsilon, delta) no more."""
    ask, questions = ASKS[name]
    with opened() as db:
        found = ask(db, spend=spend)
        assert len(found.bill.receipts) == questions
        if not isinstance(spend, EpsilonDelta):
            assert float(found.spent.amount) == pytest.approx(float(spend.exact))
            assert found.spent.amount <= spend.exact
        assert len(db.transcript()) == questions


def test_under_a_sublinear_budget_sums_are_counted() -> None:
    """No spend is named, each sum is a query."""
    budget = SubLinear(epsilon=1, delta=1e-6, queries=50, calibration="posterior")
    with sulq.connect(frame(), columns=COLUMNS, budget=budget, size=6000) as db:
        assert db.ttest("y", "won").spent.queries == 6
        with pytest.raises(QuestionError, match="queries"):
            db.ttest("y", "won", spend=Epsilon(1), fresh=True)
