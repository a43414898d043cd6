"""A service whose clerk is restarted under its clients: 503 and never 404, every ask charged once."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import httpx
import pytest

import sulq
from sulq.answers import wire
from sulq.client.http import Http
from sulq.errors import SulqError
from sulq.service.clerk.worker_pool import OpenDataset
from tests.service.service import Running, clerk_alone, service

PRICE = sulq.Epsilon(0.01)
CLIENTS, ASKS, KILLS = 4, 6, 2


def question(number: int) -> sulq.Sums:
    return sulq.Sums((sulq.lit(1),), sulq.col("income") < number)


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A service whose clerk takes a second to open a ledger, and dies when it is told to."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SULQ_TEST_CLERK", "slow")
        patch.setenv("SULQ_TEST_FOLDER", str(tmp_path_factory.mktemp("faults")))
        with service(web=1, workers=1, clerk="tests.service.faulty_clerk", rate=10**6) as found:
            yield found


def spent(running: Running) -> Fraction:
    running.ready()
    return wire.from_json(running.ask("owner", "budget")["spent"]).amount


def kill_clerk(running: Running) -> None:
    os.kill(running.supervisor.pids()["clerk"], signal.SIGKILL)


def statuses(running: Running, seconds: float = 60.0) -> list[int]:
    """What is answered from now until the dataset is ready again."""
    found: list[int] = []
    headers = {"Authorization": f"Bearer {running.tokens['alice']}"}
    until = time.monotonic() + seconds
    with httpx.Client(base_url=running.url, headers=headers, timeout=60) as client:
        while time.monotonic() < until and (not found or found[-1] != 200 or 503 not in found):
            reply = client.get("/v1/datasets/survey")
            found.append(reply.status_code)
            if reply.status_code == 503:
                assert int(reply.headers["retry-after"]) > 0
            time.sleep(0.01)
    return found


def test_clients_ask_through_restarts_and_are_charged_once(running: Running) -> None:
    """Bar: no client hears of a restart, and what was spent is the price of what was asked."""
    before, failed = spent(running), []

    def ask(number: int) -> None:
        try:
            with sulq.connect(f"{running.url}/survey", token=running.tokens["alice"], patience=60) as db:
                for turn in range(ASKS):
                    db.ask(question(1000 * number + turn), spend=PRICE)
                    assert db.facts.table == "survey"
        except Exception as error:  # noqa: BLE001 - a thread's error is the test's
            failed.append(error)

    crowd = [threading.Thread(target=ask, args=(number,)) for number in range(CLIENTS)]
    for thread in crowd:
        thread.start()
    for _ in range(KILLS):
        time.sleep(0.3)
        kill_clerk(running)
        running.ready()
    for thread in crowd:
        thread.join()
    lost = [error for error in failed if getattr(error, "code", "") != "answer-lost"]
    assert not lost
    assert spent(running) - before <= CLIENTS * ASKS * PRICE.exact
    assert failed or spent(running) - before == CLIENTS * ASKS * PRICE.exact


def test_a_dataset_that_is_being_opened_is_not_ready_and_never_missing(running: Running) -> None:
    """503 with Retry-After. Control: a clerk that begins without the names of its datasets answers 404."""
    kill_clerk(running)
    found = statuses(running)
    assert set(found) == {200, 503}
    forgets = Path(os.environ["SULQ_TEST_FOLDER"]) / "forgets"
    forgets.touch()
    try:
        kill_clerk(running)
        assert 404 in statuses(running)
    finally:
        forgets.unlink()
        kill_clerk(running)
        running.ready()


def test_an_ask_whose_outcome_is_unknown_is_repeated_under_its_key_alone_SR24(running: Running) -> None:
    """The clerk dies after the debit: one debit with a key. Control: a client that repeats without one pays twice."""
    folder, before = Path(os.environ["SULQ_TEST_FOLDER"]), spent(running)
    doomed = running.supervisor.pids()["clerk"]
    (folder / f"dies-{doomed}").touch()
    with sulq.connect(f"{running.url}/survey", token=running.tokens["alice"], patience=60) as db:
        db.ask(question(77), spend=PRICE)
    assert spent(running) - before == PRICE.exact
    assert doomed != running.supervisor.pids()["clerk"], "the clerk died on the way"
    (folder / f"dies-{running.supervisor.pids()['clerk']}").touch()
    http = Http(f"{running.url}/survey", running.tokens["alice"], patience=60)
    body = {"question": wire.to_json(question(78)), "spend": wire.to_json(PRICE)}
    http.post(http.at("ask"), body, again=True)
    http.close()
    assert spent(running) - before == 3 * PRICE.exact


def test_who_may_not_see_a_dataset_does_not_hear_that_it_is_being_opened_T33() -> None:
    """For the others it is missing, word for word as what is not there; those who see it are told to wait."""
    with clerk_alone() as running:
        running.clerk.datasets["later"] = OpenDataset("later", expected=True)

        def refusal(who: str, call: str, dataset: str) -> SulqError:
            with pytest.raises(SulqError) as refused:
                running.ask(who, call, dataset=dataset)
            return refused.value

        for call in ("facts", "budget", "transcript"):
            hidden, missing = (refusal("alice", call, name) for name in ("later", "nothing"))
            assert (hidden.code, str(hidden)) == ("not-found", str(missing))
            for who in ("owner", "auditor"):
                assert refusal(who, call, "later").code == "not-ready"
                assert refusal(who, call, "nothing").code == "not-found"
