"""`sulq describe`: the same in a terminal, as CSV and as JSON; a plan spends nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from sulq.cli import app

CONFIG = """[dataset]
data = "people.parquet"
budget = { epsilon = 90 }
[dataset.columns]
age = { int = [0, 100] }
city = { category = ["a", "b"] }
"""


@pytest.fixture
def data(tmp_path: Path) -> str:
    pq.write_table(pa.table({"age": list(range(100)) * 5, "city": ["a", "b"] * 250}), tmp_path / "people.parquet")
    (tmp_path / "people.sulq.toml").write_text(CONFIG, encoding="utf-8")
    return str(tmp_path / "people.parquet")


def asked(*words: str) -> str:
    found = CliRunner().invoke(app, list(words))
    assert found.exit_code == 0, found.output
    return found.stdout


def test_columns_are_described_in_every_form(data: str) -> None:
    """A table in words, rows for programs; the second is given again, free, and a plan costs nothing."""
    assert "one debit" in asked("describe", data, "--epsilon=20", "--plan")
    text = asked("describe", data, "--epsilon=20")
    assert "median" in text
    assert "spent epsilon 20" in text
    lines = asked("describe", data, "--epsilon=20", "--format=csv").splitlines()
    assert [line.partition(",")[0] for line in lines] == ["column", "age", "city"]
    found = json.loads(asked("describe", data, "age", "--epsilon=20", "--format=json", "--no-charts"))
    assert found["rows"][0][0] == "age"
    assert "larger population" in asked("describe", data, "--epsilon=20", "--sampling")


def test_a_query_says_when_its_intervals_count_sampling(data: str) -> None:
    """`--sampling` widens the interval of the same answer and says so."""
    words = ["query", data, "SELECT COUNT(*) AS n FROM people", "--epsilon=1"]
    assert "larger population" not in asked(*words)
    assert "larger population" in " ".join(asked(*words, "--sampling").split())
