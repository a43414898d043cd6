"""The one way into the store: in step with other processes, and safe against interrupts."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import apsw
import pytest

from sulq.curator.ledger.opening import verify
from sulq.errors import BudgetExceeded, CuratorError, SetupError, SulqError
from sulq.kernel.ledger.chain import Row
from sulq.kernel.ledger.entries import Draft, State
from sulq.language.privacy import Epsilon, Event
from tests.curator.ledger.cases import ask, memory_folder, opened, pure
from tests.curator.ledger.places import STORES, Place, empty


@pytest.fixture
def folder() -> object:
    with memory_folder() as found:
        yield found


@pytest.fixture(params=STORES)
def place(request: pytest.FixtureRequest) -> Iterator[Place]:
    with empty(request.param) as found:
        yield found


@pytest.fixture(params=[*STORES, "memory"])
def anywhere(request: pytest.FixtureRequest) -> Iterator[Place | None]:
    with contextlib.nullcontext() if request.param == "memory" else empty(request.param) as found:
        yield found


class Interrupting:
    """Raises at one step."""

    def __init__(self) -> None:
        self.step = ""

    def __call__(self, name: str) -> None:
        if name == self.step:
            self.step = ""
            raise KeyboardInterrupt


STEPS = ["before-begin", "after-begin", "after-insert", "before-commit", "after-commit", "before-ack"]


@pytest.mark.parametrize("step", STEPS)
def test_an_interrupt_at_any_step_costs_at_most_its_own_ask_T43(step: str, anywhere: Place | None) -> None:
    """Interrupted at any step the ledger goes on in step with its file; the ask is charged once or not at all (T43)."""
    failpoint = Interrupting()
    ledger = opened(anywhere, failpoint=failpoint)
    ask(ledger, pure("0.1"), "before")
    failpoint.step = step
    with pytest.raises(KeyboardInterrupt):
        ask(ledger, pure("0.1"), "interrupted", key="k")
    ask(ledger, pure("0.1"), "after")
    charged = {line.question for line in ledger.transcript()}
    assert {"before", "after"} <= charged
    assert ("interrupted" in charged) == (step in {"after-commit", "before-ack"})
    assert ledger.spent == Epsilon(len(charged) / 10)
    ledger.verify()
    ledger.close()


def test_an_interrupt_in_the_middle_of_the_state_is_repaired_T43(
    anywhere: Place | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the interrupt falls between two steps in memory, memory is thrown away and read again from the file (T43)."""
    ledger = opened(anywhere)
    apply = State._apply
    broken: list[int] = []

    def halfway(state: State, row: Row, body: dict[str, object]) -> Event | None:
        event = apply(state, row, body)
        if event is not None and not broken:
            broken.append(1)
            raise KeyboardInterrupt
        return event

    monkeypatch.setattr(State, "_apply", halfway)
    with pytest.raises(KeyboardInterrupt):
        ask(ledger, pure("0.1"))
    assert ledger.spent == Epsilon(0.1)
    ask(ledger, pure("0.1"))
    assert ledger.verify().spent == Epsilon(0.2)
    ledger.close()


def test_two_processes_see_each_others_debits_T42(place: Place) -> None:
    """Two openings of one ledger, as two processes have them, share one budget and one order (T42)."""
    with opened(place) as one, opened(place) as two:
        places = [ask(ledger, pure("0.25")).seq for ledger in (one, two, one, two)]
        assert places == [2, 3, 4, 5]
        for ledger in (one, two):
            with pytest.raises(BudgetExceeded):
                ask(ledger, pure("0.01"))
            assert ledger.spent == Epsilon(1)
        one.raise_to(Epsilon(2))
        assert two.budget == Epsilon(2)
        ask(two, pure("0.5"))
        assert one.register("people", declarations="d") == 1
        assert two.register("people", declarations="d") == 1
        assert one.verify() == two.verify()


def test_threads_of_two_openings_race_T42(place: Place) -> None:
    """Threads over two openings get exactly what the budget holds (T42)."""
    granted: list[int] = []
    with opened(place, Epsilon(1), wait=30.0) as one, opened(place, Epsilon(1), wait=30.0) as two:

        def work(number: int) -> None:
            for _ in range(5):
                try:
                    granted.append(ask((one, two)[number % 2], pure("0.02")).seq)
                except BudgetExceeded:
                    return

        threads = [threading.Thread(target=work, args=(n,)) for n in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(granted) == list(range(2, 52))


def test_a_refusal_in_a_batch_that_fails_is_taken_back(folder: Path) -> None:
    """Who was refused because of a grant that then could not be written is told to try again, not that it is spent."""
    path = folder / "a.ledger"
    opened(path).close()
    reader = apsw.Connection(str(path))
    first, queued = threading.Event(), threading.Event()
    inserts: list[int] = []

    def failpoint(step: str) -> None:
        if step == "before-begin" and not first.is_set():
            first.set()
            queued.wait()  # the other two line up behind this one
        if step == "after-insert":
            inserts.append(1)
            if len(inserts) == 2:  # a reader holds up the second commit
                reader.execute("BEGIN")
                reader.execute("SELECT * FROM head").fetchall()

    outcomes: list[str] = []

    def work(cost: str) -> None:
        try:
            ask(ledger, pure(cost))
            outcomes.append("granted")
        except SulqError as error:
            outcomes.append(error.code)

    with opened(path, wait=0.01, failpoint=failpoint) as ledger:
        threads = [threading.Thread(target=work, args=(cost,)) for cost in ("0.1", "0.6", "0.6")]
        threads[0].start()
        first.wait()
        for thread in threads[1:]:
            thread.start()
        while len(ledger._writer._turns._waiting) < 2:
            time.sleep(0.001)
        queued.set()
        for thread in threads:
            thread.join()
        assert sorted(outcomes) == ["granted", "ledger-busy", "ledger-busy"]
        reader.execute("ROLLBACK")
        assert ledger.remaining == Epsilon(0.9)
        ask(ledger, pure("0.6"))
    reader.close()


def test_all_that_one_batch_writes_counts_at_once() -> None:
    """Registrations, raises and debits of one transaction see each other: no version twice, no budget lowered."""
    first, queued = threading.Event(), threading.Event()

    def failpoint(step: str) -> None:
        if step == "before-begin" and not first.is_set():
            first.set()
            queued.wait()

    ledger = opened(failpoint=failpoint)
    outcomes: dict[str, object] = {}

    def work(name: str, act: Callable[[], object]) -> None:
        try:
            outcomes[name] = act()
        except SulqError as error:
            outcomes[name] = error.code

    acts = {
        "first": lambda: ask(ledger, pure("0.1")).seq,
        "a": lambda: ledger.register("a", declarations="d"),
        "a again": lambda: ledger.register("a", declarations="d"),
        "b": lambda: ledger.register("b", declarations="d"),
        "much": lambda: ask(ledger, pure("1.5")).seq,
        "raise": lambda: ledger.raise_to(Epsilon(2)),
        "much again": lambda: ask(ledger, pure("1.5")).seq,
        "lower": lambda: ledger.raise_to(Epsilon(1.5)),
    }
    threads = []
    for place, (name, act) in enumerate(acts.items()):
        threads.append(threading.Thread(target=work, args=(name, act)))
        threads[-1].start()
        first.wait()
        while len(ledger._writer._turns._waiting) < place:
            time.sleep(0.001)
    queued.set()
    for thread in threads:
        thread.join()
    assert outcomes == {
        "first": 2, "a": 1, "a again": 1, "b": 2, "much": "budget-exceeded", "raise": None, "much again": 6,
        "lower": "budget-mismatch",
    }  # fmt: skip
    assert ledger.verify().entries == 6


def test_there_is_no_receipt_before_the_debit_is_durable_T43(anywhere: Place | None) -> None:
    """A deceiver: a proposer that asks for its receipt inside the transaction, or after one that failed, gets none.

    Control: once it is durable there is one, and no second.
    """
    places: list[int] = []

    def early(draft: Draft) -> None:
        places.append(draft.debit(pure("0.1"), plan_digest="p", question_digest="q", version=0))
        with pytest.raises(KeyError):
            ledger._writer.receipt(places[-1])
        if len(places) == 1:
            raise ZeroDivisionError

    with opened(anywhere) as ledger:
        with pytest.raises(ZeroDivisionError):
            ledger._writer.transact(early)
        with pytest.raises(KeyError):
            ledger._writer.receipt(places[0])
        ledger._writer.transact(early)
        assert ledger.redeem(ledger._writer.receipt(places[-1]), "p", pure("0.1"))
        with pytest.raises(KeyError):
            ledger._writer.receipt(places[-1])


def test_a_damaged_answer_stops_the_ledger_T47(folder: Path) -> None:
    """Damage met on the way to a stored answer stops everything, not that one ask alone (T47)."""
    path = folder / "a.ledger"
    ledger = opened(path)
    ledger.keep(ask(ledger, pure("0.1"), key="k"), "41")
    apsw.Connection(str(path)).execute("UPDATE entries SET body = replace(body, '41', '42')")
    for key in ("k", None):
        with pytest.raises(SulqError) as refusal:
            ask(ledger, pure("0.1"), key=key)
        assert refusal.value.code == "ledger-damaged"
    ledger.close()


def test_dead_is_dead_T48(place: Place) -> None:
    """A ledger that failed stays so, keeps refusing with the same code, and closes without a word."""
    ledger = opened(place)
    ledger._writer._store.close()  # as if it had become unusable
    for _ in range(2):
        with pytest.raises((CuratorError, SetupError)) as refusal:
            ask(ledger, pure("0.1"))
        assert refusal.value.code == "ledger-failed"
    ledger.close()


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")  # later Pythons warn of what is tested here
def test_a_fork_waits_for_the_end_of_a_debit_T67() -> None:
    """Forked while another thread writes, a child finds no transaction open and may close what it inherited (T67)."""
    with memory_folder() as folder:
        path: Path = folder / "a.ledger"
        inside = threading.Event()

        def slow(step: str) -> None:
            if step == "before-commit":
                inside.set()
                time.sleep(0.01)

        ledger = opened(path, Epsilon(100), failpoint=slow)
        stop = threading.Event()

        def work() -> None:
            while not stop.is_set():
                ask(ledger, pure("0.01"))

        thread = threading.Thread(target=work)
        thread.start()
        for _ in range(15):
            inside.clear()
            inside.wait()
            child = os.fork()
            if child == 0:  # pragma: no cover - the child reports by its exit code
                idle = not ledger._writer._store._db.in_transaction
                ledger._writer._store.close()  # what the end of a child's interpreter does
                os._exit(0 if idle else 1)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        stop.set()
        thread.join()
        events = ledger.totals.events
        ledger.close()
        assert verify(path).totals.events == events >= 15
