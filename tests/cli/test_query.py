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
        assert ("... 10 more rows" in found.output) is cut
        assert found.output.count(" +- ") == most
    whole = CliRunner().invoke(app, [*words, "--format=csv"])
    assert len(whole.stdout.splitlines()) == 31
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
    assert "... 10 more rows" in cut.output
    assert "--format csv" in " ".join(cut.output.split())
    first, second = table.stdout.replace("\r", "").split("\n\n")
    assert (len(first.splitlines()), len(second.splitlines())) == (31, 2)
    found = [json.loads(line) for line in rows.output.splitlines()]
    assert [(len(each["rows"]), each["reused"]) for each in found] == [(30, True), (1, True)]
    assert "8 " in CliRunner().invoke(app, ["budget", words[1]]).output.partition("left")[2].partition("\n")[0]


def test_what_is_noted_of_an_answer_stands_beside_its_csv(tmp_path: Path) -> None:
    """A sum whose values were clipped says so on stderr; the rows stay alone. Control: no bounds, no word."""
    pq.write_table(pa.table({"pay": [float(i % 50) for i in range(2_000)]}), tmp_path / "people.parquet")
    told = CONFIG.replace("epsilon = 9 ", "epsilon = 900 ").partition("k =")[0] + "pay = { real = [0, 100000] }\n"
    (tmp_path / "people.sulq.toml").write_text(told, encoding="utf-8")
    words = ["query", str(tmp_path / "people.parquet"), "SELECT SUM(pay) AS s FROM people", "--format=csv"]
    clipped = CliRunner().invoke(app, [*words, "--bounds=auto", "--epsilon=100"])
    plain = CliRunner().invoke(app, [*words, "--epsilon=100"])
    assert clipped.exit_code == plain.exit_code == 0
    assert len(clipped.stdout.splitlines()) == len(plain.stdout.splitlines()) == 2
    assert "clip" in clipped.stderr
    assert "clip" not in plain.stderr


def test_a_weight_that_is_no_number_is_a_fault_of_the_question(tmp_path: Path) -> None:
    """What is told to do next is not about losses."""
    pq.write_table(pa.table({"k": ["c1"]}), tmp_path / "people.parquet")
    (tmp_path / "codes.txt").write_text("c1\n", encoding="utf-8")
    (tmp_path / "people.sulq.toml").write_text(CONFIG, encoding="utf-8")
    words = ["plan", str(tmp_path / "people.parquet"), "SELECT COUNT(*) FROM people", "--epsilon=1"]
    found = CliRunner().invoke(app, [*words, "--weights=1,x"])
    assert found.exit_code
    assert "bad-question" in f"{found.exception} {found.output}"
