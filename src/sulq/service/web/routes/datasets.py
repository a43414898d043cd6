"""Datasets: which there are, their public facts, and the owner's registering of a new one."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, Field
from starlette.responses import Response

from sulq.service.web.openapi import Tree
from sulq.service.web.requests import Asker, Body
from sulq.service.web.responses import Json


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

    `key`: the column that differs from row to row. `public`: rows that need no protection. `person`: the column that
    says whose row it is, where it is not the unit's. `references`: columns that name a row of another private table by
    its key, {column: table}.
    """

    file: str
    columns: dict[str, Tree]
    key: str | None = None
    public: bool = False
    person: str | None = None
    references: dict[str, str] | None = None
    size: int | None = None


class RegisterBody(Body):
    """The owner's declarations: columns, unit and budget in the canonical JSON, files below data_root.

    One table is `file` and `columns`; several are `tables`, by their names, in place of these. `graph`: of one table
    whose rows are edges, the columns of both ends and of the weight, if there is one.
    """

    name: str
    budget: Tree
    file: str | None = None
    columns: dict[str, Tree] | None = None
    tables: Annotated[dict[str, TableBody], Field(min_length=1)] | None = None
    unit: Tree | None = None
    table: str | None = None
    size: int | None = None
    synthetic: bool = False
    graph: Annotated[list[str], Field(min_length=2, max_length=3)] | None = None


class LookBody(Body):
    """A data file below the server's data_root; none: which files there are."""

    file: str | None = None


class RegisterReply(BaseModel):
    """The new dataset's name, and whether it can be asked yet; a large one is still being opened."""

    name: str
    ready: bool


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
    body = await caller.body(RegisterBody)
    return await caller.reply("register", body.model_dump(exclude_none=True), status=201)


async def withdraw(name: str, caller: Asker) -> Response:
    """Take away a dataset that was registered over HTTP; its data and its ledger stay (owner)."""
    await caller.ask("withdraw", dataset=name)
    return Response(status_code=204)


async def look(caller: Asker) -> Json:
    """Names and types of a data file's columns (owner)."""
    return await caller.reply("look", (await caller.body(LookBody)).model_dump(exclude_none=True))
