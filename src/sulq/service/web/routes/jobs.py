"""Jobs: which kinds there are, starting one, its progress and result, ending it."""

from __future__ import annotations

from typing import Any, Final

from pydantic import BaseModel, ConfigDict
from starlette.concurrency import run_in_threadpool

from sulq.errors import AccessDenied
from sulq.service.jobs import manager
from sulq.service.jobs.manager import ForwardedJobs, LocalJobs
from sulq.service.web.openapi import ErrorDetail
from sulq.service.web.requests import Asker, Body, Caller
from sulq.service.web.responses import Json

ASKERS: Final = ("owner", "analyst")


def _of_each_kind(schema: dict[str, Any]) -> None:
    """Say in the document which parameters go with which kind."""
    schema["properties"]["kind"] = {"type": "string", "enum": [kind.name for kind in manager.kinds()]}
    schema["anyOf"] = [
        {"properties": {"kind": {"const": kind.name}, "parameters": kind.parameters.model_json_schema()}}
        for kind in manager.kinds()
    ]


class JobBody(Body):
    """A kind of job and its parameters."""

    model_config = ConfigDict(json_schema_extra=_of_each_kind)

    kind: str
    parameters: dict[str, Any]


class JobReply(BaseModel):
    """How far a job is: waiting, running, done, failed or cancelled, and what it found so far."""

    id: str
    dataset: str
    kind: str
    state: str
    done: int
    total: int
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


async def _do(caller: Caller, what: str, owner: str, **body: object) -> dict[str, object]:
    """Have something done about the caller's own jobs, in whichever web process they are."""
    jobs: LocalJobs | ForwardedJobs = caller.request.app.state.job_calls
    token = caller.clerk.token or ""
    return await run_in_threadpool(lambda: jobs.do(what, body, token=token, owner=owner))


async def _name(caller: Caller, *roles: str) -> str:
    """Who calls, if of one of these roles (of any, where none is named)."""
    found = await caller.who()
    if roles and found["role"] not in roles:
        raise AccessDenied("forbidden", "A job asks questions; your role does not.")
    return str(found["name"])


async def kinds(caller: Asker) -> Json:
    """The kinds of job and their parameters."""
    await _name(caller)
    return Json({"kinds": await run_in_threadpool(_offers)})


def _offers() -> list[dict[str, object]]:
    return [
        {"name": kind.name, "title": kind.title, "parameters": kind.parameters.model_json_schema(), "form": kind.form}
        for kind in manager.kinds()
    ]


async def start(name: str, caller: Asker) -> Json:
    """Start a job; it asks with the caller's token."""
    body = await caller.body(JobBody)
    owner = await _name(caller, *ASKERS)
    await caller.ask("facts", dataset=name)  # a dataset that is not there is refused now
    told = {"dataset": name, "kind": body.kind, "parameters": body.parameters}
    return Json(await _do(caller, "start", owner, **told), status_code=202)


async def mine(caller: Asker) -> Json:
    """The caller's own jobs."""
    return Json(await _do(caller, "of", await _name(caller)))


async def progress(key: str, caller: Asker) -> Json:
    """A job's progress and what it found so far; its maker's alone."""
    return Json(await _do(caller, "find", await _name(caller), id=key))


async def end(key: str, caller: Asker) -> Json:
    """Ask no further question for a job; what was asked stays paid."""
    return Json(await _do(caller, "end", await _name(caller), id=key))
