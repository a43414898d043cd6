"""Analysts over HTTP, as little in their own way as can be: one process, one connection each, one ask at a time.

python -m benchmarks.crowd PORT SECONDS FIRST, the tokens as JSON on standard input; prints one JSON record.
"""

from __future__ import annotations

import json
import selectors
import socket
import sys
import time
from collections import Counter

import sulq
from sulq.answers import wire

SPEND = 0.0001
HEAD = (
    "POST /v1/datasets/survey/ask HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {}\r\n"
    "Content-Type: application/json\r\nContent-Length: {}\r\n\r\n"
)
MARK = 987_654.5
MARKS = 2_000_000  # different questions: each compares with another number of the column's grid


def bodies() -> tuple[str, str]:
    """What stands before and after the number that makes each ask another one."""
    question = sulq.Sums((sulq.lit(1),), sulq.col("income") < MARK)
    body = {"question": wire.to_json(question), "spend": wire.to_json(sulq.Epsilon(SPEND)), "key": None, "reuse": False}
    before, _, after = json.dumps(body).partition(str(MARK))
    return before, after


class Analyst:
    """One connection and the ask under way on it."""

    def __init__(self, port: int, token: str, number: int) -> None:
        self.sock = socket.create_connection(("127.0.0.1", port))
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._token = token
        self._number = number
        self._before, self._after = bodies()
        self._came = b""
        self.begun = 0.0

    def ask(self, places: int) -> None:
        """Send the next ask, which nobody has asked before."""
        self._number += places
        body = f"{self._before}{self._number % MARKS / 10:.1f}{self._after}"
        self._came = b""
        self.begun = time.perf_counter()
        self.sock.sendall((HEAD.format(self._token, len(body)) + body).encode())

    def answered(self) -> str | None:
        """The status, once the whole reply is here."""
        part = self.sock.recv(2**16)
        if not part:
            return "closed"
        self._came += part
        head, end, rest = self._came.partition(b"\r\n\r\n")
        if not end:
            return None
        length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n", 1)[0])
        return head[9:12].decode() if len(rest) >= length else None


def crowd(port: int, seconds: float, first: int, tokens: list[str]) -> dict[str, object]:
    """Ask for so long; what each ask took, and how it ended."""
    waiting = selectors.DefaultSelector()
    analysts = [Analyst(port, token, first + place) for place, token in enumerate(tokens)]
    outcomes: Counter[str] = Counter()
    taken: list[float] = []
    begun = time.perf_counter()
    for analyst in analysts:
        waiting.register(analyst.sock, selectors.EVENT_READ, analyst)
        analyst.ask(len(tokens))
    while len(waiting.get_map()):
        for key, _ in waiting.select():
            analyst = key.data
            status = analyst.answered()
            if status is None:
                continue
            now = time.perf_counter()
            taken.append(now - analyst.begun)
            outcomes[status] += 1
            if now - begun < seconds and status != "closed":
                analyst.ask(len(tokens))
            else:
                waiting.unregister(analyst.sock)
                analyst.sock.close()
    return {"seconds": time.perf_counter() - begun, "outcomes": dict(outcomes), "taken": taken}


if __name__ == "__main__":
    port, seconds, first = sys.argv[1:]
    print(json.dumps(crowd(int(port), float(seconds), int(first), json.loads(sys.stdin.read()))))
