"""SQL: ask, explain, and divide a total over several queries."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, Field

from sulq.api.named_asks import NamedAsks
from sulq.language.privacy import Loss
from sulq.service.web.answer_json import LEVEL, explained_json, loss_of, sql_json, workload_json
from sulq.service.web.limits import MAX_PLANNED_QUERIES
from sulq.service.web.openapi import Cells, Spend, Tree
from sulq.service.web.requests import Asker, Body
from sulq.service.web.responses import Json
from sulq.sql.session import Within

Level = Annotated[float, Field(gt=0, lt=1)]


class ExplainBody(Body):
    """A query and its price: a spend, or the accuracy wished for (a width, or one for each column).

    `other`: the label of a row for the groups that are not shown, where keys are found in the data.
    """

    sql: str
    spend: Spend | None = None
    within: float | dict[str, float] | None = None
    beta: Level = 0.05
    at_most: Spend | None = None
    other: str | None = None

    def price(self) -> tuple[Loss | None, Within, Loss | None]:
        """What is named of the price."""
        return loss_of(self.spend), self.within, loss_of(self.at_most)


class SqlBody(ExplainBody):
    """Likewise. `fresh`: new noise at full price instead of a stored answer. `level`: of the error bars."""

    fresh: bool = False
    level: Level = LEVEL


class PlanBody(Body):
    """Queries and the total to divide over them."""

    queries: Annotated[list[str], Field(min_length=1, max_length=MAX_PLANNED_QUERIES)]
    spend: Spend
    beta: Level = 0.05


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
    answer: Tree | None


class ColumnWidths(BaseModel):
    """How far a column may be off, for each number of rows a group is supposed to have."""

    name: str
    widths: list[float | None]
    sure: bool


class ExplainReply(BaseModel):
    """What a query would cost and be worth; nothing was spent."""

    text: str
    price: Tree | None
    remaining: Tree
    beta: float
    rows: list[int]
    columns: list[ColumnWidths]
    notes: list[str]


class ColumnWidth(BaseModel):
    """How far a column may be off."""

    name: str
    width: float | None


class QueryShare(BaseModel):
    """A query's part of the total."""

    sql: str
    spend: Tree
    error: float | None
    columns: list[ColumnWidth]


class PlanReply(BaseModel):
    """A total, divided; nothing was spent."""

    total: Tree
    rows: int
    queries: list[QueryShare]


async def sql(name: str, caller: Asker) -> Json:
    """Answer one SELECT at one debit, an error bar on every cell; EXPLAIN SELECT is explained, free."""
    body = await caller.body(SqlBody)
    return Json(await caller.work(lambda: answered(caller.desk(name), body)))


def answered(desk: NamedAsks, body: SqlBody) -> dict[str, object]:
    """One query's answer as JSON."""
    spend, within, at_most = body.price()
    found = desk.sql(
        body.sql, spend=spend, within=within, beta=body.beta, at_most=at_most, fresh=body.fresh, other=body.other
    )
    return sql_json(found, body.level)


async def explain(name: str, caller: Asker) -> Json:
    """What a query would ask, cost and be worth; spends nothing, reads no row."""
    body = await caller.body(ExplainBody)
    spend, within, at_most = body.price()
    return Json(
        await caller.work(
            lambda: explained_json(
                caller.desk(name).explain(
                    body.sql, spend=spend, within=within, beta=body.beta, at_most=at_most, other=body.other
                )
            )
        )
    )


async def plan(name: str, caller: Asker) -> Json:
    """Divide a total over queries so that the worst error is smallest; spends nothing."""
    body = await caller.body(PlanBody)
    total = loss_of(body.spend)
    assert total is not None  # noqa: S101 - the body has one
    return Json(
        await caller.work(lambda: workload_json(caller.desk(name).plan(body.queries, spend=total, beta=body.beta)))
    )
