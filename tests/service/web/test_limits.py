"""Limits: rates by token and by address, bounded memory, bodies of bounded size and time (T85)."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path

import httpx
import pytest
from anyio import to_thread
from starlette.requests import Request

import sulq
from sulq.answers import wire
from sulq.errors import QuestionError, SetupError
from sulq.service.clerk import worker_pool as held
from sulq.service.ipc import Frame
from sulq.service.settings import Service
from sulq.service.web import limits
from sulq.service.web.app import create_app
from sulq.service.web.limits import (
    MAX_CALLS_WAITING,
    MAX_FAILURES_A_MINUTE,
    MAX_PLANNED_QUERIES,
    MAX_THREADS_PER_TOKEN,
    ConcurrencyLimit,
    Limits,
    RateLimit,
    RateLimited,
    body_of,
)
from sulq.service.web.requests import ClerkClient, ClerkOracle
from tests.service.door import Door
from tests.service.office import Office, survey


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def taken(rate: RateLimit, who: str, most: int = 10_000) -> int:
    """How many calls go through at once."""
    for number in range(most):
        try:
            rate.take(who)
        except RateLimited:
            return number
    return most


def test_a_rate_fills_evenly_and_holds_half_a_minute() -> None:
    """After a burst the next call comes when the bucket has filled by one; the refusal says when."""
    clock = Clock()
    rate = RateLimit(60, clock=clock)
    assert taken(rate, "a") == 30
    with pytest.raises(RateLimited) as caught:
        rate.take("a")
    assert caught.value.seconds == 1
    clock.now += 0.99
    assert taken(rate, "a") == 0
    clock.now += 0.02
    assert taken(rate, "a") == 1
    assert taken(rate, "b") == 30, "another caller has its own"
    clock.now += 10**6
    assert taken(rate, "a") == 30, "and no more than half a minute's worth, however long it was quiet"


def test_a_rate_over_any_minute_is_kept() -> None:
    """However calls are spaced, a minute sees at most one and a half times the rate."""
    clock = Clock()
    rate = RateLimit(120, clock=clock)
    passed = 0
    for _ in range(600):
        clock.now += 0.1
        passed += taken(rate, "a")
    assert 120 <= passed <= 180


def test_callers_without_end_do_not_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only so many callers are remembered; the one that was quiet longest is forgotten first."""
    monkeypatch.setattr(limits, "MAX_CALLERS_REMEMBERED", 10)
    clock = Clock()
    rate, known = RateLimit(2, clock=clock), limits.KnownTokens()
    for number in range(100):
        rate.take(str(number))
        known.add(str(number))
    assert len(rate._buckets) == len(known._seen) == 10
    assert rate.spent("99")
    assert not rate.spent("1")
    assert "99" in known
    assert "1" not in known


def test_a_flood_of_wrong_tokens_leaves_good_ones_alone() -> None:
    """From one address: guesses are cut off, a token that was good goes on, one revoked does not."""
    clock = Clock()
    limit = Limits.of(10**6, clock=clock)
    limit.settle("here", "good", good=True)
    for number in range(MAX_FAILURES_A_MINUTE // 2):
        limit.admit("here", f"wrong {number}")
        limit.settle("here", f"wrong {number}", good=False)
    with pytest.raises(RateLimited):
        limit.admit("here", "one more")
    limit.admit("here", "good")
    limit.admit("there", "wrong")
    limit.settle("here", "good", good=False)
    with pytest.raises(RateLimited):
        limit.admit("here", "good")
    clock.now += 60
    limit.admit("here", "good")


def test_the_limits_reach_the_routes_T85(tmp_path: Path) -> None:
    """One token's flood gets 429 with Retry-After and costs nothing; another token is answered meanwhile."""
    office = Office(tmp_path, survey=survey())
    office.service = Service(tmp_path, rate=20)
    with Door(office) as door:
        ask = {"sql": "SELECT COUNT(*) FROM survey", "spend": {"epsilon": 0.1}, "fresh": True}
        replies = [door.post("/v1/datasets/survey/sql", ask, "analyst") for _ in range(15)]
        codes = [reply.status_code for reply in replies]
        assert codes[:10] == [200] * 10
        assert codes[-1] == 429
        last = replies[-1]
        assert (last.json()["error"]["code"], last.json()["error"]["kind"]) == ("rate-limited", "AccessDenied")
        assert int(last.headers["retry-after"]) >= 1
        assert len(office.databases["survey"].transcript()) == codes.count(200)
        assert door.get("/v1/me", "owner").status_code == 200
        office.tokens["guess"] = "sulq_guess"
        guesses = [door.get("/v1/me", "guess").status_code for _ in range(40)]
        assert guesses[0] == 401
        assert guesses[-1] == 429
        assert door.get("/v1/me", "owner").status_code == 200
        assert Door(office, app=door.app, client="10.1.1.1", beside=door).get("/v1/me").status_code == 401


def test_calls_without_a_token_are_no_guesses() -> None:
    """However many come from an address, a new good token is let in from there; the address's own rate still counts.

    Control: as many wrong tokens lock it out for a while.
    """
    limit = Limits.of(20, clock=Clock())
    for _ in range(3 * MAX_FAILURES_A_MINUTE):
        limit.admit("here", None)
    limit.admit("here", "new")
    for number in range(MAX_FAILURES_A_MINUTE):
        limit.settle("here", f"wrong {number}", good=False)
    with pytest.raises(RateLimited):
        limit.admit("here", "another")
    assert taken(limit.addresses, "here") < taken(limit.addresses, "there"), "they were counted for their address"


def test_one_caller_holds_few_threads_and_a_short_queue_T85() -> None:
    """At most four of its calls run, sixteen more wait, the rest are refused; others are not kept waiting."""

    async def tried() -> tuple[int, int, int, int]:
        under_way, go = ConcurrencyLimit(), asyncio.Event()
        running = most = refused = 0

        async def call(who: str) -> None:
            nonlocal running, most, refused
            try:
                async with under_way.turn(who):
                    running += 1
                    most = max(most, running)
                    await go.wait()
                    running -= 1
            except RateLimited:
                refused += 1

        async with asyncio.TaskGroup() as group:
            for _ in range(MAX_THREADS_PER_TOKEN + MAX_CALLS_WAITING + 7):
                group.create_task(call("alice"))
            await asyncio.sleep(0.01)
            alone = most
            group.create_task(call("bob"))
            await asyncio.sleep(0.01)
            beside = most
            go.set()
        return alone, beside, refused, len(under_way)

    assert asyncio.run(tried()) == (MAX_THREADS_PER_TOKEN, MAX_THREADS_PER_TOKEN + 1, 7, 0)


@pytest.mark.parametrize("bounded", [True, False])
def test_one_analyst_s_waiting_asks_leave_threads_for_others_T85(tmp_path: Path, *, bounded: bool) -> None:
    """Fifty asks of one token that hang keep at most four threads; another token, and its own pages, are answered.

    Control: without the turns the same asks hold every thread the web process has.
    """
    office = Office(tmp_path, survey=survey())
    hang, full, threads = threading.Event(), threading.Event(), set()
    places, patience = (MAX_THREADS_PER_TOKEN, 60) if bounded else (8, 1)

    def call(frame: Mapping[str, object]) -> Frame:
        if frame["call"] == "budget" and not hang.is_set():
            threads.add(threading.get_ident())
            if len(threads) >= places:
                full.set()
            hang.wait(300)
        return office.call(frame)

    app = create_app(call, office.service, console=False, jobs=office.near.client)
    if not bounded:
        app.app.state.limits.under_way.turn = lambda *_: contextlib.nullcontext()

    async def tried() -> list[int]:
        to_thread.current_default_thread_limiter().total_tokens = 8
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as http:

            async def get(path: str, who: str) -> int:
                headers = {"Authorization": f"Bearer {office.tokens[who]}"}
                return (await http.get(path, headers=headers)).status_code

            held = [asyncio.create_task(get("/v1/datasets/survey/budget", "analyst")) for _ in range(50)]
            assert await asyncio.get_running_loop().run_in_executor(None, full.wait, 120)
            try:
                other = await asyncio.wait_for(get("/v1/me", "other"), patience)
            except TimeoutError:
                other = 0
            hang.set()
            return [other, *await asyncio.gather(*held)]

    other, *held = asyncio.run(tried())
    office.close()
    assert other == (200 if bounded else 0)
    assert len(threads) == places
    assert held.count(429) == (50 - MAX_THREADS_PER_TOKEN - MAX_CALLS_WAITING if bounded else 0)


def test_one_analyst_has_half_of_a_dataset_s_slots_T85(monkeypatch: pytest.MonkeyPatch) -> None:
    """With all that one analyst may hold taken, it is refused, and another finds a place; after its end it has one."""
    monkeypatch.setattr(held, "MAX_WAIT_SECONDS", 0.05)
    dataset = held.OpenDataset("survey")
    with contextlib.ExitStack() as taken:
        for _ in range(held.MAX_ASKS_AT_ONCE // 2):
            taken.enter_context(dataset.slot("alice"))
        with pytest.raises(SetupError, match="under way"), dataset.slot("alice"):
            raise AssertionError("no place")
        for _ in range(held.MAX_ASKS_AT_ONCE // 2):
            taken.enter_context(dataset.slot("bob"))
        with pytest.raises(SetupError, match="under way"), dataset.slot("carol"):
            raise AssertionError("the control: all places are taken")
    with dataset.slot("alice"), dataset.slot("carol"):
        pass


def test_a_plan_has_so_many_queries_T85(tmp_path: Path) -> None:
    """MAX_PLANNED_QUERIES of them are planned, one more is refused."""
    with Door(Office(tmp_path, survey=survey())) as door:
        for number, status in ((MAX_PLANNED_QUERIES, 200), (MAX_PLANNED_QUERIES + 1, 400)):
            asked = {"queries": ["SELECT COUNT(*) FROM survey"] * number, "spend": {"epsilon": 1}}
            assert door.post("/v1/datasets/survey/plan", asked, "analyst").status_code == status


def request(parts: AsyncIterator[dict[str, object]], **headers: str) -> Request:
    async def receive() -> dict[str, object]:
        return await anext(parts)

    coded = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    return Request({"type": "http", "method": "POST", "path": "/", "headers": coded}, receive)


async def pieces(*parts: bytes, pause: float = 0.0) -> AsyncIterator[dict[str, object]]:
    for part in parts:
        await asyncio.sleep(pause)
        yield {"type": "http.request", "body": part, "more_body": True}
    yield {"type": "http.request", "body": b"", "more_body": False}


async def gone() -> AsyncIterator[dict[str, object]]:
    yield {"type": "http.request", "body": b"a", "more_body": True}
    yield {"type": "http.disconnect"}


def test_a_body_is_read_within_its_size_and_time_T85() -> None:
    """Too long, said or unsaid, too slow, or cut short: each has its code; within the bounds it comes whole."""

    def read(parts: AsyncIterator[dict[str, object]], seconds: float = 5.0, **headers: str) -> bytes | str:
        try:
            return asyncio.run(body_of(request(parts, **headers), 10, seconds))
        except QuestionError as error:
            return error.code

    assert read(pieces(b"12345", b"67890")) == b"1234567890"
    assert read(pieces(b"12345", b"678901")) == "body-too-large"
    assert read(pieces(b"1"), content_length="11") == "body-too-large"
    assert read(pieces(b"1"), content_length="9" * 5000) == "body-too-large"
    assert read(pieces(b"1"), content_length="nonsense") == b"1"
    assert read(pieces(*[b"1"] * 9, pause=0.05), seconds=0.1) == "body-too-slow"
    assert read(gone()) == "bad-request"


def test_what_a_free_call_took_is_charged_to_its_principal() -> None:
    """More than is left is paid off before the next one; debts have an end."""
    clock = Clock()
    rate = RateLimit(60, clock=clock)
    rate.charge("a", 29.5)
    with pytest.raises(RateLimited) as caught:
        rate.admit("a")
    assert caught.value.seconds == 1
    rate.admit("b")
    rate.charge("a", 10**6)
    with pytest.raises(RateLimited) as caught:
        rate.admit("a")
    assert caught.value.seconds == 31
    clock.now += 31.01
    rate.admit("a")


def spending(office: Office, seconds: float) -> Callable[[Mapping[str, object]], Frame]:
    """A clerk that says of each call about a dataset that it took so long."""
    return lambda frame: office.call(frame) | ({"seconds": seconds} if frame["dataset"] else {})


LOOKS = (("GET", "", None), ("GET", "/budget", None), ("POST", "/explain", {"sql": "SELECT COUNT(*) FROM survey"}))


@pytest.mark.parametrize(("method", "path", "body"), LOOKS)
def test_free_calls_are_limited_by_what_they_take_T85(tmp_path: Path, method: str, path: str, body: object) -> None:
    """A minute of the processor in one call: the next is refused with Retry-After, the other analyst's is not.

    An ask that is paid goes on. Control: a clerk whose calls take nothing answers ten of them.
    """
    for seconds, answered in ((60.0, 1), (0.0, 10)):
        (tmp_path / str(seconds)).mkdir()
        office = Office(tmp_path / str(seconds), survey=survey())
        office.service = Service(tmp_path, rate=1200)
        app = create_app(spending(office, seconds), office.service, console=False)
        question = {"question": wire.to_json(sulq.Sums((sulq.lit(1),))), "spend": {"epsilon": 0.1}}
        with Door(office, app=app) as door:
            found = [
                door.request(method, f"/v1/datasets/survey{path}", role="analyst", **({"json": body} if body else {}))
                for _ in range(10)
            ]
            assert [reply.status_code for reply in found].count(200) == answered
            if answered == 1:
                assert found[1].json()["error"]["code"] == "rate-limited"
                assert int(found[1].headers["retry-after"]) > 1
            other = door.request(method, f"/v1/datasets/survey{path}", role="other", **({"json": body} if body else {}))
            assert other.status_code == 200
            for _ in range(2):
                assert door.post("/v1/datasets/survey/ask", question, "analyst").status_code == 200


def test_asks_that_end_without_a_debit_are_limited_too_T85(tmp_path: Path) -> None:
    """Refused asks count by what they took. Control: those that are paid do not."""
    office = Office(tmp_path, survey=survey())
    office.service = Service(tmp_path, rate=1200)
    good = {"question": wire.to_json(sulq.Sums((sulq.lit(1),))), "spend": {"epsilon": 0.1}}
    wrong = good | {"question": wire.to_json(sulq.Sums((sulq.col("nothing"),)))}
    query = {"sql": "SELECT COUNT(*) FROM survey", "spend": {"epsilon": 0.1}}
    with Door(office, app=create_app(spending(office, 60.0), office.service, console=False)) as door:
        for path, body in (("ask", good), ("sql", query | {"fresh": True})) * 3:
            assert door.post(f"/v1/datasets/survey/{path}", body, "analyst").status_code == 200
        for role, path, body in (
            ("analyst", "ask", wrong),
            ("other", "sql", query | {"sql": "SELECT COUNT(*) FROM nothing"}),
        ):
            codes = [door.post(f"/v1/datasets/survey/{path}", body, role).status_code for _ in range(3)]
            assert codes == [400, 429, 429]


def test_a_principal_with_two_tokens_is_one_T85(tmp_path: Path) -> None:
    """What one of its tokens took, the other has not left. Control: another principal's token has."""
    office = Office(tmp_path, survey=survey())
    office.service = Service(tmp_path, rate=1200)
    office.tokens["second"] = office.tokens["other"]
    named, whose = spending(office, 60.0), []

    def call(frame: Mapping[str, object]) -> Frame:
        if frame["call"] == "whoami" and frame["token"] == office.tokens["second"] and whose:
            return {"ok": {"name": whose[-1]}}
        return named(frame)

    with Door(office) as first:
        for name, expected in (("analyst", 429), ("other", 200)):
            whose.append(name)
            door = Door(office, app=create_app(call, office.service, console=False), beside=first)
            assert door.get("/v1/datasets/survey", "analyst").status_code == 200
            assert door.get("/v1/datasets/survey", "second").status_code == expected


def test_a_new_token_begins_no_full_bucket_T85(tmp_path: Path) -> None:
    """Rotating one's token again and again ends with `rate-limited` as soon as calling by one token does.

    Control: another principal is answered meanwhile.
    """
    office = Office(tmp_path, survey=survey())
    office.service = Service(tmp_path, rate=20)
    with Door(office) as door:
        same = [door.get("/v1/me", "other").status_code for _ in range(20)]
        codes = []
        for _ in range(20):
            reply = door.post("/v1/analysts/analyst/rotate", {"overlap": 0}, "analyst")
            codes.append(reply.status_code)
            if reply.status_code == 201:
                office.tokens["analyst"] = reply.json()["token"]
        assert 5 < codes.count(201) <= same.count(200) <= 11
        assert (codes[-1], same[-1]) == (429, 429)
        assert door.get("/v1/me", "owner").status_code == 200


def test_a_plan_is_worked_out_by_the_clerks_word_of_who_may_ask(tmp_path: Path) -> None:
    """An auditor sees facts and plans nothing, though plans are drawn beside the clerk; they are as the clerk's."""
    office = Office(tmp_path, survey=survey())
    question = sulq.Sums((sulq.lit(1), sulq.col("age")), by=(sulq.col("city"),))
    with Door(office) as door:
        body = {"queries": ["SELECT COUNT(*) FROM survey"], "spend": {"epsilon": 1}}
        assert door.post("/v1/datasets/survey/plan", body, "auditor").status_code == 403
        for role in ("analyst", "owner"):
            own = ClerkOracle(ClerkClient(office.call, office.tokens[role]), "survey")
            for spend in (sulq.Epsilon(0.1), sulq.EpsilonDelta(0.5, 1e-8)):
                body = {"question": wire.to_json(question), "spend": wire.to_json(spend), "law": None}
                body |= {"law": "gaussian"} if isinstance(spend, sulq.EpsilonDelta) else {}
                told = door.post("/v1/datasets/survey/foresee", body, role).json()["plan"]
                assert told == wire.to_json(own.foresee(question, spend=spend))
