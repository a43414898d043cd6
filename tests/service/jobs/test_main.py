"""The jobs' process and its children, in a running service: limits, ends, kills, and what a job cannot reach."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

import httpx
import pytest

import sulq
from benchmarks.server import logged
from sulq.answers import wire
from sulq.service.jobs.fork_server import SESSION_NICE
from sulq.service.jobs.runner import NICE
from sulq.service.sandbox import launcher
from tests.service.jobs.test_manager import COUNT, LONG, PLACE
from tests.service.kills import question
from tests.service.odd_jobs import CANARY
from tests.service.service import Running, service

ODD = "tests.service.odd_jobs"
QUERY = {"kind": "queries", "parameters": {"queries": [COUNT], "spends": [{"epsilon": 0.1}]}}


class Maker:
    """One principal's calls over HTTP."""

    def __init__(self, running: Running, who: str) -> None:
        headers = {"Authorization": f"Bearer {running.tokens[who]}"}
        self.http = httpx.Client(base_url=running.url, headers=headers, timeout=LONG)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for job in self.http.get("/v1/jobs").json()["jobs"]:
            self.cancel(job["id"])
        self.http.close()

    def start(self, kind: str, **parameters: object) -> str:
        body = QUERY if kind == "queries" else {"kind": kind, "parameters": parameters}
        reply = self.http.post(PLACE, json=body)
        assert reply.status_code == 202, reply.text
        return reply.json()["id"]

    def told(self, key: str) -> dict:
        return self.http.get(f"/v1/jobs/{key}").json()

    def until(self, key: str, *states: str, done: int = 0) -> dict:
        deadline = time.monotonic() + LONG
        while (found := self.told(key))["state"] not in states or found["done"] < done:
            assert time.monotonic() < deadline, found
            assert found["state"] in ("waiting", "running"), found
            time.sleep(0.02)
        return found

    def cancel(self, key: str) -> dict:
        return self.http.request("DELETE", f"/v1/jobs/{key}").json()


def processes() -> dict[int, tuple[int, int]]:
    """Each process of this machine, its parent and its session."""
    found = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            words = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if words[0] != "Z":
            found[int(stat.parent.name)] = (int(words[1]), int(words[3]))
    return found


def parts(running: Running) -> tuple[int, int, set[int]]:
    """The fork server of a service, the manager, and the children that run its jobs."""
    deadline = time.monotonic() + LONG
    while time.monotonic() < deadline:
        server = running.supervisor.pids().get("jobs")
        forked = {pid: session for pid, (parent, session) in processes().items() if parent == server}
        manager = next((pid for pid, session in forked.items() if session == pid), None)
        if server is not None and manager is not None:
            return server, manager, forked.keys() - {manager}
        time.sleep(0.02)
    raise AssertionError("the jobs' process does not start")


def gone(pids: set[int]) -> bool:
    deadline = time.monotonic() + LONG
    while pids & processes().keys() and time.monotonic() < deadline:
        time.sleep(0.02)
    return not pids & processes().keys()


pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are looked up in /proc")


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("odd") / "log"


@pytest.fixture(scope="module")
def odd(log: Path) -> Iterator[Running]:
    with (
        logged(log),
        service(sulq.Epsilon(100), web=1, workers=1, rate=10**6, jobs_part=ODD, job_memory=1024) as running,
    ):
        yield running


@pytest.fixture(autouse=True)
def quiet(odd: Running) -> None:
    """No child of an earlier test is left."""
    deadline = time.monotonic() + LONG
    while parts(odd)[2]:
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.fixture
def alice(odd: Running) -> Iterator[Maker]:
    with Maker(odd, "alice") as made:
        yield made


@pytest.fixture
def bob(odd: Running) -> Iterator[Maker]:
    with Maker(odd, "bob") as made:
        yield made


def test_one_analyst_s_endless_jobs_leave_room_for_another_s(alice: Maker, bob: Maker) -> None:
    """Four that never end run; another's job of one query runs to its end beside them, and so do asks.

    Control: a fifth of the same analyst is refused, and in jobs/test_queue.py a queue by arrival alone fails.
    """
    keys = [alice.start("computes") for _ in range(4)]
    for key in keys:
        alice.until(key, "running", done=1)
    assert alice.http.post(PLACE, json=QUERY).json()["error"]["code"] == "too-many-jobs"
    assert bob.until(bob.start("queries"), "done")["done"] == 1
    assert bob.http.post("/v1/datasets/survey/ask", json=question(50_000)).status_code == 200
    assert [alice.told(key)["state"] for key in keys] == ["running"] * 4


def test_a_job_that_computes_is_cancelled_at_once(odd: Running, alice: Maker) -> None:
    """Its process is gone, what it found stays, and another job has its slot."""
    key = alice.start("computes")
    assert alice.until(key, "running", done=1)["seconds_left"] > 7000
    *_, running = parts(odd)
    assert len(running) == 1
    told = alice.cancel(key)
    assert (told["state"], told["result"], told["seconds_left"]) == ("cancelled", {"found": 1}, None)
    assert gone(running)
    assert alice.until(alice.start("queries"), "done")


@pytest.mark.parametrize(
    ("kind", "code"), [("swells", "job-memory"), ("dies", "job-lost"), ("speaks", "engine-failed")]
)
def test_a_job_that_goes_wrong_fails_alone(log: Path, alice: Maker, bob: Maker, kind: str, code: str) -> None:
    """With a code and what it had found; others run on. Nothing of what it says is logged but its kind and code."""
    other = bob.start("computes")
    bob.until(other, "running", done=1)
    told = alice.until(alice.start(kind), "failed")
    assert (told["error"]["code"], told["result"], told["done"]) == (code, {"found": 1}, 1)
    assert bob.told(other)["state"] == "running"
    bob.cancel(other)
    said, deadline = f'"job": "{kind}", "state": "failed", "code": "{code}"', time.monotonic() + LONG
    while said not in log.read_text() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert said in log.read_text()
    assert CANARY not in log.read_text() + str(told)


def test_a_job_that_is_killed_fails_alone(odd: Running, alice: Maker, bob: Maker) -> None:
    """By the system, as when the machine's memory runs out."""
    first, other = alice.start("computes"), bob.start("computes")
    alice.until(first, "running", done=1)
    *_, one = parts(odd)
    bob.until(other, "running", done=1)
    second = alice.start("computes")
    alice.until(second, "running", done=1)
    *_, all_of_them = parts(odd)
    os.kill(max(all_of_them - one), signal.SIGKILL)
    deadline, failed = time.monotonic() + LONG, []
    while not failed and time.monotonic() < deadline:
        states = [alice.told(first), bob.told(other), alice.told(second)]
        failed = [told for told in states if told["state"] == "failed"]
    assert [told["error"]["code"] for told in failed] == ["job-lost"]
    assert sum(told["state"] == "running" for told in states) == 2
    bob.cancel(other)


def test_a_result_that_is_too_long_ends_the_job(alice: Maker) -> None:
    """What was found is kept up to a size that can be sent."""
    told = alice.until(alice.start("returns_much"), "failed")
    assert told["error"]["code"] == "too-large"
    assert 10 < len(told["result"]["answers"]) < 60


def test_a_job_reaches_nothing_but_its_own_questions(odd: Running) -> None:
    """An owner's job: no token in it, no socket, program, process or file, and no call of the clerk but to ask.

    Control: the same calls with the owner's token are answered.
    """
    with Maker(odd, "owner") as owner:
        told = owner.until(owner.start("pries", path=str(odd.folder / "survey.parquet")), "done")["result"]
        assert owner.http.get("/v1/analysts").status_code == 200
    assert (told["token"], told["environment"], told["nice"]) == (None, [], NICE)
    assert not any("sulq_" in word for word in told["arguments"])
    tried = told["tried"]
    assert [tried.pop(name) for name in ("principals", "add")] == ["forbidden"] * 2
    assert tried.pop("facts") == "done", "of its own dataset, whatever it names"
    if not launcher.landlock():
        tried.pop("file")
    assert set(tried.values()) == {"PermissionError"}, tried
    assert (odd.folder / "survey.parquet").is_file()


def test_health_says_how_jobs_are_kept_apart(alice: Maker) -> None:
    """The process and its children, each by what it gave up."""
    alice.until(alice.start("queries"), "done")
    told = alice.http.get("/v1/health").json()["jobs"]
    assert told["files"] == ("own" if launcher.landlock() else "shared")
    assert told["network"] == ("namespace" if told["runners"]["namespace"] else "open")
    assert told["rights"] == "none"
    assert (told["runners"]["seccomp"], told["runners"]["memory"]) == (True, 1024)


def test_a_fork_server_has_one_thread_and_few_files(odd: Running) -> None:
    """No thread of Python's that a fork would lose, no listener, no socket but its own."""
    server, manager, _ = parts(odd)
    threads = [(task / "comm").read_text().strip() for task in Path(f"/proc/{server}/task").iterdir()]
    assert [name for name in threads if not name.startswith("jemalloc")] == ["python"]
    held = [str(fd.readlink()) for fd in Path(f"/proc/{server}/fd").iterdir()]
    assert sum("socket:" in name for name in held) == 1
    assert sum("socket:" in str(fd.readlink()) for fd in Path(f"/proc/{manager}/fd").iterdir()) > 1, "the control"
    groups = [Path(f"/proc/{pid}/autogroup") for pid in (server, manager)]
    if groups[0].exists():
        assert [group.read_text().split()[-1] for group in groups] == [str(SESSION_NICE), "0"]


@pytest.mark.parametrize("part", ["manager", "fork server"])
def test_the_process_may_be_killed_and_comes_back(odd: Running, alice: Maker, bob: Maker, part: str) -> None:
    """Asks go on; its jobs are lost, which their makers and nobody else are told; the next jobs run."""
    key = alice.start("computes")
    alice.until(key, "running", done=1)
    server, manager, running = parts(odd)
    os.kill(manager if part == "manager" else server, signal.SIGKILL)
    assert bob.http.post("/v1/datasets/survey/ask", json=question(50_000)).status_code == 200
    assert gone({server, manager, *running})
    deadline = time.monotonic() + LONG
    while (reply := alice.http.get(f"/v1/jobs/{key}")).status_code in (200, 503) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert (reply.status_code, reply.json()["error"]["code"]) == (410, "job-lost")
    assert bob.http.get(f"/v1/jobs/{key}").status_code == 404
    assert alice.http.get(f"/v1/jobs/{'0' * 32}").status_code == 404
    assert bob.until(bob.start("queries"), "done")


def test_a_job_past_its_time_is_ended_with_what_it_found() -> None:
    """Its process is gone; what was asked stays paid. Control: one that ends in time is done."""
    with service(sulq.Epsilon(9), web=1, workers=1, jobs_part=ODD, job_limit=6.0) as running:
        with Maker(running, "alice") as alice:
            quick, key = alice.start("queries"), alice.start("computes")
            assert alice.until(quick, "done")
            alice.until(key, "running", done=1)
            *_, own = parts(running)
            told = alice.until(key, "failed")
        assert (told["error"]["code"], told["result"]) == ("job-overrun", {"found": 1})
        assert gone(own)
        assert wire.from_json(running.ask("owner", "budget")["spent"]).amount > 0
