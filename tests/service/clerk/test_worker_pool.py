"""The clerk's end of the workers: one worker, one run, one constant outcome for whatever goes wrong."""

from __future__ import annotations

import itertools
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import sulq
from sulq.answers import wire
from sulq.answers.released import Released
from sulq.compile.plan import draw
from sulq.errors import CuratorError, QuestionError, SetupError
from sulq.kernel.ledger.chain import Seal
from sulq.language.domain import Schema
from sulq.language.facts import Facts
from sulq.service import ipc
from sulq.service.clerk import worker_pool
from sulq.service.clerk.worker_pool import RemoteRows, WorkerAddress

SCHEMA = Schema.of("data", {"x": sulq.Int(0, 9)})
BUDGET = sulq.Epsilon(9)
PLAN = draw(sulq.Sums((sulq.lit(1),)), Facts(SCHEMA, sulq.Unit(), BUDGET, BUDGET, BUDGET), sulq.Epsilon(1))
KEY = b"k" * 32
LEDGER = Seal(b"the ledger's")
NUMBERS = itertools.count(10)
GIVEN = {"released": [wire.to_json(Released(np.array([[7]]), PLAN.parts[0].noise))]}


class Fake:
    """A worker's socket, answered by a function of the frame; None hangs up."""

    def __init__(self, path: Path, generation: int, answer: Callable[[dict], dict | None]) -> None:
        self.path, self.generation, self.answer = str(path), generation, answer
        self.heard: list[dict] = []
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.listener.bind(self.path)
        self.listener.listen(4)
        self.sock: socket.socket | None = None
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        try:
            self.sock, _ = self.listener.accept()
            ipc.send(self.sock, {"generation": self.generation, "isolation": {"network": "open"}})
            while True:
                self.heard.append(ipc.receive(self.sock))
                reply = self.answer(self.heard[-1])
                if reply is None:
                    break
                ipc.send(self.sock, reply)
        except (OSError, EOFError):
            pass
        if self.sock is not None:
            self.sock.close()

    @property
    def runs(self) -> list[dict]:
        return [frame for frame in self.heard if "run" in frame]

    def hang_up(self) -> None:
        self.sock.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        if self.sock is not None:
            self.sock.close()
        self.listener.close()


class Pool:
    """Rows behind fake workers."""

    def __init__(self, folder: Path, limit: float) -> None:
        self.folder = folder
        self.fakes: list[Fake] = []
        self.killed: list[tuple[str, int]] = []
        self.events: list[str] = []
        self.rows = RemoteRows(
            limit=limit, redeem=LEDGER.redeem, kill=lambda name, n: self.killed.append((name, n)),
            hello=lambda _: None, event=self.events.append,
        )  # fmt: skip

    def worker(self, answer: Callable[[dict], dict | None], generation: int = 1) -> Fake:
        fake = Fake(self.folder / f"w{len(self.fakes)}", generation, answer)
        self.fakes.append(fake)
        self.rows.post(WorkerAddress(f"w{len(self.fakes) - 1}", generation, fake.path, KEY))
        until = time.monotonic() + 60
        while len(self.rows.workers) < len(self.fakes):
            assert time.monotonic() < until, "the worker was not connected to"
            time.sleep(0.005)
        return fake

    def receipt(self):
        seq = next(NUMBERS)
        return LEDGER.stamp(seq, f"{seq:064x}", wire.digest(PLAN), PLAN.event)


@pytest.fixture
def found(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Pool]:
    """A pool whose questions have a minute, or as long as a test says: a busy machine overruns nothing by chance."""
    made = Pool(tmp_path, getattr(request, "param", 60.0))
    yield made
    made.rows.close()
    for fake in made.fakes:
        fake.close()


def test_a_run_goes_to_one_worker_with_a_receipt_of_its_own(found: Pool) -> None:
    """What is sent is the plan's canonical text and a receipt stamped with the worker's key, not the ledger's."""
    fake = found.worker(lambda _: GIVEN)
    found.rows.ready()
    (released,) = found.rows.run(PLAN, found.receipt())
    assert released.units.tolist() == [[7]]
    (frame,) = fake.runs
    assert frame["run"] == wire.encode(PLAN)
    stamped = wire.from_json(frame["receipt"])
    assert Seal(KEY).redeem(stamped, wire.digest(PLAN), PLAN.event)
    assert not LEDGER.verifies(stamped, wire.digest(PLAN), PLAN.event)


def test_the_ledgers_receipt_is_good_for_one_run_T60(found: Pool) -> None:
    """The clerk itself runs no receipt twice, none of another plan's, and none of a debit of less than the plan's."""
    fake = found.worker(lambda _: GIVEN)
    receipt = found.receipt()
    found.rows.run(PLAN, receipt)
    for bad in (
        receipt,
        LEDGER.stamp(3, "03" * 32, "another plan", PLAN.event),
        LEDGER.stamp(
            5, "05" * 32, receipt.plan, replace(PLAN.event, epsilon=PLAN.event.epsilon / 9)
        ),  # a smaller debit
        Seal(b"x").stamp(4, "04" * 32, receipt.plan, PLAN.event),
    ):
        with pytest.raises(CuratorError) as refused:
            found.rows.run(PLAN, bad)
        assert refused.value.code == "bad-receipt"
    assert len(fake.runs) == 1


def test_a_worker_that_left_before_it_heard_is_passed_over(found: Pool) -> None:
    """A dead connection is noticed as the plan is sent: another worker runs it, and only that one."""
    gone, there = found.worker(lambda _: GIVEN), found.worker(lambda _: GIVEN)
    gone.hang_up()
    gone.close()
    found.rows.run(PLAN, found.receipt())
    assert len(gone.runs) + len(there.runs) == 1


@pytest.mark.parametrize(
    "answer",
    [
        lambda _: None,
        lambda _: time.sleep(5) or GIVEN,
        lambda _: {"failed": "engine-failed"},
        lambda _: {"failed": "bad-receipt"},
        lambda _: {"stopped": {"kind": "SetupError", "code": "source-changed", "message": "the cell is 7"}},
        lambda _: {"nonsense": 1},
    ],
)
@pytest.mark.parametrize("found", [1.0], indirect=True)
def test_whatever_a_worker_does_there_is_one_outcome_and_no_second_run(found: Pool, answer: Callable) -> None:
    """It hangs up, overruns, fails, refuses: one error, and nobody else is given the plan."""
    first = found.worker(answer)
    second = found.worker(lambda _: GIVEN)
    with pytest.raises(CuratorError) as failed:
        found.rows.run(PLAN, found.receipt())
    assert failed.value.args == CuratorError("engine-failed", worker_pool.FAILURES["engine-failed"]).args
    assert len(first.runs) + len(second.runs) == 1


@pytest.mark.parametrize("found", [0.4], indirect=True)
def test_an_overrun_is_killed_at_its_limit_T37(found: Pool) -> None:
    """The clerk asks for the death of that generation of that worker, and uses it no more."""
    found.worker(lambda _: time.sleep(60) or GIVEN, generation=3)
    begun = time.monotonic()
    with pytest.raises(CuratorError):
        found.rows.run(PLAN, found.receipt())
    assert 0.35 < time.monotonic() - begun < 30
    assert found.killed == [("w0", 3)]
    assert found.events == ["overrun"]
    assert found.rows.workers == []


def test_a_deadline_binds_also_while_no_worker_is_free(found: Pool) -> None:
    """Under a schedule a question that waits past its time ends in the same outcome, without a worker's death."""
    begun = time.monotonic()
    with found.rows.until(begun + 0.2), pytest.raises(CuratorError) as failed:
        found.rows.run(PLAN, found.receipt())
    assert failed.value.code == "engine-failed"
    assert time.monotonic() - begun < 30
    assert found.killed == []


def test_nothing_is_paid_while_there_is_no_worker(found: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    """`ready` refuses before the debit: no worker yet, or one that says its data changed."""
    monkeypatch.setattr(worker_pool, "MAX_START_WAIT_SECONDS", 0.1)
    with pytest.raises(SetupError) as refused:
        found.rows.ready()
    assert refused.value.code == "not-ready"
    changed = {"kind": "SetupError", "code": "source-changed", "message": "The data changed."}
    found.worker(lambda frame: {"stopped": changed} if "ready" in frame else GIVEN)
    found.rows.ready()
    monkeypatch.setattr(worker_pool, "HEALTH_CHECK_SECONDS", 0.0)
    found.rows.look()
    with pytest.raises(SetupError) as stopped:
        found.rows.ready()
    assert stopped.value.code == "not-ready"
    assert found.rows.stopped.code == "source-changed"


def test_a_database_that_was_away_is_asked_again_when_it_is_back(found: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same worker goes on, and nobody pays meanwhile; what changed stays stopped, whatever is said afterwards."""
    monkeypatch.setattr(worker_pool, "HEALTH_CHECK_SECONDS", 0.0)
    told = [{"kind": "SetupError", "code": "unreadable-data", "message": "It cannot be reached."}]
    found.worker(lambda _: {"stopped": told[0]} if told else {"ready": True})
    found.rows.ready()
    for _ in range(2):
        found.rows.look()
        with pytest.raises(SetupError) as stopped:
            found.rows.ready()
        assert stopped.value.code == "not-ready"
    assert found.rows.stopped.code == "unreadable-data"
    told.clear()
    found.rows.look()
    found.rows.ready()
    assert found.rows.stopped is None
    told.append({"kind": "SetupError", "code": "source-changed", "message": "The data changed."})
    found.rows.look()
    told[0] = {"kind": "SetupError", "code": "unreadable-data", "message": "It cannot be reached."}
    found.rows.look()
    told.clear()
    found.rows.look()
    assert found.rows.stopped.code == "source-changed"
    assert found.killed == []


@pytest.mark.parametrize("failed", ["engine-failed", "noise-failed", "bad-receipt"])
def test_a_failure_does_not_say_that_a_database_is_back(
    found: Pool, monkeypatch: pytest.MonkeyPatch, failed: str
) -> None:
    """Nobody pays until rows were read: a charged question that failed leaves it stopped, and one that is answered not.

    Control: the answer.
    """
    monkeypatch.setattr(worker_pool, "HEALTH_CHECK_SECONDS", 0.0)
    away = {"kind": "SetupError", "code": "unreadable-data", "message": "It cannot be reached."}
    replies = [{"failed": failed}, GIVEN]
    found.worker(lambda frame: {"stopped": away} if "ready" in frame else replies.pop(0))
    found.rows.look()
    with pytest.raises(CuratorError):
        found.rows.run(PLAN, found.receipt())
    assert found.rows.stopped.code == "unreadable-data"
    found.rows.run(PLAN, found.receipt())
    assert found.rows.stopped is None


def test_a_look_that_takes_long_is_waited_for_aside(found: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker whose database does not answer holds nobody else up, and is idle again when it has answered."""
    monkeypatch.setattr(worker_pool, "HEALTH_CHECK_SECONDS", 0.0)
    monkeypatch.setattr(worker_pool, "MAX_HEALTH_WAIT_SECONDS", 0.05)
    answer = threading.Event()
    found.worker(lambda _: {"ready": answer.wait(60)})
    found.rows.ready()
    begun = time.monotonic()
    found.rows.look()
    assert time.monotonic() - begun < 20
    assert not found.rows.idle
    answer.set()
    until = time.monotonic() + 60
    while not found.rows.idle and time.monotonic() < until:
        time.sleep(0.01)
    assert found.rows.idle


def test_another_generation_than_announced_is_not_used(found: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection that reaches another start of the worker has another key: it is let go."""
    monkeypatch.setattr(worker_pool, "MAX_START_WAIT_SECONDS", 0.3)
    fake = Fake(found.folder / "other", 5, lambda _: GIVEN)
    found.fakes.append(fake)
    found.rows.post(WorkerAddress("other", 4, fake.path, KEY))
    with pytest.raises(SetupError):
        found.rows.ready()


REFUSED = {"refused": {"kind": "QuestionError", "code": "uncertified", "message": "Not so.", "remedy": "Report it."}}


def certifying(*, known: bool = True) -> Callable[[dict], dict]:
    """A worker that certifies whatever it is given, and knows it afterwards, or does not."""

    def answer(frame: dict) -> dict:
        if "check" in frame:
            return {"certified": True}
        return GIVEN if known or frame["run"] is not None else {"unknown": True}

    return answer


def test_a_plan_is_sent_once_to_be_certified_and_then_its_receipt_alone(found: Pool) -> None:
    """The worker that certified a plan runs it, though others are idle, and is not sent its text again."""
    fakes = [found.worker(certifying()) for _ in range(3)]
    for _ in range(5):
        found.rows.check(PLAN, "alice")
        found.rows.run(PLAN, found.receipt())
    for fake in fakes:
        checks = [frame for frame in fake.heard if "check" in frame]
        assert all(frame == {"check": wire.encode(PLAN), "whose": "alice"} for frame in checks)
        assert len(checks) == len(fake.runs)
        assert all((frame["run"], frame["whose"]) == (None, "alice") for frame in fake.runs)
    assert sum(len(fake.runs) for fake in fakes) == 5


def test_a_worker_that_does_not_know_the_plan_any_more_is_sent_it_again(found: Pool) -> None:
    """It has not used the receipt; what it is sent then is the text. Control: one that says so again has failed."""
    fake = found.worker(certifying(known=False))
    found.rows.check(PLAN)
    found.rows.run(PLAN, found.receipt())
    assert [frame["run"] for frame in fake.runs] == [None, wire.encode(PLAN)]
    assert fake.runs[0]["receipt"] == fake.runs[1]["receipt"]
    fake.answer = lambda frame: {"certified": True} if "check" in frame else {"unknown": True}
    found.rows.check(PLAN)
    with pytest.raises(CuratorError) as failed:
        found.rows.run(PLAN, found.receipt())
    assert failed.value.code == "engine-failed"


def test_a_worker_that_died_between_check_and_debit_is_replaced_by_another(found: Pool) -> None:
    """Another is sent the text, and the receipt is stamped for it; nobody runs it twice."""
    first, second = found.worker(certifying()), found.worker(certifying())
    found.rows.check(PLAN)
    gone, there = (first, second) if any("check" in frame for frame in first.heard) else (second, first)
    gone.hang_up()
    gone.close()
    found.rows.run(PLAN, found.receipt())
    assert [frame["run"] for frame in gone.runs + there.runs] == [wire.encode(PLAN)]


def test_what_is_not_certified_is_refused_in_the_workers_words(found: Pool) -> None:
    """Before any receipt; the worker is idle again and runs nothing."""
    fake = found.worker(lambda _: REFUSED)
    with pytest.raises(QuestionError) as refused:
        found.rows.check(PLAN)
    assert (refused.value.code, refused.value.message) == ("uncertified", "Not so.")
    assert fake.runs == []
    assert len(found.rows.idle) == 1


CHANGED = {"stopped": {"kind": "SetupError", "code": "source-changed", "message": "the cell is 7"}}


@pytest.mark.parametrize(
    "answer",
    [
        lambda _: None,
        lambda _: time.sleep(5) or {},
        lambda _: {"failed": "bad-receipt"},
        lambda _: {},
        lambda _: CHANGED,
    ],
)
@pytest.mark.parametrize("found", [1.0], indirect=True)
def test_whatever_a_worker_does_with_a_check_nothing_is_paid(found: Pool, answer: Callable) -> None:
    """It hangs up, overruns, fails, or its data changed: the dataset is not ready, in words that tell nothing."""
    found.worker(answer)
    with pytest.raises(SetupError) as refused:
        found.rows.check(PLAN)
    assert refused.value.code == "not-ready"
    assert "7" not in str(refused.value)


def test_a_check_that_is_late_is_not_paid_for(found: Pool) -> None:
    """Under a schedule a plan is certified by the moment from which its run would have too little time."""
    begun = time.monotonic()
    with found.rows.until(begun + 60, begun + 0.1), pytest.raises(SetupError) as refused:
        found.rows.check(PLAN)
    assert refused.value.code == "not-ready"
    assert time.monotonic() - begun < 30


@pytest.mark.parametrize("left", [0.05, -1.0])
def test_a_worker_that_certifies_late_is_not_killed(found: Pool, left: float) -> None:
    """It did nothing wrong, and nothing was paid. Control: with time enough the same worker's word is taken."""

    def slow(frame: dict) -> dict:
        time.sleep(0.3)
        return certifying()(frame)

    found.worker(slow)
    now = time.monotonic()
    with found.rows.until(now + 60, now + left), pytest.raises(SetupError) as refused:
        found.rows.check(PLAN)
    assert refused.value.code == "not-ready"
    assert len(found.rows.workers) == len(found.rows.idle) == 1
    with found.rows.until(time.monotonic() + 60, time.monotonic() + 30):
        found.rows.check(PLAN)
