"""Jobs: progress, results that outlast a failure, an end when asked, one maker (T79)."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from sulq.answers import wire
from sulq.api.named_asks import NamedAsks
from sulq.errors import AccessDenied, QuestionError
from sulq.service.jobs import kinds, manager
from sulq.service.jobs.kind import JobKind, JobStep
from sulq.service.jobs.kinds import KINDS
from sulq.service.jobs.manager import MAX_LIVE_JOBS, Job
from sulq.service.web.requests import Body
from tests.service.door import Door
from tests.service.near_jobs import Several
from tests.service.office import Office, survey

COUNT = "SELECT COUNT(*) FROM survey"
HIGH = "SELECT AVG(income) FROM survey"
PLACE = "/v1/datasets/survey/jobs"
LONG = 120.0  # seconds: nothing here takes long, but the machine may be busy


class Nothing(Body):
    """No parameters."""


class Slow:
    """A kind of job that takes a step each time it is let."""

    def __init__(self) -> None:
        self.let = threading.Semaphore(0)
        self.left = threading.Event()
        self.steps = 0

    def run(self, _desk: NamedAsks, _asked: Nothing) -> Iterator[JobStep]:
        try:
            for number in range(1, 4):
                self.let.acquire(timeout=LONG)
                self.steps = number
                yield JobStep(number, 3, {"steps": number})
        finally:
            self.left.set()


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> Slow:
    made = Slow()
    monkeypatch.setattr(kinds, "KINDS", (*KINDS, JobKind("slow", "Slow", Nothing, made.run)))
    return made


@pytest.fixture
def database_asks() -> Iterator[NamedAsks]:
    with survey() as db:
        yield db


@pytest.fixture
def several() -> Iterator[Several]:
    with Several() as made:
        yield made


def until(job: Job, state: str) -> None:
    deadline = time.monotonic() + LONG
    while job.state != state and time.monotonic() < deadline:
        time.sleep(0.005)
    assert job.state == state, job


def ended(door: Door, key: str) -> dict[str, object]:
    deadline = time.monotonic() + LONG
    while time.monotonic() < deadline:
        told = door.get(f"/v1/jobs/{key}", "analyst").json()
        if told["state"] not in ("waiting", "running"):
            return told
        time.sleep(0.01)
    raise AssertionError("the job does not end")


def test_queries_at_one_total_cost_no_more_than_it(door: Door) -> None:
    """A total is divided over the queries as a plan divides it; each answer has its error bars and its receipt."""
    asked = {"queries": [COUNT, HIGH], "spend": {"epsilon": 1}, "weights": [10_000, 1]}
    reply = door.post(PLACE, {"kind": "queries", "parameters": asked}, "analyst")
    assert reply.status_code == 202
    told = ended(door, reply.json()["id"])
    assert (told["state"], told["done"], told["total"], told["error"]) == ("done", 2, 2, None)
    answers = told["result"]["answers"]
    assert [answer["columns"] for answer in answers] == [["count"], ["avg"]]
    assert answers[0]["low"][0][0] < answers[0]["rows"][0][0] < answers[0]["high"][0][0]
    spent = door.office.databases["survey"].spent.epsilon
    assert 0.99 <= spent <= 1
    parts = [wire.from_json(answer["spent"]).exact for answer in answers]
    assert parts[0] > parts[1]  # without weights the mean, off by more, has the larger part
    assert door.get("/v1/jobs", "analyst").json()["jobs"][0]["id"] == told["id"]


def test_what_was_answered_before_a_failure_stays(door: Door) -> None:
    """A query that is refused ends the job with its error; the answers paid for before it are kept."""
    asked = {"queries": [COUNT, "SELECT nothing FROM survey"], "spends": [{"epsilon": 0.1}, {"epsilon": 0.1}]}
    told = ended(door, door.post(PLACE, {"kind": "queries", "parameters": asked}, "analyst").json()["id"])
    assert (told["state"], told["done"], told["error"]["code"]) == ("failed", 1, "unknown-column")
    assert len(told["result"]["answers"]) == 1


def test_a_revoked_token_stops_its_jobs(tmp_path: Path, slow: Slow) -> None:
    """A job asks with its maker's token, which is looked up at every question."""
    with Door(Office(tmp_path, survey=survey())) as door:
        asked = {"queries": [COUNT, HIGH], "spends": [{"epsilon": 0.1}] * 2}
        desk_seen = threading.Event()
        real = door.office.call

        def call(frame):
            if frame["call"] == "ask":
                desk_seen.set()
                slow.let.acquire(timeout=LONG)
            return real(frame)

        door.office.call = call
        key = door.post(PLACE, {"kind": "queries", "parameters": asked}, "analyst").json()["id"]
        assert desk_seen.wait(LONG)
        door.office.access.revoke("analyst")
        slow.let.release(2)
        job = door.office.near.jobs.find("analyst", key)
        until(job, "failed")
        assert job.error["code"] == "unauthorized"
        assert door.office.databases["survey"].transcript() == []


def test_a_job_can_be_ended(several: Several, database_asks: NamedAsks, slow: Slow) -> None:
    """No further step is taken; what was found until then stays."""
    job = several.start("alice", "survey", "slow", {}, database_asks)
    slow.let.release()
    until_step(job, 1)
    assert several.jobs.end("alice", job.id).state == "cancelled"
    assert job.ended.wait(LONG), "it is over at once: nobody waits for the step under way"
    slow.let.release(3)
    assert slow.left.wait(LONG)
    assert (job.state, slow.steps, job.step.done) == ("cancelled", 2, 1), "the third step was never begun"
    assert several.jobs.end("alice", job.id).state == "cancelled"


def until_step(job: Job, done: int) -> None:
    deadline = time.monotonic() + LONG
    while job.step.done < done and time.monotonic() < deadline:
        time.sleep(0.005)
    assert job.step.done == done


def test_a_principal_has_few_live_jobs_and_some_old_ones(
    several: Several, database_asks: NamedAsks, slow: Slow, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One more than allowed is refused, for its maker alone; old jobs make room for new ones."""
    monkeypatch.setattr(manager, "MAX_JOBS_REMEMBERED", 6)
    made = [several.start("alice", "survey", "slow", {}, database_asks) for _ in range(MAX_LIVE_JOBS)]
    with pytest.raises(AccessDenied) as caught:
        several.start("alice", "survey", "slow", {}, database_asks)
    assert caught.value.code == "too-many-jobs"
    other = several.start("bob", "survey", "slow", {}, database_asks)
    slow.let.release(100)
    for job in (*made, other):
        until(job, "done")
    for _ in range(5):
        until(several.start("alice", "survey", "slow", {}, database_asks), "done")
    assert len(several.jobs.of("alice")) == 6
    assert [job.id for job in several.jobs.of("bob")] == [other.id]


def test_results_are_kept_up_to_a_size_T85(
    several: Several, database_asks: NamedAsks, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One's oldest results give way, with a code; the latest stays, and so do others'. Control: small ones all stay."""

    class Sized(Body):
        size: int

    def run(_desk: NamedAsks, asked: Sized) -> Iterator[JobStep]:
        yield JobStep(1, 1, {"text": "x" * asked.size})

    monkeypatch.setattr(kinds, "KINDS", (JobKind("sized", "Sized", Sized, run),))
    monkeypatch.setattr(manager, "MAX_RESULTS_BYTES", 1000)

    def made(owner: str, size: int) -> Job:
        job = several.start(owner, "survey", "sized", {"size": size}, database_asks)
        until(job, "done")
        deadline = time.monotonic() + LONG
        while not job.over and time.monotonic() < deadline:
            time.sleep(0.005)
        return job

    other = made("bob", 900)
    few = [made("alice", 300) for _ in range(3)]
    assert all(several.told(job)["result"] for job in few)
    more = made("alice", 300)
    told = several.told(few[0])
    assert (told["state"], told["done"], told["result"]) == ("done", 1, None)
    assert told["error"]["code"] == "result-let-go"
    assert "ledger" in told["error"]["remedy"]
    assert all(several.told(job)["result"] and not several.told(job)["error"] for job in (*few[1:], more, other))
    large = made("alice", 5000)
    assert several.told(large)["result"]
    assert not any(several.told(job)["result"] for job in (*few, more))
    assert sum(job.size for job in several.jobs.of("alice")) == large.size


def test_what_an_ended_job_found_counts_too_T85(
    several: Several, database_asks: NamedAsks, slow: Slow, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It stays there to be seen, so it takes room."""
    monkeypatch.setattr(manager, "MAX_RESULTS_BYTES", 1)
    for _ in range(2):
        slow.left.clear()
        job = several.start("alice", "survey", "slow", {}, database_asks)
        slow.let.release()
        until_step(job, 1)
        several.jobs.end("alice", job.id)
        assert job.ended.wait(LONG)
        slow.let.release()
        assert slow.left.wait(LONG), "the next one's steps are its own"
        deadline = time.monotonic() + LONG
        while not job.over and time.monotonic() < deadline:
            time.sleep(0.005)
    later, earlier = several.jobs.of("alice")
    assert several.told(later)["result"]
    assert several.told(earlier)["error"]["code"] == "result-let-go"


@pytest.mark.parametrize(
    ("kind", "parameters"),
    [
        ("nothing", {}),
        ("queries", {}),
        ("queries", {"queries": []}),
        ("queries", {"queries": "SELECT 1"}),
        ("queries", {"queries": [COUNT], "spend": {"epsilon": 1}, "more": 1}),
    ],
)
def test_parameters_that_do_not_fit_are_refused_at_once(
    several: Several, database_asks: NamedAsks, kind: str, parameters: object
) -> None:
    """A job that cannot run is not taken on."""
    with pytest.raises(QuestionError) as caught:
        several.start("alice", "survey", kind, parameters, database_asks)
    assert caught.value.code == "bad-request"
    assert several.jobs.of("alice") == []


def test_two_prices_or_none_are_refused(several: Several, database_asks: NamedAsks) -> None:
    """A total or one spend each, not both and not neither; nothing is asked."""
    for more in ({}, {"spend": {"epsilon": 1}, "spends": [{"epsilon": 1}]}, {"spends": [{"epsilon": 1}] * 2}):
        job = several.start("alice", "survey", "queries", {"queries": [COUNT], **more}, database_asks)
        until(job, "failed")
        assert job.error["kind"] == "QuestionError"
    assert database_asks.transcript() == []


@pytest.mark.parametrize("more", [{"weights": [1, 2]}, {"together": True}, {"together": False}])
def test_what_divides_a_total_is_refused_beside_spends(
    several: Several, database_asks: NamedAsks, more: dict[str, object]
) -> None:
    """Nothing is asked; without it each query is asked at its own spend."""
    asked = {"queries": [COUNT, COUNT], "spends": [{"epsilon": 0.1}] * 2}
    job = several.start("alice", "survey", "queries", asked | more, database_asks)
    until(job, "failed")
    assert job.error["code"] == "bad-question"
    assert database_asks.transcript() == []
    until(several.start("alice", "survey", "queries", asked, database_asks), "done")


@pytest.mark.parametrize("law", ["laplace", "gaussian"])
def test_a_law_is_kept_at_spends_of_their_own(law: str) -> None:
    """Either, where the price leaves it open."""
    with survey() as db:
        body = kinds.QueriesBody(queries=[COUNT], spends=[{"epsilon": 0.5, "delta": 1e-7}], law=law)
        assert list(kinds._queries(db, body))[-1].done == 1
        assert {draw.mechanism for draw in db.transcript()[-1]["event"].draws} == {law}


def test_jobs_pause_twice_as_long_as_their_questions_took(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a principal's jobs one asks at a time, a third of the time at most, with a bound on each pause."""
    now, takes, pauses = [0.0], iter((0.25, 100.0, 0.25)), []

    def call(_frame: object) -> dict[str, object]:
        now[0] += next(takes)
        return {"ok": {}}

    jobs = manager.Jobs(lambda: pytest.fail("no child is needed here"), call, clock=lambda: now[0])
    monkeypatch.setattr(manager, "time", SimpleNamespace(sleep=pauses.append))
    job = Job("j", "alice", "survey", kinds.KINDS[-1], 0.0, None, "t", state="running")
    for _ in range(2):
        jobs._asked(job, {"call": "ask", "body": {}})
    assert pauses == [0.5, manager.MAX_PAUSE_SECONDS]
    job.state = "ended"
    jobs._asked(job, {"call": "ask", "body": {}})
    assert len(pauses) == 2


def test_an_unexpected_failure_is_a_constant_T31(
    several: Several, database_asks: NamedAsks, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever breaks inside a job, its maker reads one text."""

    def broken(_desk: NamedAsks, _asked: Nothing) -> Iterator[JobStep]:
        yield JobStep(1, 2, {})
        raise RuntimeError("CANARY")

    monkeypatch.setattr(kinds, "KINDS", (JobKind("broken", "Broken", Nothing, broken),))
    job = several.start("alice", "survey", "broken", {}, database_asks)
    until(job, "failed")
    assert job.error["code"] == "engine-failed"
    assert "CANARY" not in str(several.told(job))


def test_the_kinds_are_listed_with_their_parameters(door: Door) -> None:
    """Each kind has the JSON schema of what it takes."""
    told = door.get("/v1/kinds", "analyst").json()["kinds"]
    assert [kind["name"] for kind in told] == [kind.name for kind in KINDS]
    assert "queries" in told[0]["parameters"]["properties"]
