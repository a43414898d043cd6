"""Who may ask: tokens are made, shown once, and ended here."""

from __future__ import annotations

import time

from starlette.responses import RedirectResponse, Response

from sulq.service.console.api import Tree, at
from sulq.service.console.guard import Fields
from sulq.service.console.refusal import Refusal
from sulq.service.console.visit import Visit

ROLES = {
    "analyst": "asks questions and pays from the budget",
    "auditor": "reads ledgers and transcripts, asks nothing",
    "owner": "registers data, sets budgets, gives out tokens",
}


async def show(visit: Visit) -> Response:
    """Everybody who was ever let in."""
    return await _page(visit)


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
        return await _page(visit, fields=fields, refusal=refusal, status=refusal.status)
    return await _page(visit, made={"name": name, "role": body["role"], "token": token})


async def revoke(visit: Visit) -> Response:
    """End a token; it counts from the next call on."""
    await visit.form()
    await visit.api.delete(at("analysts", visit.request.path_params["who"]))
    return RedirectResponse("/people", 303)


async def _page(
    visit: Visit,
    *,
    fields: Fields | None = None,
    made: dict[str, object] | None = None,
    refusal: Refusal | None = None,
    status: int = 200,
) -> Response:
    everyone = (await visit.api.get(at("analysts")))["principals"]
    people = [{**one, "state": _state(one)} for one in everyone]
    return visit.page(
        "people.html",
        status,
        people=sorted(people, key=lambda one: (one["state"] != "active", one["name"].lower())),
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
