"""The calls that read the ledger: budget, transcript, receipts, verification; each sees what is its own to see.

A ledger is a person space's, which may have several datasets: an analyst sees its
own lines, and whoever was let in for some datasets sees lines of those alone (T79).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from sulq.answers import wire
from sulq.curator.ledger.ledger import Line
from sulq.curator.ledger.shares import Share, Standing
from sulq.errors import AccessDenied
from sulq.service.clerk.access import Access, nearest
from sulq.service.clerk.request import Request
from sulq.service.ipc import Frame

PAGE_LINES: Final = 1000  # lines of a transcript in one reply


def transcript(request: Request) -> Frame:
    """Questions and answers after an entry, oldest first; `datasets`: of which ones, null for all."""
    request.only("after", "limit")
    after, limit = request.whole("after", 0, 2**62), request.whole("limit", PAGE_LINES, PAGE_LINES)
    ledger = request.held.open_ledger()
    scope = request.who.datasets
    lines = ledger.transcript(analyst=request.whose, datasets=scope, after=after, limit=limit)
    return {
        "lines": [line_of(line) for line in lines],
        "head": ledger.head,
        "datasets": None if scope is None else list(scope),
    }


def verify(request: Request) -> Frame:
    """Check the whole ledger again: chain, totals, budget."""
    request.only()
    found = request.held.open_ledger().verify()
    return {
        "space": found.space,
        "entries": found.entries,
        "debits": found.debits,
        "answers": found.answers,
        "head": found.head,
        "unit": wire.to_json(found.unit),
        "budget": wire.to_json(found.budget),
        "spent": wire.to_json(found.spent),
        "remaining": wire.to_json(found.remaining),
        "text": str(found),
    }


def export(request: Request) -> Frame:
    """The transcript with the verification it goes with; a long one in several parts, each after the last."""
    request.only("after", "limit")
    found = transcript(request)
    report = verify(replace(request, body={}))
    return {
        "report": report,
        "datasets": found["datasets"],
        "lines": found["lines"],
        "public_key": request.held.open_ledger().public_key,
    }


def receipt(request: Request) -> Frame:
    """One debit's receipt, signed by the ledger."""
    request.only("seq")
    seq = request.whole("seq", 0, 2**62)
    found = request.held.open_ledger().receipt(seq, analyst=request.whose, datasets=request.who.datasets)
    return {"receipt": wire.strict(found)}


def line_of(line: Line) -> Frame:
    """A line of the transcript as JSON; the question and the answer are canonical JSON already, and stay text."""
    return {
        "seq": line.seq,
        "time": line.time,
        "analyst": line.analyst,
        "dataset": line.dataset,
        "question": line.question,
        "event": wire.to_json(line.event),
        "answer": line.answer,
    }


def budget(request: Request) -> Frame:
    """What there is, what is spent and left; owner and auditor see every analyst's share, an analyst its own."""
    request.only()
    ledger, whose = request.held.open_ledger(), request.whose
    whole, spent, remaining = ledger.standing(analyst=whose)
    shares = [_share_of(standing) for standing in ledger.standings() if whose in (None, standing.analyst)]
    return {
        "budget": wire.to_json(whole),
        "spent": wire.to_json(spent),
        "remaining": wire.to_json(remaining),
        "shares": shares,
    }


def share(access: Access, request: Request) -> Frame:
    """Set what part of the budget an analyst may spend, and what part no other can take from it.

    A name that was never let in and has no account would bind nobody: it is refused with the nearest one.
    """
    request.only("analyst", "share", "reserve")
    reserve = request.number("reserve") if request.body.get("reserve") is not None else 0.0
    analyst = request.text("analyst")
    told, ledger = Share.of(request.number("share"), reserve), request.held.open_ledger()
    known = {principal.name for principal in access.list()} | {standing.analyst for standing in ledger.standings()}
    if analyst not in known:
        raise AccessDenied("not-found", f"There is no analyst {analyst[:80]!r}{nearest(analyst, known)}.")
    ledger.share(analyst, told)
    return {"analyst": analyst}


def _share_of(standing: Standing) -> Frame:
    return {
        "analyst": standing.analyst,
        "share": float(standing.share),
        "reserve": float(standing.reserve),
        "spent": wire.to_json(standing.spent),
        "remaining": wire.to_json(standing.remaining),
    }
