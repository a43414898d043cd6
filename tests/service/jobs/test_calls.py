"""The jobs' process as web processes call it: whose a job is, whichever of them is asked; away, or halted (T79)."""

from __future__ import annotations

import os
import signal
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from sulq.errors import AccessDenied, QuestionError, SetupError
from sulq.service.ipc import SocketPool
from sulq.service.jobs import kinds
from sulq.service.jobs.calls import JobCalls
from sulq.service.jobs.client import JobsClient
from sulq.service.jobs.kind import JobKind
from tests.service.jobs.test_main import parts
from tests.service.jobs.test_manager import COUNT, LONG, PLACE, Nothing, Slow
from tests.service.office import Office, survey
from tests.service.service import service

ASKED = {"kind": "queries", "parameters": {"queries": [COUNT], "spends": [{"epsilon": 0.1}]}}


@pytest.fixture
def office(tmp_path: Path) -> Iterator[Office]:
    made = Office(tmp_path, survey=survey())
    yield made
    made.close()


@pytest.fixture
def far(office: Office, tmp_path: Path) -> Iterator[JobsClient]:
    """The jobs of a process, over a socket."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(str(tmp_path / "jobs.sock"))
    listener.listen(8)
    threading.Thread(target=JobCalls(office.near.jobs, office.call).serve, args=(listener,), daemon=True).start()
    line = SocketPool(tmp_path / "jobs.sock")
    yield JobsClient(line.call)
    line.close()
    listener.close()


def test_a_job_is_started_found_and_ended_from_another_process(
    office: Office, far: JobsClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in the process it runs in; what does not fit is refused with the same words."""
    slow = Slow()
    monkeypatch.setattr(kinds, "KINDS", (*kinds.KINDS, JobKind("slow", "Slow", Nothing, slow.run)))
    token = office.tokens["analyst"]

    def do(what: str, **body: object) -> dict:
        return far.do(what, body, token=token)

    key = do("start", dataset="survey", kind="slow", parameters={})["id"]
    assert [job["id"] for job in do("of")["jobs"]] == [key]
    assert do("find", id=key)["state"] in {"waiting", "running"}
    assert do("end", id=key)["state"] == "cancelled"
    slow.let.release(3)
    with pytest.raises(QuestionError) as refused:
        do("start", dataset="survey", kind="nothing", parameters={})
    assert refused.value.code == "bad-request"
    with pytest.raises(AccessDenied) as missing:
        do("find", id="nowhere")
    assert missing.value.code == "not-found"


def test_whose_a_job_is_nobody_is_told_T79(office: Office, far: JobsClient) -> None:
    """What another's token asks for is not found, whoever passes it on; and nobody speaks without one."""
    body = {"dataset": "survey", **ASKED}
    key = far.do("start", body, token=office.tokens["analyst"])["id"]
    with pytest.raises(AccessDenied) as refused:
        far.do("find", {"id": key}, token=office.tokens["other"])
    assert refused.value.code == "not-found"
    with pytest.raises(AccessDenied) as unknown:
        far.do("find", {"id": key}, token="sulq_none")
    assert unknown.value.code == "unauthorized"
    assert far.do("find", {"id": key}, token=office.tokens["analyst"])["id"] == key


def test_a_job_is_found_whichever_web_process_is_asked() -> None:
    """Three of them behind one address: started over one connection, it is seen to its end over many others.

    While the jobs' process is halted the web answers, but not about jobs; once it goes on, that too.
    """
    with service(web=3, workers=1, rate=10**6) as running:
        token = {"Authorization": f"Bearer {running.tokens['alice']}"}
        place = running.url + PLACE

        def told(path: str) -> dict:
            return httpx.get(running.url + path, headers=token, timeout=LONG).json()  # a connection of its own

        key = httpx.post(place, json=ASKED, headers=token, timeout=LONG).json()["id"]
        until = time.monotonic() + LONG
        while told(f"/v1/jobs/{key}")["state"] in {"waiting", "running"}:
            assert time.monotonic() < until
            time.sleep(0.05)
        for _ in range(30):
            found = told(f"/v1/jobs/{key}")
            assert (found["state"], found["done"]) == ("done", 1)
            assert [job["id"] for job in told("/v1/jobs")["jobs"]] == [key]
        _, first, _ = parts(running)
        os.kill(first, signal.SIGSTOP)
        with httpx.Client(base_url=running.url, headers=token, timeout=LONG) as other, ThreadPoolExecutor(1) as pool:
            assert other.get("/v1/me").status_code == 200
            asked = pool.submit(other.get, f"/v1/jobs/{key}")
            time.sleep(0.5)
            halted = asked.done()
            os.kill(first, signal.SIGCONT)
            assert not halted
            assert asked.result().json()["id"] == key


def test_a_process_that_is_gone_is_said_so(tmp_path: Path) -> None:
    """Before there is one, a job is asked for in vain, and told to try again."""
    with pytest.raises(SetupError) as away:
        JobsClient(SocketPool(tmp_path / "none").call).do("of", {}, token="t")
    assert away.value.code == "not-ready"
