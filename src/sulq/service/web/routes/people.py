"""Who may come in: letting in, rotating and ending; sessions of the console; the log of what was done."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import Query
from pydantic import BaseModel, Field
from starlette.responses import Response

from sulq.service.clerk.tokens import MAX_OVERLAP_SECONDS, MAX_TOKEN_DAYS, OVERLAP_SECONDS, TOKEN_DAYS
from sulq.service.web.requests import Asker, Body
from sulq.service.web.responses import Json

After = Annotated[int, Query(ge=0, le=2**53)]
Most = Annotated[int, Query(ge=1, le=1000)]


class PrincipalsReply(BaseModel):
    """Everybody who was ever let in; no token, no hash of one."""

    principals: list[dict[str, Any]]


class PrincipalBody(Body):
    """Whom to let in: role, the datasets they may see (none if none is named; "all": also later ones), how many days.

    An owner reaches every dataset, and names none.
    """

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._@-]{0,63}$")]
    role: Literal["owner", "analyst", "auditor"] = "analyst"
    datasets: list[str] | Literal["all"] | None = None
    days: Annotated[int, Field(ge=1, le=MAX_TOKEN_DAYS)] = TOKEN_DAYS


class TokenReply(BaseModel):
    """The token; it is shown this once."""

    token: str


class RotationBody(Body):
    """For how many seconds the old token is good beside the new one, and for how many days the new one (owner)."""

    overlap: Annotated[int, Field(ge=0, le=MAX_OVERLAP_SECONDS)] = OVERLAP_SECONDS
    days: Annotated[int, Field(ge=1, le=MAX_TOKEN_DAYS)] | None = None


class SessionReply(BaseModel):
    """The id of a session of the console's; it is shown this once, and is no token."""

    session: str


class AccessReply(BaseModel):
    """Entries of the access log, oldest first, and the place of the last there is."""

    entries: list[dict[str, Any]]
    last: int


async def principals(caller: Asker) -> Json:
    """Everybody who was ever let in (owner)."""
    return await caller.reply("principals")


async def add(caller: Asker) -> Json:
    """Let somebody in; the reply shows the token this once (owner)."""
    return await caller.reply("add_principal", (await caller.body(PrincipalBody)).model_dump(), status=201)


async def revoke(name: str, caller: Asker) -> Response:
    """End somebody's token, from the next call on (owner)."""
    await caller.ask("revoke", {"name": name})
    return Response(status_code=204)


async def rotate(name: str, caller: Asker) -> Json:
    """A new token for a name, shown this once; the old one is good until the overlap ends (owner; oneself)."""
    body = (await caller.body(RotationBody)).model_dump(exclude_none=True)
    return await caller.reply("rotate", {"name": name, **body}, status=201)


async def begin(caller: Asker) -> Json:
    """Begin a session of the console's with a token; it ends with the token, when it is not used, or is ended."""
    return await caller.reply("begin_session", status=201)


async def end(caller: Asker) -> Response:
    """End the session that this call comes with; of a token nothing ends."""
    await caller.ask("end_session")
    return Response(status_code=204)


async def end_all(caller: Asker) -> Response:
    """End all of the caller's sessions, wherever they are."""
    await caller.ask("end_session", {"all": True})
    return Response(status_code=204)


async def access(caller: Asker, after: After = 0, limit: Most = 100) -> Json:
    """Administrative acts and asks in order, as the access log has them (owner)."""
    return await caller.reply("access", {"after": after, "limit": limit})
