"""The routes of the HTTP API: ROUTES is all of them, one file a subject has what they do.

Imports the web process's requests and replies, and jobs; never a curator, a ledger or a source.
"""

from __future__ import annotations

import functools
from typing import Any, Final

from fastapi import APIRouter
from fastapi.routing import APIRoute
from starlette.responses import Response

from sulq.service.web.openapi import Refused, documented
from sulq.service.web.routes import analysts, ask, datasets, jobs, ledger, service, sql

_HEALTH: Final[dict[str, Any]] = {
    "response_model": service.Health,
    "responses": {
        503: {"model": service.Health, "description": "The clerk does not answer."},
        429: {"model": Refused, "description": "Too many calls."},
        400: {"model": Refused, "description": "Refused."},
    },
}
_METRICS: Final = {200: {"description": "The metrics.", "content": {"text/plain": {"schema": {"type": "string"}}}}}
_TEXT: Final = documented(None)
_EMPTY: Final = documented(None, status=204) | {"response_class": Response}
ONE: Final = "/datasets/{name}"

# Method, address below /v1, what it does, its tag and its part of the OpenAPI document.
ROUTES: Final = (
    ("GET", "/health", service.health, "service", _HEALTH),
    ("GET", "/me", service.me, "service", documented(service.Me)),
    ("GET", "/datasets", datasets.datasets, "datasets", documented(datasets.Datasets)),
    ("GET", ONE, datasets.facts, "datasets", documented(datasets.PublicFacts)),
    (
        "POST", "/datasets", datasets.register, "datasets",
        documented(datasets.Registered, body=datasets.Register, named=True, status=201),
    ),
    ("DELETE", ONE, datasets.withdraw, "datasets", _EMPTY),
    ("POST", "/look", datasets.look, "datasets", documented(datasets.Seen, body=datasets.Look)),
    ("POST", f"{ONE}/ask", ask.ask, "asking", documented(ask.Answered, body=ask.Ask, paid=True)),
    ("POST", f"{ONE}/foresee", ask.foresee, "asking", documented(ask.Foreseen, body=ask.Foresee)),
    ("POST", f"{ONE}/sql", sql.sql, "asking", documented(sql.Rows, body=sql.Sql, paid=True)),
    ("POST", f"{ONE}/explain", sql.explain, "asking", documented(sql.Explained, body=sql.Explain)),
    ("POST", f"{ONE}/plan", sql.plan, "asking", documented(sql.Planned, body=sql.Plan)),
    ("GET", f"{ONE}/budget", ledger.budget, "ledger", documented(ledger.Budget)),
    ("GET", f"{ONE}/transcript", ledger.transcript, "ledger", documented(ledger.Transcript)),
    ("GET", f"{ONE}/receipts/{{seq}}", ledger.receipt, "ledger", documented(ledger.Kept)),
    ("POST", f"{ONE}/verify", ledger.verify, "ledger", documented(ledger.Report)),
    ("GET", f"{ONE}/export", ledger.export, "ledger", documented(ledger.Report)),
    ("PUT", f"{ONE}/shares/{{analyst}}", ledger.share, "ledger", documented(ledger.Report, body=ledger.Share)),
    ("GET", "/analysts", analysts.principals, "analysts", documented(analysts.Principals)),
    (
        "POST", "/analysts", analysts.add, "analysts",
        documented(analysts.Token, body=analysts.Newcomer, named=True, status=201),
    ),
    ("DELETE", "/analysts/{name}", analysts.revoke, "analysts", _EMPTY),
    ("GET", "/kinds", jobs.kinds, "jobs", documented(jobs.Kinds)),
    ("POST", f"{ONE}/jobs", jobs.start, "jobs", documented(jobs.Progress, body=jobs.Work, status=202)),
    ("GET", "/jobs", jobs.mine, "jobs", documented(jobs.AllJobs)),
    ("GET", "/jobs/{key}", jobs.progress, "jobs", documented(jobs.Progress)),
    ("DELETE", "/jobs/{key}", jobs.end, "jobs", documented(jobs.Progress)),
    (
        "GET", "/metrics", service.metrics, "service",
        _TEXT | {"response_class": Response, "responses": _TEXT["responses"] | _METRICS},
    ),
)  # fmt: skip


@functools.cache
def routes() -> list[APIRoute]:
    """The list as FastAPI has it."""
    router = APIRouter(prefix="/v1")
    for method, path, act, tag, document in ROUTES:
        router.add_api_route(path, act, methods=[method], tags=[tag], **document)
    return [route for route in router.routes if isinstance(route, APIRoute)]
