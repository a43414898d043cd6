"""The access log as pages, the latest entries first."""

from __future__ import annotations

from typing import Final

from starlette.responses import Response

from sulq.service.console.api import Tree, at
from sulq.service.console.views import words
from sulq.service.console.visit import Visit

MAX_ENTRIES_SHOWN: Final = 50  # on one page
OWN: Final = frozenset({"seq", "when", "what", "who", "from", "request", "dataset", "outcome", "price"})


async def show(visit: Visit) -> Response:
    """One page of entries."""
    total = int((await visit.api.get(at("access"), after=2**53, limit=1))["last"])
    asked = visit.request.query_params.get("page", "1")
    last = max(-(-total // MAX_ENTRIES_SHOWN), 1)
    number = min(max(int(asked) if asked.isdecimal() and len(asked) < 12 else 1, 1), last)
    end = total - (number - 1) * MAX_ENTRIES_SHOWN
    after = max(end - MAX_ENTRIES_SHOWN, 0)
    found = (await visit.api.get(at("access"), after=after, limit=max(end - after, 1)))["entries"] if total else []
    lines = [_line(entry) for entry in reversed(found)]
    return visit.page("access.html", entries=lines, total=total, number=number, last=last)


def _line(entry: Tree) -> Tree:
    """An entry with all that has no column of its own in one."""
    price = words.loss(entry.get("price"))
    more = [] if price is None else [words.price(price)]
    more += [f"{name} {_text(value)}" for name, value in entry.items() if name not in OWN and value is not None]
    fixed = {name: entry.get(name) for name in OWN}
    return {**fixed, "more": "; ".join(more)}


def _text(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
