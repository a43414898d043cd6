"""A part for tests that tries to open, list and connect to what it is told to, and says what it could."""

from __future__ import annotations

import json
import os
import socket
import sys

from sulq.service.sandbox import isolation


def opens(path: str, how: str) -> bool:
    try:
        with open(path, how):  # noqa: PTH123 - as anything in the process would
            return True
    except OSError:
        return False


def lists(path: str) -> bool:
    try:
        return bool(os.listdir(path))  # noqa: PTH208 - likewise
    except OSError:
        return False


def connects(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 5).close()
    except OSError:
        return False
    return True


def main() -> None:
    told = isolation.settings("prying")
    found = {
        "files": isolation.files(),
        "rights": isolation.rights(),
        "opens": {path: [opens(path, "rb"), opens(path, "ab")] for path in told["tries"]},
        "lists": [lists(path) for path in told["folders"]],
        "connects": connects(told["port"]),
    }
    sys.stdout.write(json.dumps(found))
    sys.stdout.flush()


if __name__ == "__main__":
    main()
