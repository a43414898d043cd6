"""Jobs: which kinds there are, starting one, its progress and result, ending it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from pydantic import BaseModel
from starlette.concurrency import run_in_threadpool

from sulq.errors import AccessDenied
from sulq.service.jobs.client import JobsClient
from sulq.service.web.openapi import ErrorDetail
from sulq.service.web.requests import Asker, Body, Caller
from sulq.service.web.responses import Json

ASKERS: Final = ("owner", "analyst")


def name_kinds(schema: dict[str, Any], kinds: Sequence[Mapping[str, Any]]) -> None:
    """Say in the document's schema of `JobBody` which parameters go with which kind."""
    schema["properties"]["kind"] = {"type": "string", "enum": [kind["name"] for kind in kinds]}
    schema["anyOf"] = [
        {"properties": {"kind": {"const": kind["name"]}, "parameters": kind["parameters"]}} for kind in kinds
    ]


class JobBody(Body):
    """A kind of job and its parameters."""

    kind: str
    parameters: dict[str, Any]


class JobReply(BaseModel):
    """How far a job is: waiting, running, done, failed or cancelled, and what it found so far.

    `seconds_left`: until it is ended, while it runs.
    """

    id: str
    dataset: str
    kind: str
    state: str
    done: int
    total: int
    seconds_left: int | None
    result: dict[str, Any] | None
    error: ErrorDetail | None


class JobsReply(BaseModel):
    """The caller's own jobs, the latest first."""

    jobs: list[JobReply]


class KindReply(BaseModel):
    """A kind of job, the JSON schema of its parameters, and how a page asks for them where it is a learner's."""

    name: str
    title: str
    parameters: dict[str, Any]
    form: dict[str, Any] | None


class KindsReply(BaseModel):
    """The kinds of job there are."""

    kinds: list[KindReply]


async def _do(caller: Caller, what: str, **body: object) -> dict[str, object]:
    """Have something done about the caller's own jobs; whose they are the jobs' process finds out by the token."""
    jobs: JobsClient = caller.request.app.state.jobs
    token = caller.clerk.token or ""
    return await caller.work(lambda: jobs.do(what, body, token=token))


async def kinds(caller: Asker) -> Json:
    """The kinds of job and their parameters."""
    await caller.who()
    jobs: JobsClient = caller.request.app.state.jobs
    return Json({"kinds": await run_in_threadpool(jobs.kinds)})


async def start(name: str, caller: Asker) -> Json:
    """Start a job; it asks with the caller's token."""
    body = await caller.body(JobBody)
    if (await caller.who())["role"] not in ASKERS:
        raise AccessDenied("forbidden", "A job asks questions; your role does not.")
    await caller.ask("facts", dataset=name)  # a dataset that is not there is refused now
    told = {"dataset": name, "kind": body.kind, "parameters": body.parameters}
    return Json(await _do(caller, "start", **told), status_code=202)


async def mine(caller: Asker) -> Json:
    """The caller's own jobs."""
    return Json(await _do(caller, "of"))


async def progress(key: str, caller: Asker) -> Json:
    """A job's progress and what it found so far; its maker's alone."""
    return Json(await _do(caller, "find", id=key))


async def end(key: str, caller: Asker) -> Json:
    """End a job at once; what was asked, a question under way included, stays paid."""
    return Json(await _do(caller, "end", id=key))
