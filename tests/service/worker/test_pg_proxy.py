"""The relay: what connects at one end comes out at the one host told, and it ends with its worker."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from sulq.service.worker import pg_proxy


def echo(listener: socket.socket) -> None:
    """Give back what comes, until the listener is closed."""
    while True:
        try:
            sock, _ = listener.accept()
        except OSError:
            return
        with sock:
            while part := sock.recv(1 << 16):
                sock.sendall(part)


@pytest.fixture
def far(tmp_path: Path) -> Iterator[list[tuple[str, int]]]:
    """Two places that give back what they hear, by TCP and by a socket's folder, and one where nobody is."""
    tcp = socket.create_server(("127.0.0.1", 0))
    unix = socket.socket(socket.AF_UNIX)
    unix.bind(str(tmp_path / ".s.PGSQL.7"))
    unix.listen()
    for listener in (tcp, unix):
        threading.Thread(target=echo, args=(listener,), daemon=True).start()
    gone = socket.create_server(("127.0.0.1", 0))
    nobody = gone.getsockname()[1]
    gone.close()
    yield [("127.0.0.1", tcp.getsockname()[1]), (str(tmp_path), 7), ("127.0.0.1", nobody)]
    for listener in (tcp, unix):
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()


def test_each_listener_leads_to_its_own_host_until_the_worker_ends(far: list[tuple[str, int]]) -> None:
    """A megabyte comes back whole by either; where nobody is the connection ends; without the worker all of it."""
    here = [socket.create_server(("127.0.0.1", 0)) for _ in far]
    ours, theirs = socket.socketpair()
    running = threading.Thread(target=pg_proxy.serve, args=(here, far, theirs), daemon=True)
    running.start()
    sent = bytes(range(256)) * 4096
    for listener in here[:2]:
        with socket.create_connection(listener.getsockname(), 30) as sock:
            writer = threading.Thread(target=sock.sendall, args=(sent,), daemon=True)
            writer.start()
            found = bytearray()
            while len(found) < len(sent):
                found += sock.recv(1 << 16)
            writer.join()
            assert bytes(found) == sent
    with socket.create_connection(here[2].getsockname(), 30) as sock:
        assert sock.recv(1) == b""
    assert running.is_alive()
    ours.close()
    running.join(30)
    assert not running.is_alive()
    for sock in (*here, theirs):
        sock.close()


def test_the_end_of_either_side_is_the_end_of_both() -> None:
    """A database that goes away ends the worker's connection, and the other way round."""
    for first in (0, 1):
        ours, here = socket.socketpair()
        listener = socket.create_server(("127.0.0.1", 0))
        carried = threading.Thread(target=pg_proxy.carry, args=(here, *listener.getsockname()), daemon=True)
        carried.start()
        there, _ = listener.accept()
        ends = [ours, there]
        ends[first].close()
        ends[1 - first].settimeout(30)
        assert ends[1 - first].recv(1) == b""
        carried.join(30)
        assert not carried.is_alive()
        ends[1 - first].close()
        listener.close()
