"""Tests of sulq.cli.owner."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from sulq.cli import app

DECLARED = """
[dataset]
data = "people.parquet"
budget = {budget}
columns = {{ x = [0, 9] }}
"""
DIVIDED = "{ epsilon = 1, delta = 1e-6 }\nbasic_share = 0.4\nkey_share = 0.25"


def run(*words: str) -> str:
    found = CliRunner().invoke(app, list(words), env={"COLUMNS": "200"})
    return " ".join((found.output if found.exit_code == 0 else str(found.exception or found.output)).split())


@pytest.mark.parametrize("budget", [DIVIDED, "{ epsilon = 1 }"])
def test_the_report_of_a_budget_says_how_delta_is_divided(tmp_path: Path, budget: str) -> None:
    """As the owner's file sets it, for an EpsilonDelta budget alone; another setting is refused afterwards."""
    data, declared = tmp_path / "people.parquet", tmp_path / "people.sulq.toml"
    pq.write_table(pa.table({"x": [1, 2, 3]}), data)
    declared.write_text(DECLARED.format(budget=budget), encoding="utf-8")
    assert "is prepared" in run("prepare", str(data))
    line = "4.5e-07 for asks summed at one order, 3e-07 for asks added one by one, 2.5e-07 for open keys"
    assert (line in run("budget", str(data))) == (budget == DIVIDED)
    if budget == DIVIDED:
        for name, own in (("basic_share", "0.4"), ("key_share", "0.25")):
            declared.write_text(DECLARED.format(budget=budget.replace(own, "0.3")), encoding="utf-8")
            assert f"begun with {name} {own}, not 0.3" in run("prepare", str(data))


AUTO = """
[dataset]
data = "visits.parquet"
unit = { column = "pid", rows = "auto", most = 64, share = 0.1 }
budget = { epsilon = 50 }
columns = { x = [0, 9] }
"""


def test_a_choice_of_rows_is_bought_once_and_shown(tmp_path: Path) -> None:
    """`prepare` prints the trade-off, `ledger show` the number and its entry; again nothing is bought."""
    data, declared = tmp_path / "visits.parquet", tmp_path / "visits.sulq.toml"
    pq.write_table(pa.table({"pid": [i % 600 for i in range(6000)], "x": [1] * 6000}), data)
    declared.write_text(AUTO, encoding="utf-8")
    for _ in range(2):
        told = run("prepare", str(data))
        assert "rows rows kept noise error of a count of 1/10 of it" in told
        assert "visits is prepared; nothing was spent but for entry 4 of the ledger, once." in told
        assert "spent epsilon 5 " in run("budget", str(data))
    k = int(told.split("at most ")[1].split()[0])
    assert 9 <= k <= 13
    shown = run("ledger", "show", str(tmp_path / "visits.ledger"))
    assert f"at most {k} rows a person, chosen from the histogram of entry 4" in shown
    assert f"(pid, up to {k} rows)" in run("ledger", "verify", str(tmp_path / "visits.ledger"))
    declared.write_text(AUTO.replace("most = 64", "least = 64"), encoding="utf-8")
    assert "does not know 'least'" in run("prepare", str(data))
    declared.write_text(AUTO.replace('"auto", most = 64, share = 0.1', "40"), encoding="utf-8")
    assert "it was opened for" in run("prepare", str(data))
