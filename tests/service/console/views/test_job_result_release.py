"""Releasing in the console: from the form to charts, tables and files, for every release."""

from __future__ import annotations

import io
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from sulq import release, select
from sulq.service.console.api import Refusal
from sulq.service.console.forms import FormField, ReleaseForm
from sulq.service.console.guard import Fields
from sulq.service.console.views.job_result import JobResult
from sulq.service.jobs import manager as jobs
from sulq.service.jobs.publication import form
from tests.release.programs import EACH, PROGRAMS, WIDE, Program, people, wide_people
from tests.service.console.views.test_job_result_model import watched
from tests.service.console.visiting import ORIGIN, Visitor, shown
from tests.service.office import Office

PLACE = "/datasets/survey/release"


@pytest.fixture
def at(tmp_path: Path) -> Iterator[Visitor]:
    with Visitor(Office(tmp_path, survey=people())) as opened:
        yield opened.sign_in("analyst")


def pairs(program: Program) -> list[tuple[str, str]]:
    """What somebody ticks and types."""
    found: list[tuple[str, str]] = []
    typed = program.typed()
    for field in form(program.release).fields:
        given = program.named.get(field.name)
        if field.kind == "column" and field.depth == 1 and isinstance(given, list):
            found += [(f"p-{field.name}", name) for name in given]
        elif given is not None:
            found.append((f"p-{field.name}", typed[field.name]))
    return found


def send(at: Visitor, name: str, given: list[tuple[str, str]]) -> httpx.Response:
    """Send a form whose fields may come more than once."""
    content = httpx.QueryParams([("form", at.word), *given])
    headers = ORIGIN | {"Content-Type": "application/x-www-form-urlencoded"}
    return at.request("POST", f"{PLACE}/{name}", content=str(content), headers=headers)


@pytest.mark.parametrize("program", [one for one in EACH if one.name != "aim"], ids=lambda program: program.name)
def test_every_release_has_its_page_and_its_files(at: Visitor, tmp_path: Path, program: Program) -> None:
    """The form is sent; the job ends; charts and tables are shown, and the files are loaded as what was paid for."""
    name = program.name
    page = shown(at.get(f"{PLACE}/{name}"))
    assert "ε 900 left of ε 900" in page.words
    begun = send(at, name, [*pairs(program), ("amount", "2"), ("written", "csv")])
    assert begun.status_code == 303, shown(begun).words
    page = watched(at, begun.headers["location"])
    assert "Done" in page.words, page.words
    assert "Spent ε" in page.words
    assert "(add remove)" in page.words
    file = at.get(begun.headers["location"] + "/archive")
    assert file.headers["content-disposition"] == f'attachment; filename="{name}.zip"'
    with zipfile.ZipFile(io.BytesIO(file.content)) as archive:
        archive.extractall(tmp_path / "files")
    if form(program.release).kind == "selection":
        assert str(select.load(tmp_path / "files" / "selection.json").candidate) in page.words
    else:
        made = release.load(tmp_path / "files")
        assert made.title() in page.words
        assert [tag for tag, _ in page.tags].count("svg") > 1, "there is a chart beside the gauge"
        assert all(table in page.words.lower() for table in made.tables())
    assert name in shown(at.get(PLACE)).words


def test_a_table_of_forty_attributes_has_its_page(tmp_path: Path) -> None:
    """More attributes than one partition has keys are ticked, and the release is shown."""
    with Visitor(Office(tmp_path, survey=wide_people())) as opened:
        at = opened.sign_in("analyst")
        ticked = [("p-attributes", name) for name in WIDE]
        begun = send(at, "contingency", [*ticked, ("p-ways", "1"), ("p-weights", "worst"), ("amount", "2")])
        assert begun.status_code == 303, shown(begun).words
        page = watched(at, begun.headers["location"])
    assert "Done" in page.words, page.words
    assert "x38, x39" in page.words


def test_the_list_names_every_release(at: Visitor) -> None:
    """Each has a link, and the page of jobs leads to them; none is offered as a plain job."""
    page = shown(at.get(PLACE))
    links = {str(given.get("href")) for tag, given in page.tags if tag == "a"}
    assert {f"{PLACE}/{program.name}" for program in EACH} <= links
    jobs = shown(at.get("/datasets/survey/jobs"))
    links = {str(given.get("href")) for tag, given in jobs.tags if tag == "a"}
    assert PLACE in links
    assert not any("/jobs/new/contingency" in link for link in links)
    assert at.get("/datasets/survey/learn/contingency").status_code == 404


def test_a_form_that_is_wrong_comes_back_as_it_was(at: Visitor) -> None:
    """What was ticked and typed is still there, beside what is wrong; nothing was spent."""
    reply = send(
        at, "contingency", [("p-attributes", "city"), ("p-bins", "many"), ("amount", "0.7"), ("written", "csv")]
    )
    page = shown(reply)
    assert reply.status_code == 400
    assert "Bins is a whole number." in page.words
    assert "Nothing was spent." in page.words
    boxes = [tag for _, tag in page.tags if tag.get("name") == "p-attributes" and "checked" in tag]
    assert [tag["value"] for tag in boxes] == ["city"]
    assert ("p-bins", "many") in {(tag.get("name"), tag.get("value")) for _, tag in page.tags}
    assert send(at, "contingency", [("p-ways", "1"), ("amount", "1")]).status_code == 400
    assert send(at, "price", [("p-bids", "cost"), ("p-grid", ""), ("amount", "1")]).status_code == 400
    assert send(at, "price", [("p-bids", ""), ("p-grid", "1"), ("amount", "1")]).status_code == 400
    assert send(at, "contingency", [("p-attributes", "city"), ("written", "odd"), ("amount", "1")]).status_code == 400
    assert at.office.databases["survey"].spent.amount == 0


def test_what_is_not_there_is_not_found(at: Visitor) -> None:
    """A release nobody knows, a learner, the files of a job that has none; and no page for an auditor."""
    begun = send(at, "contingency", [*pairs(PROGRAMS["contingency"]), ("amount", "950")])
    page = watched(at, begun.headers["location"])
    assert "There is not enough budget left for this" in page.words
    for path in (f"{PLACE}/nobody", f"{PLACE}/KMeans", f"{PLACE}/queries", begun.headers["location"] + "/archive"):
        assert at.get(path).status_code == 404
    at.sign_in("auditor")
    assert at.get(PLACE).status_code == 404
    assert at.get(f"{PLACE}/contingency").status_code == 404


def test_a_release_is_drawn_with_its_error_bars() -> None:
    """Whiskers where there is an interval; names stay texts; what is odd is left out."""
    hostile = "<script>alert(1)</script>"
    result = {
        "release": {"title": hostile, "paid": {"spent": {"epsilon": 1}, "unit": {"kind": "x"}}},
        "tables": [{"title": "t", "columns": ["a", "b"], "rows": [["x", 1.0], ["y", 2.0]], "more": 7}],
        "charts": [
            {"title": hostile, "names": [hostile, "b"], "values": [1.0, "nan"], "error": [0.5, "nan"], "said": "why"},
            {"title": "bare", "names": ["a"], "values": [3], "error": []},
            {"title": "odd", "names": [], "values": [], "error": []},
        ],
        "archive": None,
    }
    found = JobResult.of(result)
    assert found is not None
    drawn, bare = found.pictures
    assert (drawn.said, "between 0.50 and 1.50" in drawn.drawn) == ("why", True)
    assert "between" not in bare.drawn
    assert "<script>" not in drawn.drawn
    assert (found.tables[0].more, found.tables[0].drawn, found.packed, found.unit) == (7, "", False, None)
    assert JobResult.of({"model": {}}) is None
    left_out = ([], ["archive"], ["tables"], ["charts"])
    assert [JobResult.of(result | {"left_out": left}).cut for left in left_out] == [False, False, True, True]


def test_a_result_that_was_let_go_is_told_as_such(at: Visitor, monkeypatch: pytest.MonkeyPatch) -> None:
    """The page says so, with what to do; not that nothing was spent, nor that the curator failed."""
    monkeypatch.setattr(jobs, "MAX_RESULTS_BYTES", 1)
    places = []
    for _ in range(2):
        begun = send(at, "contingency", [*pairs(PROGRAMS["contingency"]), ("amount", "2")])
        places.append(begun.headers["location"])
        assert "Done" in watched(at, places[-1]).words
    deadline = time.monotonic() + 60
    while "This result is no longer here" not in (page := shown(at.get(places[0]))).words:
        assert time.monotonic() < deadline, page.words
        time.sleep(0.05)
    assert "Take a result away when its job is done" in page.words
    assert "Nothing was spent" not in page.words
    assert at.get(places[0] + "/archive").status_code == 404
    assert at.get(places[1] + "/archive").status_code == 200


def test_a_page_asks_by_the_kind_of_each_parameter() -> None:
    """Ticks for columns, a list of one, an area for queries, a line for the rest."""
    told = {"name": "x", "title": "X", "form": form(PROGRAMS["publish"].release).to_json()}
    assert [field.widget for field in ReleaseForm.of(told).fields] == ["area", "choice"]
    told["form"] = form(PROGRAMS["contingency"].release).to_json()
    widgets = {field.name: field.widget for field in ReleaseForm.of(told).fields}
    assert (widgets["attributes"], widgets["marginals"], widgets["bins"]) == ("columns", "text", "text")
    told["form"] = form(PROGRAMS["price"].release).to_json()
    assert [field.widget for field in ReleaseForm.of(told).fields] == ["column", "text"]
    assert ReleaseForm.of({"name": "q", "form": None}) is None


def test_what_must_be_named_is_missed() -> None:
    """Before a job starts, with what to do. Control: named, it is there."""
    field = FormField("columns", "column", None, required=True, depth=1)
    form = ReleaseForm(name="histogram", title="", words="", kind="release", fields=(field,))
    with pytest.raises(Refusal):
        form.parameters(Fields([]))
    assert form.parameters(Fields([("p-columns", "a"), ("p-columns", "b")])) == {"columns": ["a", "b"]}
