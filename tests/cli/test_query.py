"""Answers of many groups in a terminal."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from sulq.cli import app, query

CONFIG = """[dataset]
data = "people.parquet"
budget = { epsilon = 9 }
synthetic = true
[dataset.columns]
k = { category_file = "codes.txt", missing = false }
"""


def test_a_long_table_is_cut_and_says_how_to_have_all_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same answer as CSV is whole, and free. Control: a table that is not longer says nothing of that."""
    pq.write_table(pa.table({"k": ["c1", "c2"]}), tmp_path / "people.parquet")
    (tmp_path / "codes.txt").write_text("".join(f"c{i}\n" for i in range(30)), encoding="utf-8")
    (tmp_path / "people.sulq.toml").write_text(CONFIG, encoding="utf-8")
    words = ["query", str(tmp_path / "people.parquet"), "SELECT k, COUNT(*) AS n FROM people GROUP BY k", "--epsilon=1"]
    for most, cut in ((20, True), (30, False)):
        monkeypatch.setattr(query, "MAX_ROWS_PRINTED", most)
        found = CliRunner().invoke(app, words)
        assert found.exit_code == 0, found.output
        assert ("and 10 more rows" in found.output) is cut
        assert found.output.count(" +- ") == most
    whole = CliRunner().invoke(app, [*words, "--format=csv"])
    assert len(whole.output.splitlines()) == 31
    found = CliRunner().invoke(app, [*words, "--format=json"])
    assert '"reused": true' in found.output


def test_planned_answers_are_given_whole_in_every_form(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cut table says how to have all of it: asked again so, the same answers are free. Control: the debits."""
    pq.write_table(pa.table({"k": ["c1", "c2"]}), tmp_path / "people.parquet")
    (tmp_path / "codes.txt").write_text("".join(f"c{i}\n" for i in range(30)), encoding="utf-8")
    (tmp_path / "people.sulq.toml").write_text(CONFIG, encoding="utf-8")
    monkeypatch.setattr(query, "MAX_ROWS_PRINTED", 20)
    asked = ["SELECT k, COUNT(*) AS n FROM people GROUP BY k", "SELECT COUNT(*) AS m FROM people"]
    words = ["plan", str(tmp_path / "people.parquet"), *asked, "--epsilon=1", "--ask", "--together"]
    cut, table, rows = (CliRunner().invoke(app, [*words, *more]) for more in ([], ["--format=csv"], ["--format=json"]))
    assert "and 10 more rows" in cut.output
    assert "--format csv" in " ".join(cut.output.split())
    first, second = table.output.replace("\r", "").split("\n\n")
    assert (len(first.splitlines()), len(second.splitlines())) == (31, 2)
    found = [json.loads(line) for line in rows.output.splitlines()]
    assert [(len(each["rows"]), each["reused"]) for each in found] == [(30, True), (1, True)]
    assert "8 " in CliRunner().invoke(app, ["budget", words[1]]).output.partition("left")[2].partition("\n")[0]
