"""Heads that two readers could take for different requests, and heads past the limit: refused, over real sockets."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator

import pytest

from sulq.service.settings import Service
from sulq.service.web import main
from sulq.service.web.framing import AMBIGUOUS, MAX_HEAD_BYTES, TOO_LONG, refused_status
from tests.service.office import Office, survey
from tests.service.web.sockets import HEALTH, LONG, all_until_closed, connected, response, served

LOOK = b"POST /v1/look HTTP/1.1\r\nHost: localhost\r\n"
HIDDEN = b"GET /v1/hidden HTTP/1.1\r\nHost: localhost\r\n\r\n"
AMBIGUOUS_HEADS = {
    "both, length first": LOOK + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "both, coding first": LOOK + b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
    "both, in other letters": LOOK + b"tRANSFER-eNCODING: chunked\r\ncontent-LENGTH: 5\r\n\r\n0\r\n\r\n",
    "one length twice": LOOK + b"Content-Length: 5\r\nContent-Length: 5\r\n\r\nabcde",
    "two lengths": LOOK + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nabcde",
    "a list of lengths": LOOK + b"Content-Length: 5, 5\r\n\r\nabcde",
    "a signed length": LOOK + b"Content-Length: +5\r\n\r\nabcde",
    "an empty length": LOOK + b"Content-Length:\r\n\r\n",
    "a length in other digits": LOOK + "Content-Length: ５\r\n\r\nabcde".encode(),
    "a length in hexadecimal": LOOK + b"Content-Length: 0x5\r\n\r\nabcde",
    "a blank before the colon": LOOK + b"Content-Length : 5\r\n\r\nabcde",
    "two codings": LOOK + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "another coding": LOOK + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    "a coding that is none": LOOK + b"Transfer-Encoding: identity\r\n\r\n",
    "a hidden coding": LOOK + b"Transfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n",
    "chunks in HTTP/1.0": LOOK.replace(b"1.1", b"1.0") + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "a folded line": LOOK + b"X: a\r\n Content-Length: 5\r\n\r\nabcde",
    "a folded coding": LOOK + b"Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n",
    "a folded first line": b"GET /v1/health HTTP/1.1\r\n Host: localhost\r\nHost: localhost\r\n\r\n",
    "bare line feeds": HEALTH.replace(b"\r\n", b"\n"),
    "one bare line feed": LOOK + b"X: a\nContent-Length: 5\r\n\r\nabcde",
    "a bare line feed at the end": HEALTH[:-2] + b"\n",
    "a bare carriage return": LOOK + b"X: a\rContent-Length: 5\r\n\r\nabcde",
    "a NUL": LOOK + b"X: a\0\r\n\r\n",
    "another version": HEALTH.replace(b"HTTP/1.1", b"HTTP/1.2"),
    "HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "two hosts": HEALTH.replace(b"\r\n\r\n", b"\r\nHost: localhost\r\n\r\n"),
    "an empty line first": b"\r\n" + HEALTH,
    "no request": b"nonsense\r\n\r\n",
}


@pytest.fixture(scope="module")
def office(tmp_path_factory: pytest.TempPathFactory) -> Office:
    return Office(tmp_path_factory.mktemp("office"), survey=survey())


@pytest.fixture(scope="module")
def port(office: Office) -> Iterator[int]:
    """A server that gives a refusal less time to be read."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(main, "MAX_LINGER_SECONDS", 0.05)
        with served(office, Service(office.service.state, rate=10**6)) as found:
            yield found


def padded(head: bytes, size: int, line: bytes = b"X: ") -> bytes:
    """A request whose head has so many bytes, by one header or by the target's query."""
    room = size - len(head)
    if line == b"?":
        return head.replace(b" HTTP/1.1", b"?" + b"a" * (room - 1) + b" HTTP/1.1", 1)
    if line == b"many":
        headers, rest = divmod(room, 10)
        return (
            head[:-2] + b"X: aaaaa\r\n" * headers + b"Y:" + b" " * (rest - 4) + b"\r\n\r\n"
            if rest > 4
            else (head[:-2] + b"X: aaaaa\r\n" * (headers - 1) + b"Y:" + b" " * (rest + 6) + b"\r\n\r\n")
        )
    return head[:-2] + line + b"a" * (room - len(line) - 2) + b"\r\n\r\n"


@pytest.mark.parametrize("what", AMBIGUOUS_HEADS)
def test_a_head_that_could_be_read_otherwise_is_refused_and_the_connection_closed(
    port: int, office: Office, what: str
) -> None:
    """400, then nothing: a request that hides behind it is never answered, and the clerk is not called."""
    before = len(office.seen)
    with connected(port) as sock:
        sock.sendall(AMBIGUOUS_HEADS[what] + HIDDEN)
        found = all_until_closed(sock)
    assert found.startswith(b"HTTP/1.1 400 "), found
    assert found.count(b"HTTP/1.1 ") == 1
    assert b"connection: close" in found.lower()
    assert json.loads(found.partition(b"\r\n\r\n")[2])["error"]["code"] == "bad-request"
    assert len(office.seen) == before


@pytest.mark.parametrize(
    "text",
    [
        HEALTH,
        LOOK + b"Content-Length: 5\r\n\r\nabcde",
        LOOK + b"Content-Length:\t5 \r\n\r\nabcde",
        LOOK + b"Transfer-Encoding: chunked\r\n\r\n5\r\nabcde\r\n0\r\n\r\n",
        LOOK + b"transfer-encoding: Chunked\r\n\r\n5\r\nabcde\r\n0\r\n\r\n",
    ],
)
def test_what_all_read_alike_is_answered_and_so_is_the_next_request(port: int, text: bytes) -> None:
    """Control: a length or a coding alone is served, in one piece and byte by byte, and the connection goes on."""
    for parts in ([text + HEALTH], [bytes([each]) for each in text + HEALTH]):
        with connected(port) as sock:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for part in parts:
                sock.sendall(part)
            first, rest = response(sock)
            assert first.startswith((b"HTTP/1.1 200", b"HTTP/1.1 401")), first
            assert response(sock, rest)[0].startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize("pieces", [1, 7])
@pytest.mark.parametrize("line", [b"X: ", b"?", b"many"])
def test_a_head_has_at_most_32_KiB_however_it_comes_T85(
    port: int, line: bytes, pieces: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By one header, many, or a long target; in one packet or several: 431 past the limit, and the connection closes.

    Control: a head of just as many bytes as are allowed is served.
    """
    monkeypatch.setattr(main, "MAX_LINGER_SECONDS", LONG)  # what is still sent is taken, however slowly it comes
    for size, status in ((MAX_HEAD_BYTES, b"200"), (MAX_HEAD_BYTES + 1, b"431"), (100_000, b"431")):
        text = padded(HEALTH, size, line)
        assert len(text) == size
        with connected(port) as sock:
            for start in range(0, size, -(-size // pieces)):
                sock.sendall(text[start : start - (-size // pieces)])
                time.sleep(0.01 if pieces > 1 else 0)
            if status == b"200":
                assert response(sock)[0].startswith(b"HTTP/1.1 200")
                continue
            found, rest = response(sock)
            assert found.startswith(b"HTTP/1.1 431 "), found
            assert b"connection: close" in found.lower()
            assert rest == b""


def test_a_head_that_never_ends_is_refused_at_the_limit_T85(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever goes on sending is told 431 as soon as the limit is passed, and is not read to a megabyte's end."""
    monkeypatch.setattr(main, "MAX_LINGER_SECONDS", LONG)
    with connected(port) as sock:
        sock.sendall(HEALTH[:-2] + b"X: " + b"a" * MAX_HEAD_BYTES)
        assert response(sock)[0].startswith(b"HTTP/1.1 431 ")


def test_a_head_behind_another_request_has_the_same_limits_T85(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A long or ambiguous head that was sent with an earlier request is refused too; half of one is not waited for."""
    monkeypatch.setattr(main, "MAX_HEAD_SECONDS", 2.0)
    monkeypatch.setattr(main, "MAX_LINGER_SECONDS", LONG)
    for later, status in ((padded(HEALTH, 100_000), b"431"), (AMBIGUOUS_HEADS["one length twice"], b"400")):
        with connected(port) as sock:
            sock.sendall(HEALTH + later)
            first, rest = response(sock)
            assert first.startswith(b"HTTP/1.1 200")
            assert response(sock, rest)[0].startswith(b"HTTP/1.1 " + status)
    with connected(port) as sock:
        begun = time.monotonic()
        sock.sendall(HEALTH + HEALTH[:20])
        first, rest = response(sock)
        assert (rest, all_until_closed(sock)) == (b"", b"")
        assert time.monotonic() - begun > 1.9


def test_a_chunk_that_is_none_ends_the_connection_whether_the_body_is_read_or_not(port: int, office: Office) -> None:
    """Read by a route: 400. After a refusal that did not read it: no second response, and no later request."""
    head = LOOK + b"Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n"
    known = b"Authorization: Bearer " + office.tokens["owner"].encode() + b"\r\n"
    with connected(port) as sock:
        sock.sendall(head + b"\r\n")
        assert response(sock)[0].startswith(b"HTTP/1.1 401")
        sock.sendall(b"zz\r\n" + HIDDEN)
        assert all_until_closed(sock) == b""
    with connected(port) as sock:
        sock.sendall(head + known + b"\r\nzz\r\n" + HIDDEN)
        found = all_until_closed(sock)
    assert found.count(b"HTTP/1.1 ") == 1
    assert found.startswith(b"HTTP/1.1 400")


def test_a_head_is_judged_by_its_bytes_alone() -> None:
    """No word before it is whole; then one status, whatever follows it."""
    assert refused_status(b"") is None
    for cut in range(len(HEALTH)):
        assert refused_status(HEALTH[:cut]) is None
    assert refused_status(HEALTH + b"\n\n anything") is None
    for what, head in AMBIGUOUS_HEADS.items():
        if what in {"no request", "a NUL", "two hosts", "a hidden coding", "another coding", "a coding that is none"}:
            continue  # the parser's to refuse
        if what not in {"an empty line first", "a blank before the colon"}:
            assert refused_status(head) == AMBIGUOUS, what
    assert refused_status(b"a" * (MAX_HEAD_BYTES + 1)) == TOO_LONG
