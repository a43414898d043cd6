"""Asks that are awaited: the same answers, many at once, and a cancelled task that says what it was charged."""

from __future__ import annotations

import asyncio
import inspect
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import sulq
from sulq import Epsilon, col
from sulq.api.asynchronous import AsyncClient
from sulq.api.client import Client
from sulq.api.named_asks import NamedAsks
from sulq.errors import AccessDenied, CuratorError, QuestionError, SetupError
from sulq.learn import KMeans
from sulq.service.web.app import create_app
from tests.client.far import Loop
from tests.service.office import Office, survey


@pytest.fixture
def office(tmp_path: Path) -> Iterator[Office]:
    made = Office(tmp_path, survey=survey(budget=Epsilon(500)))
    yield made
    made.close()


@pytest.fixture
def far(office: Office) -> Iterator[AsyncClient]:
    with Loop(create_app(office.call, office.service, console=False)) as loop:
        token = office.tokens["analyst"]
        yield AsyncClient(lambda: Client("http://localhost/survey", token, transport=loop.transport))


def local(**more: object) -> AsyncClient:
    """A database of this process, whose asks are awaited."""
    frame = pa.table({"age": np.arange(1000) % 100})
    return sulq.connect_async(frame, columns={"age": (0, 100)}, budget=Epsilon(100), **more)


def test_named_asks_sql_and_what_is_free_are_awaited(far: AsyncClient) -> None:
    """Each answers as the plain client does."""

    async def ask() -> None:
        async with far as db:
            answer = await db.count(col("age") > 40, spend=Epsilon(0.5))
            assert answer.spent == Epsilon(0.5)
            assert (await db.count(col("age") > 40, spend=Epsilon(0.5))).reused
            table = await db.sql("SELECT city, COUNT(*) FROM survey GROUP BY city", spend=Epsilon(0.5), timeout=60)
            assert table.columns == ("city", "count")
            assert await db.spent() == Epsilon(1)
            assert await db.remaining() == Epsilon(499)
            assert (await db.budget()).remaining == Epsilon(499)
            assert (await db.facts()).table == "survey"
            assert len(await db.transcript()) == 2
            assert "COUNT" in str(await db.explain("SELECT COUNT(*) FROM survey", spend=Epsilon(1))).upper()
            assert await db.plan(["SELECT COUNT(*) FROM survey"], spend=Epsilon(1)) is not None
            assert (await db.afford([Epsilon(1)])) is not None
            with pytest.raises(QuestionError):
                await db.count(col("nothing") > 1, spend=Epsilon(1))
            assert "open" in repr(db)
        assert "closed" in repr(db)
        with pytest.raises(AccessDenied):
            await db.count(spend=Epsilon(1))
        await db.close()

    asyncio.run(ask())


def test_a_hundred_asks_at_once_are_answered_and_charged_once_each(far: AsyncClient, office: Office) -> None:
    """As quick as a hundred threads, within what chance and a busy machine allow."""

    async def ask() -> float:
        async with far as db:
            begun = time.monotonic()
            answers = await asyncio.gather(
                *(db.count(col("age") > i, spend=Epsilon(1), fresh=True) for i in range(100))
            )
            assert len({answer.receipt.seq for answer in answers}) == 100
            return time.monotonic() - begun

    awaited = asyncio.run(ask())
    assert office.databases["survey"].spent == Epsilon(100)
    with Loop(create_app(office.call, office.service, console=False)) as loop:
        plain = Client("http://localhost/survey", office.tokens["analyst"], transport=loop.transport)
        works = [
            threading.Thread(target=plain.count, args=(col("age") > i,), kwargs={"spend": Epsilon(1), "fresh": True})
            for i in range(100)
        ]
        begun = time.monotonic()
        for work in works:
            work.start()
        for work in works:
            work.join()
        threads = time.monotonic() - begun
        plain.close()
    assert awaited < 4 * threads + 2


def test_learners_run_in_a_thread_of_the_client(far: AsyncClient) -> None:
    """`run` is given the plain client, whose handles learners and releases take."""

    async def fit() -> None:
        db = await far
        model = await db.run(lambda asks: KMeans(2, max_iter=2).fit(asks[["age"]], spend=Epsilon(1)))
        assert model.fitted
        await db.close()

    asyncio.run(fit())


def test_a_cancelled_task_says_what_was_charged_and_its_answer_is_kept() -> None:
    """As Ctrl-C does, in a note of the CancelledError; the database goes on."""

    async def ask() -> None:
        async with local() as db:
            rows = await db.run(lambda asks: asks._oracle.curator._rows)
            begun, gate, run = threading.Event(), threading.Event(), rows.run

            def slow(*plan: object) -> object:
                begun.set()
                assert gate.wait(60)
                return run(*plan)

            rows.run = slow
            task = asyncio.create_task(db.count(spend=Epsilon(1)))
            await asyncio.to_thread(begun.wait, 60)
            task.cancel()
            with pytest.raises(asyncio.CancelledError) as ended:
                await task
            (note,) = ended.value.__notes__
            assert "One question was charged: epsilon 1 (receipt" in note
            gate.set()
            assert (await db.count(spend=Epsilon(1))).reused
            assert await db.spent() == Epsilon(1)

    asyncio.run(ask())


def test_an_ask_that_waits_for_a_thread_is_cancelled_free() -> None:
    """More than may be under way at once wait; one that is cancelled meanwhile is never charged."""

    async def ask() -> None:
        async with local(concurrency=1) as db:
            gate = threading.Event()
            first = asyncio.create_task(db.run(lambda _: gate.wait(60)))
            await asyncio.sleep(0.05)
            second = asyncio.create_task(db.count(spend=Epsilon(1)))
            await asyncio.sleep(0.05)
            second.cancel()
            with pytest.raises(asyncio.CancelledError) as ended:
                await second
            assert "Nothing was spent" in ended.value.__notes__[0]
            gate.set()
            assert await first
            assert (await db.spent()).amount == 0

    asyncio.run(ask())


def test_a_timeout_holds_in_a_thread_of_the_client_too() -> None:
    """`timeout=` of the ask, or of asyncio around it."""

    async def ask() -> None:
        async with local() as db:
            rows = await db.run(lambda asks: asks._oracle.curator._rows)
            gate, run = threading.Event(), rows.run
            rows.run = lambda *plan: gate.wait(60) and run(*plan)
            with pytest.raises(CuratorError, match="One question was charged") as late:
                await db.count(spend=Epsilon(1), timeout=0.2)
            assert late.value.code == "timed-out"
            with pytest.raises(TimeoutError) as ended:
                await asyncio.wait_for(db.sum("age", spend=Epsilon(1)), 0.3)
            assert "One question was charged" in ended.value.__cause__.__notes__[0]
            gate.set()

    asyncio.run(ask())


@pytest.mark.parametrize("concurrency", [0, -1, 1.5, True, 10**6])
def test_how_many_at_once_is_a_number(concurrency: object) -> None:
    """Refused before anything is opened."""
    with pytest.raises(QuestionError, match="concurrency"):
        sulq.connect_async("http://localhost/survey", token="t", concurrency=concurrency)


def test_what_cannot_be_opened_is_said_when_it_is_awaited() -> None:
    """With the errors of `connect`."""

    async def enter() -> None:
        await sulq.connect_async("http://localhost/survey")

    with pytest.raises(SetupError, match="token"):
        asyncio.run(enter())


def test_every_plain_ask_has_one_that_is_awaited() -> None:
    """Those listed keep their signatures, and one that is not listed yet is found; handles are reached by `run`."""
    plain = {
        name
        for name in dir(NamedAsks)
        if not name.startswith("_")
        and inspect.isfunction(ask := getattr(NamedAsks, name))
        and "spend" in inspect.signature(ask).parameters
    }
    assert {"count", "sql", "ask", "occurring"} < plain
    client = AsyncClient(lambda: pytest.fail("nothing is opened"))
    assert all(callable(getattr(client, name)) for name in plain)
    with pytest.raises(AttributeError, match=r"await db\.run"):
        _ = client.graph
    assert inspect.signature(AsyncClient.count) == inspect.signature(NamedAsks.count)
