"""What was spent, by whom and when; shares and reserves."""

from __future__ import annotations

from starlette.responses import RedirectResponse, Response

from sulq.service.console.api import Tree, at
from sulq.service.console.guard import Fields
from sulq.service.console.refusal import Refusal
from sulq.service.console.views import chart, words
from sulq.service.console.views.transcript import read, running
from sulq.service.console.visit import Visit, place, rows


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
        if refusal.status == 401:
            raise
        return await _page(visit, fields=fields, refusal=refusal, status=refusal.status)
    return RedirectResponse(f"{place(visit.name)}/budget", 303)


async def _page(
    visit: Visit, *, fields: Fields | None = None, refusal: Refusal | None = None, status: int = 200
) -> Response:
    told = await visit.api.get(visit.at("budget"))
    whole, remaining = words.loss(told.get("budget")), words.loss(told.get("remaining"))
    lines = await read(visit.api, visit.at("transcript"))
    known = await visit.facts()
    drawn = chart.spending(running(lines, known.budget), title="Spending over time")
    return visit.page(
        "budget.html",
        status,
        budget=whole,
        spent=words.loss(told.get("spent")),
        remaining=remaining,
        left=words.left(remaining, whole),
        shares=[_share(tree, whole) for tree in rows(told, "shares")],
        drawn=drawn,
        asks=len(lines),
        analysts=await _analysts(visit),
        fields=fields or Fields([]),
        refusal=refusal,
        place=place(visit.name),
        cautions=known.cautions,
        facts=known,
    )


async def _analysts(visit: Visit) -> list[str]:
    if visit.role != "owner":
        return []
    reply = await visit.api.get(at("analysts"))
    everyone = rows(reply, "principals") or rows(reply, "analysts")
    return [str(one.get("name")) for one in everyone if one.get("role") != "auditor" and not one.get("revoked")]


def _share(tree: Tree, whole: object) -> dict[str, object]:
    spent, remaining = words.loss(tree.get("spent")), words.loss(tree.get("remaining"))
    share, reserve = (_fraction(tree.get(name)) for name in ("share", "reserve"))
    total = words.size(whole) if whole is not None else 0.0  # type: ignore[arg-type]
    own = total * share if share is not None else total
    return {
        "analyst": str(tree.get("analyst") or ""),
        "share": share,
        "reserve": reserve or 0.0,
        "spent": spent,
        "remaining": remaining,
        "left": min(words.size(remaining) / own, 1.0) if own > 0 else 0.0,
    }


def _fraction(value: object) -> float | None:
    if isinstance(value, dict):
        top, _, bottom = str(value.get("value", "")).partition("/")
        return int(top) / int(bottom) if top.isdecimal() and bottom.isdecimal() and int(bottom) else None
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def _part(text: str, what: str) -> float:
    """A percentage of the budget, as a fraction."""
    try:
        found = float(text.rstrip("%") or "0") / 100
    except ValueError:
        found = -1.0
    if not 0 <= found <= 1:
        raise Refusal(400, "bad-request", f"{what} is a percentage from 0 to 100.", "Write it as a number, such as 25.")
    return found
