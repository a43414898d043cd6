"""What was spent, by whom and when; shares and reserves."""

from __future__ import annotations

from starlette.responses import RedirectResponse, Response

from sulq.service.console.api import Tree, at
from sulq.service.console.guard import Fields
from sulq.service.console.refusal import Refusal
from sulq.service.console.views import chart, words
from sulq.service.console.views.transcript import read, running
from sulq.service.console.visit import Visit


async def show(visit: Visit) -> Response:
    """Gauges for the dataset and each analyst, and spending over time."""
    return await _page(visit)


async def share(visit: Visit) -> Response:
    """Set what an analyst may spend at most, and what is kept for them."""
    fields = await visit.form()
    try:
        body = {"share": _part(fields.text("share"), "A share"), "reserve": _part(fields.text("reserve"), "A reserve")}
        await visit.api.put(visit.at("shares", fields.text("analyst")), body)
    except Refusal as refusal:
        return await _page(visit, fields=fields, refusal=refusal, status=refusal.status)
    return RedirectResponse(f"{visit.place}/budget", 303)


async def _page(
    visit: Visit, *, fields: Fields | None = None, refusal: Refusal | None = None, status: int = 200
) -> Response:
    told = await visit.api.get(visit.at("budget"))
    whole, remaining = words.loss(told["budget"]), words.loss(told["remaining"])
    lines = await read(visit.api, visit.at("transcript"))
    known = await visit.facts()
    return visit.page(
        "budget.html",
        status,
        budget=whole,
        spent=words.loss(told["spent"]),
        remaining=remaining,
        left=words.left(remaining, whole),
        shares=[_share(tree, words.size(whole)) for tree in told["shares"]],
        drawn=chart.spending(running(lines, known.budget), title="Spending over time"),
        asks=len(lines),
        analysts=await _analysts(visit),
        fields=fields or Fields([]),
        refusal=refusal,
        cautions=known.cautions,
        facts=known,
    )


async def _analysts(visit: Visit) -> list[str]:
    if visit.role != "owner":
        return []
    everyone = (await visit.api.get(at("analysts")))["principals"]
    return [one["name"] for one in everyone if one["role"] != "auditor" and not one["revoked"]]


def _share(tree: Tree, whole: float) -> dict[str, object]:
    remaining, own = words.loss(tree["remaining"]), whole * tree["share"]
    left = min(words.size(remaining) / own, 1.0) if own > 0 else 0.0
    return {**tree, "spent": words.loss(tree["spent"]), "remaining": remaining, "left": left}


def _part(text: str, what: str) -> float:
    """A percentage of the budget, as a fraction."""
    try:
        found = float(text.rstrip("%") or "0") / 100
    except ValueError:
        found = -1.0
    if not 0 <= found <= 1:
        raise Refusal(400, "bad-request", f"{what} is a percentage from 0 to 100.", "Write it as a number, such as 25.")
    return found
