"""Learning: a page for each learner, whose form is its signature; the job shows its progress and its model."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

from starlette.responses import RedirectResponse, Response

from sulq.server.console import words
from sulq.server.console.api import at
from sulq.server.console.guard import Fields
from sulq.server.console.learn_form import Form
from sulq.server.console.refusal import Refusal
from sulq.server.console.spend import LEAST, most, spend, usual, ways
from sulq.server.console.visit import Visit, place, rows
from sulq.terms.privacy import EpsilonDelta

GROUPS: Final = (
    ("unsupervised", "Find structure", "No column is predicted."),
    ("classifier", "Predict a class", "The label is a category, a truth value or a small whole number."),
    ("regressor", "Predict a number", "The label is a number."),
)


async def show(visit: Visit) -> Response:
    """The learners there are, and one's own models on this dataset."""
    forms = await _forms(visit)
    jobs = [job for job in rows(await visit.api.get(at("jobs")), "jobs") if job.get("dataset") == visit.name]
    groups = [(title, text, [form for form in forms.values() if form.kind == kind]) for kind, title, text in GROUPS]
    return visit.page(
        "learn.html",
        groups=[group for group in groups if group[2]],
        jobs=[job for job in jobs if job.get("kind") in forms],
        place=place(visit.name),
    )


async def new(visit: Visit) -> Response:
    """The form of one learner."""
    return await _page(visit, Fields([]))


async def start(visit: Visit) -> Response:
    """Start the fit; its questions are asked, and paid, one by one."""
    sent = await visit.form()
    form, known = await _form(visit), await visit.facts()
    try:
        paid = spend(sent, known.budget)
        named = form.parameters(sent) | ({} if paid is None else {"spend": paid})
        job = await visit.api.post(visit.at("jobs"), {"kind": form.name, "parameters": named})
    except Refusal as refusal:
        if refusal.status == 401:
            raise
        return await _page(visit, sent, refusal)
    return RedirectResponse(f"{place(visit.name)}/jobs/{job.get('id')}", 303)


async def model(visit: Visit) -> Response:
    """The model of a job as a file that `sulq.learn.load` reads."""
    job = await visit.api.get(at("jobs", visit.request.path_params["key"]))
    result = job.get("result")
    found = result.get("model") if isinstance(result, Mapping) else None
    if not isinstance(found, Mapping):
        raise Refusal(404, "not-found", "This job has no model.", "Wait until it is done, or start another.")
    name = "".join(letter for letter in str(found.get("learner", "")).lower() if letter.isalnum())
    return Response(
        json.dumps(found, indent=1, ensure_ascii=False, allow_nan=False) + "\n",
        media_type="application/json",
        headers={"Content-Disposition": f'attachment; filename="{name or "model"}.json"'},
    )


async def _forms(visit: Visit) -> dict[str, Form]:
    kinds = rows(await visit.api.get(at("kinds")), "kinds")
    return {form.name: form for form in map(Form.of, kinds) if form is not None}


async def _form(visit: Visit) -> Form:
    found = (await _forms(visit)).get(str(visit.request.path_params["kind"]))
    if found is None:
        raise Refusal(404, "not-found", "There is no such learner.", "Choose one of the list.")
    return found


async def _page(visit: Visit, sent: Fields, refusal: Refusal | None = None) -> Response:
    form, known = await _form(visit), await visit.facts()
    delta = f"{float(known.budget.delta) / 100:g}" if isinstance(known.budget, EpsilonDelta) else ""
    labels = form.labels(known) if form.supervised else []
    return visit.page(
        "learn_new.html",
        refusal.status if refusal else 200,
        form=form,
        columns=form.columns(known),
        labels=labels,
        ticked=set(sent.all("x")),
        label=sent.text("y"),
        sent=sent,
        refusal=refusal,
        amount=sent.text("amount") or f"{usual(known.budget, known.remaining):g}",
        ways=ways(known.budget),
        way=sent.text("way"),
        delta=sent.text("delta") or delta,
        least=LEAST,
        most=most(known.budget, known.remaining),
        remaining=known.remaining,
        budget=known.budget,
        unit=known.unit,
        left=words.left(known.remaining, known.budget),
        place=place(visit.name),
    )
