"""Work that takes longer: forms by group, progress while it runs, results as they come, and their files."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from typing import Any

from starlette.responses import HTMLResponse, RedirectResponse, Response

from sulq.service.console.api import Refusal, Tree, at
from sulq.service.console.forms import (
    GROUPS,
    JobForm,
    LearnForm,
    ReleaseForm,
    fields_of,
    price_fields,
    schema_parameters,
    spend,
    usual,
    ways,
)
from sulq.service.console.guard import Fields
from sulq.service.console.page import page
from sulq.service.console.views.answer import AnswerTable
from sulq.service.console.views.job_result import JobResult
from sulq.service.console.visit import Visit, attachment

MAX_JSON_CHARACTERS = 20_000  # of a result that is neither answers, a model nor a release


async def show(visit: Visit) -> Response:
    """The kinds of job there are, and one's own jobs."""
    kinds = (await visit.api.get(at("kinds")))["kinds"]
    mine = [job for job in (await visit.api.get(at("jobs")))["jobs"] if job["dataset"] == visit.name]
    titles = {kind["name"]: kind["title"] for kind in kinds}
    started = {kind["name"]: kind["title"] for kind in kinds if not kind["form"]}  # the others have their own pages
    return visit.page("jobs.html", kinds=started, titles=titles, jobs=mine)


async def start(visit: Visit) -> Response:
    """Start it; its questions are asked, and paid, one by one."""
    fields = await visit.form()
    known = await visit.facts()
    kind = await _kind(visit)
    try:
        sent = schema_parameters(fields_of(kind["parameters"], known.budget), fields, known.budget)
        job = await visit.api.post(visit.at("jobs"), {"kind": kind["name"], "parameters": sent})
    except Refusal as refusal:
        return await new(visit, fields, refusal)
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


async def new(visit: Visit, fields: Fields | None = None, refusal: Refusal | None = None) -> Response:
    """The form of one kind, made from its parameters."""
    known, kind = await visit.facts(), await _kind(visit)
    return visit.page(
        "job_new.html",
        kind=kind,
        words=kind["parameters"].get("description") or "",
        shown=fields_of(kind["parameters"], known.budget),
        fields=fields or Fields([]),
        refusal=refusal,
        sign=(ways(known.budget) or [("", "")])[0][1],
        usual=f"{usual(known.budget, known.remaining):g}",
        remaining=known.remaining,
    )


def _shown(visit: Visit, job: Tree) -> dict[str, Any]:
    result, done, total, error = job["result"] or {}, job["done"], job["total"], job["error"]
    found, answers = JobResult.of(result), result.get("answers")
    plain = result and found is None and answers is None
    # Once a question was paid, a refusal of a later one does not make it all free.
    failure = error and Refusal(500 if done else 400, error["code"], error["message"], error["remedy"])
    return {
        "job": job,
        "live": job["state"] in ("waiting", "running"),
        "done": done,
        "total": total,
        "part": done / total if total else 0.0,
        "results": [{"table": AnswerTable.of(answer), "reused": answer["reused"]} for answer in answers or ()],
        "other": json.dumps(result, indent=1, ensure_ascii=False)[:MAX_JSON_CHARACTERS] if plain else "",
        "found": found,
        "failure": failure,
        "place": visit.place,
        "word": visit.session.form,
    }


@dataclass(frozen=True, slots=True)
class FormPages:
    """The pages of one family of forms; `name` is part of their addresses and of a form's template."""

    name: str
    form: type[JobForm]
    title: str
    lead: str
    result: str

    async def show(self, visit: Visit) -> Response:
        """The forms there are by group, and one's own jobs of them on this dataset."""
        forms = await self._forms(visit)
        groups = [(*GROUPS[kind], [form for form in forms.values() if form.kind == kind]) for kind in self.form.kinds]
        jobs = (await visit.api.get(at("jobs")))["jobs"]
        return visit.page(
            "forms.html",
            family=self,
            groups=[group for group in groups if group[2]],
            jobs=[job for job in jobs if job["dataset"] == visit.name and job["kind"] in forms],
        )

    async def start(self, visit: Visit) -> Response:
        """Start the job, which asks and pays question by question; a form that is refused comes back with the why."""
        sent = await visit.form()
        form = await self._form(visit)
        try:
            paid = spend(sent, (await visit.facts()).budget)
            parameters = form.parameters(sent) | ({} if paid is None else {"spend": paid})
            job = await visit.api.post(visit.at("jobs"), {"kind": form.name, "parameters": parameters})
        except Refusal as refusal:
            return await self.new(visit, sent, refusal)
        return RedirectResponse(f"{visit.place}/jobs/{job['id']}", 303)

    async def _forms(self, visit: Visit) -> dict[str, JobForm]:
        kinds = (await visit.api.get(at("kinds")))["kinds"]
        return {form.name: form for form in map(self.form.of, kinds) if form is not None}

    async def _form(self, visit: Visit) -> JobForm:
        found = (await self._forms(visit)).get(visit.request.path_params["kind"])
        if found is None:
            raise Refusal(404, "not-found", f"There is no such {self.form.noun}.", "Choose one of the list.")
        return found

    async def new(self, visit: Visit, fields: Fields | None = None, refusal: Refusal | None = None) -> Response:
        """One form."""
        form, known, sent = await self._form(visit), await visit.facts(), fields or Fields([])
        values = form.page_values(known, sent) | price_fields(known, sent)
        return visit.page(f"{self.name}_new.html", form=form, sent=sent, refusal=refusal, **values)


LEARN = FormPages(
    "learn",
    LearnForm,
    "Learn from",
    "A model from private columns, at one price. It sees noisy answers only; once learned, it predicts anywhere for "
    "nothing.",
    "Model",
)
RELEASE = FormPages(
    "release",
    ReleaseForm,
    "Releases of",
    "Publish once, at one price: tables, answers, made-up rows that anybody may use for ever. They are made of noisy "
    "answers only.",
    "Release",
)
