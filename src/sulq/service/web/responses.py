"""What the server answers: JSON with constant headers, errors that say no more than they may, a log line a request.

An error of the curator's own is a constant text whatever went wrong (T31): its
cause is in the operator's log. A refusal of the analyst's question says what was
asked and what to do, since it is made from public facts alone.

`RequestGuard` is plain ASGI, so that nothing of a body is held or copied. A line of the log has the
route's pattern, the status and the time taken: no path, no literal, no token (T80, T88).
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Mapping
from typing import Any, Final, cast

from fastapi import FastAPI
from starlette.responses import Response
from starlette.routing import BaseRoute
from starlette.types import Message, Receive, Scope, Send

from sulq.errors import CODES, AccessDenied, BudgetExceeded, CuratorError, QuestionError, SetupError, SulqError
from sulq.kernel.entropy import random_bytes
from sulq.service import logs
from sulq.service.web.counts import RequestCounts
from sulq.service.web.limits import RateLimited
from sulq.service.web.scope import REQUEST_ID
from sulq.service.web.traces import RequestSpan, Traces

STATUS: Final[dict[str, int]] = {
    "unauthorized": 401,
    "token-expired": 401,
    "forbidden": 403,
    "not-found": 404,
    "not-in-ledger": 404,
    "key-reused": 409,
    "answer-lost": 409,
    "name-taken": 409,
    "name-revoked": 409,
    "rate-limited": 429,
    "too-many-jobs": 429,
    "job-lost": 410,
    "body-too-large": 413,
    "bad-media": 415,
    "body-too-slow": 408,
    "not-ready": 503,
    "ledger-busy": 503,
    "unreachable": 503,
    "closed": 503,
    "forked": 503,
    "bad-config": 400,
    "not-available": 400,
}
FAMILIES: Final[tuple[tuple[type[SulqError], int], ...]] = (
    (BudgetExceeded, 402),
    (AccessDenied, 403),
    (QuestionError, 400),
    (SetupError, 503),
    (CuratorError, 500),
)
FAILED: Final = "The curator failed."
ATTENTION: Final = "This dataset needs its owner's attention; nothing was spent."
UNWRITTEN: Final = "The server's access log or store needs its owner's attention; nothing was done."
OPENING: Final = "This is not ready at the moment; nothing was spent."
RETRY_SECONDS: Final = "2"  # after which a caller may try again what could not be reached
# Headers of every response that names none of its own: nothing is kept, framed, guessed at or run.
HEADERS: Final[dict[str, str]] = {
    "cache-control": "no-store",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}
HSTS: Final = "max-age=31536000"
BELOW: Final = ["", "v1", "datasets"]  # the words before a dataset's name
REQUEST_ID_BYTES: Final = 8
CODE: Final = "sulq.code"  # where the scope of a request has the code that refused it
LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "[::1]"})
_log = logging.getLogger(__name__)


class Json(Response):
    """A JSON body; NaN and infinities have no place in one."""

    media_type = "application/json"

    def render(self, content: object) -> bytes:
        """The bytes."""
        return json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


class Passed(Json):
    """A body that is JSON already."""

    def render(self, content: object) -> bytes:
        """The bytes, as they came."""
        return cast("bytes", content)


class ErrorJson(Json):
    """An error as a body; the scope of the request is told its code, which is counted and logged."""

    code = ""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it."""
        scope[CODE] = self.code
        await super().__call__(scope, receive, send)


def status_of(error: SulqError, *, owner: bool = False) -> int:
    """An error's status. `owner`: the owner's own declarations were refused, and the owner reads it."""
    if isinstance(error, CuratorError) and error.code != "unreachable":
        return 500
    if error.code in STATUS:
        return STATUS[error.code]
    if owner and isinstance(error, SetupError):
        return 400
    return next(status for family, status in FAMILIES if isinstance(error, family))


def refused(error: SulqError, *, owner: bool = False, status: int | None = None) -> ErrorJson:
    """An error as a response."""
    code = status or status_of(error, owner=owner)
    headers = {}
    if code == 401:
        headers["www-authenticate"] = 'Bearer realm="sulq"'
    if code in (429, 503):
        headers["retry-after"] = str(error.seconds) if isinstance(error, RateLimited) else RETRY_SECONDS
    reply = ErrorJson({"error": told(error, owner=owner)}, status_code=code, headers=headers)
    reply.code = error.code
    return reply


def told(error: SulqError, *, owner: bool = False) -> dict[str, str]:
    """What a caller is told of an error."""
    message, remedy = error.message, error.remedy
    if isinstance(error, CuratorError):
        message, remedy = FAILED, CODES[error.code]
    elif isinstance(error, SetupError) and status_of(error, owner=owner) == 503:
        because = OPENING if error.code == "not-ready" else UNWRITTEN if error.code.startswith("access-") else ATTENTION
        message, remedy = because, CODES[error.code]
    return {"kind": _kind(error), "code": error.code, "message": message, "remedy": remedy}


def _kind(error: SulqError) -> str:
    return next(family.__name__ for family, _ in FAMILIES if isinstance(error, family))


class RequestGuard:
    """The outermost part of the application: whatever fails inside becomes a constant here (T87)."""

    def __init__(
        self,
        app: FastAPI,
        *,
        hosts: frozenset[str],
        tls: bool,
        tally: RequestCounts,
        plain: Mapping[str, BaseRoute] | None = None,
        traces: Traces | None = None,
    ) -> None:
        """`plain`: routes below a dataset that are plain ASGI, by the last word of their address."""
        self.app = app
        self._hosts = hosts
        self._tally = tally
        headers = HEADERS | ({"strict-transport-security": HSTS} if tls else {})
        self._headers = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]
        self._plain = {} if plain is None else plain
        self._traces = Traces() if traces is None else traces

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return
        request_id = random_bytes(REQUEST_ID_BYTES).hex()
        with logs.during(request_id), self._traces.request() as span:
            await self._answer(scope, receive, send, request_id, span)

    async def _answer(
        self, scope: Scope, receive: Receive, send: Send, request_id: str, span: RequestSpan | None
    ) -> None:
        begun, status = time.monotonic(), 0
        head = scope["method"] == "HEAD"
        inner = {**scope, REQUEST_ID: request_id} | ({"method": "GET"} if head else {})
        own_headers = [*self._headers, (b"x-request-id", request_id.encode())]
        self._tally.under_way += 1

        async def answer(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                named = {name for name, _ in message["headers"]}
                message["headers"] = [*message["headers"], *(own for own in own_headers if own[0] not in named)]
            elif head and message["type"] == "http.response.body":
                message = {**message, "body": b""}
            await send(message)

        try:
            if _host(scope) not in self._hosts:
                await refused(QuestionError("bad-request", "This server does not go by that name."))(
                    inner, receive, answer
                )
            elif (plain := self._plain_route(inner)) is not None:
                await self._answer_plainly(plain, inner, receive, answer)
            else:
                await self.app(inner, receive, answer)
        except Exception as error:  # noqa: BLE001 - its text may hold anything; its kind is the operator's to see
            _log.error("a request failed", extra={"error": type(error).__name__})
            if not status:
                await refused(CuratorError("engine-failed", ""))(inner, receive, answer)
        finally:
            route, code = getattr(inner.get("route"), "path", ""), inner.get(CODE)
            taken = time.monotonic() - begun
            self._tally.under_way -= 1
            self._tally.request(scope["method"], route, status, taken, code)
            more = {} if code is None else {"code": code}
            if span is not None:
                self._traces.tell(span, method=scope["method"], route=route, status=status, code=code, known=request_id)
            milliseconds = round(1000 * taken, 1)
            _log.info("request", extra={"route": route, "status": status, "milliseconds": milliseconds, **more})

    def _plain_route(self, scope: Scope) -> BaseRoute | None:
        """The route of what every ask takes, which goes through no layer that it does not need."""
        words = scope["path"].split("/")
        fits = len(words) == 5 and words[:3] == BELOW and words[3] and scope["method"] == "POST"
        return self._plain.get(words[4]) if fits else None

    async def _answer_plainly(self, route: BaseRoute, scope: Scope, receive: Receive, send: Send) -> None:
        name = scope["path"].split("/")[3]
        scope.update(app=self.app, route=route, path_params={"name": name})
        try:
            await cast("Any", route).app(scope, receive, send)
        except SulqError as error:
            await refused(error)(scope, receive, send)


def _host(scope: Scope) -> str:
    """The name a request calls the server by, without its port."""
    return host_of(next((value for key, value in scope["headers"] if key == b"host"), b"").decode("latin-1").lower())


def host_of(named: str) -> str:
    """A name without its port."""
    return named.rsplit(":", 1)[0] if not named.endswith("]") else named
