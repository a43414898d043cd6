"""What was asked before, with the receipts that prove it."""

from __future__ import annotations

import json
from typing import Final

from starlette.responses import Response

from sulq.service.console.views.transcript import read
from sulq.service.console.visit import Visit, attachment

MAX_LINES_SHOWN: Final = 100


async def show(visit: Visit) -> Response:
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
