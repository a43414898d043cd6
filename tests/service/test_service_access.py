"""Tokens, sessions and the access log in a service of several processes, whose clerk is killed in between."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable

import httpx

import sulq
from sulq.service.clerk import access_log
from tests.service.kills import question
from tests.service.service import Running, service


def eventually(tried: Callable[[], bool], seconds: float = 120.0) -> None:
    until = time.monotonic() + seconds
    while not tried():
        assert time.monotonic() < until
        time.sleep(0.1)


def pages(running: Running, cookie: str, times: int = 12) -> set[int]:
    """What that many new connections get, whichever web process takes them."""
    cookies = {"sulq": cookie}
    return {httpx.get(f"{running.url}/datasets", cookies=cookies, timeout=60).status_code for _ in range(times)}


def test_sessions_and_the_log_outlive_a_kill_and_hold_in_every_web_process_T80() -> None:
    """A session is known to all web processes, and after a kill -9; ended at one it is ended at all.

    Every act that was answered stands in the log, before and after kills in the middle of others; the log is whole,
    and every ask that was answered a second before a kill has its entry, with the id that its reply had.
    """
    with service(sulq.Epsilon(100), web=2, rate=10**6) as running:
        log = running.folder / "state" / "access.log"
        origin = {"Origin": running.url, "Sec-Fetch-Site": "same-origin"}
        form = {"token": running.tokens["alice"]}
        signed = httpx.post(f"{running.url}/sign-in", data=form, headers=origin, timeout=60)
        cookie = signed.cookies["sulq"]
        assert pages(running, cookie) == {200}
        answered: list[str] = []
        stop = threading.Event()

        def letting_in() -> None:
            owner = {"Authorization": f"Bearer {running.tokens['owner']}"}
            with httpx.Client(base_url=running.url, headers=owner, timeout=60) as client:
                for number in range(10_000):
                    if stop.is_set():
                        return
                    if client.post("/v1/analysts", json={"name": f"p{number}"}).status_code == 201:
                        answered.append(f"p{number}")

        thread = threading.Thread(target=letting_in)
        thread.start()
        alice = {"Authorization": f"Bearer {running.tokens['alice']}"}
        asked = httpx.post(f"{running.url}/v1/datasets/survey/ask", json=question(1), headers=alice, timeout=60)
        assert asked.status_code == 200
        eventually(lambda: any(e.body["what"] == "ask" for e in access_log.entries(log)))
        for _ in range(2):
            had = len(answered)
            eventually(lambda had=had: len(answered) > had + 2)
            os.kill(running.supervisor.pids()["clerk"], signal.SIGKILL)
            eventually(lambda had=had: len(answered) > had + 4)
        stop.set()
        thread.join()
        running.ready()
        assert pages(running, cookie) == {200}
        access_log.verify(log)
        entries = [entry.body for entry in access_log.entries(log)]
        begun = {e["name"] for e in entries if e["what"] == "add_principal" and e["outcome"] == "begun"}
        done = {e["name"] for e in entries if e["what"] == "add_principal" and e["outcome"] == "ok"}
        assert set(answered) <= done <= begun
        known = {p["name"] for p in running.ask("owner", "principals", dataset=None)["principals"]}
        assert known - {"owner", "alice", "bob", "auditor"} <= begun, "nobody came in whom the log does not name"
        (ask,) = [e for e in entries if e["what"] == "ask"]
        assert (ask["who"], ask["request"], ask["from"]) == ("alice", asked.headers["x-request-id"], "127.0.0.1")
        running.ask("owner", "revoke", {"name": "alice"}, dataset=None)
        assert pages(running, cookie) == {303}
