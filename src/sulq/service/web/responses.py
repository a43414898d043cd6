"""What the server answers: JSON with constant headers, and errors that say no more than they may.

An error of the curator's own is a constant text whatever went wrong (T31): its
cause is in the operator's log. A refusal of the analyst's question says what was
asked and what to do, since it is made from public facts alone.
"""

from __future__ import annotations

import json
from typing import Final

from starlette.responses import Response

from sulq.errors import CODES, AccessDenied, BudgetExceeded, CuratorError, QuestionError, SetupError, SulqError
from sulq.service.web.limits import RateLimited

STATUS: Final[dict[str, int]] = {
    "unauthorized": 401,
    "token-expired": 401,
    "forbidden": 403,
    "not-found": 404,
    "not-in-ledger": 404,
    "key-reused": 409,
    "answer-lost": 409,
    "name-taken": 409,
    "rate-limited": 429,
    "too-many-jobs": 429,
    "body-too-large": 413,
    "bad-media": 415,
    "body-too-slow": 408,
    "not-ready": 503,
    "ledger-busy": 503,
    "unreachable": 503,
    "closed": 503,
    "forked": 503,
    "bad-config": 400,
    "not-available": 400,
}
FAMILIES: Final[tuple[tuple[type[SulqError], int], ...]] = (
    (BudgetExceeded, 402),
    (AccessDenied, 403),
    (QuestionError, 400),
    (SetupError, 503),
    (CuratorError, 500),
)
FAILED: Final = "The curator failed."
ATTENTION: Final = "This dataset needs its owner's attention; nothing was spent."
SECONDS: Final = "2"  # after which a caller may try again what could not be reached
# Headers of every response that names none of its own: nothing is kept, framed, guessed at or run.
HEADERS: Final[dict[str, str]] = {
    "cache-control": "no-store",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}
HSTS: Final = "max-age=31536000"


class Json(Response):
    """A JSON body; NaN and infinities have no place in one."""

    media_type = "application/json"

    def render(self, content: object) -> bytes:
        """The bytes."""
        return json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


def status_of(error: SulqError, *, owner: bool = False) -> int:
    """An error's status. `owner`: the owner's own declarations were refused, and the owner reads it."""
    if isinstance(error, CuratorError) and error.code != "unreachable":
        return 500
    if error.code in STATUS:
        return STATUS[error.code]
    if owner and isinstance(error, SetupError):
        return 400
    return next(status for family, status in FAMILIES if isinstance(error, family))


def refused(error: SulqError, *, owner: bool = False, status: int | None = None) -> Json:
    """An error as a response."""
    code = status or status_of(error, owner=owner)
    headers = {}
    if code == 401:
        headers["www-authenticate"] = 'Bearer realm="sulq"'
    if code in (429, 503):
        headers["retry-after"] = str(error.seconds) if isinstance(error, RateLimited) else SECONDS
    return Json({"error": told(error, owner=owner)}, status_code=code, headers=headers)


def told(error: SulqError, *, owner: bool = False) -> dict[str, str]:
    """What a caller is told of an error."""
    message, remedy = error.message, error.remedy
    if isinstance(error, CuratorError):
        message, remedy = FAILED, CODES[error.code]
    elif isinstance(error, SetupError) and status_of(error, owner=owner) == 503:
        message, remedy = ATTENTION, CODES[error.code]
    return {"kind": _kind(error), "code": error.code, "message": message, "remedy": remedy}


def _kind(error: SulqError) -> str:
    return next(family.__name__ for family, _ in FAMILIES if isinstance(error, family))
