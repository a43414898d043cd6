"""The application behind real sockets, for tests: a port of its own, and what comes over a connection."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from sulq.service.settings import Service
from sulq.service.web import main
from sulq.service.web.app import create_app
from tests.service.office import Office

HEALTH = b"GET /v1/health HTTP/1.1\r\nHost: localhost\r\n\r\n"
LONG = 60.0  # what does come may take this long


@contextmanager
def served(office: Office, service: Service, *, console: bool = False) -> Iterator[int]:
    """The application on a port of its own."""
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen(64)
    server = main.server(create_app(office.call, service, console=console), service)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    try:
        yield listener.getsockname()[1]
    finally:
        server.should_exit = True
        thread.join(LONG)
        office.close()
    assert not thread.is_alive()


def connected(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=LONG)


def response(sock: socket.socket, found: bytes = b"") -> tuple[bytes, bytes]:
    """A response, its head and the body it announces, and what came behind it; `found`: what came already."""
    while b"\r\n\r\n" not in found:
        found += (part := sock.recv(65536))
        assert part, found
    head, _, body = found.partition(b"\r\n\r\n")
    length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
    while len(body) < length:
        body += sock.recv(65536)
    return head + b"\r\n\r\n" + body[:length], body[length:]


def all_until_closed(sock: socket.socket) -> bytes:
    """All that comes until the other side closes."""
    found = b""
    while part := sock.recv(65536):
        found += part
    return found
