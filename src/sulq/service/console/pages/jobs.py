"""Work that takes longer: a form for each kind, progress while it runs, results as they come, and their files."""

from __future__ import annotations

import base64
import json
from typing import Any

from starlette.responses import HTMLResponse, RedirectResponse, Response

from sulq.service.console.api import Tree, at
from sulq.service.console.forms.schema_form import fields_of, parameters
from sulq.service.console.forms.spend import usual, ways
from sulq.service.console.guard import Fields
from sulq.service.console.page import page
from sulq.service.console.refusal import Refusal
from sulq.service.console.views.answer_table import AnswerTable
from sulq.service.console.views.job_result import LearnedModel, PublishedRelease
from sulq.service.console.visit import Visit, attachment

MAX_JSON_CHARACTERS = 20_000  # of a result that is neither answers, a model nor a release


async def show(visit: Visit) -> Response:
    """The kinds of job there are, and one's own jobs."""
    kinds = (await visit.api.get(at("kinds")))["kinds"]
    mine = [job for job in (await visit.api.get(at("jobs")))["jobs"] if job["dataset"] == visit.name]
    titles = {kind["name"]: kind["title"] for kind in kinds}
    started = {kind["name"]: kind["title"] for kind in kinds if not kind["form"]}  # the others have their own pages
    return visit.page("jobs.html", kinds=started, titles=titles, jobs=mine)


async def new(visit: Visit) -> Response:
    """The form of one kind, made from its parameters."""
    return await _form(visit, Fields([]))


async def start(visit: Visit) -> Response:
    """Start it; its questions are asked, and paid, one by one."""
    fields = await visit.form()
    known = await visit.facts()
    kind = await _kind(visit)
    try:
        sent = parameters(fields_of(kind["parameters"], known.budget), fields, known.budget)
        job = await visit.api.post(visit.at("jobs"), {"kind": kind["name"], "parameters": sent})
    except Refusal as refusal:
        return await _form(visit, fields, refusal)
    return RedirectResponse(f"{visit.place}/jobs/{job['id']}", 303)


async def progress(visit: Visit) -> Response:
    """How far it is, and what it found so far; the piece asks again by itself while there is more to come."""
    shown = _shown(visit, await _job(visit))
    return HTMLResponse(page("job_piece.html", **shown)) if visit.piece else visit.page("job.html", **shown)


async def end(visit: Visit) -> Response:
    """Ask no further question for it; what was asked stays paid."""
    await visit.form()
    key = visit.request.path_params["key"]
    await visit.api.delete(at("jobs", key))
    return RedirectResponse(f"{visit.place}/jobs/{key}", 303)


async def model(visit: Visit) -> Response:
    """The model of a job as a file that `sulq.learn.load` reads."""
    found = ((await _job(visit))["result"] or {}).get("model")
    if not found:
        raise Refusal(404, "not-found", "This job has no model.", "Wait until it is done, or start another.")
    text = json.dumps(found, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    return attachment(text, "application/json", f"{_file_name(found['learner'])}.json")


async def archive(visit: Visit) -> Response:
    """The files of a release, packed."""
    job = await _job(visit)
    packed = (job["result"] or {}).get("archive")
    if not packed:
        raise Refusal(404, "not-found", "This job has no files.", "Wait until it is done, or start another.")
    return attachment(base64.b64decode(packed), "application/zip", f"{_file_name(job['kind'])}.zip")


def _file_name(name: str) -> str:
    return "".join(letter for letter in name.lower() if letter.isalnum())


async def _job(visit: Visit) -> Tree:
    return await visit.api.get(at("jobs", visit.request.path_params["key"]))


async def _kind(visit: Visit) -> Tree:
    kinds: list[Tree] = (await visit.api.get(at("kinds")))["kinds"]
    for kind in kinds:
        if kind["name"] == visit.request.path_params["kind"]:
            return kind
    raise Refusal(404, "not-found", "There is no such kind of job.", "Choose one of the list.")


async def _form(visit: Visit, fields: Fields, refusal: Refusal | None = None) -> Response:
    known, kind = await visit.facts(), await _kind(visit)
    return visit.page(
        "job_new.html",
        refusal.status if refusal else 200,
        kind=kind,
        words=kind["parameters"].get("description") or "",
        shown=fields_of(kind["parameters"], known.budget),
        fields=fields,
        refusal=refusal,
        sign=(ways(known.budget) or [("", "")])[0][1],
        usual=f"{usual(known.budget, known.remaining):g}",
        remaining=known.remaining,
    )


def _shown(visit: Visit, job: Tree) -> dict[str, Any]:
    result, done, total, error = job["result"] or {}, job["done"], job["total"], job["error"]
    learned, released, answers = LearnedModel.of(result), PublishedRelease.of(result), result.get("answers")
    plain = result and learned is None and released is None and answers is None
    # Once a question was paid, a refusal of a later one does not make it all free.
    refusal = error and Refusal(500 if done else 400, error["code"], error["message"], error["remedy"])
    return {
        "job": job,
        "live": job["state"] in ("waiting", "running"),
        "done": done,
        "total": total,
        "part": done / total if total else 0.0,
        "results": [{"table": AnswerTable.of(answer), "reused": answer["reused"]} for answer in answers or ()],
        "other": json.dumps(result, indent=1, ensure_ascii=False)[:MAX_JSON_CHARACTERS] if plain else "",
        "learned": learned,
        "released": released,
        "refusal": refusal,
        "place": visit.place,
        "word": visit.session.form,
    }
