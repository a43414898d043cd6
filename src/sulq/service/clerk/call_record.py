"""What the access log says of a call: who made it, from where, and what came of it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Final, Literal, cast

from sulq.service.clerk.access_log import AccessLog
from sulq.service.clerk.tokens import PREFIX, SESSION_PREFIX
from sulq.service.ipc import Frame

Kind = Literal["act", "read", "ask", "note", ""]  # how a call is written down; "": only where its role is refused
MAX_WORD_CHARACTERS: Final = 80
MAX_FILE_CHARACTERS: Final = 400
MAX_WORDS: Final = 100  # of a list
FIELDS: Final = ("name", "role", "datasets", "days", "overlap", "analyst", "share", "reserve")  # of a body


class CallRecord:
    """One call, as the log will have it. The address and the request's id are the web's word."""

    def __init__(self, log: AccessLog, frame: Mapping[str, object], kind: Kind) -> None:
        self._log = log
        self._kind = kind
        self._what = str(frame.get("call"))
        self._written = False
        self._told: Frame = {
            "who": None,
            "from": _word(frame.get("address")),
            "request": _word(frame.get("request")),
            "dataset": _word(frame.get("dataset")),
        }

    def known(self, who: str) -> None:
        """Whose token it came with."""
        self._told["who"] = who

    @contextlib.contextmanager
    def during(self, body: Mapping[str, object]) -> Iterator[None]:
        """While the call is answered: an act is written down before it and after it."""
        if self._kind != "act":
            yield
            return
        self._written = True
        self._told |= {name: plain(body[name]) for name in FIELDS if body.get(name) is not None}
        if self._what in ("register", "check"):
            self._told["dataset"] = self._told.pop("name", None)
            self._told["files"] = _files(body)
        with self._log.act(self._what, **self._told):
            yield

    def answered(self, reply: Frame) -> None:
        """A reading of a ledger is written down before its answer leaves, an ask or the end of a session soon after."""
        if self._kind == "read":
            self._log.write(self._what, **self._told, outcome="ok")
        elif self._kind == "note" or (self._kind == "ask" and reply.get("answer") is not None):  # None: none was stored
            self._log.later(self._what, **self._told, outcome="ok", **charged(reply))

    def refused(self, code: str) -> None:
        """A call that was not answered; one that anybody may make is written down where it would be otherwise."""
        if not self._written and (self._kind or code == "forbidden"):
            self._log.later(self._what, **self._told, outcome=code)


def charged(reply: Frame) -> Frame:
    """The price of an answer and its debit's place in the ledger; of one that was given again, that it was free."""
    tree = reply.get("answer")
    if isinstance(tree, dict) and isinstance(tree.get("answers"), list):
        tree = tree["answers"][0]
    if not isinstance(tree, dict):
        return {}
    found: Frame = {"price": tree.get("spent"), "entry": cast("Frame", tree.get("receipt") or {}).get("seq")}
    return found | ({"reused": True} if tree.get("reused") else {})


def _files(body: Mapping[str, object]) -> list[str | None]:
    """Which files a body names, of one table or of several."""
    tables = body.get("tables")
    parts = [body, *(tables.values() if isinstance(tables, dict) else ())]
    told = [part.get("file") for part in parts if isinstance(part, Mapping)]
    named = [each for file in told for each in (file if isinstance(file, list) else [file]) if each is not None]
    return [_word(file, MAX_FILE_CHARACTERS) for file in named[:MAX_WORDS]]


def plain(value: object) -> object:
    """A name, a number or a list of names as they may stand in the log."""
    if isinstance(value, (bool, int, float)):
        return value
    return [_word(item) for item in value[:MAX_WORDS]] if isinstance(value, list) else _word(value)


def _word(value: object, most: int = MAX_WORD_CHARACTERS) -> str | None:
    """A short text that moves no terminal; a token that somebody pasted in its place is not repeated."""
    if not isinstance(value, str):
        return None
    if value.startswith((PREFIX, SESSION_PREFIX)):
        return "..."
    return "".join(each if each.isprintable() else "?" for each in value[:most])
