"""The datasets a visitor may see, and what is public about one."""

from __future__ import annotations

from starlette.responses import RedirectResponse, Response

from sulq.language.facts import Facts, TableFacts
from sulq.service.console.api import at
from sulq.service.console.views import words
from sulq.service.console.visit import Visit, facts, place


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
        tables=known.tables or (TableFacts(known.schema),),
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
    return found


def _quoted(name: str) -> str:
    """A name as SQL reads it: plain where it can be, quoted where it must."""
    plain = name.isascii() and name.isidentifier() and name == name.lower()
    return name if plain else '"' + name.replace('"', '""') + '"'
