"""Structured questions in the canonical JSON: ask and foresee."""

from __future__ import annotations

from pydantic import BaseModel

from sulq.answers import wire
from sulq.service.web.answer_json import loss_of
from sulq.service.web.openapi import Spend, Tree
from sulq.service.web.requests import Asker, Body
from sulq.service.web.responses import Json


class ForeseeBody(Body):
    """A question and what would be paid; a SubLinear budget needs no spend."""

    question: Tree
    spend: Spend | None = None


class AskBody(ForeseeBody):
    """A question and what to pay.

    `key`: an idempotency key; a repeat with it is answered alike and charged once.
    `reuse`: take a stored answer that is as accurate, free.
    """

    key: str | None = None
    reuse: bool = False


class AskReply(BaseModel):
    """An Answer, or the Answers to questions asked together."""

    answer: Tree


class ForeseeReply(BaseModel):
    """The plan: price, sensitivity, mechanism and accuracy."""

    plan: Tree


async def ask(name: str, caller: Asker) -> Json:
    """Pay and answer; the debit is durable before a row is read."""
    body = await caller.body(AskBody, large=True)
    spend = wire.to_json(loss_of(body.spend))
    told = {"question": body.question, "spend": spend, "key": body.key, "reuse": body.reuse}
    return await caller.reply("ask", told, dataset=name)


async def foresee(name: str, caller: Asker) -> Json:
    """What an answer would cost and be worth; free, reads no row."""
    body = await caller.body(ForeseeBody, large=True)
    return await caller.reply(
        "foresee", {"question": body.question, "spend": wire.to_json(loss_of(body.spend))}, dataset=name
    )
