"""The budget over time: spends add up exactly, stay with the people, need no rows, and are never given back."""

from __future__ import annotations

import contextlib
import shutil
from fractions import Fraction
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sulq
from sulq import Epsilon, EpsilonDelta, Int, Rho, Sums, Unit, col
from sulq.answers import wire
from sulq.api.database import Database
from sulq.errors import BudgetExceeded, CuratorError, QuestionError, SetupError, SetupWarning
from sulq.language.rowfn import Bins, Lit
from tests.privacy.cases import ENGINES, broken, opened, people, replayed, seeded

TABLE = pa.table({"x": [1, 2, 3], "pid": ["a", "b", "b"]})
COLUMNS = {"x": Int(0, 9)}


def opened_file(folder: Path, name: str = "people", **options: object) -> Database:
    path = folder / f"{name}.parquet"
    if not path.exists():
        pq.write_table(TABLE, path)
    given: dict[str, object] = {"columns": COLUMNS, "budget": Epsilon(2), "ledger": folder / "people.ledger"}
    return sulq.connect(path, **(given | options))


def test_a_key_is_not_answered_under_other_declarations_T44_SR12(tmp_path: Path) -> None:
    """A stored answer is not read with the labels of a later registration; the retry is refused, free (T44, SR12)."""
    question = Sums((Lit(1),), None, (Bins(col("x"), (0, 5, 9)),))
    with opened_file(tmp_path) as db:
        first = db.ask(question, spend=Epsilon(1), key="k")
    with opened_file(tmp_path) as db:
        assert db.ask(question, spend=Epsilon(1), key="k").value == first.value
    with opened_file(tmp_path, columns={"x": Int(0, 5)}) as db:
        with pytest.raises(QuestionError) as refused:
            db.ask(question, spend=Epsilon(1), key="k")
        assert refused.value.code == "key-reused"
        assert db.spent == Epsilon(1)


def test_spends_too_small_for_floats_add_up_exactly_T52() -> None:
    """Asks of 1e-14 on top of 999 leave exactly what they should, where doubles would have lost them (T52).

    Control: the same sum in floats does not move.
    """
    floats = 999.0
    with opened(TABLE, columns=COLUMNS, budget=Epsilon(1000)) as db:
        db.count(spend=Epsilon(999))
        for _ in range(20):
            db.count(spend=Epsilon(1e-14), fresh=True)
            floats += 1e-14
        assert db.spent.amount == 999 + Fraction(20, 10**14)
    assert floats == 999.0


def test_the_spend_stays_with_the_people_whatever_the_data_is_called_T56(tmp_path: Path) -> None:
    """Reconnecting, renaming, re-declaring, replacing the file or renewing it keeps all that was spent (T56, T60).

    Control: another ledger, which is another person space, begins at nothing.
    """
    with opened_file(tmp_path) as db:
        db.count(spend=Epsilon(0.5))
        version = db.facts.version
    shutil.copy2(tmp_path / "people.parquet", tmp_path / "copy.parquet")
    spent = Fraction(1, 2)
    for change in (
        {}, {"table": "renamed"}, {"columns": {"x": Int(0, 5)}}, {"size": 3}, {"name": "copy"}, {"engine": "memory"},
    ):  # fmt: skip
        with opened_file(tmp_path, **change) as db:
            assert db.spent.amount == spent
            assert db.facts.version >= version
            version = db.facts.version
            db.count(spend=Epsilon(0.1), fresh=True)
            spent += Fraction(1, 10)
    pq.write_table(pa.table({"x": [5], "pid": ["z"]}), tmp_path / "people.parquet")
    with pytest.raises(SetupError) as stopped:
        opened_file(tmp_path)
    assert stopped.value.code == "source-changed"
    with opened_file(tmp_path, renew=True) as db:
        assert db.spent.amount == spent
    with pytest.raises(SetupError) as mismatch:
        opened_file(tmp_path, renew=True, budget=Epsilon(3))
    assert mismatch.value.code == "budget-mismatch"
    with pytest.raises(SetupError) as mismatch:
        opened_file(tmp_path, renew=True, unit=Unit("pid"))
    assert mismatch.value.code == "unit-mismatch"
    with pytest.raises(SetupError) as second:
        opened_file(tmp_path, renew=True, ledger=tmp_path / "other.ledger")
    assert second.value.code == "covered-source"
    with (
        pytest.warns(SetupWarning, match="second budget"),
        opened_file(tmp_path, renew=True, ledger=tmp_path / "other.ledger", new_people=True) as db,
    ):
        assert db.spent.amount == 0


@pytest.mark.parametrize("kind", ENGINES)
def test_prices_need_no_rows_T58(kind: str, tmp_path: Path) -> None:
    """foresee, facts and accuracy work after the data is gone and with an engine that cannot read (T58, S0.29).

    Control: asking then fails, and is charged.
    """
    with opened_file(tmp_path, engine=kind, budget=EpsilonDelta(2, 1e-6), prepared=False) as db:
        question = Sums((col("x"), Lit(1)), col("x") > 2, (Bins(col("x"), (0, 5, 9)),))
        before = wire.encode(db.foresee(question, spend=Epsilon(0.5)))
        (tmp_path / "people.parquet").unlink()
        source = broken(db, OSError)
        for spend in (Epsilon(0.5), Rho(0.1), EpsilonDelta(0.5, 1e-7)):
            plan = db.foresee(question, spend=spend)
            assert plan.accuracy(0.05)
            assert str(plan)
        assert wire.encode(db.foresee(question, spend=Epsilon(0.5))) == before
        assert source.calls == 0
        assert db.spent.amount == 0
        with pytest.raises(CuratorError):
            db.ask(question, spend=Epsilon(0.5))
        assert source.calls == 1
        assert db.spent.amount == Fraction(1, 2)


@pytest.mark.parametrize("kind", ENGINES)
def test_what_remains_tells_nothing_of_rows_or_of_others_answers_T59(kind: str) -> None:
    """The remaining budget after any conversation is a function of what was asked (T59, T45)."""
    programs = [
        lambda asks: asks.count(col("gain") > 5, spend=Epsilon(0.3)),
        lambda asks: asks.mean("gain", within=30, at_most=Epsilon(3)),
        lambda asks: asks.count(within=50, at_most=Epsilon(2)),
    ]
    assert replayed(kind, people("HLYH" * 30), people("HLYH" * 30 + "L"), programs, Unit()) == []


def test_there_is_no_way_to_edit_delete_or_give_back_T60() -> None:
    """No public name of a database or its ledger removes, lowers or refunds; its entries only grow (T60, T45)."""
    with opened(TABLE, columns=COLUMNS, budget=Epsilon(2)) as db:
        names = [name for thing in (db, db._ledger) for name in dir(thing) if not name.startswith("_")]
        words = ("refund", "reset", "delete", "remove", "edit", "undo", "clear", "lower", "set_")
        assert [name for name in names if any(word in name for word in words)] == []
        first = db.count(spend=Epsilon(1))
        lines = db.transcript()
        db.count(spend=Epsilon(1), fresh=True)
        assert db.transcript()[: len(lines)] == lines
        assert db._ledger.verify_receipt(first.receipt, first.receipt.plan, first.event)
        with pytest.raises(SetupError):
            db._ledger.raise_to(Epsilon(1))


def test_overlapping_parts_asked_separately_add_up_T53() -> None:
    """Parts asked one by one are charged one by one; asked as a partition they are charged once (T53, SR13)."""
    with opened(TABLE, columns=COLUMNS, budget=Epsilon(5)) as db:
        db.histogram("x", bins=3, spend=Epsilon(1))
        assert db.spent == Epsilon(1)
        for low in (0, 3, 6):
            db.count(col("x").between(low, low + 3), spend=Epsilon(1))
        assert db.spent == Epsilon(4)


@pytest.mark.parametrize("spend", [Epsilon(0.1), Rho(0.01), EpsilonDelta(0.1, 1e-8)])
def test_an_epsilon_delta_budget_is_never_passed_by_mixed_spends_T53(spend: object) -> None:
    """Pure, concentrated and approximate spends under one budget stop within its room (T53, SR3)."""
    rng = seeded("mixed spends")
    with opened(TABLE, columns=COLUMNS, budget=EpsilonDelta(1, 1e-6)) as db:
        answered = 0
        with contextlib.suppress(BudgetExceeded):
            while db.count(spend=spend if rng.random() < 0.7 else Epsilon(0.05), fresh=True):
                answered += 1
        assert answered < 1000
        totals, split = db._ledger.totals, db._ledger._writer.state.filter.split
        assert totals.blended <= split.room * 10**18 or (totals.pure and totals.epsilon <= 10**18)
