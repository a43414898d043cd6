"""Requests to a curator: a token that goes to one address only, errors that come back as they were raised.

A request is sent again only where that cannot be charged twice: it reads, or it
carries an idempotency key. It is sent again while the curator cannot be reached,
says that it is not ready yet, or asks for a pause; no longer than `patience`.
No redirect is followed, since it would take the token elsewhere.
"""

from __future__ import annotations

import ipaddress
import json
import os
import ssl
import time
from collections.abc import Callable, Mapping
from typing import Final, cast
from urllib.parse import quote, unquote, urlsplit

import httpx

from sulq.answers import wire
from sulq.errors import CODES, FAMILIES, AccessDenied, CuratorError, QuestionError, SetupError, SulqError
from sulq.version import __version__

MAX_ANSWER_SECONDS: Final = 300.0  # an answer may wait for its release time
MAX_CONNECT_SECONDS: Final = 10.0
PATIENCE_SECONDS: Final = 60.0  # within which a call is tried again: a service that is restarted is back by then
MAX_PATIENCE_SECONDS: Final = 86_400.0
MAX_FIRST_TRIES: Final = 4  # of an address where nobody answered yet: it may be a wrong one
FIRST_PAUSE_SECONDS: Final = 0.25  # before the second try; doubled after each
MAX_PAUSE_SECONDS: Final = 10.0
JITTER: Final = 0.25  # of a pause, added by chance: clients that were cut off at once do not come back at once
RETRIED_STATUSES: Final = frozenset({429, 503})
PASSING: Final = frozenset({"not-ready", "rate-limited", "ledger-busy", "unreachable"})  # refusals that waiting cures
Tree = dict[str, object]


class Http:
    """One curator's HTTP API, with one token."""

    def __init__(
        self,
        url: str,
        token: str,
        *,
        insecure: bool = False,
        patience: float = PATIENCE_SECONDS,
        transport: httpx.BaseTransport | None = None,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.base, self.dataset = address(url, insecure=insecure)
        number = isinstance(patience, (int, float)) and not isinstance(patience, bool)
        if not number or not 0 <= patience <= MAX_PATIENCE_SECONDS:
            raise SetupError("bad-declaration", f"patience is a number of seconds, 0 to {MAX_PATIENCE_SECONDS:,.0f}.")
        if not isinstance(token, str) or not token or not token.isascii() or not token.isprintable() or " " in token:
            raise SetupError("bad-declaration", "A remote curator is asked with a token: token=...")
        self._patience, self._sleep, self._clock = patience, sleep, clock
        self._answered = False  # whether this address ever did
        self._http = httpx.Client(
            base_url=self.base,
            headers={
                "Authorization": f"Bearer {token}",
                "User-Agent": f"sulq/{__version__}",
                "Accept-Encoding": "identity",
            },
            timeout=httpx.Timeout(MAX_ANSWER_SECONDS, connect=MAX_CONNECT_SECONDS),
            follow_redirects=False,
            trust_env=False,  # a proxy or a .netrc of the environment would see the token
            verify=ssl.create_default_context() if self.base.startswith("https") else False,  # the machine's own CAs
            transport=transport,
        )

    def at(self, *parts: object) -> str:
        """An address below the dataset's, each part quoted."""
        return "/v1/datasets/" + "/".join(quote(str(part), safe="") for part in (self.dataset, *parts))

    def get(self, path: str, **query: object) -> Tree:
        """Read something."""
        return self._send("GET", path, None, query, again=True)

    def post(self, path: str, body: Mapping[str, object], *, again: bool = False) -> Tree:
        """Ask for something; `again`: it may be repeated without harm."""
        return self._send("POST", path, body, {}, again=again)

    def close(self) -> None:
        """End the conversation."""
        self._http.close()

    def _send(
        self, method: str, path: str, body: Mapping[str, object] | None, query: Mapping[str, object], *, again: bool
    ) -> Tree:
        content = None if body is None else json.dumps(body, allow_nan=False, separators=(",", ":")).encode()
        headers = {} if body is None else {"Content-Type": "application/json"}
        params = {name: str(value) for name, value in query.items()}
        pauses = _Pauses(self._patience if again else 0.0, self._sleep, self._clock)
        while True:
            try:
                reply = self._http.request(method, path, content=content, headers=headers, params=params)
            except (httpx.ConnectError, httpx.ConnectTimeout):  # nothing was sent
                if not pauses.wait(most=None if self._answered else MAX_FIRST_TRIES):
                    raise _away() from None
            except httpx.HTTPError:
                if not pauses.wait():
                    raise CuratorError("unreachable", "The curator did not answer.") from None
            else:
                self._answered = True
                if not _passes(reply) or not pauses.wait(_told(reply)):
                    return read(reply)


class _Pauses:
    """The pauses between the tries of one call: twice as long each time, together within `patience`."""

    def __init__(self, patience: float, sleep: Callable[[float], None], clock: Callable[[], float]) -> None:
        self._sleep, self._clock = sleep, clock
        self._until = clock() + patience
        self._tries = 0

    def wait(self, told: float = 0.0, *, most: int | None = None) -> bool:
        """Wait before the next try, at least as long as the curator told; False: no time or no try is left."""
        own = min(FIRST_PAUSE_SECONDS * 2.0 ** min(self._tries, 16), MAX_PAUSE_SECONDS)
        pause = max(own * (1 + JITTER * os.urandom(1)[0] / 255), told)
        self._tries += 1
        if self._tries == most or self._clock() + pause > self._until:
            return False
        self._sleep(pause)
        return True


def _passes(reply: httpx.Response) -> bool:
    """Whether a refusal may be gone in a moment: the curator's own by its code, and that of a proxy before it."""
    if reply.status_code not in RETRIED_STATUSES:
        return False
    try:
        tree = wire.strict(reply.content)
    except QuestionError:
        return True
    error = tree.get("error") if isinstance(tree, dict) else None
    code = error.get("code") if isinstance(error, dict) else None
    return code is None or code in PASSING


def _told(reply: httpx.Response) -> float:
    """The pause that a reply asks for, in seconds."""
    told = reply.headers.get("retry-after", "")
    return float(told) if told.isdecimal() and len(told) < 6 else 0.0


def address(url: str, *, insecure: bool = False) -> tuple[str, str]:
    """A curator's address and the dataset it ends with; a token travels in clear to this machine alone."""
    try:
        split = urlsplit(url)
        port = split.port
    except ValueError:
        raise _bad_url() from None
    dataset = unquote(split.path.strip("/"))
    host = split.hostname
    if split.scheme not in ("http", "https") or not host or "/" in dataset:
        raise _bad_url()
    if not dataset:
        raise SetupError(
            "bad-declaration",
            "This address names a curator and no dataset.",
            'Put the dataset\'s name after it: "https://host:port/dataset"; the owner knows which there are.',
        )
    if split.query or split.fragment or split.username is not None or split.password is not None:
        raise SetupError("bad-declaration", "A curator's address holds no token, query or fragment.")
    if split.scheme == "http" and not insecure and not loopback(host):
        raise SetupError("insecure-url", f"http://{host} is not this machine.")
    name = f"[{host}]" if ":" in host else host
    return f"{split.scheme}://{name}" + ("" if port is None else f":{port}"), dataset


def loopback(host: str) -> bool:
    """Whether an address is this machine's own, whoever else is on the network."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def read(reply: httpx.Response) -> Tree:
    """A reply's JSON, or its error, raised here as it was raised there."""
    if reply.is_redirect:
        raise SetupError("unreachable", "The curator's address leads elsewhere; the token was not sent on.")
    try:
        tree = wire.strict(reply.content)
    except QuestionError:
        tree = None
    if reply.is_success and isinstance(tree, dict):
        return cast("Tree", tree)
    raise error_of(tree.get("error") if isinstance(tree, dict) else None, reply.status_code)


def error_of(told: object, status: int) -> SulqError:
    """An error as the curator raised it; one that cannot be read is the curator's own."""
    if not isinstance(told, dict) or told.get("code") not in CODES:
        if status == 401:
            return AccessDenied("unauthorized", "The curator does not know this token.")
        return CuratorError("unreachable", f"What answered (status {status}) is not a sulq curator of this version.")
    family = next((found for found in FAMILIES if found.__name__ == told.get("kind")), CuratorError)
    return family(str(told["code"]), str(told.get("message", "")), str(told.get("remedy", "")))


def _away() -> CuratorError:
    return CuratorError("unreachable", "The curator could not be reached; nothing was asked.")


def _bad_url() -> SetupError:
    return SetupError("bad-declaration", 'A curator\'s address is written "https://host:port/dataset".')
