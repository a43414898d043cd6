"""Each limit that docs/operate/serve.md names, over real sockets: one more is refused, and as much is not (T85)."""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from sulq.service.console import guard
from sulq.service.console.pages.tokens import MAX_FORM_BYTES as MAX_SIGN_IN_BYTES
from sulq.service.settings import Service
from sulq.service.web import main, requests
from sulq.service.web.limits import MAX_BODY_BYTES, MAX_FAILURES_A_MINUTE, MAX_QUESTION_BYTES
from tests.service.office import Office, survey
from tests.service.web.sockets import HEALTH, LONG, all_until_closed, connected, response, served

HASTY = 1.0  # seconds for a body, in tests of what does not come


@pytest.fixture
def office(tmp_path: Path) -> Office:
    return Office(tmp_path, survey=survey())


@pytest.fixture
def port(office: Office) -> Iterator[int]:
    with served(office, Service(office.service.state, rate=10**6), console=True) as found:
        yield found


def head(path: str, size: int | None, *, token: str = "", kind: str = "application/json", more: str = "") -> bytes:
    """A POST's head; without a size its body comes in chunks."""
    lines = [f"POST {path} HTTP/1.1", "Host: localhost", f"Content-Type: {kind}"]
    lines += [f"Authorization: Bearer {token}"] if token else []
    lines += ["Transfer-Encoding: chunked" if size is None else f"Content-Length: {size}"]
    return ("\r\n".join(lines) + "\r\n" + more + "\r\n").encode()


def status_of(sock: socket.socket) -> int:
    return int(response(sock)[0].split(b" ")[1])


def posted(port: int, path: str, size: int, *, chunked: bool = False, **more: str) -> int:
    """The status of a body of so many bytes, which is no JSON object that fits."""
    body = b'{"a":"' + b"x" * (size - 8) + b'"}'
    with connected(port) as sock:
        sock.sendall(head(path, None if chunked else size, **more))
        with contextlib.suppress(OSError):  # refused before all of it was sent
            sock.sendall(b"%x\r\n%b\r\n0\r\n\r\n" % (size, body) if chunked else body)
        return status_of(sock)


@pytest.mark.parametrize("chunked", [False, True])
def test_a_body_has_at_most_256_KiB_T85(port: int, office: Office, *, chunked: bool) -> None:
    """Declared or in chunks; a body of just that size is read, and found not to fit."""
    token = office.tokens["owner"]
    sent = [posted(port, "/v1/look", MAX_BODY_BYTES + more, chunked=chunked, token=token) for more in (0, 1)]
    assert sent == [400, 413]


def test_a_structured_question_has_at_most_16_MiB_T85(port: int, office: Office) -> None:
    """For a known token; nobody else's is read, and one that does not say its size is a short one."""
    ask = "/v1/datasets/survey/ask"
    token = office.tokens["analyst"]
    assert [posted(port, ask, MAX_QUESTION_BYTES + more, token=token) for more in (0, 1)] == [400, 413]
    assert posted(port, ask, MAX_BODY_BYTES + 1, token=token, chunked=True) == 413
    with connected(port) as sock:
        sock.sendall(head(ask, MAX_QUESTION_BYTES, token="sulq_" + "0" * 64))
        assert status_of(sock) == 401


@pytest.mark.parametrize(("size", "seconds"), [(100, "MAX_BODY_SECONDS"), (MAX_BODY_BYTES + 1, "MAX_QUESTION_SECONDS")])
def test_a_body_that_drips_is_refused_in_time_T85(
    port: int, office: Office, monkeypatch: pytest.MonkeyPatch, size: int, seconds: str
) -> None:
    """A short one and a long one each have their time; then 408. Control: with more time the same body is read."""
    path = "/v1/datasets/survey/ask"
    for limit, status in ((HASTY, 408), (LONG, 400)):
        monkeypatch.setattr(requests, seconds, limit)
        with connected(port) as sock:
            begun = time.monotonic()
            sock.sendall(head(path, size, token=office.tokens["analyst"]))
            sock.sendall(b"{")
            time.sleep(2 * HASTY)
            if limit == LONG:
                sock.sendall(b"x" * (size - 1))
            assert status_of(sock) == status
            assert time.monotonic() - begun > HASTY


def test_a_form_has_256_KiB_and_10_seconds_and_a_sign_in_4_KiB_T85(
    port: int, office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sign-in of 4 KiB is read, and holds no token; one byte more is too large; half of one is not waited for."""
    form = {"kind": "application/x-www-form-urlencoded", "more": "Sec-Fetch-Site: same-origin\r\n"}

    def sent(path: str, size: int, **more: str) -> int:
        with connected(port) as sock:
            sock.sendall(head(path, size, kind=form["kind"], more=form["more"] + more.get("more", "")))
            sock.sendall(b"token=" + b"x" * (size - 6))
            return status_of(sock)

    assert [sent("/sign-in", MAX_SIGN_IN_BYTES + more) for more in (0, 1)] == [400, 413]
    cookie = f"Cookie: {signed_in(port, office.tokens['owner'])}\r\n"
    assert [sent("/people", guard.MAX_FORM_BYTES + more, more=cookie) for more in (0, 1)] == [403, 413]
    monkeypatch.setattr(guard, "MAX_BODY_SECONDS", HASTY)
    with connected(port) as sock:
        sock.sendall(head("/sign-in", 100, kind=form["kind"], more=form["more"]) + b"token=")
        assert status_of(sock) == 408


def signed_in(port: int, token: str) -> str:
    """The cookie of a session."""
    body = f"token={token}".encode()
    more = "Sec-Fetch-Site: same-origin\r\n"
    with connected(port) as sock:
        sock.sendall(head("/sign-in", len(body), kind="application/x-www-form-urlencoded", more=more) + body)
        found = response(sock)[0]
    assert found.startswith(b"HTTP/1.1 303"), found
    return found.split(b"set-cookie: ")[1].split(b";")[0].decode()


def test_past_so_many_connections_requests_are_turned_away_T85(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last one hears 503 at once; when one has gone it is served."""
    monkeypatch.setattr(main, "MAX_CONNECTIONS", 5)
    with served(office, Service(office.service.state, rate=10**6)) as port:
        held = [connected(port) for _ in range(4)]
        with connected(port) as more:
            more.sendall(HEALTH)
            assert more.recv(100).startswith(b"HTTP/1.1 503")
        for sock in held:
            sock.close()
        until = time.monotonic() + LONG
        found = 503
        while found == 503 and time.monotonic() < until:
            with connected(port) as again:
                again.sendall(HEALTH)
                found = int(again.recv(100).split(b" ")[1])
        assert found == 200


def test_a_connection_that_rests_is_closed_in_time_T85(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    """After its last response; meanwhile it is open, which is the control."""
    monkeypatch.setattr(main, "MAX_IDLE_SECONDS", 2)
    with served(office, Service(office.service.state, rate=10**6)) as port, connected(port) as sock:
        for _ in range(2):
            sock.sendall(HEALTH)
            assert status_of(sock) == 200
        begun = time.monotonic()
        assert all_until_closed(sock) == b""
        assert time.monotonic() - begun > 1.5


def test_rates_hold_over_the_network_T85(office: Office) -> None:
    """Half a minute's calls of a token at once, then 429; as many wrong tokens, then no more guesses.

    Control: a token that was good goes on meanwhile.
    """

    def call(token: str, *, path: str = "/v1/me") -> int:
        sock.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\r\n".encode())
        return status_of(sock)

    with served(office, Service(office.service.state, rate=10)) as port, connected(port) as sock:
        begun = time.monotonic()
        found = [call(office.tokens["analyst"]) for _ in range(20)]
        more = (time.monotonic() - begun) / 6 + 1  # what the bucket gains meanwhile
        assert 5 <= found.count(200) <= 5 + more
        assert set(found) == {200, 429}
    with served(office, Service(office.service.state, rate=10**6)) as port, connected(port) as sock:
        assert call(office.tokens["analyst"]) == 200
        begun = time.monotonic()
        guesses = [call(f"sulq_{number:064}") for number in range(MAX_FAILURES_A_MINUTE)]
        most = MAX_FAILURES_A_MINUTE / 2 + (time.monotonic() - begun) / 2 + 1
        assert MAX_FAILURES_A_MINUTE / 2 <= guesses.count(401) <= most
        assert call(office.tokens["analyst"]) == 200
