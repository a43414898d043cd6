"""Signing in with a token, and out again."""

from __future__ import annotations

from typing import Final

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.types import ASGIApp

from sulq.service.console import guard
from sulq.service.console.api import Api, at
from sulq.service.console.page import page
from sulq.service.console.refusal import Refusal, SignedOut
from sulq.service.console.session import Session, forget
from sulq.service.console.static_files import address
from sulq.service.console.visit import Endpoint, Visit

MAX_FORM_BYTES: Final = 4 * 1024  # a form that holds a token alone, from somebody unknown
_UNKNOWN = "This token is not known here. Check that you pasted all of it, or ask the owner for a new one."
_WHY = {"token-expired": "Your token has run out. Ask the owner of the data for a new one."}


def _page(why: str = "", status: int = 200) -> Response:
    return HTMLResponse(page("sign_in.html", file=address, why=why), status)


def _said(refusal: Refusal) -> str:
    return f"{refusal.message} {refusal.remedy}"


async def ask(request: Request) -> Response:
    """The form."""
    return _page(_WHY.get(request.query_params.get("why", ""), ""))


def sign_in(api: ASGIApp) -> Endpoint:
    """Try a token at the API's own door; the console knows no other way to tell a good one."""

    async def endpoint(request: Request) -> Response:
        door = None
        try:
            fields = await guard.form(request, None, limit=MAX_FORM_BYTES)
            session = Session.begin(fields.text("token"))
            if session is None:
                return _page("That does not look like a token. Paste all of it, without blanks.", 400)
            door = Api(api, session.token, request)
            await door.get(at("me"))
        except SignedOut as error:
            unknown = error.refusal.code == "unauthorized"
            return _page(_UNKNOWN if unknown else _said(error.refusal), error.refusal.status)
        except Refusal as refusal:
            return _page(_said(refusal), refusal.status)
        finally:
            if door is not None:
                await door.close()
        response = RedirectResponse("/", 303)
        session.keep(request, response)
        return response

    return endpoint


async def sign_out(visit: Visit) -> Response:
    """Forget the token in this browser."""
    await visit.form()
    response = RedirectResponse("/sign-in", 303)
    forget(visit.request, response)
    return response
