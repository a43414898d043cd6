"""Identical asks in flight: one debit and one answer for all; never for those that ask for new noise."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pytest

import sulq
from sulq import Epsilon, Sums, Unit, col
from sulq.curator.curator import Curator, Flight, Flights
from sulq.curator.ledger.ledger import Ledger
from sulq.curator.reuse import ReusingOracle
from sulq.curator.run import Rows
from sulq.errors import BudgetExceeded, CuratorError, SulqError
from sulq.kernel.mechanisms import MECHANISMS, release
from sulq.kernel.private import Private
from sulq.language.domain import Schema
from sulq.language.rowfn import Lit

T = TypeVar("T")
SCHEMA = Schema.of("data", {"x": sulq.Int(0, 9)})
COUNT = Sums((Lit(1),))
PRICE = Epsilon(0.01)


class Slow:
    """Rows that are summed when told so, or after a moment; each sum is counted."""

    def __init__(self, budget: object = None, *, pause: float = 0.3) -> None:
        self.ledger = Ledger.open(
            None, mechanisms=tuple(MECHANISMS), unit=Unit(), budget=budget or Epsilon(1), synthetic=True
        )
        self.runs = 0
        self.go = threading.Event()
        self.error: BaseException | None = None
        self._pause = pause
        curator = Curator(
            Rows(self, self.ledger.redeem).replace_noise(self.ledger, release),
            self.ledger,
            SCHEMA,
            size=None,
            versions=(),
        )
        self.curator = ReusingOracle(curator)

    def ready(self) -> None:
        """Nothing to do."""

    def sums(self, tally: object) -> Private:
        self.runs += 1
        self.go.wait(self._pause)
        if self.error is not None:
            raise self.error
        return Private(np.zeros((tally.cells, tally.width), dtype=np.int64))

    def close(self) -> None:
        """Nothing to do."""


def together(*acts: Callable[[], T]) -> list[T | BaseException]:
    """Do all at once, each in a thread; what each gave or raised."""
    gate = threading.Barrier(len(acts))
    outcomes: list[T | BaseException] = [RuntimeError("still on its way")] * len(acts)

    def work(i: int) -> None:
        gate.wait()
        try:
            outcomes[i] = acts[i]()
        except BaseException as error:  # noqa: BLE001 - an outcome like any other
            outcomes[i] = error

    threads = [threading.Thread(target=work, args=(i,), daemon=True) for i in range(len(acts))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return outcomes


class Unmerged(Flights):
    """Control: each looks for a stored answer and buys its own, as if nobody else asked."""

    def one(self, name: object, stored: Callable[[], T | None], buy: Callable[[Flight], T]) -> T:
        found = stored()
        return buy(Flight()) if found is None else found


@pytest.mark.parametrize("number", [8, 64])
def test_identical_asks_in_flight_are_one_T102(number: int) -> None:
    """Eight or 64 threads ask the same at once: one debit, one sum, one answer; all but one are marked reused."""
    slow = Slow()
    asks = [lambda: slow.curator.ask(COUNT, spend=PRICE, reuse=True) for _ in range(number)]
    answers = together(*asks)
    assert slow.ledger.totals.events == slow.runs == 1
    assert len({float(answer.value) for answer in answers}) == 1
    assert sorted(answer.reused for answer in answers) == [False] + [True] * (number - 1)
    assert sum(answer.spent.amount for answer in answers) == PRICE.amount


def test_control_asks_that_are_not_merged_are_charged_each_T102(monkeypatch: pytest.MonkeyPatch) -> None:
    """Control: without the merging the same eight asks are charged several times."""
    monkeypatch.setattr("sulq.curator.reuse.Flights", Unmerged)
    slow = Slow()
    together(*[lambda: slow.curator.ask(COUNT, spend=PRICE, reuse=True)] * 8)
    assert slow.ledger.totals.events > 1


def test_the_same_in_other_words_is_one_ask_T102() -> None:
    """What stored answers look through is looked through in flight too."""
    slow = Slow()
    words = [(col("x") > 3) & (col("x") < 7), (col("x") < 7) & (col("x") > 3), (col("x") > 3) & ~~(col("x") < 7)]
    asks = [lambda w=w: slow.curator.ask(Sums((Lit(1),), where=w), spend=PRICE, reuse=True) for w in words]
    together(*asks)
    assert slow.ledger.totals.events == 1


def test_new_noise_other_prices_and_other_questions_are_charged_each_T102() -> None:
    """`fresh=True`, `db.ask`, another spend, another question: nothing is merged, all are charged."""
    slow = Slow()
    other = Sums((Lit(1),), where=col("x") > 3)
    asks = [
        lambda: slow.curator.ask(COUNT, spend=PRICE),
        lambda: slow.curator.ask(COUNT, spend=PRICE),
        lambda: slow.curator.ask(COUNT, spend=PRICE, reuse=True),
        lambda: slow.curator.ask(COUNT, spend=Epsilon(0.02), reuse=True),
        lambda: slow.curator.ask(other, spend=PRICE, reuse=True),
    ]
    answers = together(*asks)
    assert slow.ledger.totals.events == 5
    assert not any(answer.reused for answer in answers)


def test_analysts_share_a_flight_only_where_they_share_answers_T102() -> None:
    """Two analysts with scopes of their own are charged each; in one scope the first is charged, the other nothing."""
    for scope, charged in ((None, 2), ("all", 1)):
        slow = Slow()
        views = [slow.curator.for_analyst(name, scope=scope) for name in ("ada", "bob")]
        answers = together(*[lambda view=view: view.ask(COUNT, spend=PRICE, reuse=True) for view in views * 4])
        assert slow.ledger.totals.events == charged
        assert len({float(answer.value) for answer in answers}) <= charged


def test_a_failure_after_the_debit_is_the_failure_of_all_T102() -> None:
    """The rows cannot be summed: one debit stands, all get the same code, and nobody is charged again unasked."""
    slow = Slow()
    slow.error = RuntimeError("a cell: 42")
    outcomes = together(*[lambda: slow.curator.ask(COUNT, spend=PRICE, reuse=True)] * 8)
    assert slow.ledger.totals.events == slow.runs == 1
    assert {(type(error), error.code) for error in outcomes} == {(CuratorError, "engine-failed")}
    slow.error = None
    assert not slow.curator.ask(COUNT, spend=PRICE, reuse=True).reused  # asked again, it is charged again
    assert slow.ledger.totals.events == 2


def test_a_thread_that_is_interrupted_leaves_nobody_waiting_T102() -> None:
    """Interrupted after its debit it has lost the answer for all; interrupted before, the next one asks for itself."""
    slow = Slow()
    slow.error = KeyboardInterrupt()
    outcomes = together(*[lambda: slow.curator.ask(COUNT, spend=PRICE, reuse=True)] * 8)
    assert sorted(type(outcome).__name__ for outcome in outcomes) == ["CuratorError"] * 7 + ["KeyboardInterrupt"]
    assert slow.ledger.totals.events == 1
    early = Slow()
    left = [KeyboardInterrupt()]
    kept = early.ledger.kept

    def interrupted(*args: object, **named: object) -> object:
        time.sleep(0.2)
        if left:
            raise left.pop()
        return kept(*args, **named)

    early.ledger.kept = interrupted
    outcomes = together(*[lambda: early.curator.ask(COUNT, spend=PRICE, reuse=True)] * 8)
    assert sum(isinstance(outcome, KeyboardInterrupt) for outcome in outcomes) == 1
    assert sum(isinstance(outcome, BaseException) for outcome in outcomes) == 1
    assert early.ledger.totals.events == 1


def test_a_refusal_is_each_ones_own_T102() -> None:
    """The first to ask has no budget left: it alone is refused; who waited for it asks with a budget of its own."""
    slow = Slow()
    refused = threading.Event()
    debit = slow.ledger.debit

    def poor(*args: object, **named: object) -> object:
        time.sleep(0.2)  # the others come meanwhile
        if not refused.is_set():
            refused.set()
            raise BudgetExceeded("budget-exceeded", "This would cost too much.")
        return debit(*args, **named)

    slow.ledger.debit = poor
    outcomes = together(*[lambda: slow.curator.ask(COUNT, spend=PRICE, reuse=True)] * 8)
    assert sum(isinstance(outcome, BudgetExceeded) for outcome in outcomes) == 1
    assert sum(isinstance(outcome, BaseException) for outcome in outcomes) == 1
    assert slow.ledger.totals.events == 1


def test_an_ask_from_within_its_own_answer_does_not_wait_for_itself() -> None:
    """A thread that asks again while it is asked is answered."""
    flights = Flights()
    inner = flights.one("a", lambda: None, lambda _: flights.one("a", lambda: None, lambda _: 7))
    assert inner == 7
    assert not flights._flights


def test_a_database_shared_by_threads_charges_the_same_sql_once_T102(monkeypatch: pytest.MonkeyPatch) -> None:
    """SQL and named asks from sixteen threads are one debit each; `fresh=True` is one for each."""
    run = Rows.run
    monkeypatch.setattr(Rows, "run", lambda *args: (time.sleep(0.3), run(*args))[1])
    with sulq.connect(pa.table({"x": list(range(10)) * 10}), columns={"x": sulq.Int(0, 9)}, budget=Epsilon(10)) as db:
        db.prepare()
        for ask in (
            lambda: db.sql("SELECT COUNT(*) FROM data WHERE x > 2", spend=PRICE),
            lambda: db.mean("x", spend=PRICE),
        ):
            before = len(db.transcript())
            outcomes = together(*[ask] * 16)
            assert not any(isinstance(outcome, SulqError) for outcome in outcomes)
            assert len(db.transcript()) == before + 1
        before = len(db.transcript())
        together(*[lambda: db.count(spend=PRICE, fresh=True)] * 4)
        assert len(db.transcript()) == before + 4


def test_a_plan_waits_for_no_commit() -> None:
    """While a transaction holds the ledger, an ask is planned by what is known; `foresee` waits for the newest."""
    slow = Slow()
    curator = slow.curator.curator
    planned, foreseen = threading.Event(), threading.Event()
    crowd = [
        threading.Thread(target=lambda: (curator.plan(COUNT, spend=PRICE), planned.set())),
        threading.Thread(target=lambda: (curator.foresee(COUNT, spend=PRICE), foreseen.set())),
    ]
    with slow.ledger._writer._io:
        for thread in crowd:
            thread.start()
        assert planned.wait(30)
        assert not foreseen.wait(0.05)  # the control
    for thread in crowd:
        thread.join()
    assert foreseen.is_set()
