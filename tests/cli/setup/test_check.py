"""`sulq check`: counts for the owner alone, and what is changed afterwards is told to analysts."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from sulq.cli import app
from sulq.errors import SetupError

DECLARED = """[dataset]
data = "visits.csv"
unit = {{ column = "pid", rows = {rows} }}
budget = {{ epsilon = 10 }}
columns = {{ city = {city}, visits = [0, {most}] }}
"""
ROWS = "pid,city,visits\na,East,3\na,east,4\nb,WEST,9\nc,North ,1\n,east,2\n"


def run(*words: str) -> str:
    found = CliRunner().invoke(app, list(words), env={"COLUMNS": "200"})
    if found.exit_code and not isinstance(found.exception, SystemExit):
        raise found.exception
    return " ".join(found.output.split())


def declare(folder: Path, *, rows: int = 1, city: str = '["east", "west"]', most: int = 3) -> str:
    if not (folder / "visits.csv").exists():
        (folder / "visits.csv").write_text(ROWS, encoding="utf-8")
    told = DECLARED.format(rows=rows, city=city, most=most)
    (folder / "visits.sulq.toml").write_text(told, encoding="utf-8")
    return str(folder / "visits.csv")


def test_an_owner_is_told_what_a_wrong_declaration_does(tmp_path: Path) -> None:
    """Clamped cells, values in another case, dropped rows, and that it is not to be published; no value, no bound."""
    told = run("check", declare(tmp_path))
    for words in (
        "for their owner alone, not to be published", "visits: 5 rows of 3 persons (pid).",
        "Dropped, as they name nobody: 1 row.", "Dropped, of 1 person with more than the 1 that is kept of each: 1 row",
        "city Category 0 0 3 0 0 0", "visits Int 0 0 0 0 2 0", "city: 2 cells equal to a declared value but for case",
        "city: declared, but never there: 'west'.", "declared after looking",
    ):  # fmt: skip
        assert words in told
    for value in ("North", "WEST", "East", " 9"):
        assert value not in told
    assert {path.name for path in tmp_path.iterdir()} == {"visits.csv", "visits.sulq.toml", "visits.looked"}
    assert (tmp_path / "visits.looked").stat().st_mode & 0o777 == 0o600
    fits = declare(tmp_path, rows=9, city='["East", "east", "WEST", "North "]', most=9)
    assert "declared after" in run("check", fits)  # a row of nobody is dropped still


@pytest.mark.parametrize("again", [False, True])
def test_what_is_changed_after_looking_is_said_for_ever_SR28(tmp_path: Path, *, again: bool) -> None:
    """In facts, answers and the ledger, by name; control: what was declared so before the first look is not."""
    data = declare(tmp_path)
    run("check", data)
    count = ("query", data, "SELECT COUNT(*) FROM visits", "--epsilon", "1")
    if again:
        assert "after looking" not in run(*count)
    declare(tmp_path, most=30)
    assert "declared after looking at the data: column visits" in run(*count)
    declare(tmp_path)
    (tmp_path / "visits.looked").unlink()
    assert "declared after looking at the data: column visits" in run(*count)
    assert "declared after looking at the data: column visits" in run("ledger", "show", str(tmp_path / "visits.ledger"))
    assert "after looking" in run("explain", data, "SELECT COUNT(*) FROM visits", "--epsilon", "1")


def test_without_a_look_nothing_is_said(tmp_path: Path) -> None:
    """A declaration that is changed without one is recorded as changed, and no more; `prepare` points to the check."""
    data = declare(tmp_path)
    assert f"sulq check {data}" in run("prepare", data)
    declare(tmp_path, most=30)
    told = run("query", data, "SELECT COUNT(*) FROM visits", "--epsilon", "1")
    assert "after looking" not in told + run("ledger", "show", str(tmp_path / "visits.ledger"))


def test_rows_elsewhere_are_not_checked_from_here() -> None:
    """A curator's rows are its owner's, at its host."""
    with pytest.raises(SetupError, match="where the data is"):
        run("check", "http://127.0.0.1:8765/survey")
