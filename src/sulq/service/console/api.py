"""The console's only door: the public HTTP API, with the visitor's own session; and refusals as the console shows them.

What a visitor may not do, the console cannot do for them: it holds no key of its
own. The calls stay inside the process (ASGI) but pass every check of the API; the session goes with them in the
scope of the call, where no request from outside can put one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote

import httpx
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from sulq.service.web.scope import REQUEST_ID, SESSION

_HEADINGS = {
    "budget-exceeded": "There is not enough budget left for this",
    "rate-limited": "A little slower, please",
    "not-ready": "The data is still being opened",
    "token-expired": "Your token has run out",
    "raw-rows": "Single rows are never shown",
    "unknown-column": "There is no such column",
    "unknown-table": "There is no such table",
    "sql-syntax": "This could not be read as SQL",
    "result-let-go": "This result is no longer here",
    "job-lost": "This job is no longer here",
    "job-overrun": "This took longer than a job may",
    "job-memory": "This needed more memory than a job may have",
    "too-costly": "That accuracy costs more than you allow",
}
_BY_STATUS = {
    400: "This cannot be answered as it stands",
    401: "Please sign in",
    402: "There is not enough budget left for this",
    403: "Not allowed",
    404: "Not found",
    409: "This was sent before, with something else in it",
    413: "That was too much at once",
    422: "This cannot be answered as it stands",
    429: "A little slower, please",
    500: "The curator could not finish",
    503: "Not ready yet",
}
Tree = Mapping[str, Any]
MAX_CALL_SECONDS: Final = 600.0  # the API has its own, shorter limits; this one only ends what hangs
_UNKNOWN: Final = "The curator could not be reached, or did not answer as it should."
_LATER: Final = "Try again in a moment; if it stays so, tell the operator."


class Refusal(Exception):
    """Not done, and why; `status` is HTTP's, `code` is looked up in the reference of errors."""

    def __init__(self, status: int, code: str, message: str, remedy: str) -> None:
        self.status = status
        self.code = code
        self.message = message
        self.remedy = remedy
        super().__init__(code)

    @property
    def heading(self) -> str:
        """The refusal in a few kind words."""
        return _HEADINGS.get(self.code) or _BY_STATUS.get(self.status, "That did not work")

    @property
    def free(self) -> bool:
        """Whether it is certain that nothing was spent; a failure of the curator's own may stand in the ledger."""
        return self.status < 500 or self.code in ("not-ready", "rate-limited")


class SignedOut(Exception):
    """The API does not know the token, or no longer: the visitor must sign in."""

    def __init__(self, refusal: Refusal) -> None:
        self.refusal = refusal
        super().__init__(refusal.code)


def at(*parts: object) -> str:
    """The path of a thing, each part quoted: a name with a slash in it stays one part."""
    return "/v1/" + "/".join(quote(str(part), safe="") for part in parts)


class Api:
    """The API as one visitor sees it, by a session or, at the door, by a token."""

    def __init__(self, app: ASGIApp, request: Request, *, session: str | None = None, token: str | None = None) -> None:
        host = request.headers.get("host", "localhost")
        client = (request.client.host, request.client.port) if request.client else ("127.0.0.1", 0)
        known = {REQUEST_ID: request.scope.get(REQUEST_ID, "")} | ({} if session is None else {SESSION: session})

        async def within(scope: Scope, receive: Receive, send: Send) -> None:
            await app({**scope, **known}, receive, send)

        # The visitor's own address: limits by address must not take all visitors for one.
        transport = httpx.ASGITransport(within, raise_app_exceptions=False, client=client)
        self._http = httpx.AsyncClient(
            transport=transport,
            base_url=f"{request.url.scheme}://{host}",
            headers={} if token is None else {"Authorization": f"Bearer {token}"},
            timeout=MAX_CALL_SECONDS,
        )

    async def close(self) -> None:
        """End the conversation."""
        await self._http.aclose()

    async def get(self, path: str, **query: object) -> Tree:
        """Read."""
        return _tree(await self._send("GET", path, query=query))

    async def post(self, path: str, body: object) -> Tree:
        """Ask, or have something made."""
        return _tree(await self._send("POST", path, body=body))

    async def put(self, path: str, body: object) -> Tree:
        """Set."""
        return _tree(await self._send("PUT", path, body=body))

    async def delete(self, path: str) -> None:
        """End something."""
        await self._send("DELETE", path)

    async def download(self, path: str) -> tuple[bytes, str]:
        """A file as the API gives it, and its kind."""
        reply = await self._send("GET", path)
        return reply.content, reply.headers.get("content-type", "application/octet-stream")

    async def _send(
        self, method: str, path: str, *, query: Mapping[str, object] | None = None, body: object = None
    ) -> httpx.Response:
        params = {name: str(value) for name, value in (query or {}).items() if value is not None}
        content = None if body is None else json.dumps(body, allow_nan=False).encode()
        headers = {} if body is None else {"Content-Type": "application/json"}
        try:
            reply = await self._http.request(method, path, params=params, content=content, headers=headers)
        except httpx.HTTPError:
            raise Refusal(503, "unreachable", _UNKNOWN, _LATER) from None
        if reply.status_code >= 400:
            refusal = _refusal(reply)
            raise SignedOut(refusal) if refusal.status == 401 else refusal
        return reply


def _tree(reply: httpx.Response) -> Tree:
    if reply.status_code == 204 or not reply.content:
        return {}
    try:
        found = reply.json()
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise Refusal(500, "engine-failed", _UNKNOWN, _LATER)
    return found


def _refusal(reply: httpx.Response) -> Refusal:
    try:
        found = reply.json()["error"]
        code, message, remedy = (str(found.get(name, "")) for name in ("code", "message", "remedy"))
    except (ValueError, LookupError, TypeError, AttributeError):
        code, message, remedy = "", "", ""
    return Refusal(reply.status_code, code or "engine-failed", message or _UNKNOWN, remedy or _LATER)
