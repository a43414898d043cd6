"""What a report's specification may say; what is wrong with it is refused with its place, before anything is asked."""

from __future__ import annotations

from pathlib import Path

import pytest

from sulq import Epsilon, EpsilonDelta, Rho
from sulq.errors import QuestionError
from sulq.release.report.spec import ReportSpec
from tests.learn.cases import refused

TABLE = {"title": "A", "sql": "SELECT COUNT(*) FROM data"}
TEXT = """
title = "Who lives here"
dataset = "people.parquet"
level = 0.9
spend = { epsilon = 1.5, delta = 1e-6 }

[[table]]
title = "All"
sql = "SELECT COUNT(*) FROM people"
weight = 2

[synthetic]
columns = ["age", "city"]
method = "mwem"
rows = 100
spend = { rho = 0.1 }
"""


def test_a_file_is_read_and_written_down_again(tmp_path: Path) -> None:
    """Every setting arrives, and what is saved reads back as the same."""
    place = tmp_path / "report.toml"
    place.write_text(TEXT, encoding="utf-8")
    read = ReportSpec.read(place)
    assert (read.title, read.dataset, read.level, read.spend) == (
        "Who lives here", "people.parquet", 0.9, EpsilonDelta(1.5, 1e-6),
    )  # fmt: skip
    assert (read.tables[0].weight, read.tables[0].chart) == (2.0, "auto")
    assert read.synthetic is not None
    assert (read.synthetic.method, read.synthetic.rows, read.synthetic.spend) == ("mwem", 100, Rho(0.1))
    assert ReportSpec.read(read.to_json()) == read
    assert ReportSpec.read(str(place)) == read


def test_a_price_may_be_a_loss_of_python() -> None:
    """Exactly, also where it is no decimal."""
    read = ReportSpec.read({"title": "A", "table": [TABLE], "spend": Epsilon(0.1)})
    assert read.spend == Epsilon(0.1)
    assert ReportSpec.read(read.to_json()).spend == Epsilon(0.1)


@pytest.mark.parametrize(
    ("tree", "told"),
    [
        ({"table": [TABLE]}, "needs 'title'"),
        ({"title": "A"}, "1 to 500 tables"),
        ({"title": "A", "table": {}}, "table must be a list"),
        (
            {"title": "A", "table": [TABLE | {"sqll": "x"}]},
            "table 1: table has no setting 'sqll'; the nearest is 'sql'",
        ),
        ({"title": "A", "table": [TABLE, {"title": "B"}]}, "table 2: table needs 'sql'"),
        ({"title": "A", "table": [TABLE | {"chart": "pie"}]}, "chart is one of: auto, bars, none"),
        ({"title": "A", "table": [TABLE | {"weight": 0}]}, "weight must be a number above 0"),
        ({"title": "A", "table": [TABLE | {"weight": True}]}, "weight must be a number above 0"),
        ({"title": "A", "table": [TABLE], "level": 1}, "level must be a number above 0 and below 1"),
        ({"title": "A", "table": [TABLE], "spend": 1}, "spend is { epsilon"),
        ({"title": "A", "table": [TABLE], "spend": {"epsilon": 1, "rho": 1}}, "spend is { epsilon"),
        ({"title": "A", "table": [TABLE], "synthetic": {"columns": []}}, "columns is a list"),
        ({"title": "A", "table": [TABLE], "synthetic": {"columns": ["a"], "spend": {"rho": 1}, "rows": 0}}, "rows"),
        ({"title": "A", "table": [TABLE], "show_budget": "yes"}, "show_budget must be true or false"),
        ({"title": 3, "table": [TABLE]}, "title must be a text"),
        ({"title": "A", "table": ["x"]}, "table 1: a table of settings"),
        (7, "made from a TOML file"),
    ],
)
def test_what_is_wrong_is_refused_with_its_place(tree: object, told: str) -> None:
    """Nothing is asked of a report that is not right."""
    with pytest.raises(QuestionError, match="bad-report") as refusal:
        ReportSpec.read(tree)
    assert told in refusal.value.message


def test_a_file_that_is_no_toml_or_not_there_is_refused(tmp_path: Path) -> None:
    """With the place that TOML's reader names."""
    refused("missing-file", ReportSpec.read, tmp_path / "none.toml")
    (tmp_path / "a.toml").write_text("title = \n", encoding="utf-8")
    with pytest.raises(QuestionError, match=r"a\.toml is not TOML: .*line 1"):
        ReportSpec.read(tmp_path / "a.toml")
    (tmp_path / "a.toml").write_bytes(b'title = "\xff"')
    refused("bad-report", ReportSpec.read, tmp_path / "a.toml")
    (tmp_path / "a.toml").write_bytes(b"#" * (2**20 + 1))
    refused("bad-report", ReportSpec.read, tmp_path / "a.toml")


def test_a_loss_that_is_none_keeps_its_own_refusal() -> None:
    """A price of zero is no price."""
    refused("bad-loss", ReportSpec.read, {"title": "A", "table": [TABLE], "spend": {"epsilon": 0.0}})
