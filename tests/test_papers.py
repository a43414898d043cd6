"""The map of the papers is whole: every id has its statement, code, a test and a page, and what it names exists."""

from __future__ import annotations

import ast
import re

import pytest

from sulq.language.privacy import Epsilon
from tools import papers
from tools.docstrings import ROOT

# Statements with a number in them: a test records what it measured beside it.
MEASURED = {
    "S0.6", "S0.12", "S0.14", "S0.16", "S0.19", "S0.20", "S0.21", "S0.23", "S0.24", "S0.25", "S0.26", "S0.28", "S0.30",
    "S1.5", "S1.6", "S2.3", "S2.4", "S2.10", "S2.11", "S2.12", "S2.14", "S2.16", "S3.9", "S3.10", "S3.12", "S3.13",
    "S3.17", "S3.18", "S3.19", "S3.20", "S3.21", "S3.23", "S3.25", "S3.26", "S3.27", "S3.28", "S3.29", "S4.3", "S4.7",
    "S4.8", "S4.10", "S4.13", "S4.16", "S4.17", "S4.19", "S4.20", "S4.23", "S4.24", "S4.26", "S4.29",
}  # fmt: skip


def test_the_map_has_every_statement_erratum_and_trap() -> None:
    """118 statements, 50 errata, ten traps, numbered without a gap; errata and figures name known ids."""
    counts = {"sulq": 30, "survey-sulq": 11, "lecture": 16, "survey": 32, "calibrating": 29}
    assert {name: len(paper.statements) for name, paper in papers.papers().items()} == counts
    numbers = [f"S{p}.{i + 1}" for p, count in enumerate(counts.values()) for i in range(count)]
    assert papers.ids() == [
        *numbers,
        *(f"E{i:02}" for i in range(1, 51)),
        *(f"trap {i}" for i in range(1, 11)),
    ]
    known = set(papers.ids())
    assert [e.id for e in papers.errata().values() if not e.of or not set(e.of) <= known] == []
    assert set(papers.figures()) <= known


def test_every_id_has_code_and_a_test() -> None:
    """A docstring of src names it, and a test in its own name; nothing is excused."""
    assert papers.lacking() == []


def test_an_id_without_code_or_test_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Control: take away what names an id, and it is told; a slip of notation has its statement's code, a ‡ has not."""
    lost = {"S4.10", "E19", "E40", "trap 7"}
    for name in ("places", "tested"):
        left = {key: found for key, found in getattr(papers, name)().items() if key not in lost}
        monkeypatch.setattr(papers, name, lambda left=left: left)
    assert sorted(papers.lacking()) == [
        "E19: no code", "E19: no test", "E40: no test", "S4.10: no code", "S4.10: no test", "trap 7: no test",
    ]  # fmt: skip


def test_no_docstring_names_an_id_that_there_is_not() -> None:
    """A number past the end of its paper is a slip."""
    known = set(papers.ids())
    assert sorted({*papers.places(), *papers.tested(), *papers.told()} - known) == []


def test_every_use_is_a_public_name() -> None:
    """What the map tells a reader to use can be imported, or asked of a database."""
    for paper in papers.papers().values():
        for one in paper.statements:
            assert papers.used(one.use) is not None, one


def test_every_page_of_a_paper_names_its_statements() -> None:
    """A paper's page leads to each of its statements ; an expert finds all of them there."""
    for name, paper in papers.papers().items():
        text = (ROOT / "docs" / "papers" / paper.page).read_text(encoding="utf-8")
        missing = [one.id for one in paper.statements if one.id not in papers.named(text)]
        assert missing == [], name


def test_every_link_into_the_map_has_its_place() -> None:
    """Links to papers.md#s0-6 from any page lead to an entry."""
    anchors = set(re.findall(r'<a id="([\w-]+)"></a>', papers.papers_page("")))
    asked = {
        (page.name, target)
        for page in (ROOT / "docs").rglob("*.md")
        for target in re.findall(r"papers\.md#([\w-]+)", page.read_text(encoding="utf-8"))
    }
    assert sorted(pair for pair in asked if pair[1] not in anchors | {"errata", "traps"}) == []
    assert len(asked) > 100


def test_figures_are_recorded_by_tests() -> None:
    """Every theorem of the list has its figure, each figure a test that records one of its id; refresh by --figures."""
    calls = [
        (node.args[0].value, node.args[1])
        for _, _, text in papers.recorders()
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "figure"
        if isinstance(node.args[0], ast.Constant)
    ]
    kept = {(key, entry["text"]) for key, entries in papers.figures().items() for entry in entries}
    assert sorted(set(papers.figures()) - {key for key, _ in calls}) == []
    assert sorted(MEASURED - set(papers.figures())) == []
    said = {(key, text.value) for key, text in calls if isinstance(text, ast.Constant)}
    assert sorted(said - kept) == [], "run python -m tools.papers --figures"


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("test_x_S0_12_E35", ["S0.12", "E35"]),
        ("[S4.21-S4.23]; SR8, T7, X3 and trap 4", ["S4.21", "S4.22", "S4.23", "trap 4"]),
        ("test_trap3_it_stops", ["trap 3"]),
        ("S3.90 is S3.9 with a 0, E123 none, ES0.1 none", ["S3.90", "S3.9"]),
    ],
)
def test_ids_are_found_in_names_and_texts(text: str, ids: list[str]) -> None:
    """Dots or underscores, ranges, traps; other numbers are not ids."""
    assert papers.named(text) == ids


def test_an_id_in_a_docstring_becomes_a_link() -> None:
    """Outside code, and only known ones; the reference of a public name has them."""
    assert papers.linked("as in [S4.10] and `S4.10`, S9.1", "p.md") == "as in [[S4.10](p.md#s4-10)] and `S4.10`, S9.1"
    assert "](../theory/papers.md#s" in (ROOT / "docs/reference/python.md").read_text(encoding="utf-8")
    assert "S3.3" in papers.named(Epsilon.__doc__ or "")
