"""GET /v1/metrics: counts and standing budgets in Prometheus' text form, for the owner alone."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from fastapi import APIRouter
from starlette.responses import PlainTextResponse, Response

from sulq.service.web.openapi import documented
from sulq.service.web.requests import Asker

router = APIRouter(prefix="/v1", tags=["service"])
_NOT: Final = re.compile(r"[^a-z0-9_]+")
_TEXT: Final[dict[int, dict[str, Any]]] = {
    200: {"description": "The metrics.", "content": {"text/plain": {"schema": {"type": "string"}}}}
}
_SAID: Final = documented(None)


@router.get(
    "/metrics",
    response_class=Response,
    **(_SAID | {"responses": _SAID["responses"] | _TEXT}),
)
async def metrics(caller: Asker) -> Response:
    """Counts and standing budgets, in Prometheus' text form (owner)."""
    found = await caller.ask("metrics")
    web = caller.request.app.state.tally.snapshot()
    lines = [*_lines("sulq", found), *_requests(web)]
    return PlainTextResponse("\n".join(lines) + "\n", media_type="text/plain; version=0.0.4")


def _requests(counts: Mapping[tuple[str, int], int]) -> Iterator[str]:
    yield "# TYPE sulq_http_requests_total counter"
    for (route, status), number in sorted(counts.items()):
        yield f'sulq_http_requests_total{{route="{_quoted(route)}",status="{status}"}} {number}'


def _lines(prefix: str, tree: Mapping[str, object], labels: str = "") -> Iterator[str]:
    """Numbers of a tree: nested names join with _, a list of objects labels its items by their texts."""
    for name, value in tree.items():
        full = f"{prefix}_{_NOT.sub('_', name.lower())}"
        if isinstance(value, bool) or (isinstance(value, (int, float)) and not isinstance(value, bool)):
            yield f"{full}{{{labels}}} {float(value):.17g}" if labels else f"{full} {float(value):.17g}"
        elif isinstance(value, Mapping):
            yield from _lines(full, value, labels)
        elif isinstance(value, list):
            for item in value:
                if isinstance(item, Mapping):
                    words = [
                        f'{_NOT.sub("_", k.lower())}="{_quoted(v)}"' for k, v in item.items() if isinstance(v, str)
                    ]
                    rest = {k: v for k, v in item.items() if not isinstance(v, str)}
                    yield from _lines(full, rest, ",".join(filter(None, [labels, *words])))


def _quoted(text: str) -> str:
    """A label's value: newlines, quotes and backslashes cannot end it (T88)."""
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')
