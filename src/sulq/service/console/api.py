"""The console's only door: the public HTTP API, with the visitor's own token.

What a visitor may not do, the console cannot do for them: it holds no key of its
own. The calls stay inside the process (ASGI) but pass every check of the API.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote

import httpx
from starlette.requests import Request
from starlette.types import ASGIApp

from sulq.service.console.refusal import Refusal, SignedOut

Tree = Mapping[str, Any]
SECONDS: Final = 600.0  # the API has its own, shorter limits; this one only ends what hangs
_UNKNOWN: Final = "The curator could not be reached, or did not answer as it should."
_LATER: Final = "Try again in a moment; if it stays so, tell the operator."


def at(*parts: object) -> str:
    """The path of a thing, each part quoted: a name with a slash in it stays one part."""
    return "/v1/" + "/".join(quote(str(part), safe="") for part in parts)


class Api:
    """The API as one visitor sees it."""

    def __init__(self, app: ASGIApp, token: str, request: Request) -> None:
        host = request.headers.get("host", "localhost")
        client = (request.client.host, request.client.port) if request.client else ("127.0.0.1", 0)
        # The visitor's own address: limits by address must not take all visitors for one.
        transport = httpx.ASGITransport(app, raise_app_exceptions=False, client=client)
        self._http = httpx.AsyncClient(
            transport=transport,
            base_url=f"{request.url.scheme}://{host}",
            headers={"Authorization": f"Bearer {token}"},
            timeout=SECONDS,
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
