"""The pages of learners and of releases: the list of forms, one form, and the start of its job."""

from __future__ import annotations

from dataclasses import dataclass

from starlette.responses import RedirectResponse, Response

from sulq.service.console.api import at
from sulq.service.console.forms.job_form import GROUPS, JobForm, LearnForm, ReleaseForm
from sulq.service.console.forms.spend import price_fields, spend
from sulq.service.console.guard import Fields
from sulq.service.console.refusal import Refusal
from sulq.service.console.visit import Visit


@dataclass(frozen=True, slots=True)
class FormPages:
    """The pages of one family of forms; `name` is part of their addresses and of their templates' names."""

    name: str
    family: type[JobForm]

    async def show(self, visit: Visit) -> Response:
        """The forms there are by group, and one's own jobs of them on this dataset."""
        forms = await self._forms(visit)
        groups = [(*GROUPS[kind], [form for form in forms.values() if form.kind == kind]) for kind in self.family.kinds]
        jobs = (await visit.api.get(at("jobs")))["jobs"]
        return visit.page(
            f"{self.name}.html",
            groups=[group for group in groups if group[2]],
            jobs=[job for job in jobs if job["dataset"] == visit.name and job["kind"] in forms],
        )

    async def new(self, visit: Visit) -> Response:
        """One form."""
        return await self._page(visit, await self._form(visit), Fields([]))

    async def start(self, visit: Visit) -> Response:
        """Start the job, which asks and pays question by question; a form that is refused comes back with the why."""
        sent = await visit.form()
        form = await self._form(visit)
        try:
            paid = spend(sent, (await visit.facts()).budget)
            parameters = form.parameters(sent) | ({} if paid is None else {"spend": paid})
            job = await visit.api.post(visit.at("jobs"), {"kind": form.name, "parameters": parameters})
        except Refusal as refusal:
            return await self._page(visit, form, sent, refusal)
        return RedirectResponse(f"{visit.place}/jobs/{job['id']}", 303)

    async def _forms(self, visit: Visit) -> dict[str, JobForm]:
        kinds = (await visit.api.get(at("kinds")))["kinds"]
        return {form.name: form for form in map(self.family.of, kinds) if form is not None}

    async def _form(self, visit: Visit) -> JobForm:
        found = (await self._forms(visit)).get(visit.request.path_params["kind"])
        if found is None:
            raise Refusal(404, "not-found", f"There is no such {self.family.noun}.", "Choose one of the list.")
        return found

    async def _page(self, visit: Visit, form: JobForm, sent: Fields, refusal: Refusal | None = None) -> Response:
        known = await visit.facts()
        values = form.page_values(known, sent) | price_fields(known, sent)
        status = refusal.status if refusal else 200
        return visit.page(f"{self.name}_new.html", status, form=form, sent=sent, refusal=refusal, **values)


LEARN = FormPages("learn", LearnForm)
RELEASE = FormPages("release", ReleaseForm)
