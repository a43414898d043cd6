"""Forms from elsewhere: refused, and nothing done (T81)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator

import pytest

from sulq.service.console import guard
from sulq.service.console.app import PAGES
from tests.service.console.visiting import ORIGIN, Visitor, shown

SENT = sorted({path for method, path, _, _ in PAGES if method == "POST"})
ELSEWHERE = [
    {"Origin": "https://evil.example"},
    {"Origin": "null"},
    {"Origin": "http://localhost.evil.example"},
    {"Origin": "http://localhost:9"},
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site"},
    {"Sec-Fetch-Site": "none"},
    {"Origin": "http://localhost", "Sec-Fetch-Site": "cross-site"},
    {},
]


@pytest.mark.parametrize("path", SENT)
def test_no_form_from_elsewhere_is_taken_T81(visitor: Visitor, path: str) -> None:
    """With the right cookie and even the right word, a form of another origin is refused by every route."""
    visitor.sign_in("owner")
    word = visitor.word
    where = path.replace("{name}", "survey").replace("{form}", "csv").replace("{kind}", "queries")
    where = where.replace("{key}", "k").replace("{who}", "analyst").replace("{step}", "columns")
    calls = len(visitor.office.seen)
    for headers in ELSEWHERE:
        reply = visitor.request("POST", where, data={"form": word}, headers=headers)
        assert reply.status_code == 403, headers
        assert "cross-site" in shown(reply).words
    for wrong in ({}, {"form": ""}, {"form": word[:-1]}, {"form": "0" * 64}):
        reply = visitor.request("POST", where, data=wrong or {"x": "1"}, headers=ORIGIN)
        assert reply.status_code == 403
        assert "stale-form" in shown(reply).words
    done = [frame for frame in visitor.office.seen[calls:] if '"call": "whoami"' not in frame]
    assert done == []


def test_a_sign_in_from_elsewhere_is_refused(visitor: Visitor) -> None:
    """Nobody can be signed in as somebody else by a page of another site."""
    token = {"token": visitor.office.tokens["analyst"]}
    for headers in ELSEWHERE:
        reply = visitor.request("POST", "/sign-in", data=token, headers=headers)
        assert reply.status_code == 403
        assert "set-cookie" not in reply.headers


def test_the_word_is_a_session_s_own(visitor: Visitor) -> None:
    """A word of one session opens no form of another, even of the same person."""
    old = visitor.sign_in("analyst").word
    visitor.sign_in("analyst")
    assert visitor.word != old
    assert visitor.request("POST", "/sign-out", data={"form": old}, headers=ORIGIN).status_code == 403


def test_what_is_no_form_is_refused(visitor: Visitor) -> None:
    """JSON, a broken body and one that is too large end in a page that says so."""
    visitor.sign_in("analyst")
    json = ORIGIN | {"Content-Type": "application/json"}
    form = ORIGIN | {"Content-Type": "application/x-www-form-urlencoded"}
    cases = [
        (json, b"{}", 415),
        (form, b"a" * 300_000, 413),
        (form, b"\xff\xfe", 400),
        (form, b"&".join([b"a=1"] * 30_000), 400),
        (form, b"no-equals", 400),
    ]
    for headers, body, status in cases:
        reply = visitor.request("POST", "/datasets/survey/ask", content=body, headers=headers)
        assert reply.status_code == status, body[:9]
        shown(reply)


def test_half_a_form_is_not_waited_for_T85(visitor: Visitor, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sign-in whose body does not come ends in time; control: one that comes, slowly, goes through."""
    monkeypatch.setattr(guard, "MAX_BODY_SECONDS", 0.3)

    async def dripping(*parts: bytes, pause: float) -> AsyncIterator[bytes]:
        for part in parts:
            await asyncio.sleep(pause)
            yield part

    form = ORIGIN | {"Content-Type": "application/x-www-form-urlencoded"}
    token = visitor.office.tokens["analyst"].encode()
    begun = time.monotonic()
    late = visitor.request("POST", "/sign-in", content=dripping(b"token=", token, pause=60), headers=form)
    assert (late.status_code, time.monotonic() - begun < 30) == (408, True)
    shown(late)
    monkeypatch.setattr(guard, "MAX_BODY_SECONDS", 60.0)
    kept = visitor.request("POST", "/sign-in", content=dripping(b"token=", token, pause=0.02), headers=form)
    assert kept.status_code == 303
    long = visitor.request("POST", "/sign-in", content=b"token=" + b"a" * 5000, headers=form)
    assert long.status_code == 413


def test_control_a_form_of_our_own_is_taken(visitor: Visitor) -> None:
    """Control: with origin and word right, or the origin alone said by the browser, the same form goes through."""
    visitor.sign_in("analyst")
    word = visitor.word
    for headers in (ORIGIN, {"Origin": "http://localhost"}, {"Sec-Fetch-Site": "same-origin"}):
        reply = visitor.request(
            "POST",
            "/datasets/survey/ask",
            data={"form": word, "sql": "SELECT COUNT(*) FROM survey", "amount": "0.1"},
            headers=headers,
        )
        assert reply.status_code == 200
