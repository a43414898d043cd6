"""The datasets a visitor may see; of one what is public, what was asked, spent and left, and the ledger verified."""

from __future__ import annotations

import json
from typing import Final

from starlette.responses import HTMLResponse, RedirectResponse, Response

from sulq.language.facts import Facts
from sulq.service.console.api import Refusal, Tree, at
from sulq.service.console.guard import Fields
from sulq.service.console.page import page
from sulq.service.console.views import chart, words
from sulq.service.console.views.transcript import TranscriptLine, part_of, read, running
from sulq.service.console.visit import Visit, attachment, facts, place

MAX_LINES_SHOWN: Final = 100
_SAID = {"True": "yes", "False": "no", "None": "–"}


async def home(visit: Visit) -> Response:
    """Where a visit begins; an analyst with one dataset is at it already."""
    found = (await visit.api.get(at("datasets")))["datasets"]
    if visit.role == "analyst" and len(found) == 1 and found[0]["ready"]:
        return RedirectResponse(f"{place(found[0]['name'])}/ask", 303)
    return RedirectResponse("/datasets", 303)


async def index(visit: Visit) -> Response:
    """All of them, with what is left of each."""
    found = []
    for tree in (await visit.api.get(at("datasets")))["datasets"]:
        known = facts(tree) if tree["ready"] else None
        why = (tree.get("problem") or {}).get("message", "")
        entry = {"name": tree["name"], "place": place(tree["name"])}
        found.append(entry | {"facts": known, "left": _left(known), "problem": why})
    return visit.page("datasets.html", datasets=found)


async def about(visit: Visit) -> Response:
    """One dataset: columns, bounds, whom its answers hide, what is left."""
    known = await visit.facts()
    return visit.page(
        "about.html",
        facts=known,
        tables=known.every,
        promise=words.guarantee(known.unit, known.budget),
        left=_left(known),
        examples=examples(known),
    )


def _left(known: Facts | None) -> float:
    return 0.0 if known is None else words.left(known.remaining, known.budget)


def examples(known: Facts) -> list[tuple[str, str]]:
    """A few queries that this dataset answers, each with its words."""
    table = _quoted(known.table)
    by = {words.kind(column): name for name, column in reversed(known.schema.columns)}
    found = [("How many rows", f"SELECT COUNT(*) FROM {table}")]  # noqa: S608 - shown in an editor, never run here
    group = by.get("category") or by.get("true or false")
    value = by.get("number") or by.get("whole number")
    if group:
        counted = f"SELECT {_quoted(group)}, COUNT(*)\nFROM {table}\nGROUP BY {_quoted(group)}"
        found.append((f"How many for each {group}", counted))
    if value:
        found.append((f"The average {value}", f"SELECT AVG({_quoted(value)}) FROM {table}"))  # noqa: S608 - likewise
    if group and value:
        mean = f"SELECT {_quoted(group)}, AVG({_quoted(value)})\nFROM {table}\nGROUP BY {_quoted(group)}"
        found.append((f"The average {value} for each {group}", mean))
    for other in known.every[1:]:
        rows = f"SELECT COUNT(*) FROM {_quoted(other.schema.table)}"  # noqa: S608 - likewise
        found += [] if other.public else [(f"How many rows of {other.schema.table}", rows)]
    return found


def _quoted(name: str) -> str:
    """A name as SQL reads it: plain where it can be, quoted where it must."""
    plain = name.isascii() and name.isidentifier() and name == name.lower()
    return name if plain else '"' + name.replace('"', '""') + '"'


async def history(visit: Visit) -> Response:
    """The latest asks first; an analyst sees their own."""
    lines = (await read(visit.api, visit.at("transcript")))[::-1]
    asked = visit.request.query_params.get("page", "1")
    number = int(asked) if asked.isdecimal() and len(asked) < 6 else 1
    last = max((len(lines) + MAX_LINES_SHOWN - 1) // MAX_LINES_SHOWN, 1)
    number = min(max(number, 1), last)
    start = (number - 1) * MAX_LINES_SHOWN
    return visit.page(
        "history.html",
        lines=lines[start : start + MAX_LINES_SHOWN],
        total=len(lines),
        number=number,
        last=last,
        own=visit.role == "analyst",
    )


async def receipt(visit: Visit) -> Response:
    """One receipt as a file that can be kept and checked offline."""
    seq = visit.request.path_params["seq"]
    tree = (await visit.api.get(visit.at("receipts", seq)))["receipt"]
    text = json.dumps(tree, indent=1, ensure_ascii=False) + "\n"
    return attachment(text, "application/json", f"receipt-{int(seq)}.json")


async def share(visit: Visit) -> Response:
    """Set what an analyst may spend at most, and what is kept for them."""
    fields = await visit.form()
    try:
        body = {"share": _part(fields.text("share"), "A share"), "reserve": _part(fields.text("reserve"), "A reserve")}
        await visit.api.put(visit.at("shares", fields.text("analyst")), body)
    except Refusal as refusal:
        return await budget(visit, fields, refusal)
    return RedirectResponse(f"{visit.place}/budget", 303)


async def budget(visit: Visit, fields: Fields | None = None, refusal: Refusal | None = None) -> Response:
    """Gauges for the dataset and each analyst, and spending over time."""
    told = await visit.api.get(visit.at("budget"))
    whole, remaining = words.loss(told["budget"]), words.loss(told["remaining"])
    lines = await read(visit.api, visit.at("transcript"))
    known = await visit.facts()
    return visit.page(
        "budget.html",
        budget=whole,
        spent=words.loss(told["spent"]),
        remaining=remaining,
        left=words.left(remaining, whole),
        shares=[_share(tree, words.size(whole)) for tree in told["shares"]],
        drawn=chart.spending(running(lines, known.budget, known.split), title="Spending over time"),
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


async def ledger(visit: Visit) -> Response:
    """What can be checked here."""
    return visit.page("ledger.html", report=None)


async def verify(visit: Visit) -> Response:
    """Every entry and total, read again from the ledger."""
    await visit.form()
    report = _report(await visit.api.post(visit.at("verify"), {}))
    if visit.piece:
        return HTMLResponse(page("verified.html", report=report))
    return visit.page("ledger.html", report=report)


async def export(visit: Visit) -> Response:
    """The transcript whole, as the API gives it."""
    body, kind = await visit.api.download(visit.at("export"))
    return attachment(body, kind, "transcript.json")


async def audit(visit: Visit) -> Response:
    """Promise, ledger, spending and machine on one page."""
    known = await visit.facts()
    report = _report(await visit.api.post(visit.at("verify"), {}))
    lines = await read(visit.api, visit.at("transcript"))
    health = await visit.api.get(at("health"))
    return visit.page(
        "audit.html",
        facts=known,
        promise=words.guarantee(known.unit, known.budget),
        report=report,
        by=_by_analyst(lines, known),
        lines=len(lines),
        unanswered=sum(not line.answered for line in lines),
        first=lines[0].time if lines else "",
        final=lines[-1].time if lines else "",
        health=_health(health),
    )


def _report(tree: Tree) -> dict[str, object]:
    return {**tree, **{name: words.loss(tree[name]) for name in ("budget", "spent", "remaining")}}


def _by_analyst(lines: list[TranscriptLine], known: Facts) -> list[tuple[str, int, float]]:
    found: dict[str, tuple[int, float]] = {}
    for line in lines:
        asks, total = found.get(line.analyst, (0, 0.0))
        found[line.analyst] = (asks + 1, total + part_of(line.event, known.budget, known.split))
    return [(name or "the owner's own tools", asks, total) for name, (asks, total) in sorted(found.items())]


def _health(tree: Tree, under: str = "") -> list[tuple[str, str]]:
    """What the server says of itself, flattened to lines."""
    found: list[tuple[str, str]] = []
    for name, value in tree.items():
        said = f"{under}{name}".replace("_", " ")
        if isinstance(value, dict):
            found += _health(value, f"{said}: ")
        elif isinstance(value, list):
            for i, item in enumerate(value):
                found += _health(item, f"{said} {i + 1}: ") if isinstance(item, dict) else [(said, str(item))]
        else:
            found.append((said, _SAID.get(str(value), str(value))))
    return found
