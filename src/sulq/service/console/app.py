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

from sulq.service.console import static_files
from sulq.service.console.cookie import Wrap
from sulq.service.console.guard import Headers
from sulq.service.console.page import page
from sulq.service.console.pages import ask, budget, datasets, history, jobs, ledger, people, register, sign_in
from sulq.service.console.pages.job_forms import LEARN, RELEASE
from sulq.service.console.refusal import Refusal
from sulq.service.console.visit import Page, signed_in

ANYONE: Final = frozenset({"owner", "analyst", "auditor"})
ASKERS: Final = frozenset({"owner", "analyst"})
READERS: Final = frozenset({"owner", "auditor"})
OWNER: Final = frozenset({"owner"})
ONE: Final = "/datasets/{name}"

# Method, address, who has a use for the page, and the page. The API checks the right to each thing once more.
PAGES: Final[tuple[tuple[str, str, frozenset[str], Page], ...]] = (
    ("GET", "/", ANYONE, datasets.home),
    ("POST", "/sign-out", ANYONE, sign_in.sign_out),
    ("GET", "/datasets", ANYONE, datasets.index),
    ("GET", ONE, ANYONE, datasets.about),
    ("GET", f"{ONE}/ask", ASKERS, ask.show),
    ("POST", f"{ONE}/ask", ASKERS, ask.answer),
    ("POST", f"{ONE}/price", ASKERS, ask.price),
    ("POST", "/download/{form}", ASKERS, ask.download),
    ("GET", f"{ONE}/history", ANYONE, history.show),
    ("GET", f"{ONE}/receipts/{{seq:int}}", ANYONE, history.receipt),
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
    ("GET", f"{ONE}/budget", READERS, budget.show),
    ("POST", f"{ONE}/budget", OWNER, budget.share),
    ("GET", f"{ONE}/ledger", READERS, ledger.show),
    ("POST", f"{ONE}/ledger", READERS, ledger.verify),
    ("GET", f"{ONE}/export", READERS, ledger.export),
    ("GET", f"{ONE}/audit", READERS, ledger.audit),
    ("GET", "/people", OWNER, people.show),
    ("POST", "/people", OWNER, people.add),
    ("POST", "/people/{who}/revoke", OWNER, people.revoke),
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
    state = app.state
    app.router.routes.append(ConsoleMount("/", app=console(app, Wrap(state.cookies), state.settings.public_url)))


def console(api: ASGIApp, wrap: Wrap, public: str | None = None) -> ASGIApp:
    """The console as an application that calls `api`; `public` is where browsers find it, behind a proxy."""
    pages = Starlette(routes=list(_routes(api)), exception_handlers={HTTPException: _nowhere, Exception: _failed})
    pages.state.wrap, pages.state.public = wrap, public
    return Headers(pages)


def _routes(api: ASGIApp) -> Iterator[Route]:
    yield Route("/static/{name:path}", static_files.serve, methods=["GET"])
    yield Route("/sign-in", sign_in.ask, methods=["GET"])
    yield Route("/sign-in", sign_in.sign_in(api), methods=["POST"])
    for method, path, roles, shown in PAGES:
        yield Route(path, signed_in(shown, api, roles), methods=[method])


async def _nowhere(_: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 404
    lost = Refusal(status, "not-found", "There is no page at this address.", "Go back to the start.")
    return HTMLResponse(page("lost.html", file=static_files.address, refusal=lost), status)


async def _failed(_: Request, __: Exception) -> Response:
    """One constant page, whatever went wrong (T31, T87)."""
    failed = Refusal(
        500, "engine-failed", "The console failed at this.", "Try again; if it stays so, tell the operator."
    )
    return HTMLResponse(page("lost.html", file=static_files.address, refusal=failed), 500)
