"""The routes of the HTTP API: ROUTES is all of them, one file a subject has what they do.

Imports the web process's requests and replies, and jobs; never a curator, a ledger or a source.
"""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final

from fastapi import APIRouter, FastAPI, Request
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute
from starlette.types import ASGIApp, Receive, Scope, Send

from sulq.service.web.openapi import ANY, OF_A_DEBIT, OF_A_JOB, OF_A_NAME, Documented, refusals
from sulq.service.web.requests import Caller, known
from sulq.service.web.responses import Json
from sulq.service.web.routes import asking, jobs, ledger, people, probes, registry

_AWAY: Final[dict[int | str, Any]] = {503: {"model": registry.HealthReply, "description": "The clerk does not answer."}}
_HEALTH: Final = refusals({400: "Refused.", 429: "Too many calls."}) | _AWAY
_UNREADY: Final[dict[int | str, Any]] = {
    503: {"model": probes.ReadyReply, "description": "Not every dataset is ready."}
}
_READY: Final = refusals({400: "Refused.", 401: "The token.", 429: "Too many calls."}) | _UNREADY
OPEN: Final = frozenset({"/v1/health", "/v1/live", "/v1/ready"})  # addresses that need no token
_TEXT: Final[dict[int | str, Any]] = {
    200: {"description": "The metrics.", "content": {"text/plain": {"schema": {"type": "string"}}}}
}
_EMPTY: Final = Documented(status=204)
ONE: Final = "/datasets/{name}"

# Method, address below /v1, what it does, its tag and its part of the OpenAPI document.
ROUTES: Final[tuple[tuple[str, str, Callable[..., Any], str, Documented], ...]] = (
    ("GET", "/health", registry.health, "service", Documented(registry.HealthReply, responses=_HEALTH)),
    ("GET", "/live", probes.live, "service", Documented(probes.LiveReply, responses=refusals({400: "Refused."}))),
    ("GET", "/ready", probes.ready, "service", Documented(probes.ReadyReply, responses=_READY)),
    ("GET", "/me", registry.me, "service", Documented(registry.MeReply)),
    ("GET", "/datasets", registry.datasets, "datasets", Documented(registry.DatasetsReply)),
    ("GET", ONE, registry.facts, "datasets", Documented(registry.FactsReply)),
    (
        "POST", "/datasets", registry.register, "datasets",
        Documented(registry.RegisterReply, registry.RegisterBody, OF_A_NAME, status=201),
    ),
    ("DELETE", ONE, registry.withdraw, "datasets", _EMPTY),
    ("POST", "/look", registry.look, "datasets", Documented(registry.LookReply, registry.LookBody)),
    ("POST", "/check", registry.check, "datasets", Documented(registry.CheckReply, registry.RegisterBody)),
    ("POST", f"{ONE}/ask", asking.ask, "asking", Documented(asking.AskReply, asking.AskBody, OF_A_DEBIT)),
    ("POST", f"{ONE}/foresee", asking.foresee, "asking", Documented(asking.ForeseeReply, asking.ForeseeBody)),
    ("POST", f"{ONE}/sql", asking.sql, "asking", Documented(asking.SqlReply, asking.SqlBody, OF_A_DEBIT)),
    ("POST", f"{ONE}/explain", asking.explain, "asking", Documented(asking.ExplainReply, asking.ExplainBody)),
    ("POST", f"{ONE}/plan", asking.plan, "asking", Documented(asking.PlanReply, asking.PlanBody)),
    ("POST", f"{ONE}/afford", asking.afford, "asking", Documented(asking.AffordReply, asking.AffordBody)),
    ("GET", f"{ONE}/budget", ledger.budget, "ledger", Documented(ledger.BudgetReply)),
    ("GET", f"{ONE}/transcript", ledger.transcript, "ledger", Documented(ledger.TranscriptReply)),
    ("GET", f"{ONE}/receipts/{{seq}}", ledger.receipt, "ledger", Documented(ledger.ReceiptReply)),
    ("POST", f"{ONE}/verify", ledger.verify, "ledger", Documented(ledger.LedgerReport)),
    ("GET", f"{ONE}/export", ledger.export, "ledger", Documented(ledger.LedgerReport)),
    ("PUT", f"{ONE}/shares/{{analyst}}", ledger.share, "ledger", Documented(ledger.LedgerReport, ledger.ShareBody)),
    ("GET", "/analysts", people.principals, "analysts", Documented(people.PrincipalsReply)),
    (
        "POST", "/analysts", people.add, "analysts",
        Documented(people.TokenReply, people.PrincipalBody, OF_A_NAME, status=201),
    ),
    ("DELETE", "/analysts/{name}", people.revoke, "analysts", _EMPTY),
    (
        "POST", "/analysts/{name}/rotate", people.rotate, "analysts",
        Documented(people.TokenReply, people.RotationBody, status=201),
    ),
    ("POST", "/sessions", people.begin, "analysts", Documented(people.SessionReply, status=201)),
    ("DELETE", "/sessions", people.end_all, "analysts", _EMPTY),
    ("DELETE", "/sessions/this", people.end, "analysts", _EMPTY),
    ("GET", "/access", people.access, "analysts", Documented(people.AccessReply)),
    ("GET", "/kinds", jobs.kinds, "jobs", Documented(jobs.KindsReply)),
    ("POST", f"{ONE}/jobs", jobs.start, "jobs", Documented(jobs.JobReply, jobs.JobBody, status=202)),
    ("GET", "/jobs", jobs.mine, "jobs", Documented(jobs.JobsReply)),
    ("GET", "/jobs/{key}", jobs.progress, "jobs", Documented(jobs.JobReply, errors=OF_A_JOB)),
    ("DELETE", "/jobs/{key}", jobs.end, "jobs", Documented(jobs.JobReply, errors=OF_A_JOB)),
    ("GET", "/metrics", registry.metrics, "service", Documented(responses=refusals(ANY) | _TEXT)),
)  # fmt: skip


PLAIN: Final = frozenset({asking.ask, asking.foresee, asking.sql, asking.explain})  # of a dataset's name and a caller


@functools.cache
def routes() -> list[APIRoute]:
    """The list as FastAPI serves it."""
    return _listed(documented=False)


def plain() -> dict[str, APIRoute]:
    """Those that are plain ASGI, by the last word of their address."""
    return {route.path.rpartition("/")[2]: route for route in routes() if route.endpoint in PLAIN}


def _listed(*, documented: bool) -> list[APIRoute]:
    """The list as FastAPI has it; what the document alone needs is left out where it serves."""
    router = APIRouter(prefix="/v1")
    for method, path, act, tag, document in ROUTES:
        options = document.options() if documented else {"response_model": None}
        router.add_api_route(path, act, methods=[method], tags=[tag], **options)
    found = [route for route in router.routes if isinstance(route, APIRoute)]
    for route in found:
        if route.endpoint in PLAIN:
            route.app = _plain(route.endpoint)
    return found


def _plain(act: Callable[[str, Caller], Awaitable[Json]]) -> ASGIApp:
    """A route as plain ASGI: what every ask takes goes through no layer that it does not need."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive, send)
        reply = await act(request.path_params["name"], await known(request))
        await reply(scope, receive, send)

    return app


def document(app: FastAPI, kinds: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The OpenAPI document of the routes under /v1; `kinds`: of job, as `/v1/kinds` has them."""
    if app.openapi_schema is None:
        listed = _listed(documented=True)
        found = get_openapi(title=app.title, version=app.version, summary=app.summary, routes=listed)
        bearer = {"type": "http", "scheme": "bearer"}
        found.setdefault("components", {})["securitySchemes"] = {"token": bearer}
        for path, methods in found["paths"].items():
            for operation in methods.values():
                operation["responses"].pop("422", None)  # what does not fit is refused with 400
                if path not in OPEN:
                    operation["security"] = [{"token": []}]
        starting = found["paths"][f"/v1{ONE}/jobs"]["post"]["requestBody"]["content"]["application/json"]
        jobs.name_kinds(starting["schema"], kinds)
        for unused in ("HTTPValidationError", "ValidationError"):
            found["components"].get("schemas", {}).pop(unused, None)
        app.openapi_schema = found
    return app.openapi_schema
