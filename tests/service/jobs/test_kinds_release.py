"""Releases as jobs: their form is their signature, they ask with their maker's token, and end before the next ask."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

import sulq
from sulq.errors import QuestionError
from sulq.release.base import Release
from sulq.service.ipc import MAX_FRAME_BYTES as MOST_OF_A_FRAME
from sulq.service.jobs import kinds
from sulq.service.jobs.kinds import KINDS, release_kind
from sulq.service.jobs.manager import Job
from sulq.service.jobs.publication import ALL, Published, form
from sulq.service.web.limits import MAX_PLANNED_QUERIES
from tests.release.programs import EACH, PROGRAMS, WIDE, Program, people, wide_people
from tests.service.door import Door
from tests.service.near_jobs import Several
from tests.service.office import Office
from tests.service.service import service

PLACE = "/v1/datasets/survey/jobs"
GOOD = PROGRAMS["contingency"].job()["parameters"]
ONE = pytest.mark.parametrize("program", EACH, ids=lambda program: program.name)


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


@ONE
def test_every_release_is_a_kind(program: Program) -> None:
    """It is there by its name, with the form and the parameters of its signature."""
    kind = next(kind for kind in KINDS if kind.name == program.name)
    assert kind.form == form(program.release).to_json()
    own = {field.name for field in form(program.release).fields}
    assert set(kind.parameters.model_json_schema()["properties"]) == own | {"spend", "written", "table", "view"}
    assert all(field.help for field in form(program.release).fields), "each parameter has a line in the docstring"


@ONE
def test_every_release_is_for_those_who_ask_T79(tmp_path: Path, program: Program) -> None:
    """An auditor, somebody without a token and a dataset that is not one's own are refused; nothing is spent."""
    with Door(Office(tmp_path, survey=people())) as door:
        body = program.job()
        assert door.post(PLACE, body, "auditor").status_code == 403
        assert door.post(PLACE.replace("survey", "other"), body, "analyst").status_code == 404
        assert door.post(PLACE, body).status_code == 401
        assert door.office.databases["survey"].spent.amount == 0


@ONE
def test_a_job_that_does_not_fit_is_refused_at_once(several: Several, program: Program) -> None:
    """An unknown key, a parameter of another kind, one that is missing, an odd spend."""
    good = program.job()["parameters"]
    needed = next(field.name for field in form(program.release).fields if field.required)
    with people() as db:
        for change in ({"unheard": 1}, {"db": 1}, {"progress": 1}, {needed: {"a": 1}}, {"spend": 1}, {"written": "x"}):
            with pytest.raises(QuestionError) as refused:
                several.start("alice", "survey", program.name, good | change, db)
            assert refused.value.code == "bad-request", change
        with pytest.raises(QuestionError):
            several.start("alice", "survey", program.name, {k: v for k, v in good.items() if k != needed}, db)
        assert several.jobs.of("alice") == []
        assert db.spent.amount == 0


def test_a_job_is_no_larger_than_a_web_process_holds_T85(several: Several) -> None:
    """Rows and models that only a machine of one's own should hold are refused. Control: the most that is taken."""
    good = PROGRAMS["aim"].job()["parameters"]
    kind = release_kind(PROGRAMS["aim"].release)
    with people() as db:
        for name, most in kinds.MAX_PARAMETERS.items():
            with pytest.raises(QuestionError) as refused:
                several.start("alice", "survey", "aim", good | {name: most + 1}, db)
            assert name in refused.value.message
            assert kind.parameters.model_validate(good | {name: most})


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"attributes": ["absent"]}, "unknown-column"),
        ({"bins": 0}, "bad-parameter"),
        ({"spend": {"epsilon": 950}}, "budget-exceeded"),
        ({"spend": None}, "spend-missing"),
        ({"spend": {"rho": 1}}, "spend-kind"),
    ],
)
def test_a_releases_own_refusal_is_the_jobs(several: Several, change: dict[str, object], code: str) -> None:
    """With its code and remedy; nothing was spent."""
    with people() as db:
        job = over(several.start("alice", "survey", "contingency", GOOD | change, db))
        assert (job.state, job.error["code"]) == ("failed", code)
        assert db.spent.amount == 0


def test_an_ended_job_asks_nothing_more() -> None:
    """Whoever leaves the steps ends the release before its next question. Control: going on asks more."""
    with people() as db:
        kind = release_kind(PROGRAMS["mwem"].release)
        asked = kind.parameters.model_validate(PROGRAMS["mwem"].job()["parameters"] | {"rounds": 50})
        steps = kind.run(db, asked)
        for _ in range(3):
            next(steps)
        steps.close()
        time.sleep(0.2)
        paid = len(db.transcript())
        assert 0 < paid < 10
        more = kind.run(db, asked)
        for _ in range(12):
            next(more)
        assert len(db.transcript()) > 2 * paid
        more.close()


def test_rows_that_nobody_named_are_not_more_than_a_job_makes_T85(
    several: Several, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As many as the data have, but no more than a web process holds. Control: elsewhere there are more."""
    monkeypatch.setattr(kinds, "MAX_SYNTHETIC_ROWS", 25)
    asked = {"columns": ["smoker", "ill"], "rounds": 1, "spend": {"epsilon": 300}}
    with people() as db:
        job = over(several.start("alice", "survey", "mwem", asked, db))
        assert job.state == "done", job.error
        rows = next(table for table in job.step.result["tables"] if table["title"] == "rows")
        assert (len(rows["rows"]), rows.get("more")) == (25, None)
        assert job.step.result["release"]["facts"]["total"] > 30
        assert len(PROGRAMS["mwem"].release(db, ["smoker", "ill"], rounds=1, spend=sulq.Epsilon(300))) > 30


def test_a_job_plans_as_few_questions_as_a_request_T85(several: Several) -> None:
    """Each is compiled and priced many times, free. Control: as many as a request may; more that are not planned."""
    kind = release_kind(PROGRAMS["publish"].release).parameters
    many = ["SELECT COUNT(*) FROM people"] * (MAX_PLANNED_QUERIES + 1)
    with people() as db:
        for more in ({}, {"division": "planned"}):
            with pytest.raises(QuestionError) as refused:
                several.start("alice", "survey", "publish", {"questions": many, "spend": {"epsilon": 1}, **more}, db)
            assert refused.value.code == "bad-request"
            assert str(MAX_PLANNED_QUERIES) in refused.value.message
        assert db.spent.amount == 0
    assert kind.model_validate({"questions": many[1:]})
    assert kind.model_validate({"questions": many, "division": "even"})


def test_tables_and_charts_are_made_once_for_a_result(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """However many parts of a result show them; and for a command, which writes and prints them."""
    with people() as db:
        found = PROGRAMS["contingency"].release(db, ["city", "smoker"], ways=2, spend=sulq.Epsilon(1))
    calls: list[str] = []

    def counted(name: str) -> None:
        real = getattr(type(found), name)

        def call(self: Release) -> object:
            calls.append(name)
            return real(self)

        monkeypatch.setattr(type(found), name, call)

    counted("tables")
    counted("charts")
    assert kinds.release_result(Published(found), "parquet")["archive"]
    assert sorted(calls) == ["charts", "tables"]
    shown = Published(found)
    shown.save(tmp_path)
    assert list(shown.tables())
    assert sorted(calls) == ["charts", "charts", "tables", "tables"]


def test_a_whole_result_is_no_larger_than_a_job_keeps_T85(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is too much is left out and named; the files, which have all of it, before what they have too."""
    with people() as db:
        questions = [f"SELECT city, COUNT(*) FROM people WHERE age > {age} GROUP BY city" for age in range(30)]
        found = PROGRAMS["publish"].release(db, questions, division="even", spend=sulq.Epsilon(9))
    whole = kinds.release_result(Published(found), "parquet")
    assert whole["left_out"] == []
    assert len(whole["tables"]) == len(questions)
    size = len(json.dumps(whole))
    seen = set()
    for most in range(0, size + 1000, size // 30):
        monkeypatch.setattr(kinds, "MAX_RESULT_BYTES", most)
        told = kinds.release_result(Published(found), "parquet")
        assert len(json.dumps(told, separators=(",", ":"))) <= most + 500  # names of parts, and nulls
        missing = {name for name in ("archive", "charts") if not told[name]}
        missing |= {name for name in ("facts", "schema", "title") if told["release"][name] is None}
        missing |= {"tables"} if len(told["tables"]) < len(questions) else set()
        assert missing == set(told["left_out"]) & {"archive", "charts", "facts", "schema", "title", "tables"}
        seen |= missing
    assert told["left_out"] == []
    assert told | {"archive": None} == whole | {"archive": None}  # which has the time in it
    assert {"archive", "charts", "facts", "tables"} <= seen
    assert MOST_OF_A_FRAME > 1.5 * 32 * 2**20


def test_a_result_is_short_and_an_archive_too_large_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables are cut and say so; without files what is said is still told. Control: small files are kept."""
    with people() as db:
        found = PROGRAMS["mwem"].release(db, ["smoker", "ill"], rounds=1, rows=1500, spend=sulq.Epsilon(1))
    told = kinds.release_result(Published(found), "csv")
    rows = next(table for table in told["tables"] if table["title"] == "rows")
    assert (len(rows["rows"]), rows["more"]) == (1000, 500)
    assert told["archive"]
    assert told["charts"][0]["error"]
    monkeypatch.setattr(kinds, "MAX_RESULT_BYTES", 1500)
    cut = kinds.release_result(Published(found), "csv")
    assert cut["archive"] is None
    assert cut["left_out"][0] == "archive"
    assert cut["release"]["paid"] == told["release"]["paid"]


def test_a_table_of_forty_attributes_is_a_job(tmp_path: Path) -> None:
    """Marginals among more attributes than one partition has keys, over HTTP."""
    with Door(Office(tmp_path, survey=wide_people())) as door:
        asked = {
            "attributes": WIDE,
            "marginals": [["x0", "x39"], ["x1"]],
            "weights": "variance",
            "spend": {"epsilon": 2},
        }
        begun = door.post(PLACE, {"kind": "contingency", "parameters": asked}, "analyst")
        assert begun.status_code == 202, begun.text
        deadline = time.monotonic() + 60
        while (told := door.get(f"/v1/jobs/{begun.json()['id']}", "analyst").json())["state"] in ("waiting", "running"):
            assert time.monotonic() < deadline
            time.sleep(0.1)
    assert told["state"] == "done", told["error"]
    assert len(told["result"]["release"]["facts"]["asked"]) == 2


def test_aim_runs_in_a_process_that_may_write_nowhere() -> None:
    """Rounds of choices and their model need no file, in a process that was shut off from all files but its own."""
    named = {"columns": ["city", "age"], "rounds": 1, "bins": 2, "rows": 20, "spend": {"epsilon": 1}}
    with service(sulq.Epsilon(5), web=1, workers=1) as running:
        headers = {"Authorization": f"Bearer {running.tokens['alice']}"}
        with httpx.Client(base_url=running.url, headers=headers, timeout=60) as http:
            key = http.post(PLACE, json={"kind": "aim", "parameters": named}).json()["id"]
            deadline = time.monotonic() + 120
            while (told := http.get(f"/v1/jobs/{key}").json())["state"] in ("waiting", "running"):
                assert time.monotonic() < deadline
                time.sleep(0.2)
    assert told["state"] == "done", told["error"]
    assert told["result"]["release"]["title"].startswith("Synthetic data: 20 rows")


def test_what_is_published_has_a_kind() -> None:
    """Every entry of the tuples, once, beside the other kinds of job."""
    names = [kind.name for kind in KINDS]
    assert len(set(names)) == len(names)
    assert names[-len(ALL) :] == [each.__name__ for each in ALL]
