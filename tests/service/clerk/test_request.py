"""Asking through the clerk: what could not be sent back is refused before it is paid for."""

from __future__ import annotations

import json
import time
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

import sulq
from sulq.answers import wire
from sulq.curator.run import Rows
from sulq.errors import CuratorError, QuestionError
from sulq.service import answer_length, ipc
from sulq.service.ipc import SocketPool
from tests.service.service import Running, clerk_alone, service

ONE = sulq.Sums((sulq.lit(1),))


def ask(running: Running, question: object) -> object:
    body = {"question": wire.to_json(question), "spend": wire.to_json(sulq.Epsilon(0.01))}
    return wire.from_json(running.ask("alice", "ask", body)["answer"])


def spent(running: Running) -> object:
    return wire.from_json(running.ask("owner", "budget")["spent"]).amount


def test_an_answer_too_long_to_send_is_refused_before_it_is_paid_for_T45(monkeypatch: pytest.MonkeyPatch) -> None:
    """More questions together, or more cells, than a frame holds; the fewer that fit are answered."""
    with clerk_alone() as running:
        cells = sulq.Sums((sulq.lit(1),) * 40, None, (sulq.each(sulq.col("income")),))
        with pytest.raises(QuestionError) as refused:
            ask(running, cells)
        monkeypatch.setattr(answer_length, "MAX_FRAME_BYTES", 2**16)
        with pytest.raises(QuestionError) as several:
            ask(running, sulq.Together((ONE,) * 50))
        assert (refused.value.code, several.value.code) == ("too-large", "too-large")
        assert spent(running) == 0
        assert len(ask(running, sulq.Together((ONE,) * 20))) == 20


def test_a_reply_to_questions_asked_together_grows_with_their_number() -> None:
    """Not with its square: twice the questions, twice the bytes. The estimate that refuses is not below the truth."""
    with clerk_alone() as running:
        sizes = []
        for number in (20, 40, 80):
            body = {"question": wire.to_json(sulq.Together((ONE,) * number)), "spend": wire.to_json(sulq.Epsilon(1))}
            reply = running.ask("alice", "ask", body)
            sizes.append(len(json.dumps(reply)))
            event = wire.from_json(reply["answer"])[0].event
            assert (
                sizes[-1]
                < len(wire.encode(event))
                + number * (answer_length.SHORT_QUESTION_CHARACTERS + answer_length.MAX_NUMBER_CHARACTERS) * 2
            )
    assert sizes[2] - sizes[1] < 2.1 * (sizes[1] - sizes[0])


def test_a_reply_that_is_too_long_all_the_same_is_no_free_refusal_T45(monkeypatch: pytest.MonkeyPatch) -> None:
    """Groups found in the data may be more than foreseen: the debit stands, and the outcome says so."""
    with clerk_alone() as running:
        ask(running, ONE)
        before = spent(running)
        sent = ipc.send

        def short(sock: object, obj: dict) -> None:
            if "answer" in obj.get("ok", {}):
                raise QuestionError("too-large", "A message between the curator's parts is too long.")
            sent(sock, obj)

        monkeypatch.setattr(ipc, "send", short)
        with pytest.raises(CuratorError) as failed:
            ask(running, ONE)
        assert failed.value.code == "engine-failed"
        monkeypatch.undo()
        assert spent(running) - before == sulq.Epsilon(0.01).exact


def at_once(running: Running, askers: list[str], **more: object) -> list[object]:
    """The same question by several at once, each over a connection of its own."""
    body = {"question": wire.to_json(ONE), "spend": wire.to_json(sulq.Epsilon(0.01)), "reuse": True, **more}

    def one(who: str) -> object:
        line = SocketPool(running.socket, timeout=60)
        try:
            return wire.from_json(line.ask("ask", token=running.tokens[who], dataset="survey", body=body)["answer"])
        finally:
            line.close()

    with ThreadPoolExecutor(len(askers)) as pool:
        return list(pool.map(one, askers))


@pytest.mark.parametrize(
    ("askers", "shared", "reuse", "debits"),
    [
        (["alice"] * 64, False, True, 1),
        (["alice", "bob"] * 8, False, True, 2),
        (["alice", "bob"] * 8, True, True, 1),
        (["alice"] * 8, False, False, 8),
    ],
    ids=["one analyst", "two analysts", "two who share answers", "new noise"],
)
def test_the_clerk_charges_identical_asks_in_flight_once_T102(
    askers: list[str], shared: object, reuse: object, debits: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One debit and one answer for all who may be given each other's answers; new noise is charged each time."""
    run = Rows.run
    monkeypatch.setattr(Rows, "run", lambda *args: (time.sleep(0.3), run(*args))[1])
    with clerk_alone() as running:
        assert running.clerk is not None
        running.clerk.datasets["survey"].share_answers = bool(shared)
        answers = at_once(running, askers, reuse=reuse)
        assert len(running.ask("owner", "transcript")["lines"]) == debits
        assert len({answer.receipt.seq for answer in answers}) == debits
        assert sum(not answer.reused for answer in answers) == debits


def test_identical_requests_over_http_are_charged_once_T102() -> None:
    """Sixteen requests at once over two web processes, by SQL and as a question with keys of their own: one debit."""
    with service(web=2, workers=2, rate=10**6) as running:
        at = f"{running.url}/v1/datasets/survey"
        headers = {"Authorization": f"Bearer {running.tokens['alice']}"}
        spend = {"epsilon": 0.01}
        sql = {"sql": "SELECT city, AVG(income) FROM survey WHERE age > 30 GROUP BY city", "spend": spend}
        question = {"question": wire.to_json(ONE), "spend": spend, "reuse": True}

        def post(number: int, path: str, body: dict[str, object]) -> httpx.Response:
            told = body if path == "sql" else body | {"key": f"key {number}"}
            return httpx.post(f"{at}/{path}", json=told, headers=headers, timeout=120, trust_env=False)

        for charged, (path, body) in enumerate((("sql", sql), ("ask", question)), start=1):
            with ThreadPoolExecutor(16) as pool:
                replies = list(pool.map(lambda n, path=path, body=body: post(n, path, body), range(16)))
            assert {reply.status_code for reply in replies} == {200}
            assert len(running.ask("owner", "transcript")["lines"]) == charged
