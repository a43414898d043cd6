"""The web process over real sockets: slow heads, silent connections, no word about itself (T85, T87)."""

from __future__ import annotations

import datetime
import os
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

import sulq
from sulq.errors import CuratorError
from sulq.service.settings import Service
from sulq.service.web import main
from tests.service.office import Office, survey
from tests.service.web.sockets import HEALTH, LONG, connected, response, served

HASTY = 2.0  # seconds for a head, in tests of what does not come: still enough for what does, on a busy machine


@pytest.fixture
def port(tmp_path: Path) -> Iterator[int]:
    with served(Office(tmp_path, survey=survey()), Service(tmp_path, rate=10**6)) as found:
        yield found


@pytest.fixture
def hasty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    monkeypatch.setattr(main, "MAX_HEAD_SECONDS", HASTY)
    with served(Office(tmp_path, survey=survey()), Service(tmp_path, rate=10**6)) as found:
        yield found


def test_a_response_says_nothing_of_the_server_T87(port: int) -> None:
    """No Server header; a connection serves one request after another."""
    with connected(port) as sock:
        for _ in range(3):
            sock.sendall(HEALTH)
            found, _ = response(sock)
            assert found.startswith(b"HTTP/1.1 200")
            assert b"\r\nserver:" not in found.lower()
            assert b"uvicorn" not in found.lower()


@pytest.mark.parametrize("drip", [b"", b"G", b"GET /v1/health HTTP/1.1\r\nX: "])
def test_a_head_that_does_not_come_is_not_waited_for_T85(hasty: int, drip: bytes) -> None:
    """Silent or dripping connections are closed in time, and others are answered meanwhile."""
    begun = time.monotonic()
    with connected(hasty) as slow:
        if drip:
            slow.sendall(drip)
        with connected(hasty) as quick:
            quick.sendall(HEALTH)
            assert response(quick)[0].startswith(b"HTTP/1.1 200")
        assert closed(slow, b"a" if drip else b"")
        assert time.monotonic() - begun > HASTY - 0.1


def closed(slow: socket.socket, drip: bytes) -> bool:
    """Whether a connection that says nothing, or drips, is closed at some time; nothing else would close it."""
    until = time.monotonic() + LONG
    slow.settimeout(0.1)
    while time.monotonic() < until:
        try:
            slow.sendall(drip)
            if slow.recv(100) == b"":
                return True
        except TimeoutError:
            continue
        except OSError:
            return True
    return False


@pytest.mark.parametrize("drip", [b"", b"a"])
def test_a_body_that_nobody_waits_for_holds_no_connection_T85(hasty: int, drip: bytes) -> None:
    """A request refused before its body came is answered at once, and its connection closed if the body never ends.

    Control: where the body comes after the answer, the same connection serves the next request.
    """
    request = b"POST /v1/look HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\na"
    begun = time.monotonic()
    with connected(hasty) as slow:
        slow.sendall(request)
        assert response(slow)[0].startswith(b"HTTP/1.1 401")
        assert closed(slow, drip)
        assert time.monotonic() - begun > HASTY - 0.1
    with connected(hasty) as sock:
        sock.sendall(request)
        response(sock)
        sock.sendall(b"a" * 999)
        sock.sendall(HEALTH)
        assert response(sock)[0].startswith(b"HTTP/1.1 200")


def test_a_connection_that_asked_may_rest(hasty: int) -> None:
    """Between requests a connection is kept open for longer than a head may take."""
    with connected(hasty) as sock:
        sock.sendall(HEALTH)
        response(sock)
        time.sleep(1.5 * HASTY)
        sock.sendall(HEALTH)
        assert response(sock)[0].startswith(b"HTTP/1.1 200")


def test_many_silent_connections_leave_room_T85(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A hundred of them, which nobody closes meanwhile, do not keep a question waiting."""
    monkeypatch.setattr(main, "MAX_HEAD_SECONDS", 10 * LONG)
    idle = [connected(port) for _ in range(100)]
    with connected(port) as sock:
        sock.sendall(HEALTH)
        assert response(sock)[0].startswith(b"HTTP/1.1 200")
    for sock in idle:
        sock.setblocking(False)
        with pytest.raises(BlockingIOError):  # the control: it is open
            sock.recv(1)
        sock.close()


def test_one_address_leaves_connections_for_others_T85(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """An address with as many connections as it may have gets no more; another one, and it later, is answered."""
    monkeypatch.setattr(main, "MAX_CONNECTIONS_PER_ADDRESS", 5)
    monkeypatch.setattr(main, "MAX_HEAD_SECONDS", 10 * LONG)
    held = [connected(port) for _ in range(5)]  # taken in this order, and before the next one
    with connected(port) as more:
        try:
            more.sendall(HEALTH)
            refused = more.recv(100) == b""
        except OSError:
            refused = True
    assert refused
    with socket.create_connection(("127.0.0.1", port), LONG, source_address=("127.0.0.2", 0)) as other:
        other.sendall(HEALTH)
        assert response(other)[0].startswith(b"HTTP/1.1 200")
    for sock in held:
        sock.close()
    until = time.monotonic() + LONG
    while not answered(port):  # until the server has noticed that they are gone
        assert time.monotonic() < until


def answered(port: int) -> bool:
    """Whether a new connection is let in."""
    try:
        with connected(port) as again:
            again.sendall(HEALTH)
            return again.recv(100).startswith(b"HTTP/1.1 200")
    except OSError:
        return False


def certificate(folder: Path) -> tuple[Path, Path]:
    """A certificate for localhost that signs itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=2))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    cert, private = folder / "cert.pem", folder / "key.pem"
    cert.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    private.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return cert, private


def test_over_tls_a_client_asks_the_curator_it_knows_T86(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the certificate trusted it is answered; without, no token is sent; http to the same port gets nothing."""
    cert, key = certificate(tmp_path)
    office = Office(tmp_path, survey=survey())
    token = office.tokens["analyst"]
    with served(office, Service(tmp_path, rate=10**6, tls_cert=cert, tls_key=key)) as port:
        monkeypatch.setenv("SSL_CERT_FILE", str(cert))
        with sulq.connect(f"https://localhost:{port}/survey", token=token) as far:
            assert far.count(spend=sulq.Epsilon(1)).accuracy(0.05) > 0
        seen = len(office.seen)
        monkeypatch.delenv("SSL_CERT_FILE")
        with (
            sulq.connect(f"https://localhost:{port}/survey", token=token) as stranger,
            pytest.raises(CuratorError) as caught,
        ):
            stranger.ask(sulq.Sums((sulq.lit(1),)), spend=sulq.Epsilon(1))
        assert caught.value.code == "unreachable"
        assert len(office.seen) == seen
        with connected(port) as plain:
            plain.sendall(HEALTH)
            assert not plain.recv(100).startswith(b"HTTP/1.1 200")


def test_a_handshake_has_as_long_as_a_head_T85(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever connects to a server with TLS and does not begin is closed in time; one who does is served after it."""
    monkeypatch.setattr(main, "MAX_HEAD_SECONDS", HASTY)
    cert, key = certificate(tmp_path)
    office = Office(tmp_path, survey=survey())
    with served(office, Service(tmp_path, rate=10**6, tls_cert=cert, tls_key=key)) as port:
        begun = time.monotonic()
        with connected(port) as silent:
            assert closed(silent, b"")
        assert HASTY - 0.1 < time.monotonic() - begun < LONG
        with (
            connected(port) as sock,
            ssl.create_default_context(cafile=cert).wrap_socket(sock, server_hostname="localhost") as inner,
        ):
            inner.sendall(HEALTH)
            assert response(inner)[0].startswith(b"HTTP/1.1 200")


def test_a_web_process_starts_without_what_only_some_requests_need() -> None:
    """The SQL compiler, learners, releases and pyarrow load with the first who asks; the control: SQL loads sqlglot."""
    loaded = "import sys, {}; print(*sys.modules)"
    late = {"sqlglot", "pyarrow", "highspy", "sulq.learn", "sulq.release", "sulq.select", "sulq.sql"}
    for module, found in (("sulq.service.web.main", set()), ("sulq.service.web.sql_answers", {"sqlglot", "sulq.sql"})):
        run = subprocess.run(
            [sys.executable, "-c", loaded.format(module)], capture_output=True, text=True, check=True, env=os.environ
        )
        assert late & set(run.stdout.split()) == found, module
