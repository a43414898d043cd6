"""The console's security headers, and the checks that every form must pass.

The policy lets a page load its own scripts, styles and pictures and nothing else:
no inline script, no inline style, no frame, no foreign address, so that a text
that slipped into a page as markup would still do nothing (T81, T82).
"""

from __future__ import annotations

from typing import Final
from urllib.parse import parse_qsl, urlsplit

from starlette.datastructures import ImmutableMultiDict, MutableHeaders
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sulq.errors import QuestionError
from sulq.service.console.api import Refusal
from sulq.service.console.session import Session
from sulq.service.web.limits import MAX_BODY_SECONDS, body_of

MAX_FORM_BYTES: Final = 256 * 1024  # of a form, in bytes
MAX_FORM_FIELDS: Final = 20_000  # a registration has five for each column
WORD: Final = "form"  # the field that carries the session's word
POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
HEADERS: Final = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # `no-referrer` would make a browser hide the origin of its own forms, which are checked by it.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
_SHORT: Final = {
    "body-too-large": (413, "body-too-large", "This form is too large.", "Send less at once; nothing was spent."),
    "body-too-slow": (408, "body-too-slow", "This form did not arrive in time.", "Send it again; nothing was spent."),
}
_BROKEN: Final = (400, "bad-request", "The form could not be read.", "Go back and send it again.")


class Headers:
    """Puts the headers on every answer, errors included; what is not a public file is never stored."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""

        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        await self._app(scope, receive, sent)


class Fields(ImmutableMultiDict[str, str]):
    """A form's fields, each a text; of a name given twice the last counts, `all` gives every one."""

    def text(self, name: str) -> str:
        """A field without the blanks around it; empty where it was not sent."""
        return str(self.get(name, "")).strip()

    def all(self, name: str) -> list[str]:
        """Every value of a name."""
        return self.getlist(name)


async def form(request: Request, session: Session | None, *, limit: int = MAX_FORM_BYTES) -> Fields:
    """Read a form that this console's own page sent (T81).

    The browser says where a form came from and its pages cannot lie about it; the
    session's word is a second lock with another key. A sign-in has no session yet.
    """
    if not _same_origin(request):
        raise Refusal(
            403, "cross-site", "This form was sent from another site, so nothing was done.", "Open the page here."
        )
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/x-www-form-urlencoded":
        raise Refusal(415, "bad-request", "A form of the console was expected.", "Go back and send the form again.")
    try:
        body = await body_of(request, limit, MAX_BODY_SECONDS)  # nobody holds a connection with half a form (T85)
    except QuestionError as error:
        raise Refusal(*_SHORT.get(error.code, _BROKEN)) from None
    try:
        pairs = parse_qsl(
            body.decode("ascii"), keep_blank_values=True, strict_parsing=bool(body), max_num_fields=MAX_FORM_FIELDS
        )
    except ValueError:
        raise Refusal(*_BROKEN) from None
    fields = Fields(pairs)
    if session is not None and not session.carried_by(fields.get(WORD, "")):
        raise Refusal(403, "stale-form", "This form is from another session.", "Load the page again, then send it.")
    return fields


def _same_origin(request: Request) -> bool:
    """Whether the browser says that the request comes from a page of this host; saying nothing is not enough."""
    site, origin = request.headers.get("sec-fetch-site"), request.headers.get("origin")
    if site is None and origin is None:
        return False
    if site is not None and site != "same-origin":
        return False
    if origin is None:
        return True
    public: str | None = request.app.state.public
    if public is not None:  # the proxy may have put another host, and the browser speaks TLS
        return origin.lower() == public
    return urlsplit(origin).netloc.lower() == request.headers.get("host", "").lower()
