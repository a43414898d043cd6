"""`sulq learn`: a command for each learner, from its signature; what it prints, writes and refuses."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import typer
from typer.testing import CliRunner

import sulq
from sulq import learn as learning
from sulq.cli import app as sulq_app
from sulq.cli import exit_code
from sulq.cli.learn import command
from sulq.cli.signature import group
from sulq.errors import SulqError
from sulq.learn.base import Learner
from tests.learn.averages import Averages, Majority
from tests.learn.programs import COLUMNS, frame, program

CONFIG = """
[dataset]
data = "people.parquet"
budget = { epsilon = 900 }
[dataset.columns]
age = { int = [0, 120] }
income = { real = [0, 1000] }
city = { category = ["Haifa", "Lod", "Yafo"] }
smoker = { bool = true }
active = { bool = true }
ill = { bool = true }
cost = { real = [0, 500] }
"""
TRIED = (Averages, Majority)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Made-up people with their declarations beside them."""
    pq.write_table(frame(), tmp_path / "people.parquet")
    (tmp_path / "people.sulq.toml").write_text(CONFIG, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SULQ_TOKEN", raising=False)
    monkeypatch.setattr(learning, "LEARNERS", (*learning.LEARNERS, *TRIED))
    return tmp_path


@pytest.fixture
def app() -> typer.Typer:
    """The group of commands, with the learners of this test beside those that ship."""
    every = (*learning.LEARNERS, *(one for one in TRIED if one not in learning.LEARNERS))
    return group("learn", "learner", "Learn.", {learner.__name__: command(learner) for learner in every})


@pytest.mark.parametrize("learner", [*learning.LEARNERS, *TRIED], ids=lambda learner: learner.__name__)
def test_every_learner_is_a_command(folder: Path, app: typer.Typer, learner: type[Learner]) -> None:
    """It prints the model and what was spent, and writes a file that is loaded and has the price of the ledger."""
    asked = program(learner)
    words = [learner.__name__.lower(), "people.parquet", "--x", ",".join(asked.x), "--epsilon", "2", "--out", "m.json"]
    found = CliRunner().invoke(app, [*words, *(["--y", asked.y] if asked.y else [])], env={"COLUMNS": "200"})
    assert found.exit_code == 0, found.output + repr(found.exception)
    assert "spent epsilon" in found.output
    assert "protects one row, add_remove" in found.output
    model = learning.load("m.json")
    assert type(model) is learner
    with sulq.connect(folder / "people.parquet", columns=COLUMNS, budget=sulq.Epsilon(900)) as db:
        assert db.spent == model.spent_


@pytest.mark.usefixtures("folder")
def test_bounds_are_searched_by_an_option(app: typer.Typer) -> None:
    """`--bounds auto`: what was found is printed, and stands in the model."""
    words = ["kmeans", "people.parquet", "--x", "age,income", "--epsilon", "2", "--bounds", "auto", "--out", "m.json"]
    found = CliRunner().invoke(app, words, env={"COLUMNS": "200"})
    assert found.exit_code == 0, found.output + repr(found.exception)
    assert "income is clipped to [" in found.output
    assert learning.load("m.json").bounds_.keys() == {"age", "income"}


@pytest.mark.usefixtures("folder")
def test_rows_are_named_by_options(app: typer.Typer) -> None:
    """`--view` for a derived table, `--table` for one of several; both together, or an unknown one, are refused."""
    words = ["kmeans", "people.parquet", "--epsilon", "2", "--x", "age,double"]
    sql = "SELECT age, cost * 2 AS double FROM people WHERE ill"
    found = CliRunner().invoke(app, [*words, "--view", sql, "--out", "m.json"], env={"COLUMNS": "200"})
    assert found.exit_code == 0, found.output + repr(found.exception)
    assert learning.load("m.json").feature_names_in_ == ("age", "double")
    words[-1] = "age,cost"
    assert CliRunner().invoke(app, [*words, "--table", "people"]).exit_code == 0
    both = ["--table", "people", "--view", sql]
    for more, code in ((["--table", "visits"], "unknown-table"), (both, "bad-question")):
        refused = CliRunner().invoke(app, [*words, *more]).exception
        assert isinstance(refused, SulqError)
        assert refused.code == code


def test_the_help_is_the_signature(app: typer.Typer) -> None:
    """The learners are listed with what they do; each has its parameters with defaults and help."""
    shown = CliRunner().invoke(app, ["--help"], env={"COLUMNS": "200"}).output
    assert "The mean of every column, asked in rounds." in shown
    assert all(learner.__name__ in shown for learner in learning.LEARNERS)
    one = CliRunner().invoke(app, ["averages", "--help"], env={"COLUMNS": "200", "TERM": "dumb"}).output
    assert "How often it is asked, at a part of the spend each. (default 3)" in " ".join(one.split())
    assert "own|unit" in one
    assert "--y" not in one
    assert "--start" not in one, "an array is set from Python"
    assert "--y" in CliRunner().invoke(app, ["majority", "--help"], env={"COLUMNS": "200"}).output


GOOD = ("averages", "people.parquet", "--x", "age,income", "--epsilon", "1")


@pytest.mark.parametrize(
    ("words", "code", "exits"),
    [
        (("nobody", "people.parquet"), "bad-question", 2),
        (("averages", "people.parquet", "--epsilon", "1"), "bad-question", 2),
        (("majority", "people.parquet", "--x", "age", "--epsilon", "1"), "bad-question", 2),
        (("averages", "people.parquet", "--x", "age"), "spend-missing", 2),
        (("averages", "people.parquet", "--x", "absent", "--epsilon", "1"), "unknown-column", 2),
        (("averages", "absent.parquet", "--x", "age", "--epsilon", "1"), "missing-file", 2),
        ((*GOOD, "--rounds", "many"), "bad-parameter", 2),
        ((*GOOD, "--rounds", "0"), "bad-parameter", 2),
        ((*GOOD, "--scale", "other"), "bad-parameter", 2),
        ((*GOOD, "--rho", "1"), "bad-question", 2),
        ((*GOOD, "--out", "absent/m.json"), "missing-file", 2),
        ((*GOOD[:-1], "much"), "bad-loss", 2),
        ((*GOOD[:-1], "950"), "budget-exceeded", 3),
        (("averages", "http://127.0.0.1:1/people", "--x", "age", "--epsilon", "1"), "unauthorized", 3),
    ],
)
def test_what_is_wrong_has_its_code_and_costs_nothing(
    folder: Path, app: typer.Typer, words: tuple[str, ...], code: str, exits: int
) -> None:
    """A code, a remedy, an exit code; the ledger has no entry of it."""
    with pytest.raises(SulqError) as refused:
        app(list(words), standalone_mode=False)
    assert (refused.value.code, exit_code(refused.value)) == (code, exits)
    assert refused.value.remedy
    with sulq.connect(folder / "people.parquet", columns=COLUMNS, budget=sulq.Epsilon(900)) as db:
        assert db.spent.amount == 0


def test_the_real_command_lists_its_learners() -> None:
    """`sulq learn --help` in a process of its own; a learner nobody knows is refused, and those there are named."""
    environment = os.environ | {"NO_COLOR": "1", "COLUMNS": "200"}
    start = [sys.executable, "-c", "from sulq.cli import main; main()", "learn"]
    shown = subprocess.run([*start, "--help"], capture_output=True, text=True, env=environment, check=False)
    assert shown.returncode == 0
    assert all(learner.__name__ in shown.stdout for learner in learning.LEARNERS if learner not in TRIED)
    wrong = subprocess.run([*start, "nobody"], capture_output=True, text=True, env=environment, check=False)
    assert wrong.returncode == 2
    assert "bad-question" in wrong.stderr
    assert "Traceback" not in wrong.stderr


@pytest.mark.usefixtures("folder")
def test_a_parameter_may_be_spelled_as_in_python() -> None:
    """`--max_length` is `--max-length`; both reach the parameter, here with a word that it does not take."""
    for option in ("--max_length", "--max-length"):
        words = ["decisionlist", "people.parquet", "--x", "smoker,active", "--y", "ill", "--epsilon", "1"]
        with pytest.raises(SulqError) as refused:
            sulq_app(["learn", *words, option, "many"], standalone_mode=False)
        assert refused.value.code == "bad-parameter"
