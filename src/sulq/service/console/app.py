"""Which page stands where, for whom."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from fastapi import FastAPI
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Match, Mount, Route
from starlette.types import ASGIApp, Scope

from sulq.service.console.api import Refusal
from sulq.service.console.guard import Headers
from sulq.service.console.page import address, page, serve
from sulq.service.console.pages import access, ask, dataset, jobs, register, tokens
from sulq.service.console.pages.jobs import LEARN, RELEASE
from sulq.service.console.visit import Page, signed_in

ANYONE: Final = frozenset({"owner", "analyst", "auditor"})
ASKERS: Final = frozenset({"owner", "analyst"})
READERS: Final = frozenset({"owner", "auditor"})
OWNER: Final = frozenset({"owner"})
ONE: Final = "/datasets/{name}"

# Method, address, who has a use for the page, and the page. The API checks the right to each thing once more.
PAGES: Final[tuple[tuple[str, str, frozenset[str], Page], ...]] = (
    ("GET", "/", ANYONE, dataset.home),
    ("POST", "/sign-out", ANYONE, tokens.sign_out),
    ("POST", "/sign-out-everywhere", ANYONE, tokens.sign_out_everywhere),
    ("GET", "/datasets", ANYONE, dataset.index),
    ("GET", ONE, ANYONE, dataset.about),
    ("GET", f"{ONE}/ask", ASKERS, ask.show),
    ("POST", f"{ONE}/ask", ASKERS, ask.answer),
    ("POST", f"{ONE}/price", ASKERS, ask.price),
    ("POST", "/download/{form}", ASKERS, ask.download),
    ("GET", f"{ONE}/history", ANYONE, dataset.history),
    ("GET", f"{ONE}/receipts/{{seq:int}}", ANYONE, dataset.receipt),
    ("GET", f"{ONE}/learn", ASKERS, LEARN.show),
    ("GET", f"{ONE}/learn/{{kind}}", ASKERS, LEARN.new),
    ("POST", f"{ONE}/learn/{{kind}}", ASKERS, LEARN.start),
    ("GET", f"{ONE}/release", ASKERS, RELEASE.show),
    ("GET", f"{ONE}/release/{{kind}}", ASKERS, RELEASE.new),
    ("POST", f"{ONE}/release/{{kind}}", ASKERS, RELEASE.start),
    ("GET", f"{ONE}/jobs", ASKERS, jobs.show),
    ("GET", f"{ONE}/jobs/new/{{kind}}", ASKERS, jobs.new),
    ("POST", f"{ONE}/jobs/new/{{kind}}", ASKERS, jobs.start),
    ("GET", f"{ONE}/jobs/{{key}}", ASKERS, jobs.progress),
    ("GET", f"{ONE}/jobs/{{key}}/model", ASKERS, jobs.model),
    ("GET", f"{ONE}/jobs/{{key}}/archive", ASKERS, jobs.archive),
    ("POST", f"{ONE}/jobs/{{key}}/end", ASKERS, jobs.end),
    ("GET", f"{ONE}/budget", READERS, dataset.budget),
    ("POST", f"{ONE}/budget", OWNER, dataset.share),
    ("GET", f"{ONE}/ledger", READERS, dataset.ledger),
    ("POST", f"{ONE}/ledger", READERS, dataset.verify),
    ("GET", f"{ONE}/export", READERS, dataset.export),
    ("GET", f"{ONE}/audit", READERS, dataset.audit),
    ("GET", "/people", OWNER, tokens.people),
    ("POST", "/people", OWNER, tokens.add),
    ("POST", "/people/{who}/rotate", OWNER, tokens.rotate),
    ("POST", "/people/{who}/revoke", OWNER, tokens.revoke),
    ("GET", "/access", OWNER, access.show),
    ("GET", "/register", OWNER, register.begin),
    ("POST", "/register", OWNER, register.register),
    ("POST", "/register/{step}", OWNER, register.step),
)


class ConsoleMount(Mount):
    """Everything outside /v1: an address the API does not know stays the API's to refuse."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Whether a request is the console's."""
        path = scope.get("path", "")
        return (Match.NONE, {}) if path == "/v1" or path.startswith("/v1/") else super().matches(scope)


def mount_console(app: FastAPI) -> None:
    """Serve the console beside the API, as a caller of it."""
    app.router.routes.append(ConsoleMount("/", app=console(app, app.state.settings.public_url)))


def console(api: ASGIApp, public: str | None = None) -> ASGIApp:
    """The console as an application that calls `api`; `public` is where browsers find it, behind a proxy."""
    pages = Starlette(routes=list(_routes(api)), exception_handlers={HTTPException: _nowhere, Exception: _failed})
    pages.state.public = public
    return Headers(pages)


def _routes(api: ASGIApp) -> Iterator[Route]:
    yield Route("/static/{name:path}", serve, methods=["GET"])
    yield Route("/sign-in", tokens.ask_token, methods=["GET"])
    yield Route("/sign-in", tokens.sign_in(api), methods=["POST"])
    for method, path, roles, shown in PAGES:
        yield Route(path, signed_in(shown, api, roles), methods=[method])


async def _nowhere(_: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 404
    lost = Refusal(status, "not-found", "There is no page at this address.", "Go back to the start.")
    return HTMLResponse(page("lost.html", file=address, refusal=lost), status)


async def _failed(_: Request, __: Exception) -> Response:
    """One constant page, whatever went wrong (T31, T87)."""
    failed = Refusal(
        500, "engine-failed", "The console failed at this.", "Try again; if it stays so, tell the operator."
    )
    return HTMLResponse(page("lost.html", file=address, refusal=failed), 500)
