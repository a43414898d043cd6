"""The fault of one ledger is its datasets' alone: others see no error, the clerk goes on, and readiness says so.

Two datasets on two ledgers. One has its disk filled, its file rolled back or taken away, or its database stopped or
frozen; the other is asked all the while.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import pytest

import sulq
from sulq.answers import wire
from sulq.service.clerk.registration import declare
from tests import postgres
from tests.service.kills import PRICE, question
from tests.service.service import COLUMNS, Running, service, survey
from tests.service.test_service_faults import filled, small_disk

CLERK = "tests.service.brisk_clerk"
PATIENCE = 90.0  # seconds on a slow machine


@dataclass
class Calm:
    """A dataset that nothing happens to, asked by an analyst of its own all the while."""

    url: str
    token: str
    answers: int = 0
    failures: list[str] = field(default_factory=list)
    stop: threading.Event = field(default_factory=threading.Event)

    def ask(self) -> None:
        """Foresee and ask on and on."""
        with httpx.Client(base_url=self.url, headers={"Authorization": f"Bearer {self.token}"}, timeout=10) as client:
            while not self.stop.wait(0.01):
                asked = question(20_000 + self.answers)
                try:
                    reply = client.post("/v1/datasets/calm/foresee", json=asked)
                    if reply.status_code == 200:
                        reply = client.post("/v1/datasets/calm/ask", json=asked)
                except httpx.HTTPError as error:
                    self.failures.append(type(error).__name__)
                    continue
                if reply.status_code == 200:
                    self.answers += 1
                else:
                    self.failures.append(reply.text)

    def went_on(self, more: int = 5) -> bool:
        """Whether it is answered now."""
        had = self.answers
        return until(lambda: self.answers >= had + more)


@dataclass
class Two:
    """A service of two datasets: `survey`, which a fault strikes, and a calm one."""

    running: Running
    calm: Calm
    client: httpx.Client
    answered: list[int] = field(default_factory=list)

    def ask(self) -> str:
        """One ask of the dataset that a fault strikes: its outcome."""
        try:
            reply = self.client.post(
                "/v1/datasets/survey/ask",
                json=question(10_000 + len(self.answered)),
                headers={"Authorization": f"Bearer {self.running.tokens['alice']}"},
            )
        except httpx.HTTPError as error:
            return type(error).__name__
        if reply.status_code != 200:
            return str(reply.json()["error"]["code"])
        self.answered.append(wire.from_json(reply.json()["answer"]).receipt.seq)
        return "ok"

    def ready(self, who: str = "") -> tuple[int, dict]:
        """What /v1/ready says to one of them, or to nobody."""
        headers = {"Authorization": f"Bearer {self.running.tokens[who]}"} if who else {}
        reply = self.client.get("/v1/ready", headers=headers)
        if reply.status_code == 503:
            assert int(reply.headers["retry-after"]) > 0
        return reply.status_code, reply.json()

    @property
    def clerk(self) -> int:
        return self.running.supervisor.pids()["clerk"]

    def spent_and_charged(self) -> tuple[object, list[int]]:
        """What the ledger that a fault struck says was spent, and its debits."""
        lines = self.running.ask("owner", "transcript")["lines"]
        spent = wire.from_json(self.running.ask("owner", "budget")["spent"]).amount
        return spent, [line["seq"] for line in lines]


def until(true: Callable[[], bool], seconds: float = PATIENCE) -> bool:
    """Whether something becomes true in time."""
    end = time.monotonic() + seconds
    while not (found := true()) and time.monotonic() < end:
        time.sleep(0.05)
    return found


@contextlib.contextmanager
def two(ledger: str, *, kind: str = "") -> Iterator[Two]:
    """Both, and somebody who asks the calm one all the while."""
    with tempfile.TemporaryDirectory(prefix="sulq-") as name, pytest.MonkeyPatch.context() as patch:
        patch.setenv("SULQ_TEST_CLERK", kind)
        other = declare(
            "calm", survey(Path(name) / "calm.parquet", 1000), COLUMNS, unit=sulq.Unit("person"),
            budget=sulq.Epsilon(1000), ledger=Path(name) / "calm.ledger",
        )  # fmt: skip
        told = {"clerk": CLERK, "ledger": ledger, "more": (other,), "workers": 1, "web": 1, "rate": 10**6}
        with service(sulq.Epsilon(1000), **told) as running:
            running.ready("calm")
            carol = running.ask("owner", "add_principal", {"name": "carol", "role": "analyst", "datasets": ["calm"]})
            calm = Calm(running.url, str(carol["token"]))
            asking = threading.Thread(target=calm.ask)
            asking.start()
            with httpx.Client(base_url=running.url, timeout=120) as client:
                try:
                    yield Two(running, calm, client)
                finally:
                    calm.stop.set()
                    asking.join()


class Fault:
    """What happens to a ledger, and how it is mended."""

    codes = frozenset({"ledger-failed"})

    def __init__(self) -> None:
        self.ledger = ""

    @contextlib.contextmanager
    def place(self) -> Iterator[None]:
        """Where the ledger is to lie."""
        with tempfile.TemporaryDirectory(prefix="sulq-") as name:
            self.ledger = str(Path(name) / "survey.ledger")
            yield

    def before(self) -> None:
        """What is done after some asks, and before some more."""

    def strike(self) -> None:
        """Break it."""
        raise NotImplementedError

    def mend(self) -> None:
        """Make it as it was."""
        raise NotImplementedError


class FullDisk(Fault):
    """Its file system is full to the last byte."""

    @contextlib.contextmanager
    def place(self) -> Iterator[None]:
        with small_disk() as disk:
            self.disk, self.ledger = disk, str(disk / "survey.ledger")
            yield

    def strike(self) -> None:
        self.mend = filled(self.disk)


class RolledBack(Fault):
    """An older copy takes its place; then the newest is put back."""

    codes = frozenset({"ledger-rolled-back"})

    def before(self) -> None:
        shutil.copy(self.ledger, f"{self.ledger}-old")

    def strike(self) -> None:
        Path(self.ledger).rename(f"{self.ledger}-new")
        Path(f"{self.ledger}-old").rename(self.ledger)

    def mend(self) -> None:
        Path(f"{self.ledger}-new").rename(self.ledger)


class Gone(RolledBack):
    """Nothing takes its place: a ledger that was there is not begun anew."""

    codes = frozenset({"ledger-rolled-back", "missing-file"})

    def strike(self) -> None:
        Path(self.ledger).rename(f"{self.ledger}-new")


class Database(Fault):
    """It lies in PostgreSQL, which is stopped and started again."""

    codes = frozenset({"ledger-busy", "missing-file"})

    @contextlib.contextmanager
    def place(self) -> Iterator[None]:
        self.server = postgres.server()
        self.ledger = self.server.url()
        yield

    def strike(self) -> None:
        self.server.halt("fast")

    def mend(self) -> None:
        self.server.start()


class Frozen(Database):
    """PostgreSQL does not answer, and does not hang up either: whoever asks it for anything waits."""

    codes = frozenset({"ledger-failed"})

    def strike(self) -> None:
        running = self.server.do("SELECT pid FROM pg_stat_activity WHERE application_name = 'sulq'")
        self.pids = [self.server._process.pid, *(pid for (pid,) in running)]
        for pid in self.pids:
            os.kill(pid, signal.SIGSTOP)

    def mend(self) -> None:
        for pid in self.pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)


REFUSED = {"not-ready", "ledger-failed", "ledger-busy", "engine-failed", "unreachable", "ledger-damaged"}


@pytest.mark.parametrize("kind", [FullDisk, RolledBack, Gone, Database, Frozen])
def test_one_ledgers_fault_is_its_datasets_alone_and_mended_by_itself_T48(kind: type[Fault]) -> None:
    """The other dataset: 0 failures and the same clerk. This one: refused, then back, with all its debits.

    Bar: 0 failures of the other, 0 answers without a debit, spent = price x debits. Control: below.
    """
    fault = kind()
    with fault.place(), two(fault.ledger) as found:
        clerk = found.clerk
        assert until(lambda: found.ready() == (200, {"status": "ok"})), found.ready("owner")
        assert [found.ask() for _ in range(3)] == ["ok"] * 3
        fault.before()
        assert [found.ask() for _ in range(3)] == ["ok"] * 3
        fault.strike()
        try:
            outcomes = {found.ask() for _ in range(3)}
            assert until(lambda: found.ready()[0] == 503), "readiness says so"
            told(found, fault)
            outcomes |= {found.ask() for _ in range(3)}
            assert outcomes <= REFUSED | {"ok"}
            assert found.ask() == "not-ready"
            assert found.calm.went_on()
        finally:
            fault.mend()
        assert until(lambda: found.ask() == "ok"), found.ready("owner")
        assert until(lambda: found.ready()[0] == 200), found.ready("owner")
        assert found.calm.went_on()
        assert found.calm.failures == []
        assert found.clerk == clerk
        spent, charged = found.spent_and_charged()
        assert set(found.answered) <= set(charged)
        assert spent == len(charged) * sulq.Epsilon(PRICE).exact
        spent = wire.from_json(found.running.ask("owner", "budget", dataset="calm")["spent"]).amount
        assert spent >= found.calm.answers * sulq.Epsilon(PRICE).exact


def told(found: Two, fault: Fault) -> None:
    """What is said of it, and to whom (T33)."""
    assert until(lambda: found.ready("owner")[1]["problems"][0]["code"] in fault.codes), found.ready("owner")
    status, body = found.ready("owner")
    assert status == 503
    assert [problem["dataset"] for problem in body["problems"]] == ["survey"]
    assert all(body["problems"][0][word] for word in ("message", "remedy"))
    for who in ("", "alice", "auditor"):
        assert found.ready(who) == (503, {"status": "problem"})
    assert found.client.get("/v1/health").json()["status"] == "problem"
    assert found.client.get("/v1/live").status_code == 200
    listed = {item["name"]: item for item in found.running.ask("owner", "datasets")["datasets"]}
    assert listed["calm"]["ready"]
    assert listed["survey"]["problem"]["code"] in fault.codes | {"ledger-damaged"}


def test_a_clerk_that_ends_with_a_ledger_is_noticed_T48() -> None:
    """Control: as it once was, the other dataset hears of it, and the clerk is another."""
    fault = RolledBack()
    with fault.place(), two(fault.ledger, kind="ends") as found:
        clerk = found.clerk
        fault.before()
        assert found.ask() == "ok"
        fault.strike()
        assert until(lambda: found.running.supervisor.pids().get("clerk", clerk) != clerk)
        assert until(lambda: bool(found.calm.failures))
