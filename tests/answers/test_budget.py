"""Tests of sulq.answers.budget."""

from __future__ import annotations

from fractions import Fraction

import pyarrow as pa
import pytest

import sulq
from sulq import Epsilon, EpsilonDelta, Rho, SubLinear, Unit
from sulq.answers.budget import BudgetReport

TABLE = pa.table({"id": range(300), "x": [i % 7 for i in range(300)]})


def opened(budget: object, rows: int = 1) -> sulq.Database:
    return sulq.connect(TABLE, columns={"x": sulq.Int(0, 6)}, unit=Unit("id", rows=rows), budget=budget, synthetic=True)


@pytest.mark.parametrize(
    ("budget", "spend"),
    [
        (Epsilon(2), Epsilon(0.5)),
        (Rho(1), Rho(0.25)),
        (EpsilonDelta(2, 1e-6), Epsilon(0.5)),
        (EpsilonDelta(2, 1e-6), Rho(0.01)),
        (EpsilonDelta(2, 1e-6), EpsilonDelta(0.5, 1e-8)),
        (SubLinear(1, 1e-6, 40), None),
    ],
    ids=str,
)
def test_spent_and_left_add_up_and_are_drawn(budget: object, spend: object) -> None:
    """Whatever the kind of budget and ask: one unit, whose parts are the whole; the bar shows the part that is gone."""
    with opened(budget) as db:
        before = db.budget
        db.count(spend=spend)
        found = db.budget
    whole = Fraction(budget.queries) if isinstance(budget, SubLinear) else budget.exact
    parts = [loss.exact if isinstance(budget, SubLinear) else loss.amount for loss in (found.spent, found.remaining)]
    assert sum(parts) == whole
    assert type(found.spent) is type(found.remaining)
    assert before.counts > found.counts > 0
    filled = repr(found).partition("[")[2].partition("]")[0].count("#")
    assert filled == round(20 * float(parts[0] / whole))
    assert "0% spent" in repr(before)
    assert found.buys in found._repr_html_()


@pytest.mark.parametrize(("budget", "spend"), [(Epsilon(30), Epsilon), (Rho(2), Rho)], ids=str)
@pytest.mark.parametrize("rows", [1, 3])
def test_what_is_left_buys_as_many_counts_as_it_says(budget: object, spend: type, rows: int) -> None:
    """Each of them within 50 rows at 95%; a tenth more of them are not."""
    with opened(budget, rows) as db:
        counts = db.budget.counts
        price = spend(budget.exact / counts)
        assert db.foresee(sulq.Sums((sulq.lit(1),)), spend=price).parts[0].laws[0].accuracy(0.05) <= 50
        less = spend(budget.exact / Fraction(11 * counts, 10))
        assert db.foresee(sulq.Sums((sulq.lit(1),)), spend=less).parts[0].laws[0].accuracy(0.05) > 50


def test_a_budget_that_is_gone_buys_nothing() -> None:
    """The whole bar is filled, and no count is left."""
    nothing = BudgetReport(Epsilon(1), Epsilon(1), Epsilon.total(Fraction(0)), None, Unit(), "everyone")
    assert nothing.counts == 0
    assert "[####################] 100% spent" in repr(nothing)


def test_a_report_says_how_delta_is_divided() -> None:
    """As facts do, where there is a delta; the control has none."""
    with opened(EpsilonDelta(2, 1e-6)) as db:
        line = "delta   9.5e-07 for asks summed at one order, 5e-08 for asks added one by one, 0 for open keys"
        assert repr(db.budget).split("\n")[-1] == line
        assert line.replace("delta   ", "delta: ") in str(db.facts)
    with opened(Epsilon(2)) as db:
        assert "delta" not in repr(db.budget)
