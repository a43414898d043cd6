"""The service as processes: killed, overrun, restarted and stopped, with no answer that was not paid for."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

import sulq
from sulq.answers import wire
from sulq.curator.ledger.opening import verify
from sulq.errors import CuratorError
from tests.counts import generator
from tests.service import faulty_worker
from tests.service.kills import KINDS, PRICE, Seen, asking, killed, question, violations
from tests.service.service import ROWS, Running, service

FAULTY = "tests.service.faulty_worker"
LIMIT = 5.0  # seconds of a question: many times what an honest one takes on a busy machine


def spent(running: Running) -> object:
    return wire.from_json(running.ask("owner", "budget")["spent"]).amount


def outcome(running: Running, number: int) -> dict:
    """The reply to a question, as it stands on the wire."""
    frame = {"call": "ask", "token": running.tokens["alice"], "dataset": "survey", "body": question(number)}
    return running.line.call(frame)


@pytest.fixture(scope="module")
def faulty() -> Iterator[Running]:
    with service(worker=FAULTY, limit=LIMIT, memory=3072) as running:
        yield running


def test_a_worker_that_renewed_its_copy_is_kept() -> None:
    """To renew is said once: the worker that did it answers on. It was killed under the first questions, charged."""
    with service(workers=1, renew=True) as running:
        before = running.supervisor.pids()["worker-0.0"]
        for number in range(3):
            running.ask("alice", "ask", question(number))
        time.sleep(0.5)
        assert running.supervisor.pids()["worker-0.0"] == before


def test_a_service_answers_over_three_kinds_of_process(faulty: Running) -> None:
    """The clerk has the ledger and no data, the workers the data: an answer needs both, in processes of their own."""
    answer = wire.from_json(faulty.ask("alice", "ask", question(50_000, 0.5))["answer"])
    exact = sum((i * 7919) % 100_000 < 50_000 for i in range(ROWS))
    assert abs(float(answer.value) - exact) < 60
    pids = faulty.supervisor.pids()
    assert set(pids) == {"clerk", "worker-0.0", "worker-0.1"}
    assert len({*pids.values(), os.getpid()}) == 4
    data = str(faulty.folder / "survey")
    for name, pid in pids.items():
        held = {str(fd.readlink()) for fd in Path(f"/proc/{pid}/fd").iterdir()}
        if name == "clerk":
            assert not any(path.startswith((f"{data}.parquet", f"{data}.prepared")) for path in held)
        else:
            assert any(path.startswith(f"{data}.prepared") for path in held), "the control: a worker holds its copy"
            assert not any("ledger" in path or "access" in path for path in held)


def test_every_failure_of_a_worker_is_one_constant_outcome_and_charged_T30_T32_T37(
    faulty: Running, capfd: pytest.CaptureFixture[str]
) -> None:
    """An overrun, an error that prints a cell, a dead worker, a memory bomb, a socket: the same bytes and price."""
    told = {}
    for number in (
        faulty_worker.SLOW, faulty_worker.RAISES, faulty_worker.DIES, faulty_worker.SWELLS, faulty_worker.REACHES_OUT,
    ):  # fmt: skip
        before = spent(faulty)
        begun = time.monotonic()
        reply = outcome(faulty, number)
        reply.pop("seconds")  # of the clerk's processor, which the web keeps to itself
        told[number] = json.dumps(reply, sort_keys=True)
        assert time.monotonic() - begun < LIMIT + 60  # what a busy machine takes; by itself it would be an hour
        assert spent(faulty) - before == sulq.Epsilon(PRICE).exact
        faulty.ready()
        faulty.ask("alice", "ask", question(10))
    assert len(set(told.values())) == 1
    assert json.loads(told[faulty_worker.SLOW])["error"]["code"] == "engine-failed"
    logged = "".join(capfd.readouterr())
    assert faulty_worker.CANARY not in logged + "".join(told.values())
    assert "a question ended with its worker" not in told  # the operator's log has it, the analyst has not
    events = faulty.ask("owner", "metrics")["events"]
    assert events["overrun"] >= 1
    assert events["worker-lost"] >= 1


def test_an_overrun_is_killed_and_replaced_T37(faulty: Running) -> None:
    """The worker that overran is gone, another has its place, and the receipt was acted on once."""
    faulty.ready()
    before = set(faulty.supervisor.pids().values())
    with pytest.raises(CuratorError):
        faulty.ask("alice", "ask", question(faulty_worker.SLOW))
    faulty.ready()
    after = set(faulty.supervisor.pids().values())
    assert len(before - after) == 1
    assert len(after - before) == 1
    assert max(Counter(faulty.noted).values()) == 1


def test_each_kind_of_process_may_be_killed_and_comes_back_T43_T52() -> None:
    """Web, clerk and both workers, one kill each under load; many more in tests/privacy/test_service.py."""
    assert violations(killed(len(KINDS), generator("each kind"))) == []


def test_a_stop_ends_every_process_and_keeps_every_answer() -> None:
    """A graceful stop lets a question under way end, writes its answer down, and leaves nothing running."""
    with service(worker=FAULTY, web=1) as running:
        seen = Seen()
        stop = threading.Event()
        asker = threading.Thread(target=asking, args=(running, stop, seen, 1))
        asker.start()
        while len(seen.answers) < 5:
            time.sleep(0.01)
        pids = running.supervisor.pids()
        running.supervisor.stop()
        until = time.monotonic() + 120
        while running.supervisor.folder.exists() and time.monotonic() < until:
            time.sleep(0.05)
        stop.set()
        asker.join()
        assert not running.supervisor.folder.exists()
        assert not any(_alive(pid) for pid in pids.values())
        report = verify(running.folder / "survey.ledger")
        assert report.answers == report.debits >= len(seen.answers)


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_a_supervisor_that_dies_takes_its_children_with_it() -> None:
    """Without anyone to stop an overrun nothing goes on: a child whose supervisor's pipe closes ends."""
    with service(wait=True, workers=1) as running:
        pids = running.supervisor.pids()
        running.supervisor._stopping = True  # as if it were gone: nobody is started again
        for child in running.supervisor._processes.values():
            child.running.stdin.close()
        until = time.monotonic() + 120
        while any(_alive(pid) for pid in pids.values()) and time.monotonic() < until:
            time.sleep(0.05)
        assert not any(_alive(pid) for pid in pids.values())


def test_a_web_process_that_is_killed_is_replaced_behind_the_same_address() -> None:
    """The listening socket is the supervisor's: whoever connects while there is no web process waits for the next."""
    with service(web=1) as running:
        token = {"Authorization": f"Bearer {running.tokens['alice']}"}
        with httpx.Client(base_url=running.url, timeout=120) as client:
            assert "seccomp" in client.get("/v1/health").text
            answered = client.post("/v1/datasets/survey/ask", json=question(50_000), headers=token)
            assert answered.status_code == 200, answered.text
        before = running.supervisor.pids()["web-0"]
        os.kill(before, signal.SIGKILL)
        with httpx.Client(base_url=running.url, timeout=120) as client:
            assert client.get("/v1/datasets/survey", headers=token).status_code == 200
        assert running.supervisor.pids()["web-0"] != before
