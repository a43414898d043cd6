"""For those who check: the ledger verified, the transcript taken along, and a report that can be printed."""

from __future__ import annotations

from starlette.responses import HTMLResponse, Response

from sulq.language.privacy import Budget
from sulq.service.console.api import Tree, at
from sulq.service.console.page import page
from sulq.service.console.views import words
from sulq.service.console.views.transcript import TranscriptLine, part_of, read
from sulq.service.console.visit import Visit, attachment


async def show(visit: Visit) -> Response:
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
        by=_by_analyst(lines, known.budget),
        lines=len(lines),
        unanswered=sum(not line.answered for line in lines),
        first=lines[0].time if lines else "",
        final=lines[-1].time if lines else "",
        health=_health(health),
    )


_SAID = {"True": "yes", "False": "no", "None": "–"}


def _report(tree: Tree) -> dict[str, object]:
    return {**tree, **{name: words.loss(tree[name]) for name in ("budget", "spent", "remaining")}}


def _by_analyst(lines: list[TranscriptLine], budget: Budget) -> list[tuple[str, int, float]]:
    found: dict[str, tuple[int, float]] = {}
    for line in lines:
        asks, total = found.get(line.analyst, (0, 0.0))
        found[line.analyst] = (asks + 1, total + part_of(line.event, budget))
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
