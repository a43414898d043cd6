"""The commands, as a person types them: what they print, what they cost, how they exit."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import sulq
from sulq.cli import _interrupted, app, demo, exit_code
from sulq.cli.demo import COLUMNS, survey
from sulq.cli.query import _plain_text
from sulq.curator.reuse import ReusingOracle
from sulq.errors import AccessDenied, BudgetExceeded, CuratorError, QuestionError, SetupError, SulqError

CONFIG = """
[dataset]
data = "people.parquet"
unit = { column = "respondent", rows = 4 }
budget = { epsilon = 2.0 }
[dataset.columns]
age = { int = [0, 110] }
cost = { real = [0, 20000] }
city = { category = ["Haifa", "Lod"] }
smoker = { bool = true }
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A data file of made-up visits with its declarations beside it."""
    pq.write_table(survey(200, np.random.default_rng(1)), tmp_path / "people.parquet")
    (tmp_path / "people.sulq.toml").write_text(CONFIG, encoding="utf-8")
    return tmp_path


def run(*words: object, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run the real command in a process of its own."""
    environment = os.environ | {"NO_COLOR": "1", "COLUMNS": "200"}
    command = [sys.executable, "-c", "from sulq.cli import main; main()", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, cwd=folder, env=environment, check=False)


def test_version_names_what_it_stands_on(tmp_path: Path) -> None:
    """`sulq --version` shows SQLite, DuckDB, the entropy source and an fsync probe (T49, T66)."""
    found = run("--version", folder=tmp_path)
    assert found.returncode == 0, found.stderr
    for word in ("sulq", "SQLite", "duckdb", "entropy", "os.urandom", "fsync", sulq.__version__):
        assert word in found.stdout


def test_prepare_then_budget_then_ledger(folder: Path) -> None:
    """Preparing spends nothing; the budget and the ledger commands read no data."""
    before = run("budget", "people.parquet", folder=folder)
    assert before.returncode == 0
    assert "nothing" in before.stdout
    assert run("prepare", "people.parquet", folder=folder).returncode == 0
    assert (folder / "people.prepared").stat().st_mode & 0o077 == 0
    with sulq.connect(
        folder / "people.parquet",
        columns={"age": (0, 110), "cost": sulq.Real(0, 20_000), "city": ["Haifa", "Lod"], "smoker": sulq.Bool()},
        unit=sulq.Unit("respondent", rows=4),
        budget=sulq.Epsilon(2.0),
    ) as db:
        db.count(spend=sulq.Epsilon(0.5))
    (folder / "people.parquet").unlink()
    after = run("budget", "people.parquet", folder=folder)
    assert "epsilon 1.5" in after.stdout, after.stdout + after.stderr
    shown = run("ledger", "show", "people.ledger", folder=folder)
    assert "epsilon 0.5" in shown.stdout
    checked = run("ledger", "verify", "people.ledger", folder=folder)
    assert checked.returncode == 0
    assert "sound" in checked.stdout


def test_raising_a_budget_is_an_entry_T60(folder: Path) -> None:
    """`--raise-to` adds to the published total and can never lower it."""
    assert run("prepare", "people.parquet", folder=folder).returncode == 0
    raised = run("budget", "people.parquet", "--raise-to", "3", folder=folder)
    assert "epsilon 3" in raised.stdout, raised.stderr
    lowered = run("budget", "people.parquet", "--raise-to", "1", folder=folder)
    assert lowered.returncode == 2
    assert "budget-mismatch" in lowered.stderr
    assert run("ledger", "verify", "people.ledger", folder=folder).returncode == 0


def test_verify_finds_a_flipped_byte_T47(folder: Path) -> None:
    """A ledger that was touched is refused with exit code 2; the control above is sound."""
    run("prepare", "people.parquet", folder=folder)
    path = folder / "people.ledger"
    body = bytearray(path.read_bytes())
    place = body.index(b"genesis")
    body[place] ^= 1
    path.write_bytes(bytes(body))
    found = run("ledger", "verify", "people.ledger", folder=folder)
    assert found.returncode == 2
    assert "ledger-damaged" in found.stderr
    assert "Traceback" not in found.stderr


COUNTS = "SELECT city, COUNT(*) AS n, AVG(cost) AS mean FROM people GROUP BY city"


def test_query_asks_and_says_what_it_cost(folder: Path) -> None:
    """`sulq query` prints cells with error bars; the same again, in another process, is free (SR12, T10)."""
    first = run("query", "people.parquet", COUNTS, "--epsilon", "0.5", folder=folder)
    assert first.returncode == 0, first.stderr
    for word in ("city", "Haifa", "Lod", "NULL", "mean", "spent epsilon 0.5", "left epsilon 1.5", "respondent"):
        assert word in first.stdout
    again = run("query", "people.parquet", COUNTS, "--epsilon", "0.5", "--format", "json", folder=folder)
    found = json.loads(again.stdout)
    assert found["columns"] == ["city", "n", "low_n", "high_n", "mean", "low_mean", "high_mean"]
    assert (found["reused"], found["spent"], found["left"]) == (True, "epsilon 0", "epsilon 1.5")
    low, high = found["rows"][0][2:4]
    assert low < found["rows"][0][1] < high
    table = run("query", "people.parquet", COUNTS, "--epsilon", "0.4", "--format", "csv", folder=folder).stdout
    assert [line.split(",")[0] for line in table.splitlines()] == ["city", "Haifa", "Lod", ""]
    fresh = run("query", "people.parquet", COUNTS, "--epsilon", "0.5", "--fresh", folder=folder)
    assert "left epsilon 1;" in fresh.stdout
    bare = ("people.parquet", "SELECT MEDIAN(cost) AS m FROM people", "--epsilon", "0.1", "--no-interval")
    assert "no interval was bought" in run("query", *bare, folder=folder).stdout
    assert "question 1 of" not in run("explain", *bare, folder=folder).stdout
    priced = run("query", "people.parquet", "SELECT COUNT(*) AS n FROM people", "--within", "n=80", folder=folder)
    assert "+- 80" in priced.stdout, priced.stdout + priced.stderr


def test_ctrl_c_ends_a_command_and_says_what_was_charged(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the words of the KeyboardInterrupt; a command that ends otherwise says nothing more."""
    told = "Interrupted. One question was charged: epsilon 0.1 (receipt 7); the debit stands."

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt(told)

    monkeypatch.setattr(ReusingOracle, "ask", interrupted)
    with pytest.raises(SystemExit) as ended:
        app(["query", str(folder / "people.parquet"), "SELECT COUNT(*) FROM people", "--epsilon", "0.1"])
    assert ended.value.code == 130
    assert _interrupted(ended.value) == told
    with pytest.raises(SystemExit) as other:
        app(["query"])
    assert _interrupted(other.value) == ""


def test_explain_spends_nothing(folder: Path) -> None:
    """`sulq explain`, and EXPLAIN inside a query, tell price, sensitivity and accuracy; the budget stays whole."""
    words = ("price", "sensitivity", "a person has at most 4 rows", "expected accuracy")
    for command, text, *more in (
        ("explain", COUNTS), ("query", f"EXPLAIN {COUNTS}", "--epsilon", "1"), ("explain", COUNTS, "--within", "n=50"),
    ):  # fmt: skip
        found = run(command, "people.parquet", text, *more, folder=folder)
        assert found.returncode == 0, found.stderr
        assert all(word in found.stdout for word in words), found.stdout
    assert "left epsilon 2" in " ".join(run("budget", "people.parquet", folder=folder).stdout.split())


def test_afford_foretells_a_run_and_spends_nothing(folder: Path) -> None:
    """`sulq afford`: so many queries, or so many spends; which fit, and what is left."""
    found = run("afford", "people.parquet", COUNTS, "--epsilon", "0.7", "--times", "3", folder=folder)
    assert found.returncode == 0, found.stderr
    assert found.stdout.startswith("2 of 3 asks fit; nothing is spent yet")
    assert "epsilon 0.6 left after epsilon 0.7: SELECT city" in found.stdout
    alone = run("afford", "people.parquet", "--epsilon", "0.5", "--times", "4", folder=folder).stdout
    assert "4 of 4 asks fit" in alone
    assert "left epsilon 2" in " ".join(run("budget", "people.parquet", folder=folder).stdout.split())
    refused = run("afford", "people.parquet", folder=folder)
    assert refused.returncode == 2
    assert "A forecast is made for a list of asks" in refused.stderr
    law = run("explain", "people.parquet", COUNTS, "--epsilon", "0.5", "--law", "gaussian", folder=folder)
    assert "buys Laplace noise alone" in law.stderr


def test_a_price_is_divided_over_queries(folder: Path) -> None:
    """`sulq plan`: nothing is spent without --ask; weights move the parts; with --ask all are answered."""
    queries = ("people.parquet", "SELECT COUNT(*) AS n FROM people", "SELECT AVG(cost) AS m FROM people")
    told = run("plan", *queries, "--epsilon", "0.6", folder=folder)
    assert told.returncode == 0, told.stderr
    assert told.stdout.startswith("2 queries for epsilon 0.6 together")
    heavy = run("plan", *queries, "--epsilon", "0.6", "--weights", "1000,1", folder=folder).stdout
    first = [text.splitlines()[1].partition(":")[0].removeprefix("epsilon ") for text in (told.stdout, heavy)]
    assert float(first[1]) > float(first[0])
    assert "left epsilon 2" in " ".join(run("budget", "people.parquet", folder=folder).stdout.split())
    found = run("plan", *queries, "--epsilon", "0.6", "--ask", "--apart", folder=folder)
    assert found.returncode == 0, found.stderr
    assert found.stdout.count("spent epsilon") == 2
    assert "left epsilon 1.4" in " ".join(run("budget", "people.parquet", folder=folder).stdout.split())
    median = ("people.parquet", "SELECT MEDIAN(cost) AS m FROM people", "--epsilon", "0.1")
    assert "no interval was bought" in run("plan", *median, "--no-interval", "--ask", folder=folder).stdout
    for wrong in (("--weights", "1"), ("--weights", "1,x"), ()):
        words = ("--epsilon", "0.1", *wrong) if wrong else ()
        assert run("plan", *queries, *words, folder=folder).returncode == 2


def test_bounds_are_searched_by_an_option(folder: Path) -> None:
    """`--bounds auto` of query, explain and afford: two debits within the price, told before and after."""
    mean = ("people.parquet", "SELECT AVG(cost) AS m FROM people", "--epsilon", "0.6", "--bounds", "auto")
    told = run("explain", *mean, folder=folder).stdout
    assert "first, for epsilon 0.2: a search for where values lie" in told
    assert "epsilon 1.4 would be after this" in told
    assert "6 of 6 asks fit" in run("afford", *mean, "--times", "3", folder=folder).stdout
    found = run("query", *mean, folder=folder)
    assert "spent epsilon 0.6, left epsilon 1.4" in found.stdout, found.stdout + found.stderr
    assert "values are clipped: cost to [" in found.stdout
    assert run("query", *mean[:-1], "0,9", folder=folder).returncode == 2


def test_other_is_an_option_of_both_commands_SR14(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`--other LABEL` reaches the query, which says here that no group is hidden (SR14)."""
    monkeypatch.chdir(folder)
    for command in ("query", "explain"):
        with pytest.raises(SulqError) as refused:
            app([command, "people.parquet", COUNTS, "--epsilon", "1", "--other", "x"], standalone_mode=False)
        assert (refused.value.code, "there is no other" in str(refused.value)) == ("bad-question", True)


def test_kept_rows_are_said_and_the_share_of_persons_above_is_bought_once(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In tables, in JSON and in explanations; bought, charged like any question, it stands beside from then on."""
    monkeypatch.chdir(folder)
    query, note = "SELECT COUNT(*) AS n FROM people", "of the kept rows (at most 4 a person)"

    def told(*words: str) -> str:
        found = CliRunner().invoke(app, words)
        assert found.exit_code == 0, found.output
        return " ".join(found.output.split())

    assert note in told("query", "people.parquet", query, "--epsilon", "0.1")
    assert note in told("explain", "people.parquet", query, "--epsilon", "0.1")
    bought = told("heavy", "people.parquet", "--epsilon", "0.5")
    assert all(word in bought for word in ("heavy", "others", "spent epsilon 0.5", "more rows than are kept"))
    assert "reused" in told("heavy", "people.parquet", "--epsilon", "0.5")
    (said,) = json.loads(told("query", "people.parquet", query, "--epsilon", "0.2", "--format", "json"))["notes"]
    assert said.startswith(f"{note}; about ")
    assert said in told("explain", "people.parquet", query, "--epsilon", "0.1")


@pytest.mark.parametrize(
    ("words", "code", "exit_with"),
    [
        (("SELECT cost FROM people", "--epsilon", "1"), "raw-rows", 2),
        (("SELECT COUNT(*) FROM people", "--epsilon", "3"), "budget-exceeded", 3),
        (("SELECT COUNT(*) FROM people",), "spend-missing", 2),
        (("SELECT COUNT(*) FROM people", "--epsilon", "much"), "bad-loss", 2),
        (("SELECT COUNT(*) FROM people", "--rho", "1", "--epsilon", "1"), "bad-question", 2),
        (("SELECT COUNT(*) FROM people", "--delta", "1e-6"), "bad-question", 2),
        (("SELECT COUNT(*) FROM people", "--within", "5", "--within", "7"), "bad-question", 2),
        (("SELECT COUNT(*) FROM people", "--within", "1", "--at-most", "0.1"), "too-costly", 2),
    ],
)
def test_a_refused_query_has_its_exit_code(
    folder: Path, words: tuple[str, ...], code: str, exit_with: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """2 for a question that cannot be answered, 3 for one past the budget."""
    monkeypatch.chdir(folder)
    with pytest.raises(SulqError) as refused:
        app(["query", "people.parquet", *words], standalone_mode=False)
    assert refused.value.code == code
    assert exit_code(refused.value) == exit_with


def test_csv_cells_are_no_formulas_T82() -> None:
    """A label that a spreadsheet would run is written as text; numbers stay numbers (T82)."""
    assert [_plain_text(cell) for cell in ("=1+1", "@x", "-a", "Lod", -3.5, None)] == [
        "'=1+1", "'@x", "'-a", "Lod", -3.5, None,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("budget", "absent.parquet"), "missing-file"),
        (("prepare", "people.csv"), "bad-config"),
        (("ledger", "verify", "absent.ledger"), "missing-file"),
        (("budget", "people.parquet", "--raise-to", "much"), "budget-mismatch"),
    ],
)
def test_bad_input_is_a_message_and_an_exit_code(folder: Path, words: tuple[str, ...], code: str) -> None:
    """Errors go to stderr with their code and a remedy, without a traceback, and exit with 2."""
    run("prepare", "people.parquet", folder=folder)
    found = run(*words, folder=folder)
    assert found.returncode == 2, found.stdout
    assert code in found.stderr
    assert "Traceback" not in found.stderr


def test_exit_codes_say_who_must_act() -> None:
    """2 for the asker or owner, 3 for budget and access, 1 for the curator itself."""
    assert exit_code(QuestionError("bad-question", "x")) == exit_code(SetupError("bad-bounds", "x")) == 2
    assert exit_code(BudgetExceeded("budget-exceeded", "x")) == exit_code(AccessDenied("closed", "x")) == 3
    assert exit_code(CuratorError("engine-failed", "x")) == 1


def test_the_demo_tells_the_whole_story(monkeypatch: pytest.MonkeyPatch) -> None:
    """`sulq demo` opens a survey, answers with error bars and prices, refuses, and says where the ledger lies."""
    monkeypatch.setattr(demo, "PEOPLE", 2_000)
    monkeypatch.setenv("DEMO_ONCE", "1")
    found = CliRunner().invoke(app, ["demo"])
    assert found.exit_code == 0, found.output
    for word in ("+-", "spent epsilon", "left epsilon", "unknown-column", "budget-exceeded", "survey.ledger"):
        assert word in found.output
    ledger = re.search(r"sulq ledger verify (\S+)", found.output.replace("\n", ""))
    assert ledger is not None


def test_the_survey_is_made_of_declared_columns() -> None:
    """The generator's columns are those it declares, and its people have one to four visits."""
    table = survey(500, np.random.default_rng(2))
    assert set(COLUMNS) < set(table.column_names)
    visits = table.group_by("respondent").aggregate([("age", "count")]).column("age_count").to_numpy()
    assert len(visits) == 500
    assert visits.min() >= 1
    assert visits.max() <= 4
