"""Probes for whatever runs the service: whether this process answers, and whether every dataset can be asked."""

from __future__ import annotations

from typing import Any

from fastapi import Request
from pydantic import BaseModel
from starlette.concurrency import run_in_threadpool

from sulq.errors import SulqError
from sulq.service.web.requests import Caller, ClerkClient
from sulq.service.web.responses import RETRY_SECONDS, Json

OK = "ok"
AWAY = "away"


class LiveReply(BaseModel):
    """The process that answers is alive."""

    status: str


class ProblemEntry(BaseModel):
    """A dataset that cannot be asked, why, and what to do."""

    dataset: str
    code: str
    message: str
    remedy: str


class ReadyReply(BaseModel):
    """`ok`, `starting`, `problem`, or `away` where the clerk does not answer; `problems` for an owner alone."""

    status: str
    problems: list[ProblemEntry] | None = None


async def live() -> Json:
    """Whether this web process answers; it asks nobody else, and says nothing of datasets."""
    return Json({"status": OK})


async def ready(request: Request) -> Json:
    """Whether every dataset can be asked: 200, else 503. An owner's token is told which cannot, and why.

    Without a token it says the state alone. It was looked at before, on a fixed beat.
    """
    found: dict[str, Any]
    if "authorization" in request.headers:
        caller = Caller(request)
        caller.admit()
        owner = (await caller.who())["role"] == "owner"
        found = await caller.ask("readiness") if owner else {"status": (await caller.ask("health"))["status"]}
    else:
        state = request.app.state
        state.limits.addresses.take(request.client.host if request.client is not None else "")
        try:
            told = await run_in_threadpool(ClerkClient(state.call, None).ask, "health")
        except SulqError:
            told = {"status": AWAY}
        found = {"status": told["status"]}
    if found["status"] == OK:
        return Json(found)
    return Json(found, status_code=503, headers={"retry-after": RETRY_SECONDS})
