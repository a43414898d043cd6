"""Registering a dataset, step by step: file, columns, whom to protect, budget, a last look."""

from __future__ import annotations

from starlette.responses import Response

from sulq.service.console.api import at
from sulq.service.console.forms.registration import KINDS, STEPS, RegistrationDraft, looked
from sulq.service.console.guard import Fields
from sulq.service.console.refusal import Refusal
from sulq.service.console.views import words
from sulq.service.console.visit import Visit, place

TITLES = {
    "file": "The file",
    "columns": "Its columns",
    "unit": "Whom to protect",
    "budget": "The budget",
    "review": "A last look",
}


async def begin(visit: Visit) -> Response:
    """The first step: which file."""
    return await _step(visit, RegistrationDraft.of(Fields([])), "file")


async def step(visit: Visit) -> Response:
    """One of the steps; what is not right yet is shown again, with what is missing."""
    draft = RegistrationDraft.of(await visit.form())
    wanted = str(visit.request.path_params["step"])
    if wanted not in STEPS:
        raise Refusal(404, "not-found", "There is no such step.", "Start the registration again.")
    if wanted == "file":
        return await _step(visit, draft, "file")
    if not draft.columns or visit.request.query_params.get("look"):
        try:
            draft.columns = looked(await visit.api.post(at("look"), {"file": draft.file}))
        except Refusal as refusal:
            return await _step(visit, draft, "file", refusal=refusal)
    return await _step(visit, draft, draft.reach(wanted))


async def register(visit: Visit) -> Response:
    """Write it down; the first ask waits until the rows are prepared."""
    draft = RegistrationDraft.of(await visit.form())
    found = draft.reach("review")
    if found != "review":
        return await _step(visit, draft, found)
    try:
        await visit.api.post(at("datasets"), draft.body())
    except Refusal as refusal:
        return await _step(visit, draft, "review", refusal=refusal)
    return visit.page("registered.html", name=draft.name, place=place(draft.name))


async def _step(visit: Visit, draft: RegistrationDraft, name: str, *, refusal: Refusal | None = None) -> Response:
    files = (await visit.api.post(at("look"), {}))["files"] if name == "file" else []
    problem = draft.problems.get(name, "")
    reviewed: dict[str, object] = {"declared": {}, "unit": None, "budget": None, "warnings": []}
    if name == "review":
        reviewed = {
            "declared": draft.declared() or {},
            "unit": draft.unit(),
            "budget": draft.budget(),
            "warnings": draft.warnings(),
        }
        reviewed["promise"] = words.guarantee(reviewed["unit"], reviewed["budget"])  # type: ignore[arg-type]
    status = refusal.status if refusal else 400 if problem else 200
    return visit.page(
        f"register_{name}.html",
        status,
        draft=draft,
        step=name,
        steps=[(known, TITLES[known]) for known in STEPS],
        number=STEPS.index(name) + 1,
        hidden=draft.hidden(name),
        files=files,
        kinds=KINDS,
        problem=problem,
        refusal=refusal,
        **reviewed,
    )
