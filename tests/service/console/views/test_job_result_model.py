"""Learning in the console: from the form to the model on the page and in a file, for every learner."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from sulq import learn
from sulq.learn.base import Learner
from sulq.service.console.views.job_result import JobResult
from sulq.service.jobs import kinds
from sulq.service.jobs.kinds import KINDS, learner_kind
from tests.learn.averages import Averages, Majority
from tests.learn.programs import people, program
from tests.service.console.visiting import ORIGIN, Page, Visitor, shown
from tests.service.office import Office

TRIED = (Averages, Majority)
PLACE = "/datasets/survey/learn"


@pytest.fixture(autouse=True)
def _joined(monkeypatch: pytest.MonkeyPatch) -> None:
    """The learners of this test beside those that ship."""
    monkeypatch.setattr(kinds, "KINDS", (*KINDS, *map(learner_kind, TRIED)))
    monkeypatch.setattr(learn, "LEARNERS", (*learn.LEARNERS, *TRIED))


@pytest.fixture
def at(tmp_path: Path) -> Iterator[Visitor]:
    with Visitor(Office(tmp_path, survey=people())) as opened:
        yield opened.sign_in("analyst")


def send(at: Visitor, learner: str, pairs: list[tuple[str, str]]) -> httpx.Response:
    """Send a form whose fields may come more than once."""
    content = httpx.QueryParams([("form", at.word), *pairs])
    headers = ORIGIN | {"Content-Type": "application/x-www-form-urlencoded"}
    return at.request("POST", f"{PLACE}/{learner}", content=str(content), headers=headers)


def watched(at: Visitor, address: str) -> Page:
    """The page of a job when it is over."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        piece = at.get(address, headers={"HX-Request": "true"})
        if "every 1s" not in piece.text:
            return shown(at.get(address))
        time.sleep(0.05)
    raise AssertionError("the job does not end")


def fields(page: Page) -> list[tuple[str, str]]:
    """What a form holds when nothing was touched; no column is ticked."""
    texts = [
        (str(given["name"]), str(given.get("value") or ""))
        for tag, given in page.tags
        if tag == "input" and given.get("type") == "text"
    ]
    return [pair for pair in texts if pair[0].startswith("p-")]


@pytest.mark.parametrize("learner", [*learn.LEARNERS, *TRIED], ids=lambda learner: learner.__name__)
def test_every_learner_has_its_page_and_its_model(at: Visitor, learner: type[Learner]) -> None:
    """The form is sent with columns ticked; the job ends; the model is shown, and loaded from its file."""
    name = learner.__name__
    asked = program(learner)
    assert name in shown(at.get(PLACE)).words
    form = shown(at.get(f"{PLACE}/{name}"))
    assert "ε 900 left of ε 900" in form.words
    ticked = [("x", column) for column in asked.x] + ([("y", asked.y)] if asked.y else [])
    begun = send(at, name, [*fields(form), *ticked, ("amount", "2")])
    assert begun.status_code == 303, shown(begun).words
    page = watched(at, begun.headers["location"])
    assert "Done" in page.words, page.words
    assert "Spent ε" in page.words
    assert "Protects any one row (add remove)" in page.words
    file = at.get(begun.headers["location"] + "/model")
    assert file.headers["content-disposition"] == f'attachment; filename="{name.lower()}.json"'
    model = learn.load(file.json())
    assert type(model) is learner
    assert 0 < model.spent_.exact <= 2
    assert name in shown(at.get(PLACE)).words


def test_a_form_that_is_wrong_comes_back_as_it_was(at: Visitor) -> None:
    """What was ticked and typed is still there, beside what is wrong; nothing was spent."""
    reply = send(at, "Averages", [("x", "age"), ("p-rounds", "many"), ("p-scale", "unit"), ("amount", "0.7")])
    page = shown(reply)
    assert reply.status_code == 400
    assert "Rounds is a whole number." in page.words
    assert "Nothing was spent." in page.words
    given = {(str(tag.get("name")), str(tag.get("value"))) for _, tag in page.tags}
    assert {("p-rounds", "many"), ("amount", "0.7")} <= given
    boxes = [tag for name, tag in page.tags if name == "input" and tag.get("name") == "x" and "checked" in tag]
    assert [tag["value"] for tag in boxes] == ["age"]
    assert send(at, "Averages", [("x", "age"), ("amount", "-1")]).status_code == 400
    assert send(at, "Majority", [("x", "age"), ("amount", "1")]).status_code == 400
    assert at.office.databases["survey"].spent.amount == 0


def test_a_refusal_of_the_learner_is_on_the_jobs_page(at: Visitor) -> None:
    """Too high a price is said where the job is, and nothing was spent."""
    begun = send(at, "Averages", [("x", "age"), ("amount", "950")])
    page = watched(at, begun.headers["location"])
    assert "There is not enough budget left for this" in page.words
    assert "Nothing was spent." in page.words
    assert at.get(begun.headers["location"] + "/model").status_code == 404


def test_what_is_not_there_is_not_found(at: Visitor) -> None:
    """A learner nobody knows, a job kind that is none, a model of a job that is not one's own."""
    for path in (f"{PLACE}/Nobody", f"{PLACE}/queries", "/datasets/survey/jobs/unknown/model"):
        assert at.get(path).status_code == 404
    at.sign_in("auditor")
    assert at.get(PLACE).status_code == 404
    assert at.get(f"{PLACE}/Averages").status_code == 404


def test_jobs_and_learners_have_their_own_lists(at: Visitor) -> None:
    """The page of jobs offers queries and leads to the learners; both list one's own."""
    begun = send(at, "Averages", [("x", "age"), ("amount", "1")])
    watched(at, begun.headers["location"])
    page = shown(at.get("/datasets/survey/jobs"))
    links = {str(given.get("href")) for tag, given in page.tags if tag == "a"}
    assert PLACE in links
    assert not any("/jobs/new/Averages" in link for link in links)
    assert "The mean of every column" in page.words


def test_a_model_is_drawn_where_it_helps() -> None:
    """Points for the centres of clusters, bars for a list, a table alone for the rest; names stay texts."""
    hostile = "<script>alert(1)</script>"
    result = {
        "model": {"learner": "KMeans", "spent": {"epsilon": 1}, "guarantee": {"kind": "dp", "unit": {"kind": "x"}}},
        "text": "",
        "tables": [
            {"title": "cluster centers", "columns": ["", hostile, "b"], "rows": [["1", 0.5, 2], ["2", 3.0, None]]},
            {"title": "sizes", "columns": ["", "sizes"], "rows": [["1", 1.0], [hostile, 7.0]]},
            {"title": "wide", "columns": ["", "a", "b"], "rows": [["1", True, "x"]]},
            {"title": "odd", "columns": [], "rows": []},
        ],
    }
    found = JobResult.of(result)
    assert found is not None
    centres, sizes, wide, odd = found.tables
    assert centres.drawn.count("<circle") == 2, "once for a desk and once for a phone"
    assert sizes.drawn.count('class="bar"') == 4
    assert "confidence" not in sizes.drawn
    assert (wide.drawn, odd.drawn, odd.cells) == ("", "", ())
    assert wide.cells == (("1", "true", "x"),)
    assert "<script>" not in centres.drawn + sizes.drawn
    assert found.unit is None
    assert JobResult.of({"answers": []}) is None
