"""Tokens: signing in with one and out again; for the owner, who has one: they are made, shown once, and ended here."""

from __future__ import annotations

import time
from typing import Final

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.types import ASGIApp

from sulq.service.console import guard
from sulq.service.console.api import Api, Refusal, SignedOut, Tree, at
from sulq.service.console.guard import Fields
from sulq.service.console.page import address, page
from sulq.service.console.session import Session, forget
from sulq.service.console.visit import Endpoint, Visit

MAX_FORM_BYTES: Final = 4 * 1024  # a form that holds a token alone, from somebody unknown
_UNKNOWN = "This token is not known here. Check that you pasted all of it, or ask the owner for a new one."
_WHY = {"token-expired": "Your token has run out. Ask the owner of the data for a new one."}
ROLES = {
    "analyst": "asks questions and pays from the budget",
    "auditor": "reads ledgers and transcripts, asks nothing",
    "owner": "registers data, sets budgets, gives out tokens",
}


def _door(why: str = "", status: int = 200) -> Response:
    return HTMLResponse(page("sign_in.html", file=address, why=why), status)


def _said(refusal: Refusal) -> str:
    return f"{refusal.message} {refusal.remedy}"


async def ask_token(request: Request) -> Response:
    """The form."""
    return _door(_WHY.get(request.query_params.get("why", ""), ""))


def sign_in(api: ASGIApp) -> Endpoint:
    """Try a token at the API's own door; the console knows no other way to tell a good one."""

    async def endpoint(request: Request) -> Response:
        door = None
        try:
            fields = await guard.form(request, None, limit=MAX_FORM_BYTES)
            session = Session.begin(fields.text("token"))
            if session is None:
                return _door("That does not look like a token. Paste all of it, without blanks.", 400)
            door = Api(api, session.token, request)
            await door.get(at("me"))
        except SignedOut as error:
            unknown = error.refusal.code == "unauthorized"
            return _door(_UNKNOWN if unknown else _said(error.refusal), error.refusal.status)
        except Refusal as refusal:
            return _door(_said(refusal), refusal.status)
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


async def add(visit: Visit) -> Response:
    """Let somebody in; the token is on this one page and nowhere else."""
    fields = await visit.form()
    name, days = fields.text("name"), fields.text("days") or "90"
    body: dict[str, object] = {"name": name, "role": fields.text("role") or "analyst"}
    body["days"] = int(days) if days.isdecimal() and len(days) < 6 else 0
    chosen = [one for one in fields.all("datasets") if one]
    if chosen and body["role"] != "owner":
        body["datasets"] = chosen
    try:
        token = (await visit.api.post(at("analysts"), body))["token"]
    except Refusal as refusal:
        return await people(visit, fields, refusal)
    return await people(visit, made={"name": name, "role": body["role"], "token": token})


async def revoke(visit: Visit) -> Response:
    """End a token; it counts from the next call on."""
    await visit.form()
    await visit.api.delete(at("analysts", visit.request.path_params["who"]))
    return RedirectResponse("/people", 303)


async def people(
    visit: Visit,
    fields: Fields | None = None,
    refusal: Refusal | None = None,
    made: dict[str, object] | None = None,
) -> Response:
    """Everybody who was ever let in; `made`: the token that was just given out."""
    everyone = (await visit.api.get(at("analysts")))["principals"]
    found = [{**one, "state": _state(one)} for one in everyone]
    return visit.page(
        "people.html",
        people=sorted(found, key=lambda one: (one["state"] != "active", one["name"].lower())),
        datasets=[tree["name"] for tree in (await visit.api.get(at("datasets")))["datasets"]],
        roles=ROLES,
        fields=fields or Fields([]),
        made=made,
        refusal=refusal,
    )


def _state(one: Tree) -> str:
    if one["revoked"]:
        return "revoked"
    return "expired" if one["expires"] <= time.time() else "active"
