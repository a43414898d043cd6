"""Asking: structured questions in the canonical JSON, and SQL; their prices, and a total divided over queries."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Final, cast

from pydantic import BaseModel, Field

from sulq.answers import wire
from sulq.answers.auto_bounds import Bounds
from sulq.answers.law_choice import LawName
from sulq.answers.oracle import MAX_FORECAST_ASKS, chosen
from sulq.errors import QuestionError
from sulq.language.privacy import EpsilonDelta, Loss
from sulq.language.question import Question
from sulq.service.web.limits import MAX_PLANNED_QUERIES
from sulq.service.web.requests import Asker, Body, Caller, ClerkOracle, Spend, Tree, loss_of
from sulq.service.web.responses import Json

LEVEL: Final = 0.95
Level = Annotated[float, Field(gt=0, lt=1)]
Cells = list[list[str | float | bool | None]]


class ForeseeBody(Body):
    """A question and what would be paid; a SubLinear budget needs no spend.

    `law`: the noise, where an epsilon and a delta leave that open; by default the one of least foreseen error.
    """

    question: Tree
    spend: Spend | None = None
    law: LawName | None = None


class AskBody(ForeseeBody):
    """A question and what to pay.

    `key`: an idempotency key; a repeat with it is answered alike and charged once.
    `reuse`: take a stored answer that is as accurate, free. `stored`: take one, or null where there is none; nothing is
    paid.
    """

    key: str | None = None
    reuse: bool = False
    stored: bool = False


class AskReply(BaseModel):
    """An Answer, or the Answers to questions asked together; null where `stored` found none."""

    answer: Tree | None


class ForeseeReply(BaseModel):
    """The plan: price, sensitivity, mechanism and accuracy."""

    plan: Tree


class ExplainBody(Body):
    """A query and its price: a spend, or the accuracy wished for (a width, or one for each column).

    `other`: the label of a row for the groups that are not shown, where keys are found in the data.
    `bounds`: "auto": where the values of sums and means lie is searched for first, from the same spend.
    `interval`: whether intervals of chosen quantiles are bought; without them the quantiles are nearer.
    """

    sql: str
    spend: Spend | None = None
    within: float | dict[str, float] | None = None
    beta: Level = 0.05
    at_most: Spend | None = None
    other: str | None = None
    law: LawName | None = None
    bounds: Bounds | None = None
    interval: bool = True

    def price(self) -> dict[str, Any]:
        """What is named of the price and of what it buys, as a query takes it."""
        paid = {"spend": loss_of(self.spend), "within": self.within, "at_most": loss_of(self.at_most)}
        return paid | {"law": self.law, "bounds": self.bounds, "interval": self.interval}


class SqlBody(ExplainBody):
    """Likewise. `fresh`: new noise at full price instead of a stored answer. `level`: of the error bars.

    `sampling`: they count the sampling of a larger population beside the noise.
    """

    fresh: bool = False
    level: Level = LEVEL
    sampling: bool = False


class PlanBody(Body):
    """Queries and the total to divide over them; `weights`: how much each query's error counts.

    `interval`: whether intervals of chosen quantiles are bought.
    """

    queries: Annotated[list[str], Field(min_length=1, max_length=MAX_PLANNED_QUERIES)]
    spend: Spend
    beta: Level = 0.05
    law: LawName | None = None
    weights: Annotated[list[float], Field(max_length=MAX_PLANNED_QUERIES)] | None = None
    interval: bool = True

    def total(self) -> Loss:
        """What is divided."""
        return cast("Loss", loss_of(self.spend))


class AffordAsk(Body):
    """One ask of a run: SQL, a question, or nothing but its spend; `event` is the loss of a plan, as it has it."""

    sql: str | None = None
    question: Tree | None = None
    event: Tree | None = None
    spend: Spend | None = None
    times: Annotated[int, Field(ge=1, le=MAX_FORECAST_ASKS)] = 1


class AffordBody(Body):
    """A run of asks, in order; with `bounds` each query is a search and an answer, a line each."""

    asks: Annotated[list[AffordAsk], Field(min_length=1, max_length=MAX_FORECAST_ASKS)]
    law: LawName | None = None
    bounds: Bounds | None = None


class AskLeft(BaseModel):
    """What one ask would cost and leave; `left` is null where it would be refused."""

    price: Tree | None
    left: Tree | None


class AffordReply(BaseModel):
    """What a run of asks would leave; nothing was spent."""

    fits: bool
    asks: list[AskLeft]
    remaining: Tree
    buys: str


class SqlReply(BaseModel):
    """The rows of a query, each number with its error bar; null where a cell has none."""

    columns: list[str]
    rows: Cells
    low: Cells
    high: Cells
    level: float
    spent: Tree
    remaining: Tree
    unit: str
    guarantee: str
    reused: bool
    receipt: Tree | None
    notes: list[str]
    sampling: bool
    answer: Tree | None


class ColumnWidths(BaseModel):
    """How far a column may be off, for each number of rows a group is supposed to have."""

    name: str
    widths: list[float | None]
    sure: bool


class ExplainReply(BaseModel):
    """What a query would cost and be worth; nothing was spent.

    `left`: what would be left after it; null where `fits` is false, as it would be refused. `buys`: that, in words.
    """

    text: str
    price: Tree | None
    remaining: Tree
    left: Tree | None
    fits: bool
    buys: str | None
    beta: float
    rows: list[int]
    columns: list[ColumnWidths]
    notes: list[str]


class ColumnWidth(BaseModel):
    """How far a column may be off."""

    name: str
    width: float | None


class QueryShare(BaseModel):
    """A query's part of the total; `together`: the places of the counts that are asked as one design with it."""

    sql: str
    spend: Tree
    error: float | None
    together: list[int]
    columns: list[ColumnWidth]


class PlanReply(BaseModel):
    """A total, divided; nothing was spent."""

    total: Tree
    rows: int
    queries: list[QueryShare]


async def ask(name: str, caller: Asker) -> Json:
    """Pay and answer; the debit is durable before a row is read."""
    body = await caller.body(AskBody, large=True)
    told = {"question": body.question, "spend": await _spend(name, caller, body), "key": body.key, "reuse": body.reuse}
    told |= {"stored": True} if body.stored else {}
    return await caller.passed_on("ask", told, dataset=name)


async def foresee(name: str, caller: Asker) -> Json:
    """What an answer would cost and be worth; free, reads no row."""
    body = await caller.body(ForeseeBody, large=True)
    told = {"question": body.question, "spend": await _spend(name, caller, body)}
    return await caller.passed_on("foresee", told, dataset=name)


async def _spend(name: str, caller: Asker, body: ForeseeBody) -> object:
    """The spend, which buys the law of noise that is named, or the one of least foreseen error."""
    spend = loss_of(body.spend)
    if not isinstance(spend, EpsilonDelta) and body.law is None:
        return wire.to_json(spend)

    def choose() -> Loss | None:
        question = wire.from_json(body.question)
        if not isinstance(question, Question):
            raise QuestionError("wire-format", "The field question holds no question.")
        return chosen(caller.oracle(name), question, spend, body.law)

    return wire.to_json(await caller.work(choose, "free"))


async def afford(name: str, caller: Asker) -> Json:
    """What a run of asks would leave of the budget; spends nothing, reads no row."""
    return await _compiled(name, caller, AffordBody, "afforded", large=True)


async def sql(name: str, caller: Asker) -> Json:
    """Answer one SELECT at one debit, an error bar on every cell; EXPLAIN SELECT is explained, free."""
    return await _compiled(name, caller, SqlBody, "answered")


async def explain(name: str, caller: Asker) -> Json:
    """What a query would ask, cost and be worth; spends nothing, reads no row."""
    return await _compiled(name, caller, ExplainBody, "explained")


async def plan(name: str, caller: Asker) -> Json:
    """Divide a total over queries so that their mean relative error is least; spends nothing."""
    return await _compiled(name, caller, PlanBody, "planned")


async def _compiled(name: str, caller: Caller, kind: type[Body], act: str, *, large: bool = False) -> Json:
    """Have SQL compiled in this process, beside the event loop; the clerk is asked with the caller's token."""
    body = await caller.body(kind, large=large)
    paid = act == "answered"

    def work() -> dict[str, object]:
        from sulq.service.web import sql_answers  # the SQL compiler, which no start of the service waits for

        do: Callable[[ClerkOracle, Body], dict[str, object]] = getattr(sql_answers, act)
        found = do(caller.oracle(name), body)
        caller.given = paid and found["receipt"] is None  # a stored answer, or EXPLAIN
        return found

    return Json(await caller.work(work, "asks" if paid else "free"))
