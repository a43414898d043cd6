"""One request: who sends it, what it says, and what the clerk does for it.

Authentication is the clerk's: here a token is only counted, by its hash, and passed on; the clerk checks it
at each call. Bodies are strict JSON (answers.wire.strict on the raw bytes): one text, one meaning.
`ClerkOracle` is what the web process compiles SQL against; it holds no rows and no ledger.
"""

from __future__ import annotations

import functools
import json
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Final, TypeVar, cast

from fastapi import Depends, Request
from pydantic import BaseModel, ConfigDict, ValidationError, WithJsonSchema
from starlette.concurrency import run_in_threadpool

from sulq.answers import wire
from sulq.answers.answer import Answer, Answers
from sulq.answers.budget import BudgetLeft
from sulq.answers.plan import Plan
from sulq.errors import AccessDenied, CuratorError, QuestionError, SulqError
from sulq.language.facts import Facts
from sulq.language.privacy import LOSS_BY_FIELDS, Epsilon, EpsilonDelta, EpsilonKeys, Event, Loss, Queries, Rho
from sulq.language.question import Question
from sulq.service.answer_length import check_length, may_be_long
from sulq.service.clerk.tokens import SESSION_PREFIX, hashed
from sulq.service.ipc import TOOK, opened
from sulq.service.logs import about
from sulq.service.web.clerk_pool import Post, passed_on, seconds_of, timed, timed_reply
from sulq.service.web.limits import (
    CALL_SECONDS,
    MAX_BODY_BYTES,
    MAX_BODY_SECONDS,
    MAX_QUESTION_BYTES,
    MAX_QUESTION_SECONDS,
    MAX_THREADS_PER_TOKEN,
    Limits,
    RateLimit,
    body_of,
)
from sulq.service.web.responses import Json, Passed
from sulq.service.web.scope import REQUEST_ID, SESSION
from sulq.service.web.traces import clerk_call
from sulq.version import noise_versions

MOVING: Final = ("spent", "remaining")
ALSO_MOVING: Final = ("rho", "proved")  # move too, and may be none
Call = Callable[[Mapping[str, object]], Mapping[str, object]]
MAX_TOKEN_CHARACTERS: Final = 200
MAX_INLINE_BODY_BYTES: Final = 4096  # bytes that are read sooner than they are handed to another thread
LEAST_CALL: Final = 0.1  # of a call: what HTTP alone takes
REUSED: Final = b'"reused":true'
MAX_MISTAKES_SHOWN: Final = 3  # mistakes of a body that are named
DENIED: Final = frozenset({"unauthorized", "token-expired"})
# A tree of the canonical JSON: which fields it has is said by its kind.
_WIRE: Final = {"type": "object", "properties": {"kind": {"type": "string"}}, "required": ["kind"]}
Tree = Annotated[dict[str, Any], WithJsonSchema(_WIRE)]
T = TypeVar("T")
B = TypeVar("B", bound="Body")


@dataclass(frozen=True, slots=True)
class ClerkClient:
    """The clerk, as the holder of one token may call it."""

    call: Call
    token: str | None = field(repr=False)  # the bearer token itself: its hash, which is stored, opens nothing
    request: str = ""  # the request's id, for the logs
    address: str = ""  # whence it came

    def ask(
        self, name: str, body: Mapping[str, object] | None = None, *, dataset: str | None = None
    ) -> dict[str, object]:
        """One call of the clerk's table: what it gives, or its error, raised here."""
        frame = self.frame(name, body or {}, dataset)
        with clerk_call(name, dataset) as span:
            if span is None:
                return opened(self.call(frame))
            reply = self.call(frame | {"times": True})
            span.worked = float(cast("float", reply.get(TOOK, 0.0)))
            return opened(reply)

    def frame(self, name: str, body: Mapping[str, object], dataset: str | None) -> dict[str, object]:
        """One call as it is sent."""
        known = {"token": self.token, "request": self.request, "address": self.address}
        return {"call": name, **known, "dataset": dataset, "body": dict(body)}


def facts_of(tree: Mapping[str, object]) -> Facts:
    """Facts from their JSON: of one ask to the next only what is spent and left changes, and is read anew."""
    moving = {name: wire.from_json(tree[name]) for name in MOVING}
    moving |= {name: wire.from_json(tree.get(name)) for name in ALSO_MOVING}
    fixed = json.dumps({name: value for name, value in tree.items() if name not in moving})
    return replace(_fixed(fixed), **moving)  # type: ignore[arg-type]  # each of its own kind: their writer is ours


@functools.lru_cache(maxsize=256)
def _fixed(text: str) -> Facts:
    nothing = {name: {"kind": "Epsilon", "epsilon": 1} for name in MOVING}  # stands where the moving parts will
    return cast("Facts", wire.from_json({**json.loads(text), **nothing}))


@dataclass(frozen=True, slots=True)
class ClerkOracle:
    """One dataset behind the clerk."""

    clerk: ClerkClient
    dataset: str
    known: dict[str, tuple[Facts, float | None]] | None = None  # of one request, which asks for them once

    @property
    def facts(self) -> Facts:
        """Everything public, as this caller may see it."""
        return facts_of(cast("dict[str, object]", self.clerk.ask("facts", dataset=self.dataset)["facts"]))

    def ask(
        self, question: Question, *, spend: Loss | None = None, key: str | None = None, reuse: bool = False
    ) -> Answer | Answers:
        """Pay and answer."""
        body = {"question": wire.to_json(question), "spend": wire.to_json(spend), "key": key, "reuse": reuse}
        return cast("Answer | Answers", wire.from_json(self.clerk.ask("ask", body, dataset=self.dataset)["answer"]))

    def stored(self, question: Question, *, spend: Loss | None = None) -> Answer | Answers | None:
        """A stored answer that is as accurate; None where it would have to be bought. Free."""
        body = {"question": wire.to_json(question), "spend": wire.to_json(spend), "stored": True}
        found = wire.from_json(self.clerk.ask("ask", body, dataset=self.dataset)["answer"])
        return cast("Answer | Answers | None", found)

    def foresee(self, question: Question, *, spend: Loss | None = None) -> Plan:
        """Price, sensitivity, mechanism and accuracy; free.

        Worked out here, as it follows from public facts alone: a plan with the labels of 100,000 bins is long, and is
        asked for many times by who looks for a price. What is asked is planned by the clerk, whatever is said here.
        """
        from sulq.compile.plan import draw  # the planner, which no start of the service waits for

        known = {} if self.known is None else self.known
        if "terms" not in known:
            told = self.clerk.ask("terms", dataset=self.dataset)
            known["terms"] = facts_of(cast("dict[str, object]", told["facts"])), cast("float | None", told["limit"])
        facts, limit = known["terms"]
        plan = draw(question, facts, spend, noise_versions(), limit)
        if may_be_long(question):
            check_length(plan)
        return plan

    def afford(self, events: Sequence[Event]) -> tuple[BudgetLeft | None, ...]:
        """What would be left after each of these losses; None: it would be refused. Free."""
        told = self.clerk.ask("afford", {"events": wire.to_json(tuple(events))}, dataset=self.dataset)
        return cast("tuple[BudgetLeft | None, ...]", wire.from_json(told["left"]))


def _short(*names: str) -> dict[str, object]:
    fields = {name: {"type": "number", "exclusiveMinimum": 0} for name in names}
    return {"type": "object", "properties": fields, "required": list(names), "additionalProperties": False}


_SPEND: Final = {
    "description": "What to pay: canonical JSON, or a short form of it.",
    "anyOf": [_short("epsilon"), _short("epsilon", "delta"), _short("rho"), _WIRE],
}
Spend = Annotated[dict[str, Any], WithJsonSchema(_SPEND)]


class Body(BaseModel):
    """A request's body: the fields it names and no other, each of its own kind."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Caller:
    """Whoever sent a request, before the clerk has said who that is."""

    given = False  # whether an ask was answered by a stored answer, free

    def __init__(self, request: Request) -> None:
        self.request = request
        self._limits: Limits = request.app.state.limits
        self._call: Call = request.app.state.call
        self._post: Post = request.app.state.post
        self._address = request.client.host if request.client is not None else ""
        self.request_id = str(request.scope.get(REQUEST_ID, ""))  # drawn by RequestGuard
        self._token = ""
        self._hash = ""
        self._who: dict[str, object] | None = None
        self._used = 0.0  # seconds of processor, here and in the clerk
        self._learning = False

    def admit(self) -> None:
        """Read the token and count the call; nobody without a token goes on."""
        words = self.request.headers.get("authorization", "").split(" ")
        shown = words[1] if len(words) == 2 and words[0].lower() == "bearer" else ""
        good = 0 < len(shown) <= MAX_TOKEN_CHARACTERS and shown.isascii() and shown.isprintable()
        good = good and not shown.startswith(SESSION_PREFIX)  # a session is the console's to show, inside the process
        if SESSION in self.request.scope:
            shown, good = str(self.request.scope[SESSION]), True
        if good:
            self._token, self._hash = shown, hashed(shown)
        self._limits.admit(self._address, self._hash or None)
        if not good:
            raise AccessDenied("unauthorized", "This needs a token.")
        about(self._limits.known.name(self._hash) or "")

    @property
    def clerk(self) -> ClerkClient:
        """The clerk, for this caller's token."""
        return ClerkClient(self._called, self._token, self.request_id, self._address)

    def _called(self, frame: Mapping[str, object]) -> Mapping[str, object]:
        reply = self._call(frame)
        self._used += seconds_of(reply)
        return reply

    def oracle(self, dataset: str) -> ClerkOracle:
        """A dataset, asked of the clerk with this caller's token."""
        return ClerkOracle(self.clerk, dataset, {})

    async def work(self, task: Callable[[], T], kind: str = "") -> T:
        """Do something that waits, beside the event loop; note how the token fared.

        Reading has turns of its own, so that nobody's pages wait for their own questions.
        """

        def timed() -> T:
            begun = time.thread_time()
            try:
                return task()
            finally:
                self._used += time.thread_time() - begun

        async with self._settled(kind or ("reads" if self.request.method == "GET" else "acts")):
            return await run_in_threadpool(timed)

    @asynccontextmanager
    async def _settled(self, kind: str) -> AsyncIterator[None]:
        """A turn of this caller's; how its token fared is noted, and what it took that nobody paid for."""
        if not self._learning and self._limits.known.name(self._hash) is None:
            await self.who()
        limit = self._limit(kind)
        if limit is not None:
            limit.admit(self._whose)
        paid = kind == "asks"
        async with self._turn(kind), self._limits.slot() if kind == "free" else nullcontext():
            try:
                yield
            except SulqError as error:
                self._limits.settle(self._address, self._hash, good=error.code not in DENIED)
                paid = isinstance(error, CuratorError)  # may be charged; all others are refused before a debit
                raise
            finally:
                used, self._used = self._used, 0.0  # a request of many calls is charged for each once
                if limit is not None and not (paid and not self.given):
                    limit.charge(self._whose, max(used / CALL_SECONDS, LEAST_CALL))
        self._limits.settle(self._address, self._hash, good=True)

    def _limit(self, kind: str) -> RateLimit | None:
        """What a call is counted by where nobody pays for it; administrative acts are counted by `rate` alone."""
        return {"reads": self._limits.free, "free": self._limits.free, "asks": self._limits.refused}.get(kind)

    @property
    def _whose(self) -> str:
        """Who is limited: the principal, whatever token it shows."""
        return self._limits.known.name(self._hash) or self._hash

    def _turn(self, kind: str) -> AbstractAsyncContextManager[None]:
        threads = 1 if kind == "free" else MAX_THREADS_PER_TOKEN
        return self._limits.under_way.turn(f"{self._whose} {kind}", threads)

    async def who(self) -> dict[str, object]:
        """Whose token this is, as the clerk says; asked once a request."""
        if self._who is None:
            self._learning = True
            self._who = await self.ask("whoami")
            self._learning = False
            name = str(self._who.get("name") or self._hash)
            new = self._limits.known.name(self._hash) is None
            self._limits.known.add(self._hash, name)
            about(str(self._who.get("name") or ""))
            if new:  # it was counted by its hash, for which every new token has a full bucket
                self._limits.tokens.take(name)
        return self._who

    async def ask(
        self, name: str, body: Mapping[str, object] | None = None, *, dataset: str | None = None
    ) -> dict[str, object]:
        """One call of the clerk's table."""
        return await self.work(lambda: self.clerk.ask(name, body, dataset=dataset))

    async def reply(
        self, name: str, body: Mapping[str, object] | None = None, *, dataset: str | None = None, status: int = 200
    ) -> Json:
        """One call of the clerk's table, its reply passed on."""
        return Json(await self.ask(name, body, dataset=dataset), status_code=status)

    async def passed_on(self, name: str, body: Mapping[str, object], *, dataset: str) -> Passed:
        """As `reply`, without a thread: the reply is passed on as the clerk wrote it."""
        frame = self.clerk.frame(name, body, dataset)
        free = name != "ask" or body.get("stored") is True
        async with self._settled("free" if free else "asks"):
            with clerk_call(name, dataset) as span:
                reply, seconds = timed(await self._post(frame if span is None else frame | {"times": True}))
                self._used += seconds
                self.given = REUSED in reply
                if span is not None:
                    reply, span.worked = timed_reply(reply)
                return Passed(passed_on(reply))

    async def body(self, kind: type[B], *, large: bool = False) -> B:
        """The body, strictly read, for a token that the clerk knows; a `large` one only if it knows it now."""
        declared = self.request.headers.get("content-length", "")  # a body that does not say it must be short
        whole = large and declared.isdecimal() and int(declared[:20]) > MAX_BODY_BYTES
        if whole or self._hash not in self._limits.known:  # what nobody may send is not read
            await self.who()
        media = self.request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if media != "application/json":
            raise QuestionError("bad-media", "A body is application/json.")
        if whole:
            async with self._turn("long bodies"):
                return await run_in_threadpool(
                    _read, kind, await body_of(self.request, MAX_QUESTION_BYTES, MAX_QUESTION_SECONDS)
                )
        raw = await body_of(self.request, MAX_BODY_BYTES, MAX_BODY_SECONDS)
        if len(raw) <= MAX_INLINE_BODY_BYTES:
            return _read(kind, raw)
        return await run_in_threadpool(_read, kind, raw)


def _read(kind: type[B], raw: bytes) -> B:
    tree = wire.strict(raw)
    if not isinstance(tree, dict):
        raise QuestionError("bad-request", "A body is a JSON object.")
    try:
        return kind.model_validate(tree)
    except ValidationError as error:
        raise QuestionError("bad-request", f"The body does not fit: {mistakes(error)}.") from None


def mistakes(error: ValidationError) -> str:
    """Where a body does not fit and why, without repeating what it said."""
    found = [
        f"{'.'.join(str(part)[:40] for part in item['loc'][:6]) or 'body'}: {item['msg']}"
        for item in error.errors(include_url=False, include_context=False, include_input=False)[:MAX_MISTAKES_SHOWN]
    ]
    return "; ".join(found)


def loss_of(tree: Mapping[str, object] | None) -> Loss | None:
    """A spend: canonical JSON, or short {"epsilon": 0.1}, {"epsilon": 1, "delta": 1e-6}, {"rho": 0.01}."""
    if tree is None:
        return None
    if "kind" in tree:
        found = wire.from_json(tree)
        if not isinstance(found, (Epsilon, EpsilonDelta, EpsilonKeys, Rho, Queries)):
            raise QuestionError("bad-loss", "A spend is an Epsilon, EpsilonDelta, Rho or Queries.")
        return found
    kind = LOSS_BY_FIELDS.get(frozenset(tree))
    if kind is None:
        raise QuestionError("bad-loss", "A spend names epsilon, epsilon and delta, rho, or queries.")
    return kind(**tree)  # type: ignore[arg-type]  # each loss checks what it is given


async def known(request: Request) -> Caller:
    """The caller of a route that needs a token."""
    found = Caller(request)
    found.admit()
    return found


Asker = Annotated[Caller, Depends(known)]
