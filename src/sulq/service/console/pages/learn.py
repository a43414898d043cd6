"""Learning: a page for each learner, whose form is its signature; the job shows its progress and its model."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

from starlette.responses import Response

from sulq.service.console.api import at
from sulq.service.console.forms.learn_form import Form
from sulq.service.console.guard import Fields
from sulq.service.console.pages.job_start import listed, paying, started, wanted
from sulq.service.console.refusal import Refusal
from sulq.service.console.visit import Visit, place

GROUPS: Final = (
    ("unsupervised", "Find structure", "No column is predicted."),
    ("classifier", "Predict a class", "The label is a category, a truth value or a small whole number."),
    ("regressor", "Predict a number", "The label is a number."),
)


async def show(visit: Visit) -> Response:
    """The learners there are, and one's own models on this dataset."""
    return await listed(visit, Form, GROUPS, "learn.html")


async def new(visit: Visit) -> Response:
    """The form of one learner."""
    return await _page(visit, Fields([]))


async def start(visit: Visit) -> Response:
    """Start the fit; its questions are asked, and paid, one by one."""
    return await started(visit, Form, _page)


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


async def _page(visit: Visit, sent: Fields, refusal: Refusal | None = None) -> Response:
    form, known = await wanted(visit, Form), await visit.facts()
    return visit.page(
        "learn_new.html",
        refusal.status if refusal else 200,
        form=form,
        columns=form.columns(known),
        labels=form.labels(known) if form.supervised else [],
        ticked=set(sent.all("x")),
        label=sent.text("y"),
        sent=sent,
        refusal=refusal,
        place=place(visit.name),
        **paying(known, sent),
    )
