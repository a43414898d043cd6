"""bounds="auto" of the named asks: near the truth within wide bounds, itemised, refused before the first debit."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

import sulq
from sulq import Epsilon, EpsilonDelta, Rho, Unit, col
from sulq.answers import wire
from sulq.api.database import Database
from sulq.api.named_asks import NamedAsks
from sulq.errors import BudgetExceeded, QuestionError
from sulq.language.domain import Schema
from tests.stub import Stub

RNG = np.random.default_rng(47)
N = 4000
INCOME = np.round(np.exp(RNG.normal(10, 1, N))).astype(np.int64)
TABLE = pa.table(
    {
        "pid": np.arange(N) // 2,
        "income": INCOME,
        "gap": pa.array([None if i % 4 == 0 else int(x) for i, x in enumerate(INCOME)]),
        "same": np.full(N, 40),
        "city": np.array(["a", "b"])[np.arange(N) % 2],
        "flag": np.arange(N) % 3 == 0,
    }
)
COLUMNS = {
    "income": sulq.Int(0, 10**9),
    "gap": sulq.Int(-(10**9), 10**9),
    "same": sulq.Int(-(10**9), 10**9),
    "city": sulq.Category(["a", "b"]),
    "flag": sulq.Bool(),
}
UNITS = [
    Unit(),
    Unit(neighbors="replace_one"),
    Unit(neighbors="zero_out"),
    Unit("pid", 2),
    Unit("pid", 2, "replace_one"),
]
PAID = [(Epsilon(20), Epsilon(1)), (Rho(5), Rho(0.2)), (EpsilonDelta(20, 1e-5), EpsilonDelta(1, 1e-7))]


BUDGETS = {type(budget): budget for budget, _ in PAID}


def opened(**options: object) -> Database:
    """Incomes of people whose owner bounds them by a milliard."""
    return sulq.connect(TABLE, **({"columns": COLUMNS, "unit": Unit(), "budget": Epsilon(100)} | options))


def debits(db: Database) -> int:
    """How often the ledger was debited."""
    return db._ledger.totals.events


@pytest.mark.parametrize("unit", UNITS, ids=str)
@pytest.mark.parametrize(("budget", "spend"), PAID, ids=["pure", "rho", "both"])
def test_both_parts_are_itemised_in_every_relation(unit: Unit, budget: object, spend: object) -> None:
    """Two entries of the ledger, together within the spend; the clip and both prices stand in the notes."""
    with opened(unit=unit, budget=budget) as db:
        found = db.mean("income", spend=spend, bounds="auto")
        assert 0 <= found.interval()[0] <= found.value <= found.interval()[1] <= 10**9
        assert float(found.spent.exact) == pytest.approx(float(spend.exact))
        assert found.spent.exact <= spend.exact
        assert debits(db) == 2
        clipped, cut, cost = found.notes[:3]
        assert clipped.startswith("values are clipped: income to [")
        assert "the interval is about the statistic of the clipped values and does not count what is cut" in clipped
        assert re.fullmatch(
            r"income: about [\d.]+% of the values lie beyond the clip \(at most [\d.]+% with 95%, by noisy counts\)",
            cut,
        )
        assert clipped.startswith("values are clipped: income to [{:,}, {:,}]".format(*found.bounds["income"]))
        assert wire.decode(wire.encode(found)).bounds == found.bounds
        assert cost.startswith("the search for bounds cost ")
        assert db.sum("income", spend=spend, bounds="auto", fresh=True).notes[0].startswith("values are clipped")
        grouped = db.mean("income", by="city", where=col("flag"), spend=spend, bounds="auto")
        assert set(grouped.value) == {"a", "b", None}
        assert "clipped" in grouped.notes[0]


@pytest.mark.parametrize("spend", [Epsilon(1), Rho(0.2), EpsilonDelta(1, 1e-7)], ids=["pure", "rho", "both"])
@pytest.mark.parametrize("unit", [Unit(), Unit(neighbors="replace_one")], ids=str)
def test_a_mean_within_searched_bounds_is_near(unit: Unit, spend: Epsilon | Rho | EpsilonDelta) -> None:
    """By seeded noise: twelve asks are off by less than 5% in the median, within the declared bounds by all of it."""
    rows = TABLE.to_pylist()[:2000]
    schema, truth = Schema.of("data", COLUMNS), INCOME[:2000].mean()
    off: dict[str | None, list[float]] = {"auto": [], None: []}
    for seed in range(12):
        db = NamedAsks(Stub(schema, rows, unit=unit, budget=BUDGETS[type(spend)], rng=np.random.default_rng(seed)))
        for bounds, found in off.items():
            found.append(abs(db.mean("income", spend=spend, bounds=bounds).value - truth) / truth)
    assert np.median(off["auto"]) < 0.05
    assert np.mean(off[None]) > 5


def test_missing_constant_negative_and_absent_values_are_searched_likewise() -> None:
    """By seeded noise: rows without a value count for nothing, a constant is found, and values below zero."""
    db = NamedAsks(Stub(Schema.of("data", COLUMNS), TABLE.to_pylist()[:2000], rng=np.random.default_rng(3)))
    known = INCOME[:2000][np.arange(2000) % 4 != 0]
    assert db.mean("gap", spend=Epsilon(1), bounds="auto").value == pytest.approx(known.mean(), rel=0.2)
    assert db.mean("same", spend=Epsilon(1), bounds="auto").value == pytest.approx(40, rel=0.1)
    total = db.sum(-col("income"), spend=Epsilon(1), bounds="auto").value
    assert total == pytest.approx(-float(INCOME[:2000].sum()), rel=0.2)


def test_facts_of_the_data_are_no_errors_SR6() -> None:
    """No row meets the condition, or there is none at all: a valid answer, at the same two debits."""
    with opened() as db:
        nobody = db.mean("income", where=col("income") > 10**8, spend=Epsilon(1), bounds="auto")
        assert (debits(db), nobody.value is not None) == (2, True)
        assert float(db.spent.amount) == pytest.approx(1)
    with sulq.connect(TABLE.slice(0, 0), columns=COLUMNS, unit=Unit(), budget=Epsilon(9)) as db:
        for ask in (db.mean, db.sum):
            assert np.isfinite(float(ask("income", spend=Epsilon(1), bounds="auto").value))
        assert db.mean("income", by="city", spend=Epsilon(1), bounds="auto").value.keys() == {"a", "b", None}


def test_a_clip_that_rests_on_noise_alone_is_called_a_guess() -> None:
    """Of an empty table all but one in twenty, at 1e-7; of tight bounds that they are kept; of many values never."""
    guesses = {"wide": 0, "tight": 0}
    for seed in range(20):
        schema = Schema.of("data", {"wide": sulq.Int(-(10**9), 10**9), "tight": sulq.Int(0, 9)})
        db = NamedAsks(Stub(schema, [], rng=np.random.default_rng(seed)))
        for name in guesses:
            notes = db.mean(name, spend=Epsilon(1), bounds="auto").notes
            said = "the clip is a guess", "the declared bounds are kept"
            guesses[name] += notes[1] in [f"{name}: no values stood out of the noise: {one}" for one in said]
    assert min(guesses.values()) >= 11
    with opened() as db:
        assert "stood out" not in str(db.mean("income", spend=Epsilon(1), bounds="auto"))


def test_a_stored_search_and_answer_are_given_again_free_SR12() -> None:
    """The search is one question: a repeat costs nothing, a sum after a mean only its answer; fresh buys both."""
    with opened() as db:
        first = db.mean("income", spend=Epsilon(1), bounds="auto")
        again = db.mean("income", spend=Epsilon(1), bounds="auto")
        assert again.reused
        assert (again.value, again.spent) == (first.value, Epsilon.total(Fraction(0)))
        total = db.sum("income", spend=Epsilon(1), bounds="auto")
        assert not total.reused
        assert float(total.spent.exact) == pytest.approx(2 / 3)
        new = db.mean("income", spend=Epsilon(1), bounds="auto", fresh=True)
        assert float(new.spent.exact) == pytest.approx(1)


def test_what_is_stored_is_given_where_the_budget_holds_no_second_search_SR12() -> None:
    """With nothing left the same asks are free, and a sum after a mean needs what is left for its answer alone.

    Control: with fresh=True, or another column, both parts must fit, and do not.
    """
    with opened(budget=Epsilon(1.7)) as db:
        first = db.mean("income", spend=Epsilon(1), bounds="auto")
        assert float(db.sum("income", spend=Epsilon(1), bounds="auto").spent.exact) == pytest.approx(2 / 3)
        assert db.mean("income", spend=Epsilon(1), bounds="auto").value == first.value
        assert db.sql("SELECT SUM(income), AVG(income) FROM data", spend=Epsilon(0.03)).spent.amount > 0
        assert db.sql("SELECT AVG(income) FROM data", spend=Epsilon(1), bounds="auto").reused
        for control in (
            lambda: db.mean("income", spend=Epsilon(1), bounds="auto", fresh=True),
            lambda: db.mean("income", where=sulq.col("city") == "a", spend=Epsilon(1), bounds="auto"),
        ):
            with pytest.raises(BudgetExceeded):
                control()


@pytest.mark.parametrize(
    ("ask", "code"),
    [
        (lambda db: db.mean("income", spend=Epsilon(4), bounds="auto"), "budget-exceeded"),
        (lambda db: db.sum("income", spend=Epsilon(4), bounds="auto"), "budget-exceeded"),
        (lambda db: db.sql("SELECT AVG(income) FROM data", spend=Epsilon(4), bounds="auto"), "budget-exceeded"),
        (lambda db: db.mean("income", bounds="auto"), "spend-missing"),
        (lambda db: db.mean("income", within=3, bounds="auto"), "bad-question"),
        (lambda db: db.mean("income", spend=Epsilon(1), bounds=(0, 9)), "bad-question"),
        (lambda db: db.mean("income", spend=Epsilon(1), bounds=np.array([0, 9])), "bad-question"),
        (lambda db: db.mean("income", spend=Epsilon(1), at_most=Epsilon(0.5), bounds="auto"), "too-costly"),
        (lambda db: db.mean("income", spend=Epsilon(1), at_most="x", bounds="auto"), "spend-kind"),
        (lambda db: db.mean("income", spend=Rho(1), bounds="auto"), "spend-kind"),
        (lambda db: db.mean("nobody", spend=Epsilon(1), bounds="auto"), "unknown-column"),
        (lambda db: db.sum("city", spend=Epsilon(1), bounds="auto"), "wrong-kind"),
        (lambda db: db.mean("income", by="income", spend=Epsilon(1), bounds="auto"), "too-large"),
    ],
)
def test_a_refusal_comes_before_the_first_debit(ask: Callable[[Database], object], code: str) -> None:
    """Nothing is paid, also where the search alone would fit what is left."""
    with opened(budget=Epsilon(3)) as db:
        with pytest.raises((QuestionError, BudgetExceeded)) as refused:
            ask(db)
        assert refused.value.code == code
        assert db.spent == Epsilon.total(Fraction(0))


def test_all_of_a_budget_can_be_spent_so() -> None:
    """Shares are rounded down: a third and two thirds of a budget fit it."""
    for budget in (Epsilon(1), Rho(0.7), EpsilonDelta(1, 1e-6)):
        with opened(budget=budget) as db:
            db.mean("income", spend=budget, bounds="auto")
            assert debits(db) == 2


def test_where_bounds_leave_nothing_to_search_all_goes_to_the_answer() -> None:
    """A truth value, or bounds within one power of two: one debit, and a note."""
    with opened() as db:
        found = db.mean(col("income").clip(600, 1000), spend=Epsilon(1), bounds="auto")
        assert found.spent == Epsilon(1)
        assert "no bounds to search for" in found.notes[0]
        assert debits(db) == 1


def test_of_dates_no_bounds_are_searched_for() -> None:
    """Their range crosses a power of two of days, 2014-11-10, and is told as dates: one debit, and the note."""
    days = pa.table({"day": [datetime.date(2014, 1, 1 + i % 28) for i in range(100)]})
    columns = {"day": sulq.Date("2010-01-01", "2020-01-01")}
    with sulq.connect(days, columns=columns, unit=Unit(), budget=Epsilon(9)) as db:
        found = db.mean("day", spend=Epsilon(1), bounds="auto")
        assert "no bounds to search for" in found.notes[0]
        assert (found.spent, debits(db)) == (Epsilon(1), 1)
