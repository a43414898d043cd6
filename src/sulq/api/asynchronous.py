"""The named asks for programs that await: each runs the plain ask in a thread of the client's own.

One way to ask, and not a second one of coroutines: SQL, learners and releases ask in the middle of their work, so what
is awaited is that work as a whole (docs/decisions/0080-ending-a-call.md).
"""

from __future__ import annotations

import asyncio
import contextvars
import functools
import inspect
from collections.abc import Awaitable, Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Any, Concatenate, Final, ParamSpec, Self, TypeVar, cast

from sulq.answers.budget import BudgetReport
from sulq.answers.call import UserCall, current, within
from sulq.api.client import Client
from sulq.api.named_asks import NamedAsks
from sulq.errors import AccessDenied, QuestionError
from sulq.language.facts import Facts
from sulq.language.privacy import Loss

MAX_CONCURRENT_ASKS: Final = 100  # as many connections as a client opens; `connect_async` says so too
MAX_THREADS: Final = 1_000

P = ParamSpec("P")
T = TypeVar("T")


def _awaited(ask: Callable[Concatenate[Any, P], T]) -> Callable[Concatenate[AsyncClient, P], Awaitable[T]]:
    """The same ask, to be awaited."""

    @functools.wraps(ask)
    async def asked(self: AsyncClient, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self.run(lambda asks: cast("T", getattr(asks, ask.__name__)(*args, **kwargs)))

    return cast("Callable[Concatenate[AsyncClient, P], Awaitable[T]]", asked)


class AsyncClient:
    """A remote curator, or a database, whose asks are awaited. Made by `sulq.connect_async`.

    `async with sulq.connect_async("https://host/dataset", token=...) as db: await db.count(spend=Epsilon(0.1))`.
    A task that is cancelled stops waiting; its CancelledError says in a note what was charged.
    """

    def __init__(self, opening: Callable[[], NamedAsks], *, concurrency: int = MAX_CONCURRENT_ASKS) -> None:
        """`concurrency`: how many asks may be under way at once; others wait for them."""
        if isinstance(concurrency, bool) or not isinstance(concurrency, int) or not 1 <= concurrency <= MAX_THREADS:
            raise QuestionError("bad-question", f"concurrency is a whole number, 1 to {MAX_THREADS:,}.")
        self._opening = opening
        self._asks: NamedAsks | None = None
        self._closed = False
        self._begun = asyncio.Lock()
        self._threads = ThreadPoolExecutor(concurrency, thread_name_prefix="sulq awaited")

    async def run(self, work: Callable[[Any], T]) -> T:
        """Do anything with the plain client or database: `await db.run(lambda db: KMeans(3).fit(db[["age"]], ...))`."""
        async with self._begun:
            if self._closed:
                raise AccessDenied("closed", "This client is closed.")
            if self._asks is None:
                self._asks = await self._in_thread(self._opening)
        asks = self._asks
        return await self._in_thread(lambda: work(asks))

    async def _in_thread(self, work: Callable[[], T]) -> T:
        call = UserCall(outer=current(), attended=True)

        def do() -> T:
            with within(call):
                return work()

        loop, context = asyncio.get_running_loop(), contextvars.copy_context()
        try:
            return await loop.run_in_executor(self._threads, context.run, do)
        except asyncio.CancelledError as error:
            call.stop("cancelled")
            await asyncio.to_thread(call.settle, lambda: call.far)
            call.explain(error)
            raise

    async def facts(self) -> Facts:
        """Everything public: domain, unit, budget, what remains."""
        return await self.run(lambda asks: cast("Facts", asks.facts))

    async def remaining(self) -> Loss:
        """What is left of the budget."""
        return (await self.facts()).remaining

    async def spent(self) -> Loss:
        """What of the budget is gone."""
        return (await self.facts()).spent

    async def budget(self) -> BudgetReport:
        """The budget as it stands, to read."""
        return BudgetReport.of(await self.facts())

    async def close(self) -> None:
        """End what is under way, and the conversation."""
        if not self._closed:
            self._closed = True
            asks = self._asks
            if asks is not None:  # beside the threads of asks, which may all be busy
                await asyncio.to_thread(cast("Client", asks).close)
            self._threads.shutdown(wait=False, cancel_futures=True)

    ask = _awaited(NamedAsks.ask)
    foresee = _awaited(NamedAsks.foresee)
    afford = _awaited(NamedAsks.afford)
    sql = _awaited(NamedAsks.sql)
    explain = _awaited(NamedAsks.explain)
    plan = _awaited(NamedAsks.plan)
    count = _awaited(NamedAsks.count)
    sum = _awaited(NamedAsks.sum)
    mean = _awaited(NamedAsks.mean)
    variance = _awaited(NamedAsks.variance)
    std = _awaited(NamedAsks.std)
    covariance = _awaited(NamedAsks.covariance)
    histogram = _awaited(NamedAsks.histogram)
    quantile = _awaited(NamedAsks.quantile)
    median = _awaited(NamedAsks.median)
    min = _awaited(NamedAsks.min)
    max = _awaited(NamedAsks.max)
    count_distinct = _awaited(NamedAsks.count_distinct)
    distance_from_key = _awaited(NamedAsks.distance_from_key)
    distance_from_order = _awaited(NamedAsks.distance_from_order)
    occurring = _awaited(NamedAsks.occurring)
    statistic = _awaited(NamedAsks.statistic)
    distance_from = _awaited(NamedAsks.distance_from)
    heavy_persons = _awaited(NamedAsks.heavy_persons)
    sample_and_aggregate = _awaited(NamedAsks.sample_and_aggregate)
    transcript = _awaited(Client.transcript)

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]:
        ask = getattr(NamedAsks, name, None)
        if name.startswith("_") or not inspect.isfunction(ask) or "spend" not in inspect.signature(ask).parameters:
            raise AttributeError(f"There is no {name!r} to be awaited: await db.run(lambda db: db.{name}...)")
        return functools.partial(_awaited(ask), self)

    def __await__(self) -> Generator[Any, None, Self]:
        return self.__aenter__().__await__()

    async def __aenter__(self) -> Self:
        await self.run(lambda _: None)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def __repr__(self) -> str:
        state = "closed" if self._closed else "not open yet" if self._asks is None else "open"
        return f"<sulq client to be awaited: {state}>"
