"""How much a caller may send and how often: bodies, rates, and nothing that grows without end (T85).

The limits guard the service, not the data: what protects people is the ledger.
They are counted in each web process for itself. A free call counts by the processor
time it takes in web and clerk, and so does an ask that ends without a debit; that
time follows from public facts and released answers, as neither reads a row.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Final

from starlette.requests import ClientDisconnect, Request

from sulq.errors import AccessDenied, QuestionError

MAX_BODY_BYTES: Final = 256 * 2**10  # bytes of a body
MAX_QUESTION_BYTES: Final = 16 * 2**20  # of a structured question, from somebody who is known
MAX_BODY_SECONDS: Final = 10.0  # within which a body must have arrived
MAX_QUESTION_SECONDS: Final = 60.0
MAX_CALLERS_REMEMBERED: Final = 10_000  # callers a limit keeps in mind
MAX_FAILURES_A_MINUTE: Final = 30  # tokens an address may guess in a minute
MAX_TOKENS_PER_ADDRESS: Final = 20  # an address may ask for so many tokens together
MAX_THREADS_PER_TOKEN: Final = 4  # calls of one token that hold a thread, of those that ask and of those that read
MAX_CALLS_WAITING: Final = 16  # further ones that wait for their turn, without a thread
MAX_FREE_CALLS: Final = 2  # free calls of all principals that compute at one time; the others wait in turn,
MAX_SLOT_SECONDS: Final = 1.0  # but no longer than this
CALL_SECONDS: Final = 0.01  # of processor that a free call may take: one that takes more counts as several
MAX_PLANNED_QUERIES: Final = 32  # queries a total may be divided over: each is compiled and priced here, free
MINUTE_SECONDS: Final = 60.0


class RateLimited(AccessDenied):
    """Too many calls; `seconds` until the next one is welcome."""

    def __init__(self, seconds: float) -> None:
        super().__init__("rate-limited", "Too many calls in a short time.")
        self.seconds = max(1, int(seconds + 0.999))


class RateLimit:
    """A token bucket for each caller: fills evenly, holds half a minute's worth of calls."""

    def __init__(self, a_minute: float, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._speed = a_minute / MINUTE_SECONDS
        self._holds = max(a_minute / 2, 1.0)
        self._clock = clock
        self._lock = threading.Lock()
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()  # what is left, and when it was so

    def take(self, who: str) -> None:
        """Count one call, or refuse it."""
        now = self._clock()
        with self._lock:
            level = self._level(who, now)
            self._keep(who, level - 1 if level >= 1 else level, now)
        if level < 1:
            raise RateLimited((1 - level) / self._speed)

    def admit(self, who: str) -> None:
        """Refuse the next call if nothing is left; counts nothing."""
        with self._lock:
            level = self._level(who, self._clock())
        if level < 1:
            raise RateLimited((1 - level) / self._speed)

    def charge(self, who: str, calls: float) -> None:
        """Count what a call took when it is known; more than is left is paid off before the next one."""
        now = self._clock()
        with self._lock:
            self._keep(who, max(self._level(who, now) - calls, -self._holds), now)

    def spent(self, who: str) -> bool:
        """Whether the next call would be refused; counts nothing."""
        with self._lock:
            return self._level(who, self._clock()) < 1

    def _level(self, who: str, now: float) -> float:
        level, then = self._buckets.get(who, (self._holds, now))
        return min(self._holds, level + max(now - then, 0.0) * self._speed)

    def _keep(self, who: str, level: float, now: float) -> None:
        self._buckets[who] = (level, now)
        self._buckets.move_to_end(who)
        while len(self._buckets) > MAX_CALLERS_REMEMBERED:  # whoever was quiet longest has a full bucket, or nearly
            self._buckets.popitem(last=False)


class KnownTokens:
    """Hashes of tokens that were valid recently: a flood of wrong tokens from their address does not block them.

    With each whose it is, once the clerk said so: limits are a principal's, however many tokens it has. Nothing but
    limits and the log goes by it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._seen: OrderedDict[str, str | None] = OrderedDict()

    def add(self, token_hash: str, name: str | None = None) -> None:
        """Remember one."""
        with self._lock:
            self._seen[token_hash] = name or self._seen.get(token_hash)
            self._seen.move_to_end(token_hash)
            while len(self._seen) > MAX_CALLERS_REMEMBERED:
                self._seen.popitem(last=False)

    def discard(self, token_hash: str) -> None:
        """Forget one that is good no longer."""
        with self._lock:
            self._seen.pop(token_hash, None)

    def name(self, token_hash: str) -> str | None:
        """Whose it is, if that is known."""
        with self._lock:
            return self._seen.get(token_hash)

    def __contains__(self, token_hash: object) -> bool:
        with self._lock:
            return token_hash in self._seen


@dataclass(slots=True)
class _Turn:
    """One caller's calls under way: how many, and the turns to hold a thread."""

    turns: asyncio.Semaphore
    calls: int = 0


class ConcurrencyLimit:
    """Limits the concurrent calls of one caller: a caller with many waits for its own, and others do not wait.

    Used from the event loop alone. Only callers with calls under way are kept in mind.
    """

    def __init__(self) -> None:
        self._callers: dict[str, _Turn] = {}

    @asynccontextmanager
    async def turn(self, who: str, threads: int = MAX_THREADS_PER_TOKEN) -> AsyncIterator[None]:
        """Wait for a turn of so many threads; too many that wait are refused."""
        mine = self._callers.setdefault(who, _Turn(asyncio.Semaphore(threads)))
        if mine.calls >= MAX_THREADS_PER_TOKEN + MAX_CALLS_WAITING:
            raise RateLimited(1)
        mine.calls += 1
        try:
            async with mine.turns:
                yield
        finally:
            mine.calls -= 1
            if not mine.calls:
                del self._callers[who]

    def __len__(self) -> int:
        return len(self._callers)


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of one web process."""

    tokens: RateLimit  # by principal; by token until it is known whose it is
    addresses: RateLimit
    failures: RateLimit
    known: KnownTokens
    free: RateLimit  # what a principal's free calls take of the processor, in calls of CALL_SECONDS
    refused: RateLimit  # likewise its asks that end without a debit
    under_way: ConcurrencyLimit = field(default_factory=ConcurrencyLimit)
    computing: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(MAX_FREE_CALLS))

    @classmethod
    def of(cls, rate: int, *, clock: Callable[[], float] = time.monotonic) -> Limits:
        """From the owner's `rate`, calls a minute for each principal."""
        per_address, failures = rate * MAX_TOKENS_PER_ADDRESS, MAX_FAILURES_A_MINUTE
        token, address, failed, free, refused = (
            RateLimit(a_minute, clock=clock) for a_minute in (rate, per_address, failures, rate, rate)
        )
        return cls(token, address, failed, KnownTokens(), free, refused)

    def admit(self, address: str, token_hash: str | None) -> None:
        """Count a call before anything is done for it; one without a token is no guess, and is refused anyway."""
        self.addresses.take(address)
        if token_hash is None:
            return
        if token_hash not in self.known and self.failures.spent(address):
            raise RateLimited(MINUTE_SECONDS / MAX_FAILURES_A_MINUTE)
        self.tokens.take(self.known.name(token_hash) or token_hash)

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[None]:
        """One of the slots in which free calls compute, if one is free soon; else the call goes on without one.

        The slots only smooth the use of the interpreter, of which no more than one thread runs anyway. A call holds
        its slot also while it waits for the clerk: of a ledger that hangs, calls would keep those of other datasets.
        """
        held = False
        with suppress(TimeoutError):
            async with asyncio.timeout(MAX_SLOT_SECONDS):
                held = await self.computing.acquire()
        try:
            yield
        finally:
            if held:
                self.computing.release()

    def settle(self, address: str, token_hash: str, *, good: bool) -> None:
        """Take note of how a call's token fared."""
        if good:
            self.known.add(token_hash)
            return
        self.known.discard(token_hash)
        with suppress(RateLimited):
            self.failures.take(address)


async def body_of(request: Request, most: int, seconds: float) -> bytes:
    """A request's body, of bounded size and within a bounded time."""
    declared = request.headers.get("content-length", "")
    if declared.isdecimal() and int(declared[:20]) > most:
        raise _large(most)
    found = bytearray()
    try:
        async with asyncio.timeout(seconds):
            async for part in request.stream():
                found += part
                if len(found) > most:
                    raise _large(most)
    except TimeoutError:
        raise QuestionError("body-too-slow", "The body did not arrive in time.") from None
    except ClientDisconnect:
        raise QuestionError("bad-request", "The body ended before its end.") from None
    return bytes(found)


def _large(most: int) -> QuestionError:
    return QuestionError("body-too-large", f"The body is longer than {most} bytes.")
