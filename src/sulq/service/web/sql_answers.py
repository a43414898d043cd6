"""SQL over HTTP: queries asked, explained and planned; answers as JSON for callers that have no sulq of their own.

A number's error bar stands in `low` and `high`, cell by cell; null where a cell
has none, or none on that side. The `answer` beside them is the whole release in
the canonical JSON, from which sulq reads every other level again, free.
Loaded at the first query: it needs the SQL compiler.
"""

from __future__ import annotations

import datetime
import math
from decimal import Decimal
from fractions import Fraction

import numpy as np

from sulq.answers import wire
from sulq.answers.oracle import MAX_FORECAST_ASKS, Oracle
from sulq.answers.reuse import nothing
from sulq.api.named_asks import NamedAsks
from sulq.errors import QuestionError
from sulq.language.privacy import Event, Loss
from sulq.language.question import Question
from sulq.service.web.limits import MAX_PLANNED_QUERIES
from sulq.service.web.requests import loss_of
from sulq.service.web.routes.asking import LEVEL, AffordAsk, AffordBody, ExplainBody, PlanBody, SqlBody
from sulq.sql.answer import SqlAnswer
from sulq.sql.explain import Explanation
from sulq.sql.workload import Workload


def answered(oracle: Oracle, body: SqlBody) -> dict[str, object]:
    """The answer to one query."""
    found = NamedAsks(oracle).sql(body.sql, **body.price(), beta=body.beta, fresh=body.fresh, other=body.other)
    if body.sampling and isinstance(found, SqlAnswer):
        found = found.with_sampling()
    return sql_json(found, body.level)


def explained(oracle: Oracle, body: ExplainBody) -> dict[str, object]:
    """What one query would cost and be worth."""
    return explained_json(NamedAsks(oracle).explain(body.sql, **body.price(), beta=body.beta, other=body.other))


def afforded(oracle: Oracle, body: AffordBody) -> dict[str, object]:
    """What a run of asks would leave."""
    if sum(one.times for one in body.asks) > MAX_FORECAST_ASKS:
        raise QuestionError("too-large", f"A forecast is of at most {MAX_FORECAST_ASKS:,} asks.")
    if sum(one.sql is not None or one.question is not None for one in body.asks) > MAX_PLANNED_QUERIES:
        raise QuestionError("too-large", f"At most {MAX_PLANNED_QUERIES} queries and questions are planned at once.")
    asks = [found for one in body.asks for found in [_ask(one)] * one.times]  # one object each: planned once
    found = NamedAsks(oracle).afford(asks, law=body.law, bounds=body.bounds)
    lines = [
        {"price": wire.to_json(price), "left": wire.to_json(left)}
        for price, left in zip(found.prices, found.left, strict=True)
    ]
    after = found.after
    return {"fits": found.fits, "asks": lines, "remaining": wire.to_json(after.remaining), "buys": after.buys}


def _ask(one: AffordAsk) -> object:
    """An ask of a run as Python has it."""
    spend = loss_of(one.spend)
    whats = [what for what in (one.sql, one.question, one.event) if what is not None]
    if len(whats) > 1 or (not whats and spend is None) or (one.event is not None and spend is not None):
        raise QuestionError("bad-request", "An ask is sql or question with a spend, a spend alone, or an event.")
    if not whats:
        return spend
    what: object = one.sql
    if one.sql is None:
        what, kind = wire.from_json(whats[0]), Question if one.event is None else Event
        if not isinstance(what, kind):
            raise QuestionError("wire-format", "An ask's question holds a question, and its event a loss.")
    return what if spend is None else (what, spend)


def planned(oracle: Oracle, body: PlanBody) -> dict[str, object]:
    """A total, divided over queries; which counts would be asked as one design stands with each."""
    asks = NamedAsks(oracle)
    plan = asks.plan(
        body.queries,
        spend=body.total(),
        beta=body.beta,
        law=body.law,
        weights=body.weights,
        interval=body.interval,
    )
    return workload_json(plan)


def sql_json(answer: SqlAnswer | Explanation, level: float = LEVEL) -> dict[str, object]:
    """The answer to a query; an EXPLAIN SELECT is answered by lines of text, as PostgreSQL does."""
    if isinstance(answer, Explanation):
        left = answer.facts.remaining
        return _told(
            ["QUERY PLAN"], [[line] for line in str(answer).splitlines()], level, nothing(left), left,
            unit=str(answer.facts.unit),
        )  # fmt: skip
    bars = answer._intervals(1 - level)  # noqa: SLF001 - cells without a bar must be told from those of width zero
    columns = [column.values for column in answer.table.columns]
    none: list[object] = [None] * answer.table.size
    low, high = ([none if ends is None else ends[side] for ends in bars] for side in (0, 1))
    return _told(
        list(answer.columns), _rows(columns), level, answer.spent, answer.remaining,
        low=_rows(low), high=_rows(high), unit=str(answer.unit), guarantee=answer.guarantee, reused=answer.reused,
        receipt=wire.to_json(answer.receipt), notes=list(answer.notes),
        bounds={name: list(ends) for name, ends in answer.bounds.items()}, sampling=answer.sampled,
        answer=wire.to_json(answer.answers),
    )  # fmt: skip


def _told(
    columns: list[str], rows: list[list[object]], level: float, spent: Loss, remaining: Loss | None, **more: object
) -> dict[str, object]:
    empty: list[list[object]] = [] if "low" in more else [[None] * len(columns) for _ in rows]
    usual = {
        "low": empty, "high": empty, "unit": "", "guarantee": "dp", "reused": False, "receipt": None, "notes": [],
        "bounds": {}, "sampling": False, "answer": None,
    }  # fmt: skip
    told = {"columns": columns, "rows": rows, "level": level}
    return told | usual | more | {"spent": wire.to_json(spent), "remaining": wire.to_json(remaining)}


def explained_json(found: Explanation) -> dict[str, object]:
    """What a query would cost and how accurate it would be: widths for groups of so many `rows`."""
    return {
        "text": str(found),
        "price": wire.to_json(found.price),
        "remaining": wire.to_json(found.facts.remaining),
        "left": None if found.left is None else wire.to_json(found.left.remaining),
        "fits": found.fits,
        "buys": None if found.after is None else found.after.buys,
        "beta": found.beta,
        "rows": list(found.rows),
        "columns": [
            {"name": column.name, "widths": [_cell(width) for width in column.widths], "sure": column.sure}
            for column in found.columns
        ],
        "notes": list(found.notes),
    }


def workload_json(found: Workload) -> dict[str, object]:
    """How a total is divided over queries, and how accurate each part makes its query."""
    return {
        "total": wire.to_json(found.total),
        "rows": found.rows,
        "queries": [
            {
                "sql": query.text,
                "spend": wire.to_json(query.spend),
                "error": _cell(query.error),
                "together": list(query.together),
                "columns": [{"name": name, "width": _cell(width)} for name, width in query.widths],
            }
            for query in found.queries
        ],
    }


def _rows(columns: list[list[object]]) -> list[list[object]]:
    """Columns as JSON has them: row by row."""
    return list(map(list, zip(*map(_cells, columns), strict=True)))


def _cells(values: list[object]) -> list[object]:
    """The cells of a column; texts and finite numbers are as JSON has them."""
    kinds = set(map(type, values))
    plain = kinds <= {str, int, bool, type(None)} or (kinds == {float} and all(map(math.isfinite, values)))  # type: ignore[arg-type]
    return values if plain else list(map(_cell, values))


def _cell(value: object) -> object:
    """A cell as JSON has it: moments in ISO 8601, and no number that is none."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, (Fraction, Decimal)):
        value = float(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value.isoformat() if isinstance(value, (datetime.date, datetime.time)) else str(value)
