"""The HTTP API as an application: routes under /v1, the OpenAPI document, and the console before them.

It is given one function, `call`, that sends a frame to the clerk and brings its
reply; it has no other way to data, ledger or access store.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final, cast
from urllib.parse import urlsplit

from anyio import to_thread
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.responses import Response

from sulq.errors import AccessDenied, CuratorError, QuestionError, SulqError
from sulq.service.console import mount_console
from sulq.service.jobs.client import JobsClient
from sulq.service.settings import Service
from sulq.service.web.clerk_pool import Post, post_of
from sulq.service.web.counts import SHARE_SECONDS, RequestCounts, SharedCounts
from sulq.service.web.limits import Limits
from sulq.service.web.requests import Asker, Call
from sulq.service.web.responses import LOOPBACK, Json, RequestGuard, host_of, refused
from sulq.service.web.routes import document, plain, routes
from sulq.service.web.traces import Traces
from sulq.version import __version__

CALLS_A_MINUTE: Final = 1200  # calls a minute for each token, where the owner names none
DECLARING_ROUTES: Final = frozenset({"register", "look", "check", "share"})  # whose refusals its owner reads
MAX_THREADS: Final = 64  # requests that wait for the clerk at one time
# FastAPI would hand requests to a tracer found in the process, bodies included.
SILENT: Final = {"tracing": False, "metrics": False, "logs": False, "operation_spans": False, "auto_configure": False}


def create_app(
    call: Call,
    service: Service,
    *,
    console: bool = True,
    post: Post | None = None,
    jobs: JobsClient | None = None,
    traces: Traces | None = None,
) -> RequestGuard:
    """The application; `call` reaches the clerk, `post` from within the event loop, `jobs` the jobs' process."""
    app = FastAPI(
        title="sulq",
        summary="A database you may ask about everyone and learn about no one.",
        version=__version__,
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        redirect_slashes=False,  # a redirect would carry a token over whatever address a proxy has
        telemetry=cast("Any", SILENT),
        lifespan=_lifespan,
        exception_handlers={
            SulqError: _refused,
            RequestValidationError: _misfit,
            HTTPException: _unknown,
            Exception: _failed,
        },
    )
    tally = RequestCounts()
    app.state.call = call
    app.state.post = post_of(call) if post is None else post
    app.state.settings = service
    app.state.limits = Limits.of(service.rate or CALLS_A_MINUTE)
    app.state.jobs = JobsClient() if jobs is None else jobs
    app.state.tally = tally
    app.state.shared = SharedCounts()
    app.state.traces = Traces() if traces is None else traces
    app.router.routes += [*routes(), APIRoute("/v1/openapi.json", _openapi, methods=["GET"], include_in_schema=False)]
    guarded = RequestGuard(
        app, hosts=_hosts(service), tls=service.tls, tally=tally, plain=plain(), traces=app.state.traces
    )
    if console:
        mount_console(app)
    return guarded


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    to_thread.current_default_thread_limiter().total_tokens = MAX_THREADS
    sharing = asyncio.create_task(_share_counts(app))
    yield
    sharing.cancel()
    await run_in_threadpool(app.state.traces.close)


async def _share_counts(app: FastAPI) -> None:
    """Let other web processes know what this one counts, as long as it runs."""
    while True:
        app.state.shared.put(app.state.tally.told())
        await asyncio.sleep(SHARE_SECONDS)


async def _openapi(request: Request, caller: Asker) -> Json:
    """GET /v1/openapi.json, for whoever has a token."""
    await caller.ask("whoami")
    return Json(await run_in_threadpool(lambda: document(request.app, request.app.state.jobs.kinds())))


def _hosts(service: Service) -> frozenset[str]:
    """The names the server goes by; a page that resolves its own name to this machine is turned away (T86)."""
    own = f"[{service.host}]" if ":" in service.host else service.host
    found = LOOPBACK | {own.lower()} | {name.lower() for name in service.hosts}
    return found if service.public_url is None else found | {host_of(urlsplit(service.public_url).netloc)}


async def _refused(request: Request, error: Exception) -> Response:
    route = request.scope.get("route")
    return refused(cast("SulqError", error), owner=getattr(route, "name", "") in DECLARING_ROUTES)


async def _misfit(_request: Request, error: Exception) -> Response:
    places = [".".join(str(part)[:40] for part in item["loc"]) for item in cast("Any", error).errors()[:3]]
    return refused(QuestionError("bad-request", f"The request does not fit: {', '.join(places)}."))


async def _failed(_request: Request, _error: Exception) -> Response:
    """What nobody foresaw: one constant; its kind is logged where it ends up (T87)."""
    return refused(CuratorError("engine-failed", ""))


async def _unknown(request: Request, error: Exception) -> Response:
    """What the router itself refuses: a path or a method that is not there."""
    found = cast("HTTPException", error)
    if found.status_code != 405:
        return refused(AccessDenied("not-found", "There is no such address."))
    allowed = sorted(_methods(request))
    if request.method == "OPTIONS":
        return Response(status_code=204, headers={"allow": ", ".join(allowed)})
    reply = refused(QuestionError("bad-request", f"This address takes {', '.join(allowed)}."), status=405)
    reply.headers["allow"] = ", ".join(allowed)
    return reply


def _methods(request: Request) -> set[str]:
    """The methods that an address takes."""
    several = (route.methods or set() for route in routes() if route.path_regex.match(request.scope["path"]))
    found = {"OPTIONS"}.union(*several)
    return found | ({"HEAD"} if "GET" in found else set())
