"""`sulq release`: a command for each release and selection; what it prints, writes and refuses."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import sulq
from sulq import release, select
from sulq.cli import app, exit_code
from sulq.errors import SulqError
from sulq.service.jobs.publication import form
from tests.learn.programs import COLUMNS, frame
from tests.release.programs import EACH, WIDE, Program, wide_table

CONFIG = """
[dataset]
data = "people.parquet"
budget = { epsilon = 900 }
unit = { column = "pid" }
[dataset.columns]
age = { int = [0, 120] }
income = { real = [0, 1000] }
city = { category = ["Haifa", "Lod", "Yafo"] }
smoker = { bool = true }
active = { bool = true }
ill = { bool = true }
cost = { real = [0, 500] }
pid = { int = [0, 10000] }
"""
QUICK = [one for one in EACH if one.name != "aim"]  # which loads a library for seconds: conformance has it


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Made-up people with their declarations beside them."""
    table = frame()
    pq.write_table(table.append_column("pid", [list(range(table.num_rows))]), tmp_path / "people.parquet")
    (tmp_path / "people.sulq.toml").write_text(CONFIG, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def spent(folder: Path) -> object:
    """What the ledger beside the data says."""
    with sulq.connect(
        folder / "people.parquet", columns=COLUMNS | {"pid": sulq.Int(0, 10_000)}, budget=sulq.Epsilon(900),
        unit=sulq.Unit("pid"),
    ) as db:  # fmt: skip
        return db.spent


def words(program: Program, *more: str) -> list[str]:
    """The command of a program."""
    named = [part for name, text in program.typed().items() for part in (f"--{name.replace('_', '-')}", text)]
    return ["release", program.name, "people.parquet", *named, "--epsilon", "2", *more]


@pytest.mark.parametrize("program", QUICK, ids=lambda program: program.name)
def test_every_release_is_a_command(folder: Path, program: Program) -> None:
    """It prints what it published and what was spent, and writes what is loaded at the price of the ledger."""
    out = "made/it" if form(program.release).kind == "release" else "it.json"
    found = CliRunner().invoke(app, words(program, "--out", out), env={"COLUMNS": "200"})
    assert found.exit_code == 0, found.output + repr(found.exception)
    assert "spent epsilon" in found.output
    assert "pid" in found.output.partition("protects")[2].splitlines()[0]
    assert f"It is in {out}" in found.output
    if form(program.release).kind == "release":
        made = release.load(out)
        assert made.title() in found.output
        assert made.paid.spent == spent(folder)
        assert all(name in found.output for name in made.tables())
    else:
        chosen = select.load(out)
        assert str(chosen.candidate) in found.output
        assert chosen.spent == spent(folder)


def test_files_are_written_as_wished(folder: Path) -> None:
    """`--format csv` writes CSV, which is loaded like Parquet."""
    by_name = {one.name: one for one in EACH}
    found = CliRunner().invoke(app, words(by_name["contingency"], "--out", "csv", "--format", "csv"))
    assert found.exit_code == 0, found.output + repr(found.exception)
    assert list((folder / "csv").glob("*.csv"))
    assert not list((folder / "csv").glob("*.parquet"))
    assert release.load("csv").marginal(["city"]).values.shape == (3,)


def test_a_table_of_forty_attributes_is_a_command(folder: Path) -> None:
    """Pairs among more attributes than one partition has keys; what is written is loaded."""
    pq.write_table(wide_table(), folder / "wide.parquet")
    lines = [*CONFIG.replace("people.", "wide.").partition("[dataset.columns]")[0].splitlines(), "[dataset.columns]"]
    lines += [f"{name} = {{ bool = true }}" for name in WIDE] + ["pid = { int = [0, 10000] }"]
    (folder / "wide.sulq.toml").write_text("\n".join(lines), encoding="utf-8")
    command = ["release", "contingency", "wide.parquet", "--attributes", ",".join(WIDE), "--marginals", "x0,x39;x1,x2"]
    found = CliRunner().invoke(app, [*command, "--weights", "worst", "--epsilon", "2", "--out", "wide"])
    assert found.exit_code == 0, found.output + repr(found.exception)
    made = release.load("wide")
    assert len(made.asked) == 2
    assert made.marginal([WIDE[39], WIDE[0]]).values.shape == (2, 2)


def test_rows_are_named_by_options(folder: Path) -> None:
    """A contingency table of a derived table, by a SELECT."""
    sql = "SELECT city, age > 40 AS old FROM people WHERE ill"
    asked = ["release", "contingency", "people.parquet", "--attributes", "city,old", "--marginals", "city,old"]
    found = CliRunner().invoke(app, [*asked, "--view", sql, "--epsilon", "1", "--out", "made"], env={"COLUMNS": "200"})
    assert found.exit_code == 0, found.output + repr(found.exception)
    assert release.load(folder / "made").names == ("city", "old")


def test_the_help_is_the_signature() -> None:
    """The releases are listed with what they do; each has its parameters with defaults and help."""
    shown = CliRunner().invoke(app, ["release", "--help"], env={"COLUMNS": "200"}).output
    assert all(program.name in shown for program in EACH)
    one = CliRunner().invoke(app, ["release", "contingency", "--help"], env={"COLUMNS": "200", "TERM": "dumb"}).output
    assert "How many intervals a number is divided into. (default 8)" in " ".join(one.split())
    assert "A,B;B,C" in one
    assert "--db" not in one
    assert "--progress" not in one


GOOD = ("contingency", "people.parquet", "--attributes", "city,smoker", "--ways", "1")
PAID = (*GOOD, "--epsilon", "1")


@pytest.mark.parametrize(
    ("typed", "code", "exits"),
    [
        (("nobody", "people.parquet"), "bad-question", 2),
        (PAID, "bad-question", 2),
        ((*GOOD, "--out", "o"), "spend-missing", 2),
        ((*PAID, "--out", "people.parquet"), "missing-file", 2),
        ((*PAID, "--out", "people.parquet/in/it"), "missing-file", 2),
        ((*PAID, "--out", "."), "folder-in-use", 2),
        ((*PAID, "--out", "o", "--bins", "many"), "bad-parameter", 2),
        ((*PAID, "--out", "o", "--method", "other"), "bad-parameter", 2),
        ((*PAID, "--out", "o", "--marginals", "city,absent"), "bad-parameter", 2),
        (("contingency", "people.parquet", "--attributes", "absent", "--epsilon", "1", "--out", "o"),
         "unknown-column", 2),
        ((*GOOD, "--out", "o", "--epsilon", "950"), "budget-exceeded", 3),
        (("price", "people.parquet", "--bids", "cost", "--epsilon", "1"), "bad-parameter", 2),
        (("price", "people.parquet", "--bids", "cost", "--grid", "1,x", "--epsilon", "1"), "bad-parameter", 2),
        (("price", "people.parquet", "--bids", "cost", "--grid", "1,2", "--epsilon", "1", "--out", "absent/p.json"),
         "missing-file", 2),
        (("price", "people.parquet", "--bids", "cost", "--grid", "1,2", "--epsilon", "1", "--out", "."),
         "missing-file", 2),
    ],
)  # fmt: skip
def test_what_is_wrong_has_its_code_and_costs_nothing(
    folder: Path, typed: tuple[str, ...], code: str, exits: int
) -> None:
    """A code, a remedy, an exit code; the ledger has no entry of it, and nothing is written."""
    with pytest.raises(SulqError) as refused:
        app(["release", *typed], standalone_mode=False)
    assert (refused.value.code, exit_code(refused.value)) == (code, exits)
    assert refused.value.remedy
    assert spent(folder).amount == 0
    assert not (folder / "o").exists()
