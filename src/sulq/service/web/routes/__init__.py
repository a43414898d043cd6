"""The routes of the HTTP API: ROUTES is all of them, one file a subject has what they do.

Imports the web process's requests and replies, and jobs; never a curator, a ledger or a source.
"""

from __future__ import annotations

import functools
from typing import Any, Final

from fastapi import APIRouter
from fastapi.routing import APIRoute
from starlette.responses import Response

from sulq.service.web.openapi import ErrorReply, documented
from sulq.service.web.routes import analysts, ask, datasets, jobs, ledger, service, sql

_HEALTH: Final[dict[str, Any]] = {
    "response_model": service.HealthReply,
    "responses": {
        503: {"model": service.HealthReply, "description": "The clerk does not answer."},
        429: {"model": ErrorReply, "description": "Too many calls."},
        400: {"model": ErrorReply, "description": "Refused."},
    },
}
_METRICS: Final = {200: {"description": "The metrics.", "content": {"text/plain": {"schema": {"type": "string"}}}}}
_TEXT: Final = documented(None)
_EMPTY: Final = documented(None, status=204) | {"response_class": Response}
ONE: Final = "/datasets/{name}"

# Method, address below /v1, what it does, its tag and its part of the OpenAPI document.
ROUTES: Final = (
    ("GET", "/health", service.health, "service", _HEALTH),
    ("GET", "/me", service.me, "service", documented(service.MeReply)),
    ("GET", "/datasets", datasets.datasets, "datasets", documented(datasets.DatasetsReply)),
    ("GET", ONE, datasets.facts, "datasets", documented(datasets.FactsReply)),
    (
        "POST", "/datasets", datasets.register, "datasets",
        documented(datasets.RegisterReply, body=datasets.RegisterBody, named=True, status=201),
    ),
    ("DELETE", ONE, datasets.withdraw, "datasets", _EMPTY),
    ("POST", "/look", datasets.look, "datasets", documented(datasets.LookReply, body=datasets.LookBody)),
    ("POST", f"{ONE}/ask", ask.ask, "asking", documented(ask.AskReply, body=ask.AskBody, paid=True)),
    ("POST", f"{ONE}/foresee", ask.foresee, "asking", documented(ask.ForeseeReply, body=ask.ForeseeBody)),
    ("POST", f"{ONE}/sql", sql.sql, "asking", documented(sql.SqlReply, body=sql.SqlBody, paid=True)),
    ("POST", f"{ONE}/explain", sql.explain, "asking", documented(sql.ExplainReply, body=sql.ExplainBody)),
    ("POST", f"{ONE}/plan", sql.plan, "asking", documented(sql.PlanReply, body=sql.PlanBody)),
    ("GET", f"{ONE}/budget", ledger.budget, "ledger", documented(ledger.BudgetReply)),
    ("GET", f"{ONE}/transcript", ledger.transcript, "ledger", documented(ledger.TranscriptReply)),
    ("GET", f"{ONE}/receipts/{{seq}}", ledger.receipt, "ledger", documented(ledger.ReceiptReply)),
    ("POST", f"{ONE}/verify", ledger.verify, "ledger", documented(ledger.LedgerReport)),
    ("GET", f"{ONE}/export", ledger.export, "ledger", documented(ledger.LedgerReport)),
    (
        "PUT", f"{ONE}/shares/{{analyst}}", ledger.share, "ledger",
        documented(ledger.LedgerReport, body=ledger.ShareBody),
    ),
    ("GET", "/analysts", analysts.principals, "analysts", documented(analysts.PrincipalsReply)),
    (
        "POST", "/analysts", analysts.add, "analysts",
        documented(analysts.TokenReply, body=analysts.PrincipalBody, named=True, status=201),
    ),
    ("DELETE", "/analysts/{name}", analysts.revoke, "analysts", _EMPTY),
    ("GET", "/kinds", jobs.kinds, "jobs", documented(jobs.KindsReply)),
    ("POST", f"{ONE}/jobs", jobs.start, "jobs", documented(jobs.JobReply, body=jobs.JobBody, status=202)),
    ("GET", "/jobs", jobs.mine, "jobs", documented(jobs.JobsReply)),
    ("GET", "/jobs/{key}", jobs.progress, "jobs", documented(jobs.JobReply)),
    ("DELETE", "/jobs/{key}", jobs.end, "jobs", documented(jobs.JobReply)),
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
