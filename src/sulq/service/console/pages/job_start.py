"""What the pages of learners and of releases share: which there are, what one may cost, and its start as a job."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from starlette.responses import RedirectResponse, Response

from sulq.language.facts import Facts
from sulq.language.privacy import EpsilonDelta
from sulq.service.console.api import Tree, at
from sulq.service.console.forms.form import Form
from sulq.service.console.forms.spend import LEAST, most, spend, usual, ways
from sulq.service.console.guard import Fields
from sulq.service.console.refusal import Refusal
from sulq.service.console.views import words
from sulq.service.console.visit import Visit, place, rows

F = TypeVar("F", bound=Form)


async def offered(visit: Visit, form: type[F]) -> dict[str, F]:
    """The forms that a page has, by name."""
    kinds = rows(await visit.api.get(at("kinds")), "kinds")
    return {found.name: found for found in map(form.of, kinds) if found is not None}


async def wanted(visit: Visit, form: type[F]) -> F:
    """The form that the address names."""
    found = (await offered(visit, form)).get(str(visit.request.path_params["kind"]))
    if found is None:
        raise Refusal(404, "not-found", f"There is no such {form.noun}.", "Choose one of the list.")
    return found


async def listed(visit: Visit, form: type[F], groups: tuple[tuple[str, str, str], ...], template: str) -> Response:
    """A page with the forms there are, by the kinds, titles and texts of their groups, and one's own jobs of them."""
    forms = await offered(visit, form)
    filled = [(title, text, [found for found in forms.values() if found.kind == kind]) for kind, title, text in groups]
    return visit.page(
        template,
        groups=[group for group in filled if group[2]],
        jobs=await mine(visit, forms),
        place=place(visit.name),
    )


async def started(
    visit: Visit, form: type[F], page: Callable[[Visit, Fields, Refusal | None], Awaitable[Response]]
) -> Response:
    """Start what was sent as a job; where it is refused, the form again, with what was sent and why."""
    sent = await visit.form()
    asked = await wanted(visit, form)
    try:
        return await begun(visit, asked, sent)
    except Refusal as refusal:
        if refusal.status == 401:
            raise
        return await page(visit, sent, refusal)


async def mine(visit: Visit, names: dict[str, F]) -> list[Tree]:
    """One's own jobs of these on the dataset, the latest first."""
    jobs = rows(await visit.api.get(at("jobs")), "jobs")
    return [job for job in jobs if job.get("dataset") == visit.name and job.get("kind") in names]


async def begun(visit: Visit, form: Form, sent: Fields) -> Response:
    """The job of a sent form; its questions are asked, and paid, one by one."""
    paid = spend(sent, (await visit.facts()).budget)
    named = form.parameters(sent) | ({} if paid is None else {"spend": paid})
    job = await visit.api.post(visit.at("jobs"), {"kind": form.name, "parameters": named})
    return RedirectResponse(f"{place(visit.name)}/jobs/{job.get('id')}", 303)


def paying(known: Facts, sent: Fields) -> dict[str, object]:
    """What the part of a page says that asks for a price."""
    delta = f"{float(known.budget.delta) / 100:g}" if isinstance(known.budget, EpsilonDelta) else ""
    return {
        "amount": sent.text("amount") or f"{usual(known.budget, known.remaining):g}",
        "ways": ways(known.budget),
        "way": sent.text("way"),
        "delta": sent.text("delta") or delta,
        "least": LEAST,
        "most": most(known.budget, known.remaining),
        "remaining": known.remaining,
        "budget": known.budget,
        "unit": known.unit,
        "left": words.left(known.remaining, known.budget),
    }
