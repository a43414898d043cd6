"""The relay of a worker: carries its connections to the one database its tables lie in, and reads nothing of them.

It is started by the worker's first step (`launcher`) outside the network the worker is
put into, and is handed the listeners that stand inside it. To each of them belongs one
host; whoever connects there is carried to that host and to no other. With TLS it
carries what it cannot read. It opens no data and no ledger, and ends with its worker.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import selectors
import socket
import threading
from collections.abc import Sequence
from typing import Final, cast

from sulq.service import logs
from sulq.service.sandbox import isolation, launcher

READ_BYTES: Final = 1 << 18  # bytes at a time
CONNECT_SECONDS: Final = 10.0  # seconds to connect
# A peer that is silently gone is noticed in some seconds, as by the engine where it connects itself.
KEEPALIVE: Final = {"TCP_KEEPIDLE": 5, "TCP_KEEPINTVL": 2, "TCP_KEEPCNT": 3, "TCP_USER_TIMEOUT": 15_000}

_log = logging.getLogger("sulq.service.worker.pg_proxy")  # the module is run, so its name is not its own


def reached(far: str, port: int) -> socket.socket:
    """A connection to a database's host, or to its socket in a folder."""
    if far.startswith("/"):
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            sock.settimeout(CONNECT_SECONDS)
            sock.connect(f"{far}/.s.PGSQL.{port}")
            sock.settimeout(None)
        except BaseException:
            sock.close()
            raise
        return sock
    sock = socket.create_connection((far, port), CONNECT_SECONDS)
    sock.settimeout(None)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for name, value in KEEPALIVE.items():
        if hasattr(socket, name):
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
    return sock


def carry(here: socket.socket, far: str, port: int) -> None:
    """Carry one connection until either side ends it; one that cannot be made ends at once."""
    try:
        there = reached(far, port)
    except OSError as error:
        _log.warning("the database cannot be reached", extra={"error": type(error).__name__})
        here.close()
        return
    with here, there:
        back = threading.Thread(target=_pass_on, args=(there, here), daemon=True)
        back.start()
        _pass_on(here, there)
        back.join()


def _pass_on(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while part := source.recv(READ_BYTES):
            target.sendall(part)
    for sock in (source, target):
        with contextlib.suppress(OSError):
            sock.shutdown(socket.SHUT_RDWR)


def serve(listeners: Sequence[socket.socket], places: Sequence[tuple[str, int]], worker: socket.socket) -> None:
    """Carry whoever connects, until the worker's end of the channel closes."""
    with selectors.DefaultSelector() as found:
        found.register(worker, selectors.EVENT_READ)
        for listener, place in zip(listeners, places, strict=True):
            found.register(listener, selectors.EVENT_READ, place)
        while True:
            for key, _ in found.select():
                if key.data is None:
                    return
                here, _ = cast("socket.socket", key.fileobj).accept()
                threading.Thread(target=carry, args=(here, *key.data), daemon=True).start()


def main() -> None:
    """Start as a worker's first step says, over the socket that is standard input."""
    isolation.closed()
    logs.start("relay")
    told = json.loads(launcher.line())
    worker = socket.socket(fileno=os.dup(0))
    _, numbers, _, _ = socket.recv_fds(worker, 1, len(told["to"]))
    if len(numbers) != len(told["to"]):
        return  # there was no network to stand in; the worker says so
    listeners = [socket.socket(fileno=number) for number in numbers]
    serve(listeners, [(str(far), int(port)) for far, port in told["to"]], worker)
    os._exit(0)  # whatever is still carried ends with the worker


if __name__ == "__main__":
    main()
