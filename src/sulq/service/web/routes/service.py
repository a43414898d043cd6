"""The service itself: whether it stands, whose a token is, counts and standing budgets for the owner."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from fastapi import Request
from pydantic import BaseModel
from starlette.concurrency import run_in_threadpool
from starlette.responses import PlainTextResponse, Response

from sulq.errors import SulqError
from sulq.service.sandbox.isolation import files, rights
from sulq.service.web.clerk_oracle import ClerkClient
from sulq.service.web.requests import Asker
from sulq.service.web.responses import Json
from sulq.version import __version__

_NOT_A_NAME: Final = re.compile(r"[^a-z0-9_]+")


class HealthReply(BaseModel):
    """Whether the curator answers, and how its processes are kept apart on this machine."""

    status: str
    version: str
    clerk: dict[str, Any]
    web: dict[str, str]


class MeReply(BaseModel):
    """The token's holder."""

    name: str
    role: str
    datasets: list[str] | None
    expires: int | str | None


async def health(request: Request) -> Json:
    """Whether the service stands."""
    state = request.app.state
    state.limits.addresses.take(request.client.host if request.client is not None else "")
    told = {"version": __version__, "web": {"files": files(), "rights": rights()}}
    try:
        clerk = await run_in_threadpool(ClerkClient(state.call, None).ask, "health")
    except SulqError:
        return Json({"status": "away", "clerk": {}} | told, status_code=503)
    return Json({"status": "ok", "clerk": clerk} | told)


async def me(caller: Asker) -> Json:
    """Name, role, datasets and expiry of the token."""
    return await caller.reply("whoami")


async def metrics(caller: Asker) -> Response:
    """Counts and standing budgets, in Prometheus' text form (owner)."""
    found = await caller.ask("metrics")
    lines = [*_lines("sulq", found), *_requests(caller.request.app.state.tally.snapshot())]
    return PlainTextResponse("\n".join(lines) + "\n", media_type="text/plain; version=0.0.4")


def _requests(counts: Mapping[tuple[str, int], int]) -> Iterator[str]:
    yield "# TYPE sulq_http_requests_total counter"
    for (route, status), number in sorted(counts.items()):
        yield f'sulq_http_requests_total{{route="{_quoted(route)}",status="{status}"}} {number}'


def _lines(prefix: str, tree: Mapping[str, object], labels: str = "") -> Iterator[str]:
    """Numbers of a tree: nested names join with _, a list of objects labels its items by their texts."""
    for name, value in tree.items():
        full = f"{prefix}_{_NOT_A_NAME.sub('_', name.lower())}"
        if isinstance(value, bool) or (isinstance(value, (int, float)) and not isinstance(value, bool)):
            yield f"{full}{{{labels}}} {float(value):.17g}" if labels else f"{full} {float(value):.17g}"
        elif isinstance(value, Mapping):
            yield from _lines(full, value, labels)
        elif isinstance(value, list):
            for item in value:
                if isinstance(item, Mapping):
                    words = [
                        f'{_NOT_A_NAME.sub("_", k.lower())}="{_quoted(v)}"'
                        for k, v in item.items()
                        if isinstance(v, str)
                    ]
                    rest = {k: v for k, v in item.items() if not isinstance(v, str)}
                    yield from _lines(full, rest, ",".join(filter(None, [labels, *words])))


def _quoted(text: str) -> str:
    """A label's value: newlines, quotes and backslashes cannot end it (T88)."""
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')
