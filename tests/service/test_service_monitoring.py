"""Monitoring over the real processes: a scrape tells of all of them, and a request's lines are found by its id."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from urllib.parse import urlsplit

import httpx
import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

import sulq
from sulq.answers import wire
from sulq.service.web.framing import MAX_HEAD_BYTES
from tests.service import faulty_worker
from tests.service.faulty_worker import DIES, RAISES
from tests.service.kills import question
from tests.service.service import Running, service

CANARY = "CANARY-19ab"
HEAD = b"GET /v1/health HTTP/1.1\r\nHost: localhost\r\nX: "
ASK = {"question": wire.to_json(sulq.Sums((sulq.lit(1),))), "spend": {"epsilon": 1}}
LITERAL = {"sql": f"SELECT COUNT(*) FROM survey WHERE city = '{CANARY}'", "spend": {"epsilon": 1}}
SECONDS = 60.0  # what does come may take this long


@pytest.fixture(scope="module")
def running() -> Iterator[Running]:
    with service(web=2, workers=1) as found:
        yield found


def scraped(running: Running) -> dict[str, list[tuple[dict[str, str], float]]]:
    """A scrape over a connection of its own, read by Prometheus' parser."""
    headers = {"Authorization": f"Bearer {running.tokens['owner']}", "Accept": "application/openmetrics-text"}
    reply = httpx.get(f"{running.url}/v1/metrics", headers=headers, timeout=SECONDS)
    assert reply.status_code == 200, reply.text
    found: dict[str, list[tuple[dict[str, str], float]]] = {}
    for family in text_string_to_metric_families(reply.text):
        for sample in family.samples:
            found.setdefault(sample.name, []).append((sample.labels, sample.value))
    return found


def test_a_scrape_tells_of_every_process_whichever_answers(running: Running) -> None:
    """Requests over many connections land on both web processes; each scrape has all of them, and budget and workers.

    Processor time and memory are those of web and clerk alone: a worker's follow from its rows.
    """
    headers = {"Authorization": f"Bearer {running.tokens['alice']}"}
    for _ in range(20):
        reply = httpx.post(f"{running.url}/v1/datasets/survey/ask", json=ASK, headers=headers, timeout=SECONDS)
        assert reply.status_code == 200, reply.text
    until = time.monotonic() + SECONDS
    while True:
        found = scraped(running)
        asked = [(labels["process"], n) for labels, n in found["sulq_http_requests_total"] if "ask" in labels["route"]]
        if sum(number for _, number in asked) == 20:
            break
        assert time.monotonic() < until, asked
        time.sleep(0.2)
    assert {labels["process"] for labels, _ in found["sulq_process_cpu_seconds_total"]} == {"clerk", "web-0", "web-1"}
    assert all(value > 2**20 for _, value in found["sulq_process_resident_memory_bytes"])
    assert len(found["sulq_process_open_fds"]) == 3
    assert found["sulq_workers"] == [({"dataset": "survey"}, 1.0)]
    assert found["sulq_worker_starts_total"][0][1] == 1
    paid = [n for labels, n in found["sulq_asks_total"] if labels["outcome"] in {"paid", "reused"}]
    assert sum(paid) == 20
    spent, remaining = (found[f"sulq_budget_{part}"][0][1] for part in ("spent", "remaining"))
    assert spent + remaining == found["sulq_budget_limit"][0][1] == 100
    assert spent >= 1


def test_a_requests_lines_carry_its_id_and_whose_it_is_and_no_word_of_it_T31(capfd: pytest.CaptureFixture[str]) -> None:
    """Web, clerk and worker: refused, failed beside the rows, and without a worker; no word of question or data.

    Control: without an id in the frame there is none in the line of the clerk.
    """
    with service(web=1, workers=1, worker="tests.service.faulty_worker", limit=20.0) as running:
        headers = {"Authorization": f"Bearer {running.tokens['alice']}"}
        for body in (LITERAL, {**LITERAL, CANARY: CANARY}):
            reply = httpx.post(f"{running.url}/v1/datasets/survey/sql", json=body, headers=headers, timeout=SECONDS)
            assert reply.status_code == 400
        frame = {"call": "ask", "token": running.tokens["alice"], "dataset": "survey"}
        for number, named in ((RAISES, {"request": "feedc0de00000001"}), (DIES, {"request": "feedc0de00000002"})):
            reply = running.line.call({**frame, **named, "body": question(number)})
            assert reply["error"]["code"] == "engine-failed"
            running.ready()
        running.line.call({**frame, "body": question(DIES)})
        place = ("127.0.0.1", urlsplit(running.url).port)
        for size, status in ((100_000, b"431"), (MAX_HEAD_BYTES, b"200")):  # of the real process, too
            with socket.create_connection(place, SECONDS) as sock:
                sock.sendall(HEAD + b"a" * (size - len(HEAD) - 4) + b"\r\n\r\n")
                assert sock.recv(100).startswith(b"HTTP/1.1 " + status)
    told = capfd.readouterr().err
    assert CANARY not in told
    assert faulty_worker.CANARY not in told
    assert not any(token in told for token in running.tokens.values())
    lines = [json.loads(line) for line in told.splitlines() if line.startswith("{")]
    web = [line for line in lines if line["event"] == "request"]
    assert [line.get("code") for line in web[:2]] == ["unknown-category", "bad-request"]
    assert [line.get("principal") for line in web] == ["alice", "alice", None]
    assert len({line["request"] for line in web}) == 3

    def about(event: str) -> list[tuple[object, ...]]:
        return [(line["part"], line.get("request"), line.get("principal")) for line in lines if line["event"] == event]

    assert about("engine-failed after the debit: ValueError") == [("worker", "feedc0de00000001", "alice")]
    assert about("a question ended with its worker") == [
        ("clerk", "feedc0de00000002", "alice"), ("clerk", None, "alice"),
    ]  # fmt: skip
