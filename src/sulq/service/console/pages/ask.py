"""Asking: the price and the expected error before, the answer with its error bars after."""

from __future__ import annotations

from typing import Any

from starlette.responses import HTMLResponse, Response

from sulq.answers import wire
from sulq.errors import SulqError
from sulq.language.facts import Facts
from sulq.language.privacy import Budget, EpsilonDelta
from sulq.service.console.api import Refusal, Tree
from sulq.service.console.forms import CONFIDENCES, price_fields, terms
from sulq.service.console.guard import Fields
from sulq.service.console.page import page
from sulq.service.console.pages.dataset import examples
from sulq.service.console.views import words
from sulq.service.console.views.answer import MAX_DOWNLOAD_BYTES, AnswerTable, Forecast, to_csv, to_parquet
from sulq.service.console.visit import Visit, attachment

FILES = {"csv": ("text/csv; charset=utf-8", to_csv), "parquet": ("application/vnd.apache.parquet", to_parquet)}


async def show(visit: Visit) -> Response:
    """The editor; `sql` in the address is put into it and nothing is asked."""
    known = await visit.facts()
    text = visit.request.query_params.get("sql") or examples(known)[min(1, len(examples(known)) - 1)][1]
    return _page(visit, known, Fields([("sql", text)]))


async def price(visit: Visit) -> Response:
    """What the query would cost and how far off it would be; spends nothing."""
    fields = await visit.form()
    known = await visit.facts()
    try:
        body = _body(fields, known.budget)
        foreseen = Forecast.of(await visit.api.post(visit.at("explain"), body))
    except Refusal as refusal:
        # A text that is still being typed is not a mistake: the hint replaces the price, quietly.
        return HTMLResponse(page("price.html", foreseen=None, refusal=refusal, above=False, **_left(known, None)))
    cap = words.loss(body.get("at_most"))
    above = type(cap) is type(foreseen.price) and words.size(foreseen.price) > words.size(cap) * (1 + 1e-9)
    return HTMLResponse(page("price.html", foreseen=foreseen, refusal=None, above=above, **_left(known, foreseen)))


async def answer(visit: Visit) -> Response:
    """Pay and answer."""
    fields = await visit.form()
    known = await visit.facts()
    try:
        body = _body(fields, known.budget) | {name: fields.text(name) == "yes" for name in ("fresh", "sampling")}
        if "beta" in body:
            body["level"] = 1 - float(str(body["beta"]))  # the bars are of the accuracy that was wished for
        told = await visit.api.post(visit.at("sql"), body)
    except Refusal as refusal:
        if visit.piece:
            raise
        return _page(visit, known, fields, refusal=refusal)
    known = await visit.facts()
    shown = _answered(told, fields, visit) | {"facts": known}
    if visit.piece:
        return HTMLResponse(page("answer.html", **shown), headers={"HX-Trigger-After-Settle": "answered"})
    return _page(visit, known, fields, answered=shown)


async def download(visit: Visit) -> Response:
    """The answer on the page as a file: nothing is asked again, so nothing is spent."""
    fields = await visit.form(limit=MAX_DOWNLOAD_BYTES)
    form = str(visit.request.path_params["form"])
    if form not in FILES:
        raise Refusal(404, "not-found", "There is no such kind of file.", "Choose CSV or Parquet.")
    try:
        tree = wire.strict(fields.get("table", ""))
    except SulqError:
        tree = None
    kind, write = FILES[form]
    return attachment(write(AnswerTable.of(tree if isinstance(tree, dict) else {})), kind, f"answer.{form}")


def _page(
    visit: Visit,
    known: Facts,
    fields: Fields,
    *,
    answered: dict[str, object] | None = None,
    refusal: Refusal | None = None,
) -> Response:
    return visit.page(
        "ask.html",
        facts=known,
        tables=known.every,
        sql=fields.get("sql", ""),
        by=fields.text("by") or "price",
        width=fields.text("width"),
        sure=fields.text("sure") or "0.05",
        sureness=CONFIDENCES,
        other=fields.get("other", ""),
        law=fields.text("law"),
        bounds=fields.text("bounds"),
        bare=fields.text("bare") == "yes",
        sampling=fields.text("sampling") == "yes",
        groups=isinstance(known.budget, EpsilonDelta),
        examples=examples(known),
        answered=answered,
        refusal=refusal,
        **(price_fields(known, fields) | _left(known, None)),
    )


def _body(fields: Fields, budget: Budget) -> dict[str, object]:
    body: dict[str, object] = {"sql": fields.get("sql", "").replace("\r\n", "\n")} | terms(fields, budget)
    body |= {name: fields.text(name) for name in ("other", "law", "bounds") if fields.text(name)}
    return body | ({"interval": False} if fields.text("bare") == "yes" else {})


def _left(known: Facts, foreseen: Forecast | None) -> dict[str, Any]:
    """What is left now, and what would be left after."""
    now = words.left(known.remaining, known.budget)
    left = None if foreseen is None else foreseen.left
    after = None if left is None else words.left(left, known.budget)
    over = foreseen is not None and not foreseen.fits
    told = {"remaining": known.remaining, "budget": known.budget, "left": now, "after": after, "over": over}
    return told | {"unit": known.unit, "then": left, "buys": None if foreseen is None else foreseen.buys}


def _answered(told: Tree, fields: Fields, visit: Visit) -> dict[str, object]:
    return {
        "table": AnswerTable.of(told),
        "sql": fields.get("sql", ""),
        "spent": words.loss(told["spent"]),
        "remaining": words.loss(told["remaining"]),
        "reused": told["reused"],
        "seq": told["receipt"]["seq"] if told["receipt"] else None,
        "guarantee": told["guarantee"],
        "notes": told["notes"],
        "place": visit.place,
        "word": visit.session.form,
    }
