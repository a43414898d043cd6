"""Releasing: a page for each release, whose form is its signature; the job shows its progress and what it published."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Final

from starlette.responses import Response

from sulq.service.console.api import at
from sulq.service.console.forms.release_form import WRITTEN, Form
from sulq.service.console.guard import Fields
from sulq.service.console.pages.job_start import listed, paying, started, wanted
from sulq.service.console.refusal import Refusal
from sulq.service.console.visit import Visit, place

GROUPS: Final = (
    ("release", "Publish", "An object that anybody may use for ever; using it costs nothing more."),
    ("selection", "Choose", "Of many public candidates the one that is about the best, and nothing else."),
)


async def show(visit: Visit) -> Response:
    """The releases there are, and one's own on this dataset."""
    return await listed(visit, Form, GROUPS, "release.html")


async def new(visit: Visit) -> Response:
    """The form of one release."""
    return await _page(visit, Fields([]))


async def start(visit: Visit) -> Response:
    """Start it; its questions are asked, and paid, one by one."""
    return await started(visit, Form, _page)


async def archive(visit: Visit) -> Response:
    """The files of a release, packed."""
    job = await visit.api.get(at("jobs", visit.request.path_params["key"]))
    result = job.get("result")
    packed = result.get("archive") if isinstance(result, Mapping) else None
    try:
        found = base64.b64decode(packed, validate=True) if isinstance(packed, str) else b""
    except binascii.Error:
        found = b""
    if not found:
        raise Refusal(404, "not-found", "This job has no files.", "Wait until it is done, or start another.")
    name = "".join(letter for letter in str(job.get("kind", "")).lower() if letter.isalnum())
    return Response(
        found,
        media_type="application/zip",
        headers={"Content-Disposition": f'attachment; filename="{name or "release"}.zip"'},
    )


async def _page(visit: Visit, sent: Fields, refusal: Refusal | None = None) -> Response:
    form, known = await wanted(visit, Form), await visit.facts()
    return visit.page(
        "release_new.html",
        refusal.status if refusal else 200,
        form=form,
        columns=form.columns(known),
        files=WRITTEN if form.kind == "release" else (),
        sent=sent,
        refusal=refusal,
        place=place(visit.name),
        **paying(known, sent),
    )
