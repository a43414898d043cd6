"""`sulq init`: declarations from a schema alone, asked for or left open, and accepted once they are filled in."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from sulq.cli import app
from sulq.cli.config import find, read
from sulq.cli.setup import init as module
from sulq.cli.setup.init import column_entry
from sulq.errors import SetupError
from tests.loaded import loaded

TOLD = ("--epsilon", "2", "--rows", "2", "--person", "pid")


def run(*words: str, **more: object) -> str:
    found = CliRunner().invoke(app, list(words), env={"COLUMNS": "200"}, **more)
    if found.exit_code and not isinstance(found.exception, SystemExit):
        raise found.exception
    assert found.exit_code == 0, found.output
    return " ".join(found.output.split())


@pytest.fixture
def survey(tmp_path: Path) -> Path:
    """A CSV file whose cells are marks that must be found nowhere."""
    path = tmp_path / "survey.csv"
    path.write_text("pid,age,city,mystery\nSECRET1,SECRET2,SECRET3,SECRET4\n", encoding="utf-8")
    return path


def test_a_new_file_names_every_column_and_no_value(survey: Path) -> None:
    """Kinds by the header's names, blanks for what its owner knows; a command that reads it points at the first."""
    assert "line 14 is still to be filled in" in run("init", str(survey))
    text = (survey.parent / "survey.sulq.toml").read_text(encoding="utf-8")
    for line in ("age = { int = [?, ?] }", "city = { category = [?] }", "mystery = { ? }", '# column perhaps "pid"'):
        assert line in text
    assert "SECRET" not in text
    with pytest.raises(SetupError) as refused:
        run("query", str(survey), "SELECT COUNT(*) FROM survey", "--epsilon", "1")
    assert "survey.sulq.toml, line 14" in refused.value.message


def test_what_is_said_beforehand_makes_a_whole_file(survey: Path) -> None:
    """Options in place of questions; a query is then answered. A file that is there is written over by word alone."""
    more = ("--column", "age = 0, 120", "--column", "city = category Haifa, Lod", "--column", "mystery = skip")
    assert "still to be" not in run("init", str(survey), *TOLD, *more)
    with pytest.raises(SetupError, match="is there already"):
        run("init", str(survey))
    run("init", str(survey), *TOLD, *more, "--force")
    found = find(str(survey))
    assert list(found.columns) == ["age", "city"]
    assert (found.unit.column, found.unit.rows) == ("pid", 2)
    assert "count" in run("query", str(survey), "SELECT COUNT(*) FROM survey", "--epsilon", "1")


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--person", "nobody"), "no column 'nobody'"),
        (("--rows", "0"), "whole number from 1"),
        (("--epsilon", "much"), "is no number"),
        (("--column", "shoe = int 0, 9"), "no column 'shoe'"),
        (("--column", "age"), "not of the form"),
        (("--column", "age = int 0"), "has two ends"),
        (("--column", "age = number 1, 2"), "'number 1' is no number"),
        (("--column", "mystery = 0, 1"), "no kind of column"),
        (("--public", "regions"), "no table 'regions'"),
        (("--neighbors", "friends"), "is one of"),
    ],
)
def test_what_does_not_fit_the_schema_is_refused(survey: Path, words: tuple[str, ...], why: str) -> None:
    """And nothing is written."""
    with pytest.raises(SetupError) as refused:
        run("init", str(survey), *words)
    assert why in refused.value.message
    assert not (survey.parent / "survey.sulq.toml").exists()


def test_short_words_become_declarations() -> None:
    """A kind and its values, or the values alone where the kind is suggested."""
    assert column_entry("0, 120", "int") == "{ int = [0, 120] }"
    assert column_entry("real -1.5, 2e3", "int") == "{ real = [-1.5, 2e3] }"
    assert column_entry("date 2024-01-01, 2024-12-31", "") == '{ date = ["2024-01-01", "2024-12-31"] }'
    assert column_entry('category a "b", c', "") == '{ category = ["a \\"b\\"", "c"] }'
    assert column_entry("bool", "") == "{ bool = true }"
    assert column_entry("skip", "int") == ""


def test_on_a_terminal_it_asks_for_what_is_not_said(survey: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An answer that cannot be read is asked for again; an empty one stays open in the file."""
    monkeypatch.setattr(module, "_is_terminal", lambda: True)
    answers = ["pid", "none", "2", "", "whole", "0, 120", "category Haifa, Lod", ""]
    run("init", str(survey), input="\n".join(answers) + "\n")
    text = (survey.parent / "survey.sulq.toml").read_text(encoding="utf-8")
    for line in (
        'column = "pid", rows = 2',
        "epsilon = 1 ",
        "age = { int = [0, 120] }",
        '["Haifa", "Lod"]',
        "mystery = { ? }",
    ):
        assert line in text


def test_several_tables_each_have_a_section(tmp_path: Path) -> None:
    """Of a DuckDB file, of a folder, or of files named one by one; keys and public tables as they are said."""
    with duckdb.connect(str(tmp_path / "clinic.duckdb")) as db:
        db.execute("CREATE TABLE people(pid BIGINT, ok BOOLEAN); CREATE TABLE regions(code BIGINT, ok BOOLEAN)")
    words = (*TOLD, "--public", "regions", "--key", "people=pid", "--key", "regions=code", "--column", "code = 0, 9")
    run("init", str(tmp_path / "clinic.duckdb"), *words, "--column", "pid = skip")
    found = find(str(tmp_path / "clinic.duckdb"))
    assert {name: (part.key, part.public) for name, part in found.tables.items()} == {
        "people": ("pid", False), "regions": ("code", True),
    }  # fmt: skip
    assert "count" in run("query", str(tmp_path / "clinic.duckdb"), "SELECT COUNT(*) FROM people", "--epsilon", "1")
    (tmp_path / "both").mkdir()
    for name, column in (("people", "ok"), ("stays", "paid")):
        pq.write_table(pa.table({"pid": [1], column: [True]}), tmp_path / "both" / f"{name}.parquet")
    run("init", str(tmp_path / "both"), *TOLD, "--column", "paid = bool")
    assert list(read(tmp_path / "both.sulq.toml").datasets["both"].tables) == ["people", "stays"]
    assert "count" in run("query", str(tmp_path / "both.sulq.toml"), "SELECT COUNT(*) FROM stays", "--epsilon", "1")


def test_a_folder_of_parts_and_a_file_of_one_table_inside_are_named_as_they_are_read(tmp_path: Path) -> None:
    """The folder itself stands in the file; a table inside a DuckDB file by its name there."""
    (tmp_path / "visits").mkdir()
    for name in ("a", "b"):
        pq.write_table(pa.table({"pid": [1], "ok": [True]}), tmp_path / "visits" / f"{name}.parquet")
    with duckdb.connect(str(tmp_path / "one.duckdb")) as db:
        db.execute('CREATE TABLE "odd name"(pid BIGINT, ok BOOLEAN)')
    run("init", str(tmp_path / "visits"), *TOLD)
    run("init", str(tmp_path / "one.duckdb"), *TOLD)
    assert "count" in run("query", str(tmp_path / "visits"), "SELECT COUNT(*) FROM visits", "--epsilon", "1")
    told = 'SELECT COUNT(*) FROM "odd name"'
    assert "count" in run("query", str(tmp_path / "one.duckdb"), told, "--epsilon", "1")


def test_a_table_in_postgresql_is_declared_by_its_address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Under the table's name in this folder; an address with a password is refused before it is used."""
    monkeypatch.chdir(tmp_path)
    url = loaded(pa.table({"pid": ["a"], "ok": [True]}), "told_at_init")
    run("init", url, *TOLD)
    found = read(tmp_path / "told_at_init.sulq.toml").datasets["told_at_init"]
    assert (found.data, list(found.columns)) == (url, ["ok"])
    with pytest.raises(SetupError, match="password"):
        run("init", "postgresql://me:secret@localhost/db?table=t")
