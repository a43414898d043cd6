"""A signed-in visit: the bearer token, hidden in a cookie no script can read, and the word its forms must carry.

Nothing is kept on the server but the key of the cookies, which all its web
processes share and which ends with it: any of them can take the next request, and
after a restart everybody signs in anew. A revoked token is worthless at once:
every page asks the API with it. The cookie is sent along by pages of this very
site alone (SameSite=Strict), is forgotten when the browser closes, and counts for
HOURS at most (T80, T81).

A browser sends its cookies to every port of a host. What a neighbour at another
port receives here is of no use to it: the token inside is hidden, and no API
takes the cookie for a token (T80). The text is covered by a stream that only the
key's holder can work out (SHAKE-256 of the key and a fresh nonce, a keyed sponge),
then marked (HMAC-SHA-256 of nonce and covered text, under a key of its own): the
mark is checked before anything is uncovered.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import os
import re
import time
from dataclasses import dataclass
from typing import Final, Self

from starlette.requests import Request
from starlette.responses import Response

NONCE_BYTES: Final = 16
MARK_BYTES: Final = 32
MAX_COOKIE_CHARACTERS: Final = 1024  # of a cookie's value
HOURS: Final = 12
_HOUR: Final = 3600 * 10**9  # nanoseconds
_TOKEN: Final = re.compile(r"[A-Za-z0-9._~+/=-]{16,200}")
_COOKIE: Final = re.compile(rf"([0-9a-f]{{1,20}})!({_TOKEN.pattern})")


class Wrap:
    """One key's way to close and open texts; every web process of a server has the same key."""

    def __init__(self, key: bytes) -> None:
        self._cover = hmac.digest(key, b"sulq console cookie: cover", "sha256")
        self._mark = hmac.digest(key, b"sulq console cookie: mark", "sha256")

    def closed(self, text: str) -> str:
        """A text as a cookie's value, another each time."""
        nonce = os.urandom(NONCE_BYTES)
        covered = nonce + self._covered(nonce, text.encode())
        return base64.urlsafe_b64encode(covered + self._marked(covered)).rstrip(b"=").decode()

    def opened(self, value: str) -> str | None:
        """The text of a value that this key made; None for any other."""
        if len(value) > MAX_COOKIE_CHARACTERS or not value.isascii():
            return None
        try:
            raw = base64.urlsafe_b64decode(value + "=" * (-len(value) % 4))
        except (binascii.Error, ValueError):
            return None
        covered, mark = raw[:-MARK_BYTES], raw[-MARK_BYTES:]
        if len(covered) < NONCE_BYTES or not hmac.compare_digest(mark, self._marked(covered)):
            return None
        return self._covered(covered[:NONCE_BYTES], covered[NONCE_BYTES:]).decode()

    def _covered(self, nonce: bytes, text: bytes) -> bytes:
        stream = hashlib.shake_256(self._cover + nonce).digest(len(text))
        return bytes(a ^ b for a, b in zip(text, stream, strict=True))

    def _marked(self, covered: bytes) -> bytes:
        return hmac.digest(self._mark, covered, "sha256")


@dataclass(frozen=True, slots=True)
class Session:
    """A bearer token and the moment it was shown, which sets one session's forms apart from another's."""

    token: str
    moment: str

    def __repr__(self) -> str:
        return "Session(...)"  # a token has no place in a log

    @classmethod
    def begin(cls, token: str) -> Self | None:
        """A session for a text that could be a token."""
        return cls(token, f"{time.time_ns():x}") if _TOKEN.fullmatch(token) else None

    @classmethod
    def of(cls, request: Request) -> Self | None:
        """The session a request's cookie speaks of."""
        wrap: Wrap = request.app.state.wrap
        found = _COOKIE.fullmatch(wrap.opened(request.cookies.get(_name(request), "")) or "")
        if found is None or not 0 <= time.time_ns() - int(found[1], 16) < HOURS * _HOUR:
            return None
        return cls(found[2], found[1])

    @property
    def form(self) -> str:
        """What a form of this session carries; nobody without the token can work it out (T81)."""
        return hmac.new(self.token.encode(), f"console form {self.moment}".encode(), hashlib.sha256).hexdigest()

    def carried_by(self, word: str) -> bool:
        """Whether a form's word is this session's."""
        return hmac.compare_digest(self.form.encode(), word.encode())

    def keep(self, request: Request, response: Response) -> None:
        """Have the browser send this session along from now on."""
        wrap: Wrap = request.app.state.wrap
        _set(request, response, wrap.closed(f"{self.moment}!{self.token}"), None)


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
