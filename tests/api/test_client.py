"""A curator elsewhere: the named asks, transcript and receipts over the real application."""

from __future__ import annotations

import inspect
import os
import pickle
import re
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

import sulq
from sulq.answers import wire
from sulq.api import client as clients
from sulq.api.client import Client
from sulq.errors import AccessDenied, BudgetExceeded, CuratorError, QuestionError, SetupError
from sulq.service.web.app import create_app
from tests.client.far import Loop
from tests.service.office import Office, survey


@pytest.fixture
def office(tmp_path: Path) -> Iterator[Office]:
    made = Office(tmp_path, survey=survey(budget=sulq.Epsilon(2)))
    yield made
    made.close()


@pytest.fixture
def far(office: Office) -> Iterator[Client]:
    with (
        Loop(create_app(office.call, office.service, console=False)) as loop,
        Client("http://localhost/survey", office.tokens["analyst"], transport=loop.transport) as client,
    ):
        yield client


def test_asks_are_answered_and_charged_there(far: Client, office: Office) -> None:
    """Values with error bars, what is left, receipts and the transcript; the far ledger has it all."""
    answer = far.count(sulq.col("age") > 40, spend=sulq.Epsilon(0.5))
    assert answer.spent == sulq.Epsilon(0.5)
    assert answer.accuracy(0.05) > 0
    assert far.remaining == office.databases["survey"].remaining == sulq.Epsilon(1.5)
    again = far.count(sulq.col("age") > 40, spend=sulq.Epsilon(0.5))
    assert (again.value, again.reused) == (answer.value, True)
    table = far.sql("SELECT city, COUNT(*) FROM survey GROUP BY city", spend=sulq.Epsilon(0.5))
    assert table.columns == ("city", "count")
    lines = far.transcript()
    assert [line["seq"] for line in lines] == [answer.receipt.seq, table.receipt.seq]
    assert far.receipt(answer.receipt.seq)["seq"] == answer.receipt.seq
    assert far.shares()["shares"]
    assert far.budget.remaining == far.remaining


def test_a_threshold_is_asked_there_as_here(far: Client, office: Office) -> None:
    """The structured question crosses both ways: a place, its reach, the charge; a plain number will do on the wire."""
    question = sulq.Above(sulq.Sums((sulq.lit(1),), by=(sulq.col("city"),)), 5)
    plan = far.foresee(question, spend=sulq.Epsilon(0.5))
    answer = far.ask(question, spend=sulq.Epsilon(0.5))
    assert type(answer.value) is int
    assert 0 <= answer.value <= plan.parts[0].laws[0].sums
    assert answer.accuracy(0.05) == float(plan.accuracy(0.05)[0][0])
    assert far.remaining == office.databases["survey"].remaining == sulq.Epsilon(1.5)
    tree = wire.to_json(question) | {"threshold": 5}
    assert wire.encode(wire.from_json(tree)) == wire.encode(question)


def test_a_long_transcript_comes_in_pages(far: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every line once, in order, however many requests it takes."""
    monkeypatch.setattr(clients, "PAGE_LINES", 2)
    for _ in range(5):
        far.count(spend=sulq.Epsilon(0.01), fresh=True)
    seqs = [line["seq"] for line in far.transcript()]
    assert len(seqs) == 5
    assert seqs == sorted(set(seqs))


def test_refusals_are_the_curators_own(far: Client, office: Office) -> None:
    """The same classes and codes as of a database here; nothing is spent."""
    with pytest.raises(QuestionError) as column:
        far.sql("SELECT COUNT(nothing) FROM survey", spend=sulq.Epsilon(0.1))
    assert column.value.code == "unknown-column"
    with pytest.raises(BudgetExceeded):
        far.count(spend=sulq.Epsilon(50))
    with pytest.raises(QuestionError) as missing:
        far.count()
    assert missing.value.code == "spend-missing"
    assert office.databases["survey"].transcript() == []
    office.access.revoke("analyst")
    with pytest.raises(AccessDenied) as access:
        far.count(spend=sulq.Epsilon(0.1))
    assert access.value.code == "unauthorized"


def test_an_ask_cut_short_is_repeated_and_charged_once_T44(office: Office) -> None:
    """The reply is lost after the debit; the client asks again with the same key and gets the answer that was paid."""
    with Loop(create_app(office.call, office.service, console=False)) as loop:
        lost = []

        class Cutting(httpx.BaseTransport):
            def handle_request(self, request: httpx.Request) -> httpx.Response:
                reply = loop.transport.handle_request(request)
                if request.url.path.endswith("/ask") and not lost:
                    reply.read()
                    lost.append(reply)
                    raise httpx.ReadError("cut")
                return reply

        with Client("http://localhost/survey", office.tokens["analyst"], transport=Cutting()) as client:
            client._http._sleep = lambda _seconds: None
            answer = client.ask(sulq.Sums((sulq.lit(1),)), spend=sulq.Epsilon(0.5))
            assert len(lost) == 1
            assert office.databases["survey"].spent == sulq.Epsilon(0.5)
            assert answer.receipt.seq == lost[0].json()["answer"]["receipt"]["seq"]
            assert len(client.transcript()) == 1


def test_threads_may_share_a_client(far: Client, office: Office) -> None:
    """Eight threads ask at once; each is charged and answered."""
    errors = []

    def ask(number: int) -> None:
        try:
            far.count(sulq.col("age") > number, spend=sulq.Epsilon(0.01))
        except Exception as error:  # noqa: BLE001 - shown below
            errors.append(error)

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert errors == []
    assert len(office.databases["survey"].transcript()) == 8


def test_a_client_shows_no_token_and_is_not_pickled(far: Client, office: Office) -> None:
    """Neither its repr nor a pickle lets the token out; closed, it says so."""
    token = office.tokens["analyst"]
    assert token not in repr(far)
    assert "survey" in repr(far)
    with pytest.raises(AccessDenied):
        pickle.dumps(far)
    far.close()
    far.close()
    assert "closed" in repr(far)


def test_a_curator_of_another_version_is_said_to_be_one() -> None:
    """A reply that holds no value of the vocabulary is the curator's failure, not a crash here."""

    def reply(_request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, json={"facts": {"kind": "FactsOfTomorrow"}})

    client = Client("http://localhost/survey", "t", transport=httpx.MockTransport(reply))
    with pytest.raises(CuratorError) as caught:
        _ = client.facts
    assert caught.value.code == "unreachable"
    assert "unreachable" in repr(client)


def test_connect_opens_the_door_by_the_address() -> None:
    """A URL with a token is a client; raw-data options, a missing token and a token for a file are refused."""
    client = sulq.connect("http://127.0.0.1:1/survey", token="t")
    assert isinstance(client, Client)
    client.close()
    owners = [
        {"token": "t", name: "given" if one.default in (None, "duckdb") else True}
        for name, one in inspect.signature(sulq.connect).parameters.items()
        if name not in {"data", "token", "insecure"}
    ]
    assert {"token": "t", "references": "given"} in owners
    for options in ({}, *owners):
        with pytest.raises(SetupError) as caught:
            sulq.connect("http://127.0.0.1:1/survey", **options)
        assert caught.value.code == "bad-declaration"
    with pytest.raises(SetupError) as caught:
        sulq.connect("http://example.org/survey", token="t")
    assert caught.value.code == "insecure-url"
    with pytest.raises(SetupError):
        sulq.connect({"a": [1]}, token="t")
    sulq.connect("http://example.org/survey", token="t", insecure=True).close()


class Held:
    """The far curator's worker, held after a debit until it is let go of."""

    def __init__(self, office: Office) -> None:
        self.begun, self.open = threading.Event(), threading.Event()
        rows = office.databases["survey"]._oracle.curator._rows
        self._run, rows.run = rows.run, self.run

    def run(self, *plan: object) -> object:
        self.begun.set()
        assert self.open.wait(60)
        return self._run(*plan)


@pytest.fixture
def held(office: Office) -> Iterator[Held]:
    made = Held(office)
    yield made
    made.open.set()


def test_a_far_ask_that_is_late_may_be_charged_and_is_answered_free_afterwards(
    far: Client, office: Office, held: Held
) -> None:
    """The wait ends, the curator answers and keeps; the same ask is given that, and nothing is charged twice."""
    with pytest.raises(CuratorError, match=r"within 0.3 seconds\. Its question was sent and may be charged") as late:
        far.count(spend=sulq.Epsilon(0.5), timeout=0.3)
    assert late.value.code == "timed-out"
    assert "free. db.transcript()" in late.value.remedy
    held.open.set()
    assert far.count(spend=sulq.Epsilon(0.5)).reused
    assert office.databases["survey"].spent == sulq.Epsilon(0.5)


def test_a_fresh_far_ask_that_is_late_names_the_key_of_its_answer(far: Client, office: Office, held: Held) -> None:
    """Its noise is given to nobody else, but to whoever asks again with its idempotency key."""
    question = sulq.Sums((sulq.lit(1),))
    with pytest.raises(CuratorError) as late:
        far.ask(question, spend=sulq.Epsilon(0.5), timeout=0.3)
    (key,) = re.findall(r"key='([0-9a-f]{32})'", late.value.remedy)
    held.open.set()
    answer = far.ask(question, spend=sulq.Epsilon(0.5), key=key)
    assert answer.receipt.seq == office.databases["survey"].transcript()[0]["seq"]
    assert office.databases["survey"].spent == sulq.Epsilon(0.5)


def test_ctrl_c_and_cancel_end_the_wait_for_a_far_answer(far: Client, office: Office, held: Held) -> None:
    """A real signal in the main thread, `cancel` from another; the client goes on, and the debit is single."""
    threading.Thread(target=lambda: (held.begun.wait(60), os.kill(os.getpid(), signal.SIGINT))).start()
    with pytest.raises(KeyboardInterrupt, match="Its question was sent and may be charged"):
        far.count(spend=sulq.Epsilon(0.5))
    threading.Timer(0.3, far.cancel).start()
    with pytest.raises(CuratorError) as ended:
        far.count(spend=sulq.Epsilon(0.5))
    assert ended.value.code == "cancelled"
    held.open.set()
    assert far.count(spend=sulq.Epsilon(0.5)).reused
    assert office.databases["survey"].spent == sulq.Epsilon(0.5)


def test_a_curator_that_does_not_answer_what_is_free_is_left_in_time_and_free() -> None:
    """`timeout` holds of every call of an ask, also of those that charge nothing."""
    gate = threading.Event()

    def hang(_: httpx.Request) -> httpx.Response:
        gate.wait(60)
        raise httpx.ConnectError("gone")

    with Client("http://localhost/survey", "token", patience=0, transport=httpx.MockTransport(hang)) as client:
        with pytest.raises(QuestionError, match="Nothing was spent") as late:
            client.mean("age", spend=sulq.Epsilon(1), timeout=0.2)
        assert late.value.code == "timed-out"
        gate.set()


def test_close_ends_what_another_thread_waits_for(far: Client, held: Held) -> None:
    """It hears that the call was cancelled."""
    threading.Thread(target=lambda: (held.begun.wait(60), far.close())).start()
    with pytest.raises(CuratorError, match="cancelled"):
        far.count(spend=sulq.Epsilon(0.5))
