"""Around every request: the host it names, the headers of its response, one line in the log, one count.

Plain ASGI, so that nothing of a body is held or copied. A line of the log has the
route's pattern, the status and the time taken: no path, no literal, no token (T80, T88).
"""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Mapping
from typing import Final

from fastapi import FastAPI
from starlette.datastructures import MutableHeaders
from starlette.types import Message, Receive, Scope, Send

from sulq.errors import CuratorError, QuestionError
from sulq.service.web.responses import HEADERS, HSTS, refused

LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "[::1]"})
_log = logging.getLogger(__name__)


class RequestCounts:
    """How many requests each route answered with each status."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: Counter[tuple[str, int]] = Counter()

    def add(self, route: str, status: int) -> None:
        """Count one."""
        with self._lock:
            self._counts[route, status] += 1

    def snapshot(self) -> Mapping[tuple[str, int], int]:
        """All counts since the process started."""
        with self._lock:
            return dict(self._counts)


class RequestGuard:
    """The outermost part of the application: whatever fails inside becomes a constant here (T87)."""

    def __init__(self, app: FastAPI, *, hosts: frozenset[str], tls: bool, tally: RequestCounts) -> None:
        self.app = app
        self._hosts = hosts
        self._tally = tally
        self._headers = HEADERS | ({"strict-transport-security": HSTS} if tls else {})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return
        begun, status = time.monotonic(), 0
        head = scope["method"] == "HEAD"
        inner = {**scope, "method": "GET"} if head else scope

        async def answer(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                for name, value in self._headers.items():
                    headers.setdefault(name, value)
            elif head and message["type"] == "http.response.body":
                message = {**message, "body": b""}
            await send(message)

        try:
            if _host(scope) not in self._hosts:
                await refused(QuestionError("bad-request", "This server does not go by that name."))(
                    inner, receive, answer
                )
            else:
                await self.app(inner, receive, answer)
        except Exception as error:  # noqa: BLE001 - its text may hold anything; its kind is the operator's to see
            _log.error("a request failed", extra={"error": type(error).__name__})
            if not status:
                await refused(CuratorError("engine-failed", ""))(inner, receive, answer)
        finally:
            route = getattr(inner.get("route"), "path", "")
            self._tally.add(f"{scope['method'] if route else '-'} {route}", status)
            taken = round(1000 * (time.monotonic() - begun), 1)
            _log.info("request", extra={"route": route, "status": status, "milliseconds": taken})


def _host(scope: Scope) -> str:
    """The name a request calls the server by, without its port."""
    return host_of(next((value for key, value in scope["headers"] if key == b"host"), b"").decode("latin-1").lower())


def host_of(named: str) -> str:
    """A name without its port."""
    return named.rsplit(":", 1)[0] if not named.endswith("]") else named
