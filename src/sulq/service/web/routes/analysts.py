"""Analysts and their tokens: list, let in, end (owner)."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field
from starlette.responses import Response

from sulq.service.clerk.access import MAX_TOKEN_DAYS, TOKEN_DAYS
from sulq.service.web.requests import Asker, Body
from sulq.service.web.responses import Json


class PrincipalsReply(BaseModel):
    """Everybody who was ever let in; no token, no hash of one."""

    principals: list[dict[str, Any]]


class PrincipalBody(Body):
    """Whom to let in: role, the datasets they may see (null: all), and for how many days."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._@-]{0,63}$")]
    role: Literal["owner", "analyst", "auditor"] = "analyst"
    datasets: list[str] | None = None
    days: Annotated[int, Field(ge=1, le=MAX_TOKEN_DAYS)] = TOKEN_DAYS


class TokenReply(BaseModel):
    """The token; it is shown this once."""

    token: str


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
