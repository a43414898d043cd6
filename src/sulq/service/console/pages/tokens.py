"""Tokens: signing in with one and out again; for the owner, who has one: made, shown once, rotated, ended here."""

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
from sulq.service.console.session import TOKEN, Session, forget
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
            token = fields.text("token")
            if not TOKEN.fullmatch(token):
                return _door("That does not look like a token. Paste all of it, without blanks.", 400)
            door = Api(api, request, token=token)
            session = Session((await door.post(at("sessions"), None))["session"])
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
    """End this session: a copy of its cookie is worthless too."""
    await visit.form()
    await visit.api.delete(at("sessions", "this"))
    return _left(visit)


async def sign_out_everywhere(visit: Visit) -> Response:
    """End all of this visitor's sessions."""
    await visit.form()
    await visit.api.delete(at("sessions"))
    return _left(visit)


def _left(visit: Visit) -> Response:
    response = RedirectResponse("/sign-in", 303)
    forget(visit.request, response)
    return response


async def add(visit: Visit) -> Response:
    """Let somebody in; the token is on this one page and nowhere else."""
    fields = await visit.form()
    name, days = fields.text("name"), fields.text("days") or "90"
    body: dict[str, object] = {"name": name, "role": fields.text("role") or "analyst"}
    body["days"] = int(days) if days.isdecimal() and len(days) < 6 else 0
    if body["role"] != "owner":  # none ticked means none
        chosen = [one for one in fields.all("datasets") if one]
        body["datasets"] = "all" if fields.text("every") else chosen
    try:
        token = (await visit.api.post(at("analysts"), body))["token"]
    except Refusal as refusal:
        return await people(visit, fields, refusal)
    return await _handed_out(visit, {"name": name, "role": body["role"], "token": token})


async def rotate(visit: Visit) -> Response:
    """Give somebody a new token; the old one is good for the overlap that was chosen."""
    fields = await visit.form()
    name, hours = str(visit.request.path_params["who"]), fields.text("hours") or "24"
    overlap = 3600 * int(hours) if hours.isdecimal() and len(hours) < 4 else -1
    try:
        token = (await visit.api.post(at("analysts", name, "rotate"), {"overlap": overlap}))["token"]
    except Refusal as refusal:
        return await people(visit, fields, refusal)
    return await _handed_out(visit, {"name": name, "token": token, "overlap": int(hours)})


async def _handed_out(visit: Visit, made: dict[str, object]) -> Response:
    """The token that was just given out, whatever else can be shown: it is kept nowhere.

    An owner's own new token may have ended the very session it was asked for in.
    """
    try:
        return await people(visit, made=made)
    except (SignedOut, Refusal) as error:
        alone = visit.page("people.html", people=[], datasets=[], roles=ROLES, fields=Fields([]), made=made)
        if isinstance(error, SignedOut):
            forget(visit.request, alone)
        return alone


async def revoke(visit: Visit) -> Response:
    """End a token; it counts from the next call on."""
    fields = await visit.form()
    try:
        await visit.api.delete(at("analysts", visit.request.path_params["who"]))
    except Refusal as refusal:
        return await people(visit, fields, refusal)
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
