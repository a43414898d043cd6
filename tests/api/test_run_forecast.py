"""What several asks would leave: foretold before, and the same when they are made."""

from __future__ import annotations

import pandas as pd
import pytest

import sulq
from sulq.api.named_asks import NamedAsks
from sulq.errors import BudgetExceeded, QuestionError
from sulq.language.domain import Category, Int, Schema, Text
from sulq.language.privacy import Epsilon, EpsilonDelta, Queries, Rho, SubLinear
from sulq.language.question import Sums
from sulq.language.rowfn import Lit
from tests.stub import Stub

TABLE = pd.DataFrame({"x": [0, 1] * 40, "city": list("abcd") * 20})
COLUMNS = {"x": Int(0, 1), "city": Text()}
TEXT = "SELECT COUNT(*) AS n FROM data"


def opened(budget: object, **options: object) -> sulq.Database:
    return sulq.connect(TABLE, columns=COLUMNS, budget=budget, **options)


RUNS = {
    "pure": (Epsilon(1), [Epsilon(0.4), Epsilon(0.4), Epsilon(0.4), Epsilon(0.2)]),
    "rho": (Rho(0.1), [Rho(0.04), Epsilon(0.2), Rho(0.05), Rho(0.001)]),
    "both": (
        EpsilonDelta(1, 1e-6),
        [Epsilon(0.25), Epsilon(0.25), EpsilonDelta(0.1, 1e-7), Rho(0.001), Epsilon(0.5), Rho(0.02), Epsilon(0.1)],
    ),
}


@pytest.mark.parametrize("name", RUNS)
def test_what_is_foretold_is_what_is_left_and_refused(name: str):
    """SQL and spends alone, ask by ask: the same is left, and the same asks are refused, when they are made."""
    budget, spends = RUNS[name]
    with opened(budget) as db:
        found = db.afford([(TEXT, spend) for spend in spends])
        alone = db.afford(spends)
        assert db.remaining == budget.share(1) if not isinstance(budget, EpsilonDelta) else db.remaining == Epsilon(1)
        assert [one is None for one in found.left] == [one is None for one in alone.left]
        for spend, left in zip(spends, found.left, strict=True):
            if left is None:
                with pytest.raises(BudgetExceeded):
                    db.sql(TEXT, spend=spend, fresh=True)
                continue
            foretold = db.explain(TEXT, spend=spend)
            assert foretold.left == left
            answer = db.sql(TEXT, spend=spend, fresh=True)
            assert answer.remaining == left.remaining == db.remaining
            assert db.facts.rho == left.rho
        assert found.after.remaining == db.remaining
        assert found.after.spent == db.spent
        assert found.fits is (None not in found.left)
        assert found.after.buys == db.budget.buys


def test_open_keys_a_question_a_plan_and_a_workload_are_foretold():
    """Whatever can be asked can be listed."""
    with opened(EpsilonDelta(2, 1e-6)) as db:
        groups = "SELECT city, COUNT(*) AS n FROM data GROUP BY city"
        plan = db.foresee(Sums((Lit(1),)), spend=Epsilon(0.1))
        asks = [
            (groups, EpsilonDelta(0.2, 1e-7)),
            (Sums((Lit(1),)), Epsilon(0.1)),
            plan,
            db.explain(TEXT, spend=Epsilon(0.1)),
        ]
        found = db.afford(asks, spend=Epsilon(0.1))
        assert found.fits
        assert list(map(str, found.prices)) == [
            "epsilon 0.2, delta 1e-08",
            *["epsilon 0.1"] * 3,
        ]  # of delta what keys take
        assert found.asks[0] == groups
        assert db.remaining == Epsilon(2)
        db.sql(groups, spend=EpsilonDelta(0.2, 1e-7))
        assert db.remaining == found.left[0].remaining
        workload = db.plan([TEXT, "SELECT SUM(x) AS s FROM data"], spend=Epsilon(0.5))
        assert float(db.afford(workload).after.remaining.amount) == pytest.approx(float(db.remaining.amount) - 0.5)


@pytest.mark.parametrize("law", [None, "laplace", "gaussian"])
def test_a_spend_alone_is_foretold_as_one_number_SR3(law: str | None):
    """As many counts at an (epsilon, delta) are answered as were foretold, by the law that such a count gets."""
    spend = EpsilonDelta(0.1, 1e-7)
    with opened(EpsilonDelta(0.5, 1e-6)) as db:
        found = db.afford([spend] * 40, law=law)
        fitting = sum(one is not None for one in found.left)
        assert isinstance(found.prices[0], EpsilonDelta if law == "gaussian" else Epsilon)
        for _ in range(fitting if law != "gaussian" else 5):
            db.count(spend=spend, fresh=True, law=law)
        if law != "gaussian":
            assert fitting == 5
            with pytest.raises(BudgetExceeded):
                db.count(spend=spend, fresh=True, law=law)
        else:
            assert fitting > 15
            assert db.remaining.amount >= found.left[4].remaining.amount  # the draws make its pair a little less


def test_an_ask_that_is_listed_often_is_planned_once(monkeypatch: pytest.MonkeyPatch):
    """Ten thousand times the same query."""
    with opened(Epsilon(1)) as db:
        planned, honest = [], db._sql.foresee
        monkeypatch.setattr(db._sql, "foresee", lambda *told, **more: planned.append(told) or honest(*told, **more))
        found = db.afford([(TEXT, Epsilon(0.3))] * 10_000)
        assert len(planned) == 1
        assert sum(one is not None for one in found.left) == 3


def test_the_forecast_reads_as_a_table():
    """Each ask on a line, refused ones said so, and what is left in words; also as columns and HTML."""
    with opened(Epsilon(1)) as db:
        found = db.afford([(TEXT, Epsilon(0.7)), Epsilon(0.7)])
        text = repr(found)
        assert text.splitlines()[0] == "1 of 2 asks fit; nothing is spent yet"
        assert "epsilon 0.3 left after epsilon 0.7: SELECT COUNT(*)" in text
        assert "refused: more than is left after epsilon 0.7" in text
        assert text.splitlines()[-1] == f"then    {found.after.buys}"
        assert found.to_dict()["left"] == [Epsilon(0.3), None]
        assert "<pre>" in found._repr_html_()
        assert not found.fits


def test_under_sublinear_queries_are_counted():
    """A run of noisy sums, until the budget's number is reached."""
    budget = SubLinear(queries=3, epsilon=1, delta=1e-6)
    with sulq.connect(TABLE, columns={"x": Int(0, 1)}, budget=budget, size=80) as db:
        found = db.afford([Sums((Lit(1),)), "SELECT SUM(x) AS s FROM data", Queries(1), Queries(1)])
        assert [None if one is None else one.remaining for one in found.left] == [*map(Queries, (2, 1, 0)), None]
        assert found.after.spent == Queries(3)


@pytest.mark.parametrize(
    ("asks", "code"),
    [
        ([], "bad-question"),
        ("SELECT", "bad-question"),
        ([7], "bad-question"),
        ([TEXT], "spend-missing"),
        ([Rho(1)], "spend-kind"),
        ([("SELECT nope FROM data", Epsilon(1))], "unknown-column"),
        ([Epsilon(0.001)] * 10_001, "too-large"),
    ],
)
def test_what_is_no_ask_is_refused_free(asks: object, code: str):
    """As the ask itself would be."""
    with opened(Epsilon(1)) as db:
        with pytest.raises(QuestionError) as refusal:
            db.afford(asks)
        assert refusal.value.code == code
        assert db.remaining == Epsilon(1)


def test_an_oracle_without_a_ledger_foretells_nothing():
    """Estimates from reports, or a stub: nothing is debited."""
    stub = NamedAsks(Stub(Schema.of("t", {"c": Category(["a"])}), []))
    with pytest.raises(QuestionError) as refusal:
        stub.afford([Epsilon(1)])
    assert refusal.value.code == "not-available"
