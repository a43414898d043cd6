"""GET /v1/health: whether the service stands, for anybody; says nothing of data, people or budgets."""

from __future__ import annotations

from typing import Any, Final

from fastapi import APIRouter, Request
from pydantic import BaseModel
from starlette.concurrency import run_in_threadpool

from sulq.errors import SulqError
from sulq.service.sandbox.isolation import files, rights
from sulq.service.web.clerk_oracle import ClerkClient
from sulq.service.web.openapi import Refused
from sulq.service.web.responses import Json
from sulq.version import __version__

router = APIRouter(prefix="/v1", tags=["service"])


class Health(BaseModel):
    """Whether the curator answers, and how its processes are kept apart on this machine."""

    status: str
    version: str
    clerk: dict[str, Any]
    web: dict[str, str]


_OTHER: Final[dict[int | str, dict[str, Any]]] = {
    503: {"model": Health, "description": "The clerk does not answer."},
    429: {"model": Refused, "description": "Too many calls."},
    400: {"model": Refused, "description": "Refused."},
}


@router.get("/health", response_model=Health, responses=_OTHER)
async def health(request: Request) -> Json:
    """Whether the service stands."""
    state = request.app.state
    state.limits.addresses.take(request.client.host if request.client is not None else "")
    web = {"files": files(), "rights": rights()}
    try:
        found = await run_in_threadpool(ClerkClient(state.call, None).ask, "health")
    except SulqError:
        return Json({"status": "away", "version": __version__, "clerk": {}, "web": web}, status_code=503)
    return Json({"status": "ok", "version": __version__, "clerk": found, "web": web})
