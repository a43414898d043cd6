"""A signed-in visit: a session that the server keeps, and the word its forms must carry.

The cookie holds the session's id alone, random and of no other use: no token, and nothing that the API takes for
one. The access store keeps the id's hash and which token it stands for, so every web process knows it, and it is
worthless, wherever it was copied to, as soon as its owner signs out or the token is revoked or runs out. The cookie
is sent along by pages of this very site alone (SameSite=Strict) and is forgotten when the browser closes (T80, T81).
"""

from __future__ import annotations

import hashlib
import hmac
import re
from dataclasses import dataclass, field
from typing import Final, Self

from starlette.requests import Request
from starlette.responses import Response

TOKEN: Final = re.compile(r"[A-Za-z0-9._~+/=-]{16,200}")  # what could be one
_SESSION: Final = re.compile(r"session_[A-Za-z0-9_-]{43}")


@dataclass(frozen=True, slots=True)
class Session:
    """A session's id, which has no place in a log."""

    id: str = field(repr=False)

    @classmethod
    def of(cls, request: Request) -> Self | None:
        """The session a request's cookie speaks of; whether there is one, the API says."""
        shown = request.cookies.get(_name(request), "")
        return cls(shown) if _SESSION.fullmatch(shown) else None

    @property
    def form(self) -> str:
        """What a form of this session carries; nobody without the session can work it out (T81)."""
        return hmac.new(self.id.encode(), b"console form", hashlib.sha256).hexdigest()

    def carried_by(self, word: str) -> bool:
        """Whether a form's word is this session's."""
        return hmac.compare_digest(self.form.encode(), word.encode())

    def keep(self, request: Request, response: Response) -> None:
        """Have the browser send this session along from now on."""
        _set(request, response, self.id, None)


def forget(request: Request, response: Response) -> None:
    """Have the browser drop its session."""
    _set(request, response, "", 0)


def _set(request: Request, response: Response, value: str, age: int | None) -> None:
    response.set_cookie(
        _name(request), value, max_age=age, path="/", secure=_secure(request), httponly=True, samesite="strict"
    )


def _secure(request: Request) -> bool:
    """Whether the browser speaks TLS, with this server or with the proxy that its owner named (`public_url`)."""
    return request.url.scheme == "https" or request.app.state.public is not None


def _name(request: Request) -> str:
    """The prefix makes a browser refuse the cookie from any other host or path; it exists only with TLS."""
    return "__Host-sulq" if _secure(request) else "sulq"
