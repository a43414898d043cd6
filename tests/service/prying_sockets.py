"""A worker for tests that confines itself as the shipped one does, tries every way out, and says what it could."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from sulq.service.sandbox import isolation
from sulq.service.settings import DatasetSettings

KINDS = {
    "tcp": (socket.AF_INET, socket.SOCK_STREAM),
    "udp": (socket.AF_INET, socket.SOCK_DGRAM),
    "tcp6": (socket.AF_INET6, socket.SOCK_STREAM),
    "unix": (socket.AF_UNIX, socket.SOCK_STREAM),
    "netlink": (socket.AF_NETLINK, socket.SOCK_RAW),
    "packet": (socket.AF_PACKET, socket.SOCK_RAW),
}


def tried(work: Callable[[], object]) -> str:
    try:
        work()
    except OSError as error:
        return type(error).__name__
    return "done"


def heard(place: list) -> str:
    """What a place gives back."""
    with socket.create_connection((place[0], place[1]), 10) as sock:
        sock.sendall(b"ping")
        return sock.recv(4).decode()


def listened() -> None:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))


def main() -> None:
    told = isolation.settings("prying")
    declared = DatasetSettings.from_json(told["dataset"])
    said = isolation.confine(2 << 30, 64, outside=told["outside"], database=declared.in_database)
    echoed = []
    for place in told["places"]:
        try:
            echoed.append(heard(place))
        except OSError:
            echoed.append("")
    found = {
        "network": said["network"],
        "files": said["files"],
        "sockets": {name: tried(lambda kind=kind: socket.socket(*kind).close()) for name, kind in KINDS.items()},
        "listens": tried(listened),
        "program": tried(lambda: subprocess.run(["true"], check=True)),
        "echoed": echoed,
        "opens": {path: tried(lambda path=path: Path(path).open("rb").close()) for path in told["tries"]},
        "environment": sorted(os.environ),
    }
    sys.stdout.write(json.dumps(found))
    sys.stdout.flush()


if __name__ == "__main__":
    main()
