"""Around a request: names, counts, and what becomes of a failure in the middle of a response."""

from __future__ import annotations

import asyncio

import pytest

from sulq.service.web.counts import RequestCounts
from sulq.service.web.responses import LOOPBACK, RequestGuard, _host


def scope(host: str = "localhost", **more: object) -> dict[str, object]:
    return {"type": "http", "method": "GET", "path": "/", "headers": [(b"host", host.encode())], **more}


async def nothing() -> dict[str, object]:
    return {"type": "http.request", "body": b"", "more_body": False}


def sent(app: object, asked: dict[str, object], tally: RequestCounts | None = None) -> list[dict[str, object]]:
    messages: list[dict[str, object]] = []

    async def send(message: dict[str, object]) -> None:
        messages.append(message)

    guarded = RequestGuard(app, hosts=LOOPBACK, tls=False, tally=RequestCounts() if tally is None else tally)
    asyncio.run(guarded(asked, nothing, send))
    return messages


@pytest.mark.parametrize(
    ("named", "host"),
    [("a", "a"), ("a:80", "a"), ("[::1]", "[::1]"), ("[::1]:80", "[::1]"), ("A.B", "a.b"), ("", "")],
)
def test_a_host_is_read_without_its_port(named: str, host: str) -> None:
    """Also for addresses with colons of their own."""
    assert _host(scope(named)) == host


def test_a_failure_after_the_response_began_adds_nothing_T87() -> None:
    """A status that was sent cannot be taken back; no second response follows, no text of the error."""

    async def broken(_scope, _receive, send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        raise RuntimeError("CANARY")

    tally = RequestCounts()
    messages = sent(broken, scope(), tally)
    assert [message["type"] for message in messages] == ["http.response.start"]
    assert "CANARY" not in str(messages)
    assert tally.told()["requests"] == [{"method": "none", "route": "none", "status": "200", "count": 1}]


def test_a_websocket_is_not_answered() -> None:
    """There is none here: nothing inside is asked."""

    async def inside(*_: object) -> None:
        raise AssertionError("never")

    assert sent(inside, {"type": "websocket", "path": "/", "headers": []}) == []


def test_a_foreign_host_never_comes_inside() -> None:
    """It is refused before any route is looked for (T86)."""

    async def inside(*_: object) -> None:
        raise AssertionError("never")

    messages = sent(inside, scope("evil.example"))
    assert messages[0]["status"] == 400
