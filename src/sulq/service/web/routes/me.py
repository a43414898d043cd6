"""GET /v1/me: whose token this is."""

from __future__ import annotations

from fastapi import APIRouter
from pydantic import BaseModel

from sulq.service.web.openapi import documented
from sulq.service.web.requests import Asker
from sulq.service.web.responses import Json

router = APIRouter(prefix="/v1", tags=["service"])


class Me(BaseModel):
    """The token's holder."""

    name: str
    role: str
    datasets: list[str] | None
    expires: int | str | None


@router.get("/me", **documented(Me))
async def me(caller: Asker) -> Json:
    """Name, role, datasets and expiry of the token."""
    return await caller.reply("whoami")
