"""One signed-in request: who is here, the API as they may use it, and the page they get."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.types import ASGIApp

from sulq.answers import wire
from sulq.errors import SulqError
from sulq.language.facts import Facts
from sulq.service.console import guard
from sulq.service.console.api import Api, Refusal, SignedOut, Tree, at
from sulq.service.console.page import address, page
from sulq.service.console.session import Session, forget

# The pages of a dataset, in the order of their tabs, and whose they are.
TABS: Final = (
    ("", "About", {"owner", "analyst", "auditor"}),
    ("ask", "Ask", {"owner", "analyst"}),
    ("history", "History", {"owner", "analyst", "auditor"}),
    ("learn", "Learn", {"owner", "analyst"}),
    ("release", "Release", {"owner", "analyst"}),
    ("jobs", "Jobs", {"owner", "analyst"}),
    ("budget", "Budget", {"owner", "auditor"}),
    ("ledger", "Ledger", {"owner", "auditor"}),
)
Endpoint = Callable[[Request], Awaitable[Response]]


@dataclass(slots=True)
class Visit:
    """A request of somebody who is signed in."""

    request: Request
    session: Session
    api: Api
    me: Tree

    @property
    def role(self) -> str:
        """owner, analyst or auditor."""
        return str(self.me.get("role", ""))

    @property
    def name(self) -> str:
        """The dataset the address speaks of."""
        return str(self.request.path_params.get("name", ""))

    @property
    def piece(self) -> bool:
        """Whether a piece of the page is wanted rather than all of it."""
        return self.request.headers.get("hx-request") == "true"

    @property
    def place(self) -> str:
        """The console's page of the dataset the address speaks of."""
        return place(self.name)

    def at(self, *parts: object) -> str:
        """The API's path of the dataset the address speaks of."""
        return at("datasets", self.name, *parts)

    async def form(self, *, limit: int = guard.MAX_FORM_BYTES) -> guard.Fields:
        """The form that was sent, if it is one of ours."""
        return await guard.form(self.request, self.session, limit=limit)

    async def facts(self) -> Facts:
        """The public facts of the dataset."""
        return facts(await self.api.get(self.at()))

    def page(self, template: str, status: int = 200, refusal: Refusal | None = None, **values: object) -> Response:
        """A page with the frame of the signed-in console around it; one with a refusal has its status."""
        shown = page(template, **(self.frame() | values), refusal=refusal)
        return HTMLResponse(shown, status if refusal is None else refusal.status)

    def frame(self) -> dict[str, object]:
        """What every page of the signed-in console knows."""
        tabs = [(f"{self.place}/{tab}".rstrip("/"), title) for tab, title, roles in TABS if self.role in roles]
        return {
            "me": self.me,
            "role": self.role,
            "word": self.session.form,
            "file": address,
            "here": self.request.url.path,
            "dataset": self.name,
            "place": self.place,
            "tabs": tabs if self.name else [],
        }


def place(name: str) -> str:
    """The console's page of a dataset."""
    return at("datasets", name).removeprefix("/v1")


def facts(tree: Tree) -> Facts:
    """Facts from a reply of the API."""
    found = tree.get("facts", tree)
    try:
        value = wire.from_json(found)
    except SulqError:
        value = None
    if not isinstance(value, Facts):
        raise Refusal(
            503, "not-ready", "This dataset is still being opened.", "Try again in a moment; nothing was spent."
        )
    return value


Page = Callable[[Visit], Awaitable[Response]]


def signed_in(shown: Page, api: ASGIApp, roles: frozenset[str] | None = None) -> Endpoint:
    """The page for those with a session; others are sent to sign in. The API decides what they may do there."""

    async def endpoint(request: Request) -> Response:
        session = Session.of(request)
        if session is None:
            return _to_sign_in(request)
        door = Api(api, request, session=session.id)
        visit = Visit(request, session, door, {})
        try:
            visit.me = await door.get(at("me"))
            if roles is not None and visit.role not in roles:
                raise Refusal(404, "not-found", "There is no such page for you.", "Use the links at the top.")
            return await shown(visit)
        except SignedOut as error:
            left = _to_sign_in(request, error.refusal.code)
            forget(request, left)
            return left
        except Refusal as refusal:
            return refused(visit, refusal)
        finally:
            await door.close()

    return endpoint


def refused(visit: Visit, refusal: Refusal) -> Response:
    """A refusal in place of the page, or of the piece, that was asked for."""
    if visit.piece:
        return HTMLResponse(page("refusal_piece.html", refusal=refusal), refusal.status)
    return visit.page("refusal.html", refusal=refusal)


def _to_sign_in(request: Request, code: str = "") -> Response:
    where = f"/sign-in?why={code}" if code == "token-expired" else "/sign-in"
    if request.headers.get("hx-request") == "true":
        return Response(status_code=204, headers={"HX-Redirect": where})
    return RedirectResponse(where, 303)


def attachment(body: str | bytes, kind: str, name: str) -> Response:
    """A file for the browser to save."""
    return Response(body, media_type=kind, headers={"Content-Disposition": f'attachment; filename="{name}"'})
