"""What was asked and paid: budget, transcript, receipts, verification, export, shares."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, cast

from fastapi import Path, Query
from pydantic import BaseModel
from starlette.responses import StreamingResponse

from sulq.answers import wire
from sulq.audit.meaning import sentences
from sulq.language.privacy import Budget, Loss, Unit
from sulq.service.web import transcript_export
from sulq.service.web.openapi import Tree
from sulq.service.web.requests import Asker, Body
from sulq.service.web.responses import Json

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
    unit, budget, spent = (wire.from_json(found[part]) for part in ("unit", "budget", "spent"))
    # Worked out here, and not by the clerk, from the books alone: the auditor is of the free half.
    meaning = sentences(cast("Unit", unit), cast("Budget", budget), cast("Loss", spent))
    return Json({**found, "meaning": meaning})


async def export(name: str, caller: Asker) -> StreamingResponse:
    """The whole transcript of the datasets the caller may see, with the ledger's verification (owner, auditor)."""

    async def ask(call: str, body: Mapping[str, object]) -> dict[str, object]:
        return await caller.ask(call, body, dataset=name)

    first = await transcript_export.first_part(ask)
    return StreamingResponse(transcript_export.whole(ask, first), media_type="application/json")


async def share(name: str, analyst: str, caller: Asker) -> Json:
    """Set an analyst's share and reserve; an entry of the ledger (owner)."""
    body = await caller.body(ShareBody)
    told = {"analyst": analyst, "share": body.share, "reserve": body.reserve}
    return await caller.reply("share", told, dataset=name)
