"""Requests to a curator: where a token may go, what is repeated, how errors come back."""

from __future__ import annotations

import json
from collections.abc import Callable

import httpx
import pytest

import sulq
from sulq.client.http import (
    JITTER,
    MAX_FIRST_TRIES,
    MAX_PATIENCE_SECONDS,
    MAX_PAUSE_SECONDS,
    PATIENCE_SECONDS,
    Http,
    address,
    loopback,
)
from sulq.errors import CODES, FAMILIES, AccessDenied, CuratorError, SetupError, SulqError

TOKEN = "sulq_secret"
URL = "http://127.0.0.1:8765/survey"


class Far:
    """A curator of a few fixed replies, or failures; the last one repeats."""

    def __init__(self, *replies: httpx.Response | Exception) -> None:
        self.replies = list(replies)
        self.requests: list[httpx.Request] = []
        self.pauses: list[float] = []
        self.now = 0.0

    def wait(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now += seconds

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        reply = self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]
        if isinstance(reply, Exception):
            raise reply
        return httpx.Response(reply.status_code, headers=reply.headers, content=reply.content)

    def http(self, url: str = URL, **more: float) -> Http:
        transport = httpx.MockTransport(self)
        return Http(url, TOKEN, transport=transport, sleep=self.wait, clock=lambda: self.now, **more)


def ok(**tree: object) -> httpx.Response:
    return httpx.Response(200, json=tree)


def refused(status: int, **told: str) -> httpx.Response:
    return httpx.Response(status, json={"error": told})


@pytest.mark.parametrize(
    ("url", "base", "dataset"),
    [
        ("http://127.0.0.1:8765/survey", "http://127.0.0.1:8765", "survey"),
        ("http://localhost/survey/", "http://localhost", "survey"),
        ("http://[::1]:80/s", "http://[::1]:80", "s"),
        ("https://curator.example.org/my%20data", "https://curator.example.org", "my data"),
    ],
)
def test_an_address_ends_with_the_dataset(url: str, base: str, dataset: str) -> None:
    """Host and port go to the base, the last word is the dataset."""
    assert address(url) == (base, dataset)


@pytest.mark.parametrize(
    ("url", "code"),
    [
        ("http://curator.example.org/survey", "insecure-url"),
        ("http://127.0.0.1.evil.example/survey", "insecure-url"),
        ("http://10.0.0.1/survey", "insecure-url"),
        ("http://0.0.0.0/survey", "insecure-url"),
        ("http://[::]/survey", "insecure-url"),
        ("https://curator.example.org/", "bad-declaration"),
        ("https://curator.example.org/a/b", "bad-declaration"),
        ("https://curator.example.org/a%2Fb", "bad-declaration"),
        ("https:///survey", "bad-declaration"),
        ("https://host:99999/survey", "bad-declaration"),
        ("https://host/survey?token=x", "bad-declaration"),
        ("https://user:pass@host/survey", "bad-declaration"),
        ("https://[bad/survey", "bad-declaration"),
        ("ftp://host/survey", "bad-declaration"),
    ],
)
def test_a_token_travels_in_clear_to_this_machine_alone_T86(url: str, code: str) -> None:
    """http:// to another machine is refused; so is an address that holds a secret, or is none."""
    with pytest.raises(SetupError) as caught:
        address(url)
    assert caught.value.code == code
    if code == "insecure-url":
        assert address(url, insecure=True)[1] == "survey"


def test_loopback_is_this_machine() -> None:
    """All of 127/8, ::1 and localhost; nothing that only looks alike."""
    assert all(loopback(host) for host in ("127.0.0.1", "127.9.9.9", "::1", "localhost", "LOCALHOST"))
    assert not any(loopback(host) for host in ("127.0.0.1.example", "0.0.0.0", "localhost.example", "::2", ""))


def test_what_an_address_lacks_is_said() -> None:
    """Without a dataset, and without a token, the message says which of the two, and what to do."""
    with pytest.raises(SetupError) as caught:
        sulq.connect("http://127.0.0.1:8765", token="t")
    assert "no dataset" in caught.value.message
    assert "host:port/dataset" in caught.value.remedy
    with pytest.raises(SetupError) as caught:
        sulq.connect("http://127.0.0.1:8765/survey")
    assert "token=" in caught.value.message
    assert "sulq analyst add" in caught.value.remedy


@pytest.mark.parametrize("token", ["", "a b", "a\nb", "tökén", None, 7])
def test_a_token_is_one_printable_word(token: object) -> None:
    """What could break out of a header is no token."""
    with pytest.raises(SetupError) as caught:
        Http(URL, token)
    assert caught.value.code == "bad-declaration"


def test_a_redirect_is_not_followed_with_the_token_T80() -> None:
    """One request is made, to the address given, and the refusal says why."""
    for status in (301, 302, 303, 307, 308):
        far = Far(httpx.Response(status, headers={"location": "http://evil.example/v1/datasets/survey"}))
        with pytest.raises(SetupError) as caught:
            far.http().get("/v1/me")
        assert caught.value.code == "unreachable"
        assert [request.url.host for request in far.requests] == ["127.0.0.1"]


def test_the_environment_does_not_see_the_token(monkeypatch: pytest.MonkeyPatch) -> None:
    """Proxies named by the environment are not used."""
    monkeypatch.setenv("HTTP_PROXY", "http://evil.example:1")
    monkeypatch.setenv("ALL_PROXY", "http://evil.example:1")
    far = Far(ok(name="x"))
    far.http().get("/v1/me")
    assert far.requests[0].headers["authorization"] == f"Bearer {TOKEN}"
    assert not far.http()._http.trust_env


@pytest.mark.parametrize(
    "failure",
    [
        httpx.ReadError("cut"),
        httpx.ReadTimeout("slow"),
        httpx.ConnectError("away"),
        refused(503, kind="SetupError", code="not-ready", message="", remedy=""),
        refused(429, kind="AccessDenied", code="rate-limited", message="", remedy=""),
    ],
)
def test_only_what_cannot_be_charged_twice_is_sent_again_T44(failure: httpx.Response | Exception) -> None:
    """A read, or an ask with a key, is repeated with growing pauses; anything else goes out once."""
    far = Far(failure, failure, ok(name="x"))
    assert far.http().get("/v1/me") == {"name": "x"}
    assert far.http().post("/v1/x", {}, again=True) == {"name": "x"}
    far = Far(failure, failure, ok(done=1))
    assert far.http().post("/v1/x", {"key": "k"}, again=True) == {"done": 1}
    assert len({request.content for request in far.requests}) == 1
    once = Far(failure, ok(done=1))
    with pytest.raises(SulqError):
        once.http().post("/v1/x", {})
    assert len(once.requests) == 1
    never = Far(failure)
    with pytest.raises(SulqError) as caught:
        never.http().get("/v1/me")
    assert len(never.requests) > 1
    assert caught.value.code in ("unreachable", "not-ready", "rate-limited")


def test_a_call_is_tried_for_as_long_as_its_caller_has_patience() -> None:
    """Pauses double up to a bound, differ by chance, and end before the patience does; 0 tries once."""
    opening = refused(503, kind="SetupError", code="not-ready", message="", remedy="")
    waited = []
    for _ in range(20):
        far = Far(opening)
        with pytest.raises(SetupError):
            far.http().get("/v1/me")
        assert far.now <= PATIENCE_SECONDS < far.now + MAX_PAUSE_SECONDS * (1 + JITTER)
        assert max(far.pauses) <= MAX_PAUSE_SECONDS * (1 + JITTER)
        assert all(later >= before * (1 - JITTER) for before, later in zip(far.pauses, far.pauses[1:], strict=False))
        waited.append(tuple(far.pauses))
    assert len(set(waited)) > 1, "clients that were cut off at once do not come back at once"
    far = Far(opening)
    with pytest.raises(SetupError):
        far.http(patience=0).get("/v1/me")
    assert len(far.requests) == 1
    for wrong in (-1, MAX_PATIENCE_SECONDS + 1, float("nan"), "long", True, None):
        with pytest.raises(SetupError) as caught:
            far.http(patience=wrong)
        assert caught.value.code == "bad-declaration"


def test_an_address_where_nobody_ever_answered_is_given_up_soon() -> None:
    """Refused connections are tried for long only where a curator was before: another address may be a wrong one."""
    far = Far(httpx.ConnectError("away"))
    with pytest.raises(CuratorError):
        far.http().get("/v1/me")
    assert len(far.requests) == MAX_FIRST_TRIES
    gone = Far(ok(), *[httpx.ConnectError("away")] * 8, ok(back=1))
    http = gone.http()
    http.get("/v1/me")
    assert http.get("/v1/me") == {"back": 1}


@pytest.mark.parametrize("code", ["closed", "source-changed", "ledger-rolled-back"])
def test_what_does_not_pass_is_not_waited_for(code: str) -> None:
    """A dataset that needs its owner's attention is said to, at once; a proxy's own 503 is waited for."""
    far = Far(refused(503, kind="SetupError", code=code, message="", remedy=""), ok())
    with pytest.raises(SetupError):
        far.http().get("/v1/me")
    assert len(far.requests) == 1
    assert Far(httpx.Response(503, content=b"<html>"), ok(a=1)).http().get("/v1/me") == {"a": 1}


def test_a_pause_is_as_long_as_the_curator_says() -> None:
    """Retry-After is kept to; one that is longer than the patience ends the call, nonsense is passed over."""
    for told, least, most in (("3", 3.0, 3.0), ("soon", 0.25, 0.25 * (1 + JITTER))):
        far = Far(httpx.Response(429, headers={"retry-after": told}, json={}), ok(a=1))
        far.http().get("/v1/me")
        assert least <= far.pauses[0] <= most
    far = Far(httpx.Response(429, headers={"retry-after": "99999"}, json={}), ok(a=1))
    with pytest.raises(SulqError):
        far.http().get("/v1/me")
    assert not far.pauses


@pytest.mark.parametrize("family", FAMILIES)
def test_an_error_comes_back_as_it_was_raised(family: type[SulqError]) -> None:
    """Class, code, message and remedy."""
    far = Far(refused(400, kind=family.__name__, code="key-reused", message="M.", remedy="R."))
    with pytest.raises(family) as caught:
        far.http().get("/v1/me")
    error = caught.value
    assert (type(error), error.code, error.message, error.remedy) == (family, "key-reused", "M.", "R.")


@pytest.mark.parametrize(
    ("content", "status", "code", "family"),
    [
        (b"<html>", 200, "unreachable", CuratorError),
        (b"<html>", 502, "unreachable", CuratorError),
        (b"[]", 200, "unreachable", CuratorError),
        (b'{"a":1,"a":2}', 200, "unreachable", CuratorError),
        (b'{"a":NaN}', 200, "unreachable", CuratorError),
        (b'{"error":{"kind":"Exit","code":"no-such-code"}}', 400, "unreachable", CuratorError),
        (b'{"error":{"kind":"SystemExit","code":"closed"}}', 400, "closed", CuratorError),
        (b"", 401, "unauthorized", AccessDenied),
    ],
)
def test_what_is_no_curators_reply_is_said_to_be_none(
    content: bytes, status: int, code: str, family: type[SulqError]
) -> None:
    """A proxy's page, loose JSON or an unknown error gives a code, never another exception."""
    far = Far(httpx.Response(status, content=content))
    with pytest.raises(family) as caught:
        far.http().get("/v1/me")
    assert caught.value.code == code
    assert caught.value.code in CODES


def test_parts_of_an_address_are_quoted() -> None:
    """A name cannot lead out of its place."""
    http = Far(ok()).http("http://localhost/a%20b")
    assert http.at("receipts", "../x?y") == "/v1/datasets/a%20b/receipts/..%2Fx%3Fy"


def test_a_body_is_strict_json() -> None:
    """What is sent has one meaning; NaN does not leave."""
    far = Far(ok())
    far.http().post("/v1/x", {"b": 1.5, "a": "ü"})
    assert json.loads(far.requests[0].content) == {"b": 1.5, "a": "ü"}
    assert far.requests[0].headers["content-type"] == "application/json"

    def bad(make: Callable[[], object]) -> None:
        with pytest.raises(ValueError, match="JSON"):
            make()

    bad(lambda: far.http().post("/v1/x", {"a": float("nan")}))
