"""Work that takes longer: a form for each kind, progress while it runs, results as they come."""

from __future__ import annotations

import json
from typing import Any

from starlette.responses import HTMLResponse, RedirectResponse, Response

from sulq.service.console.api import Tree, at
from sulq.service.console.forms.schema_form import fields_of, parameters
from sulq.service.console.forms.spend import usual, ways
from sulq.service.console.guard import Fields
from sulq.service.console.page import page
from sulq.service.console.refusal import Refusal
from sulq.service.console.views.answer_table import Table
from sulq.service.console.views.learned import Learned
from sulq.service.console.views.released import Released
from sulq.service.console.visit import Visit, place, rows


async def show(visit: Visit) -> Response:
    """The kinds of job there are, and one's own jobs."""
    kinds = rows(await visit.api.get(at("kinds")), "kinds")
    mine = [job for job in rows(await visit.api.get(at("jobs")), "jobs") if job.get("dataset") == visit.name]
    titles = {str(kind.get("name")): str(kind.get("title") or kind.get("name")) for kind in kinds}
    own = {str(kind.get("name")) for kind in kinds if kind.get("form")}  # learners and releases have pages of their own
    started = {name: title for name, title in titles.items() if name not in own}
    return visit.page("jobs.html", kinds=started, titles=titles, jobs=mine, place=place(visit.name))


async def new(visit: Visit) -> Response:
    """The form of one kind, made from its parameters."""
    return await _form(visit, Fields([]))


async def start(visit: Visit) -> Response:
    """Start it; its questions are asked, and paid, one by one."""
    fields = await visit.form()
    known = await visit.facts()
    kind = await _kind(visit)
    try:
        shown = fields_of(_schema(kind), known.budget)
        body = {"kind": kind.get("name"), "parameters": parameters(shown, fields, known.budget)}
        job = await visit.api.post(visit.at("jobs"), body)
    except Refusal as refusal:
        if refusal.status == 401:
            raise
        return await _form(visit, fields, refusal)
    return RedirectResponse(f"{place(visit.name)}/jobs/{job.get('id')}", 303)


async def progress(visit: Visit) -> Response:
    """How far it is, and what it found so far; the piece asks again by itself while there is more to come."""
    job = await visit.api.get(at("jobs", visit.request.path_params["key"]))
    shown = _shown(visit, job)
    if visit.piece:
        return HTMLResponse(page("job_piece.html", **shown))
    return visit.page("job.html", **shown)


async def end(visit: Visit) -> Response:
    """Ask no further question for it; what was asked stays paid."""
    await visit.form()
    key = visit.request.path_params["key"]
    await visit.api.delete(at("jobs", key))
    return RedirectResponse(f"{place(visit.name)}/jobs/{key}", 303)


async def _kind(visit: Visit) -> Tree:
    wanted = visit.request.path_params["kind"]
    for kind in rows(await visit.api.get(at("kinds")), "kinds"):
        if kind.get("name") == wanted:
            return kind
    raise Refusal(404, "not-found", "There is no such kind of job.", "Choose one of the list.")


def _schema(kind: Tree) -> Tree:
    found = kind.get("parameters")
    return found if isinstance(found, dict) else {}


async def _form(visit: Visit, fields: Fields, refusal: Refusal | None = None) -> Response:
    known, kind = await visit.facts(), await _kind(visit)
    return visit.page(
        "job_new.html",
        refusal.status if refusal else 200,
        kind=kind,
        words=str(_schema(kind).get("description") or ""),
        shown=fields_of(_schema(kind), known.budget),
        fields=fields,
        refusal=refusal,
        sign=(ways(known.budget) or [("", "")])[0][1],
        usual=f"{usual(known.budget, known.remaining):g}",
        remaining=known.remaining,
        place=place(visit.name),
    )


def _shown(visit: Visit, job: Tree) -> dict[str, Any]:
    result = job.get("result")
    tables: list[dict[str, object]] = []
    other = ""
    learned = Learned.of(result) if isinstance(result, dict) else None
    released = Released.of(result) if isinstance(result, dict) else None
    if isinstance(result, dict) and learned is None and released is None:
        answers = result.get("answers")
        if isinstance(answers, list):
            tables = [{"table": Table.of(answer), "reused": bool(answer.get("reused"))} for answer in answers]
        else:
            other = json.dumps(result, indent=1, ensure_ascii=False)[:20_000]
    done, total = (value if isinstance(value, int) else 0 for value in (job.get("done"), job.get("total")))
    error = job.get("error")
    refusal = None
    if isinstance(error, dict):
        # Once a question was paid, a refusal of a later one does not make it all free.
        refusal = Refusal(500 if done else 400, *(str(error.get(name, "")) for name in ("code", "message", "remedy")))
    return {
        "job": job,
        "live": job.get("state") in ("waiting", "running"),
        "done": done,
        "total": total,
        "part": done / total if total else 0.0,
        "results": tables,
        "other": other,
        "learned": learned,
        "released": released,
        "refusal": refusal,
        "place": place(visit.name),
        "word": visit.session.form,
    }
