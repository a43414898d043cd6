"""What was asked and paid: budget, transcript, receipts, verification, export, shares.

An export is sent as it is read: however long a ledger is, nobody holds all of it. It ends with the
entry its verification ended with, and waits where its reader has used up what free calls may take.
If the clerk fails on the way the text is cut off before its end,
and so is no JSON: what is not whole cannot pass for whole.
"""

from __future__ import annotations

import json
from asyncio import sleep
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Annotated, Any, Final, cast

from fastapi import Path, Query
from pydantic import BaseModel
from starlette.responses import StreamingResponse

from sulq.answers import wire
from sulq.errors import QuestionError
from sulq.language.privacy import Budget, Loss, Unit
from sulq.service.web.limits import RateLimited
from sulq.service.web.requests import Asker, Body, Tree
from sulq.service.web.responses import Json

PAGE_LINES: Final = 1000  # lines of an export asked of the clerk at a time
Object = dict[str, object]
Asks = Callable[[str, Mapping[str, object]], Awaitable[Object]]  # one call of the clerk's table about one dataset
Seq = Annotated[int, Path(ge=1, le=2**53)]
After = Annotated[int, Query(ge=0, le=2**53)]
Most = Annotated[int, Query(ge=1, le=1000)]


class BudgetReply(BaseModel):
    """The total, what is spent and what is left, and the shares the caller may see."""

    budget: Tree
    spent: Tree
    remaining: Tree
    shares: list[dict[str, Any]]


class TranscriptReply(BaseModel):
    """Questions and answers in order, after an entry."""

    lines: list[dict[str, Any]]
    head: Any
    datasets: list[str] | None


class ReceiptReply(BaseModel):
    """A receipt, to keep and to check offline."""

    receipt: Tree


class LedgerReport(BaseModel):
    """What the whole ledger was found to be."""

    model_config = {"extra": "allow"}


class ShareBody(Body):
    """An analyst's part of the budget, and the part kept for that analyst alone; fractions of the total."""

    share: float
    reserve: float = 0.0


async def budget(name: str, caller: Asker) -> Json:
    """Budget, spent and remaining; an analyst's own share, or all for owner and auditor."""
    return await caller.reply("budget", dataset=name)


async def transcript(name: str, caller: Asker, after: After = 0, limit: Most = 100) -> Json:
    """Questions and answers in order; an analyst's own, or all for owner and auditor."""
    return await caller.reply("transcript", {"after": after, "limit": limit}, dataset=name)


async def receipt(name: str, seq: Seq, caller: Asker) -> Json:
    """The receipt of one debit."""
    return await caller.reply("receipt", {"seq": seq}, dataset=name)


async def verify(name: str, caller: Asker) -> Json:
    """Check the whole ledger: chain, totals, budget; and what all its answers mean for one person (owner, auditor)."""
    found = await caller.ask("verify", dataset=name)
    unit, budget, lost = (wire.from_json(found[part]) for part in ("unit", "budget", "proved"))

    def meaning() -> list[str]:
        """Worked out here, and not by the clerk, from the ledger alone: the auditor is of the free half."""
        from sulq.audit.meaning import sentences  # the auditor, which no start of the service waits for

        return sentences(cast("Unit", unit), cast("Budget", budget), cast("Loss", lost))

    return Json({**found, "meaning": await caller.work(meaning)})


async def export(name: str, caller: Asker) -> StreamingResponse:
    """The whole transcript of the datasets the caller may see, with the ledger's verification (owner, auditor)."""

    async def ask(call: str, body: Mapping[str, object]) -> Object:
        return await caller.ask(call, body, dataset=name)

    async def ask_on(call: str, body: Mapping[str, object]) -> Object:
        while True:
            try:
                return await ask(call, body)
            except RateLimited as error:  # it cannot be said any more
                await sleep(error.seconds)

    first = await page(ask, "export", 0)  # whatever is refused is refused here, before anything is sent
    return StreamingResponse(exported(ask_on, first), media_type="application/json")


async def share(name: str, analyst: str, caller: Asker) -> Json:
    """Set an analyst's share and reserve; an entry of the ledger (owner)."""
    body = await caller.body(ShareBody)
    told = {"analyst": analyst, "share": body.share, "reserve": body.reserve}
    return await caller.reply("share", told, dataset=name)


async def exported(ask: Asks, first: Object) -> AsyncIterator[bytes]:
    """The export as bytes of one JSON object, its lines last."""
    last = cast("int", cast("Object", first["report"])["entries"])
    lines = _until(last, first)
    yield _text({name: value for name, value in first.items() if name != "lines"})[:-1] + b',"lines":['
    comma = b""
    while lines:
        yield comma + b",".join(_text(line) for line in lines)
        comma, after = b",", cast("int", lines[-1]["seq"])
        lines = _until(last, await page(ask, "transcript", after)) if after < last else []
    yield b"]}"


def _until(last: int, page: Object) -> list[Object]:
    return [line for line in cast("list[Object]", page["lines"]) if cast("int", line["seq"]) <= last]


async def page(ask: Asks, call: str, after: int) -> Object:
    """So many lines as fit one message."""
    limit = PAGE_LINES
    while True:
        try:
            return await ask(call, {"after": after, "limit": limit})
        except QuestionError as error:
            if error.code != "too-large" or limit == 1:
                raise
            limit = max(limit // 10, 1)


def _text(tree: object) -> bytes:
    return json.dumps(tree, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
