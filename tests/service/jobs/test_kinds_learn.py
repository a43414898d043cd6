"""Learners as jobs: their form is their signature, they ask with their maker's token, and end before the next ask."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import sulq
import sulq.testing
from sulq import learn
from sulq.api.named_asks import NamedAsks
from sulq.errors import QuestionError
from sulq.learn.base import Learner
from sulq.service.jobs import kinds
from sulq.service.jobs.kind import JobKind
from sulq.service.jobs.kinds import KINDS, MAX_COLUMNS, learner_kind
from sulq.service.jobs.manager import Job
from tests.learn.averages import Averages, Majority
from tests.learn.programs import SPEND, people, program
from tests.service.door import Door
from tests.service.near_jobs import Several
from tests.service.office import Office

PLACE = "/v1/datasets/survey/jobs"
TRIED = (Averages, Majority)
EACH = pytest.mark.parametrize("learner", [*learn.LEARNERS, *TRIED], ids=lambda learner: learner.__name__)
GOOD = {"x": ["age", "income"], "spend": {"epsilon": 1}, "rounds": 4}


@pytest.fixture(autouse=True)
def _joined(monkeypatch: pytest.MonkeyPatch) -> None:
    """The learners of this test beside those that ship."""
    monkeypatch.setattr(kinds, "KINDS", (*KINDS, *map(learner_kind, TRIED)))
    monkeypatch.setattr(learn, "LEARNERS", (*learn.LEARNERS, *TRIED))


@pytest.fixture
def door(tmp_path: Path) -> Iterator[Door]:
    """A survey that the learners' programs can ask."""
    with Door(Office(tmp_path, survey=people())) as opened:
        yield opened


@pytest.fixture
def several() -> Iterator[Several]:
    with Several() as made:
        yield made


def over(job: Job) -> Job:
    deadline = time.monotonic() + 60
    while job.live and time.monotonic() < deadline:
        time.sleep(0.005)
    assert not job.live, job
    return job


def ended(door: Door, key: str, role: str = "analyst") -> dict[str, object]:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        told = door.get(f"/v1/jobs/{key}", role).json()
        if told["state"] not in ("waiting", "running"):
            return told
        time.sleep(0.02)
    raise AssertionError("the job does not end")


def test_a_job_is_about_the_rows_that_it_names(door: Door) -> None:
    """A SELECT in place of the first table, or a table by its name; both, or one that is not there, are refused."""
    view = "SELECT age, cost * 2 AS double FROM people WHERE ill"
    asked = {"x": ["age", "double"], "spend": {"epsilon": 1}, "view": view}
    job = door.post(PLACE, {"kind": "KMeans", "parameters": asked}, "analyst").json()
    assert ended(door, job["id"])["result"]["model"]["columns"] == ["age", "double"]
    asked = {"x": ["age"], "spend": {"epsilon": 1}, "table": "people"}
    job = door.post(PLACE, {"kind": "KMeans", "parameters": asked}, "analyst").json()
    assert ended(door, job["id"])["state"] == "done"
    job = door.post(PLACE, {"kind": "KMeans", "parameters": asked | {"table": "visits"}}, "analyst").json()
    assert ended(door, job["id"])["error"]["code"] == "unknown-table"
    refused = door.post(PLACE, {"kind": "KMeans", "parameters": asked | {"view": view}}, "analyst")
    assert refused.status_code == 422 or refused.json()["error"]["code"] == "bad-request"


def test_a_job_searches_for_bounds(door: Door) -> None:
    """A field of every learner's job, of which "auto" is the one value."""
    body = {"kind": "KMeans", "parameters": {"x": ["age", "income"], "spend": {"epsilon": 2}, "bounds": "auto"}}
    told = ended(door, door.post(PLACE, body, "analyst").json()["id"])
    assert learn.load(told["result"]["model"]).bounds_.keys() == {"age", "income"}
    body["parameters"]["bounds"] = "wide"
    assert door.post(PLACE, body, "analyst").status_code == 400


@EACH
def test_every_learner_is_a_job(door: Door, learner: type[Learner]) -> None:
    """It runs to its end, costs what it says, and its model is loaded from its JSON and is the one that was told."""
    reply = door.post(PLACE, program(learner).job(), "analyst")
    assert reply.status_code == 202, reply.text
    told = ended(door, reply.json()["id"])
    assert (told["state"], told["error"], told["done"]) == ("done", None, told["total"])
    result = told["result"]
    model = learn.load(result["model"])
    assert type(model) is learner
    assert json.dumps(model.to_json(), sort_keys=True) == json.dumps(result["model"], sort_keys=True)
    assert result["text"] or result["tables"], "there is something to look at"
    assert 0 < model.spent_.exact <= SPEND.exact
    assert door.office.databases["survey"].spent == model.spent_


@EACH
def test_every_learner_is_for_those_who_ask_T79(door: Door, learner: type[Learner]) -> None:
    """Owner and analyst may start it, an auditor and a dataset that is not one's own are refused."""
    body = program(learner).job()
    assert door.post(PLACE, body, "owner").status_code == 202
    assert door.post(PLACE, body, "auditor").status_code == 403
    assert door.post(PLACE.replace("survey", "other"), body, "analyst").status_code == 404
    assert door.post(PLACE, body).status_code == 401


@EACH
def test_a_job_that_does_not_fit_is_refused_at_once(several: Several, learner: type[Learner]) -> None:
    """An unknown key, a column twice, no column, too many, a label among the columns, a text for a number."""
    good = program(learner).job()["parameters"]
    with people() as db:
        for change in (
            {"unheard": 1},
            {"x": []},
            {"x": ["age", "age"]},
            {"x": "age"},
            {"x": [f"c{i}" for i in range(MAX_COLUMNS + 1)]},
            {"x": [good.get("y", 1)]},
            {"spend": 1},
            {"X": ["age"]},
            {field.name: {"a": 1} for field in learn.base.form(learner).fields[:1]} or {"x": None},
        ):
            with pytest.raises(QuestionError) as refused:
                several.start("alice", "survey", learner.__name__, good | change, db)
            assert refused.value.code == "bad-request", change
        assert several.jobs.of("alice") == []
        assert db.spent.amount == 0


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"x": ["absent"]}, "unknown-column"),
        ({"rounds": 0}, "bad-parameter"),
        ({"spend": {"epsilon": 950}}, "budget-exceeded"),
        ({"spend": None}, "spend-missing"),
        ({"spend": {"rho": 1}}, "spend-kind"),
        ({"spend": {"gamma": 1}}, "bad-loss"),
    ],
)
def test_a_learners_own_refusal_is_the_jobs(several: Several, change: dict[str, object], code: str) -> None:
    """With its code and remedy; nothing was spent."""
    with people() as db:
        job = over(several.start("alice", "survey", "Averages", GOOD | change, db))
        assert (job.state, job.error["code"]) == ("failed", code)
        assert db.spent.amount == 0


def test_progress_is_the_purses() -> None:
    """As many steps as the fit planned, one an ask."""
    with people() as db:
        seen = []
        kind = learner_kind(Averages)
        for step in kind.run(db, kind.parameters.model_validate(GOOD)):
            seen.append((step.done, step.total, sorted(step.result)))
            assert len(db.transcript()) == min(len(seen) - 1, 4), "no ask runs ahead of the job"
        assert seen == [(i, 4, []) for i in range(5)] + [(4, 4, ["model", "tables", "text"])]


def test_an_ended_job_asks_nothing_more() -> None:
    """Whoever leaves the steps ends the fit before its next question; what was asked stays paid. Control: going on."""
    with people() as db:
        kind = learner_kind(Averages)
        asked = kind.parameters.model_validate(GOOD | {"rounds": 100})
        steps = kind.run(db, asked)
        for _ in range(3):
            next(steps)
        steps.close()
        time.sleep(0.2)
        assert len(db.transcript()) == 2
        more = kind.run(db, asked)
        for _ in range(3):
            next(more)
        next(more)
        assert len(db.transcript()) == 2 + 3
        more.close()


def test_a_job_is_ended_over_http(door: Door) -> None:
    """A long fit that its maker ends is cancelled, and the ledger stands still."""
    key = door.post(PLACE, {"kind": "Averages", "parameters": GOOD | {"rounds": 1000}}, "analyst").json()["id"]
    assert door.request("DELETE", f"/v1/jobs/{key}", role="analyst").json()["state"] == "cancelled"
    job = door.office.near.jobs.find("analyst", key)
    assert job.ended.wait(20)
    time.sleep(0.1)
    asked = len(door.office.databases["survey"].transcript())
    time.sleep(0.3)
    assert len(door.office.databases["survey"].transcript()) == asked < 1000


def test_a_learner_that_breaks_is_a_constant_T31(several: Several, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever goes wrong inside a fit, nothing of it is told."""

    def broken(*_: object) -> None:
        raise RuntimeError("CANARY")

    monkeypatch.setattr(Averages, "_fit", broken)
    with people() as db:
        job = over(several.start("alice", "survey", "Averages", GOOD, db))
    assert job.error["code"] == "engine-failed"
    assert "CANARY" not in str(several.told(job))


def test_a_parameter_that_was_not_named_keeps_its_default(several: Several) -> None:
    """Named ones arrive as they are, whole numbers as whole numbers; None is a value where there may be none."""
    with people() as db:
        named = GOOD | {"weight": 2, "shrink": None, "scale": "unit"}
        job = over(several.start("alice", "survey", "Averages", named, NamedAsks(sulq.testing.exact(db)._oracle)))
        told = several.told(job)["result"]["model"]["parameters"]
    assert told == Averages(rounds=4, weight=2, scale="unit").get_params()
    assert type(told["weight"]) is int


def test_the_document_shows_every_learner(door: Door) -> None:
    """/v1/kinds has each one's form and the schema of its parameters, which takes no key it does not name."""
    told = {kind["name"]: kind for kind in door.get("/v1/kinds", "auditor").json()["kinds"]}
    for learner in (*learn.LEARNERS,):
        kind = told[learner.__name__]
        assert kind["form"]["kind"] == learner.kind
        names = {field["name"] for field in kind["form"]["fields"]} | {"x", "spend", "bounds", "table", "view"}
        names |= {"y"} if learner.kind != "unsupervised" else set()
        assert set(kind["parameters"]["properties"]) == names
        assert kind["parameters"]["additionalProperties"] is False
    assert told["queries"]["form"] is None


def test_the_openapi_document_says_which_parameters_go_with_which_kind(door: Door) -> None:
    """POST .../jobs names every kind that ships, with its fields."""
    paths = door.get("/v1/openapi.json", "owner").json()["paths"]
    schema = paths["/v1/datasets/{name}/jobs"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    assert schema["properties"]["kind"]["enum"] == [kind.name for kind in kinds.KINDS]
    each = {option["properties"]["kind"]["const"]: option["properties"]["parameters"] for option in schema["anyOf"]}
    assert set(each) == {kind.name for kind in kinds.KINDS}
    assert "queries" in each["queries"]["properties"]


def test_kinds_are_made_of_the_learners() -> None:
    """One each, in their order, beside the others."""
    names = [kind.name for kind in KINDS if kind.form and kind.form["kind"] not in ("release", "selection")]
    assert names == [learner.__name__ for learner in learn.LEARNERS if learner not in TRIED]
    assert isinstance(learner_kind(Averages), JobKind)


def test_where_sums_are_counted_no_spend_is_named(several: Several) -> None:
    """Under a SubLinear budget a job costs queries, and its model says so; naming an epsilon is refused."""
    budget = sulq.SubLinear(epsilon=1, delta=1e-6, queries=100)
    with people(budget, unit=sulq.Unit(neighbors="zero_out")) as db:
        named = {"x": ["age", "income"], "rounds": 2}
        job = over(several.start("alice", "survey", "Averages", named, db))
        assert job.state == "done", job.error
        assert learn.load(job.step.result["model"]).spent_ == db.spent == sulq.Queries(6)
        refused = over(several.start("alice", "survey", "Averages", named | {"spend": {"epsilon": 1}}, db))
        assert refused.error["code"] == "spend-kind"
