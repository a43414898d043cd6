"""The service itself and its datasets: health, metrics, whose token it is; registering and withdrawing."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Request
from pydantic import BaseModel, Field
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from sulq.data_files import MAX_PARTS
from sulq.errors import SulqError
from sulq.language.privacy import MAX_DELTA_SHARE
from sulq.service.sandbox.isolation import files, rights
from sulq.service.web.metrics import OPEN_METRICS, PLAIN_TEXT, Snapshot, printed
from sulq.service.web.requests import Asker, Body, ClerkClient, Tree
from sulq.service.web.responses import Json
from sulq.version import __version__

DataWords = str | Annotated[list[str], Field(min_length=1, max_length=MAX_PARTS)]
DeltaShare = Annotated[float, Field(ge=0, le=float(MAX_DELTA_SHARE))]


class HealthReply(BaseModel):
    """The status of `/v1/ready`, and how the processes are kept apart on this machine."""

    status: str
    version: str
    clerk: dict[str, Any]
    web: dict[str, str]
    jobs: dict[str, Any]


class MeReply(BaseModel):
    """The token's holder."""

    name: str
    role: str
    datasets: list[str] | None
    expires: int | str | None


class DatasetEntry(BaseModel):
    """A dataset the caller may see; facts once it is ready."""

    name: str
    ready: bool
    facts: Tree | None


class DatasetsReply(BaseModel):
    """The datasets the caller may see."""

    datasets: list[DatasetEntry]


class FactsReply(BaseModel):
    """Declarations, unit, budget and what remains of it."""

    facts: Tree


class TableBody(Body):
    """One of several tables: its file, its columns, and how it hangs together with the others.

    `file` may name several files as one table, as in a dataset of one table.
    `key`: the column that differs from row to row. `public`: rows that need no protection. `person`: the column that
    says whose row it is, where it is not the unit's. `references`: columns that name a row of another private table by
    its key, {column: table}.
    """

    file: DataWords
    columns: dict[str, Tree]
    key: str | None = None
    public: bool = False
    person: str | None = None
    references: dict[str, str] | None = None
    size: int | None = None


class RegisterBody(Body):
    """The owner's declarations: columns, unit and budget in the canonical JSON, files below data_root.

    One table is `file` and `columns`; several are `tables`, by their names, in place of these. `file` is a data file; a
    pattern, a folder or a list of these are several files of one table. `graph`: of one table
    whose rows are edges, the columns of both ends and of the weight, if there is one. `basic_share`: of an EpsilonDelta
    budget, the part of delta for asks that are added one by one; a twentieth if it is left out. `key_share`: likewise
    for open keys; a tenth if it is left out and a table has them. A unit with `rows` "auto" has the number chosen from
    a noisy histogram of rows per person; it may have `most` and `share` too. `anchor`: the name of a file in the
    server's folder of anchors, where the ledger's head is noted before each debit is acknowledged.
    """

    name: str
    budget: Tree
    file: DataWords | None = None
    columns: dict[str, Tree] | None = None
    tables: Annotated[dict[str, TableBody], Field(min_length=1)] | None = None
    unit: Tree | None = None
    table: str | None = None
    size: int | None = None
    synthetic: bool = False
    basic_share: DeltaShare | None = None
    key_share: DeltaShare | None = None
    anchor: str | None = None
    graph: Annotated[list[str], Field(min_length=2, max_length=3)] | None = None


class LookBody(Body):
    """A data file below the server's data_root, or several as one table; none: which files there are."""

    file: DataWords | None = None


class RegisterReply(BaseModel):
    """The new dataset's name, and whether it can be asked yet; a large one is still being opened.

    `choice`: where the number of rows was chosen, the released bins it follows from.
    """

    name: str
    ready: bool
    choice: Tree | None = None


class CheckReply(BaseModel):
    """Of each table its rows by whose they are, and each column's cells by how they are read."""

    tables: list[Tree]


class LookReply(BaseModel):
    """Names and types of a file's columns, or the files there are; no value, no count."""

    model_config = {"extra": "allow"}


async def datasets(caller: Asker) -> Json:
    """The datasets the caller may see."""
    return await caller.reply("datasets")


async def facts(name: str, caller: Asker) -> Json:
    """A dataset's public facts."""
    return await caller.reply("facts", dataset=name)


async def register(caller: Asker) -> Json:
    """Register a dataset (owner); if its rows cannot be opened nothing is registered, and the reply says why."""
    body = await caller.body(RegisterBody, large=True)  # a list of a million categories
    return await caller.reply("register", body.model_dump(exclude_none=True), status=201)


async def withdraw(name: str, caller: Asker) -> Response:
    """Take away a dataset that was registered over HTTP; its data and its ledger stay (owner)."""
    await caller.ask("withdraw", dataset=name)
    return Response(status_code=204)


async def check(caller: Asker) -> Json:
    """How declarations fit the rows that are about to be registered: exact counts, not to be published (owner).

    The body is that of a registration. That the owner looked is noted beside the ledger: what is declared otherwise
    afterwards is shown to analysts as declared after looking.
    """
    body = await caller.body(RegisterBody, large=True)
    return await caller.reply("check", body.model_dump(exclude_none=True))


async def look(caller: Asker) -> Json:
    """Names and types of a data file's columns (owner)."""
    return await caller.reply("look", (await caller.body(LookBody)).model_dump(exclude_none=True))


async def health(request: Request) -> Json:
    """Whether the service stands, and how its processes are kept apart; `status` is that of `/v1/ready`."""
    state = request.app.state
    state.limits.addresses.take(request.client.host if request.client is not None else "")
    told = {"version": __version__, "web": {"files": files(), "rights": rights()}}
    told["jobs"] = await run_in_threadpool(state.jobs.health)
    try:
        clerk = await run_in_threadpool(ClerkClient(state.call, None).ask, "health")
    except SulqError:
        return Json({"status": "away", "clerk": {}} | told, status_code=503)
    return Json({"status": clerk["status"], "clerk": clerk} | told)


async def me(caller: Asker) -> Json:
    """Name, role, datasets and expiry of the token."""
    return await caller.reply("whoami")


async def metrics(request: Request, caller: Asker) -> Response:
    """Counts and standing budgets, in Prometheus' text form, or in OpenMetrics' where that is asked for (owner)."""
    state = request.app.state
    clerk = await caller.ask("metrics")
    try:
        jobs = await run_in_threadpool(state.jobs.states)
    except SulqError:
        jobs = {}  # whoever has them is being started
    web = state.shared.all(state.tally.told())
    wanted = "application/openmetrics-text" in request.headers.get("accept", "")
    text = await run_in_threadpool(lambda: printed(Snapshot(clerk, web, jobs), open_metrics=wanted))
    return Response(text, media_type=OPEN_METRICS if wanted else PLAIN_TEXT)
