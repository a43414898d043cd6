"""Commands on tables in PostgreSQL: a sulq.toml without a password, and a server that holds them."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pytest
from typer.testing import CliRunner

from sulq.cli import app
from sulq.cli.config import read
from sulq.cli.open import declared, ledger_of
from sulq.cli.serve import declaration
from sulq.errors import SetupError
from tests.cli.test_serve import Running, command
from tests.loaded import address, loaded
from tests.postgres import server
from tests.service.service import need_network, networks
from tests.sources.postgres_cases import copies

RUNNER = CliRunner()
TOML = """
[dataset.survey]
data = "{data}"
table = "{table}"
unit = {{ column = "who" }}
budget = {{ epsilon = 1000 }}
[dataset.survey.columns]
age = {{ int = [0, 120] }}
"""


@pytest.fixture
def config(tmp_path: Path) -> tuple[Path, str]:
    """A sulq.toml that names a table in the tests' database."""
    name = f"told_{os.getpid()}_{abs(hash(tmp_path.name)) % 10**6}"
    loaded(pa.table({"who": ["a", "b"], "age": [10, 20]}), name)
    path = tmp_path / "sulq.toml"
    path.write_text(TOML.format(data=address(), table=name), encoding="utf-8")
    return path, name


def run(*words: str) -> str:
    """What a command prints."""
    found = RUNNER.invoke(app, words)
    assert found.exit_code == 0, found.output
    return found.output


def test_prepare_query_budget_and_explain(config: tuple[Path, str]) -> None:
    """The commands an owner and an analyst use, over the copy in the database."""
    path, name = config
    sql = f"SELECT COUNT(*) FROM {name}"
    assert "prepared" in run("prepare", "survey", "--config", str(path))
    assert "epsilon" in run("explain", "survey", sql, "--epsilon", "1", "--config", str(path)).lower()
    assert "2" in run("query", "survey", sql, "--epsilon", "500", "--config", str(path))
    assert "500" in run("budget", "survey", "--config", str(path))
    server().do(f"INSERT INTO {name} VALUES ('c', 30)")
    run("prepare", "survey", "--renew", "--config", str(path))
    assert "3" in run("query", "survey", sql + " WHERE age >= 0", "--epsilon", "400", "--config", str(path))


@pytest.mark.parametrize(
    "data",
    [
        "postgresql://ann:secret@h/b",
        "postgresql://h/b?password=secret",
        "postgresql://h/b?host=h&sslpassword=secret",
        "postgresql://h/b?oauth_client_secret=secret",
        "postgresql://h/b?passwor%64=secret",
        "postgresql://h/b?%70%61ssword=secret",
        "postgresql://h/b?host=h&%20password%20=secret",
        "postgresql://ann:secret?x@h/b",
    ],
)
def test_a_password_does_not_stand_in_the_file(tmp_path: Path, data: str) -> None:
    """It is refused, and not shown; control: without it the file is read."""
    path = tmp_path / "sulq.toml"
    path.write_text(TOML.format(data=data, table="t"), encoding="utf-8")
    with pytest.raises(SetupError, match="bad-config") as refused:
        read(path)
    assert "secret" not in str(refused.value)
    assert "PGPASSWORD" in str(refused.value)
    for plain in ("postgresql://ann@h/b", "postgresql://h/b?passfile=password&user=password"):
        path.write_text(TOML.format(data=plain, table="t"), encoding="utf-8")
        assert read(path).datasets["survey"].data == plain


def test_sections_over_the_same_rows_share_one_ledger_T56(config: tuple[Path, str]) -> None:
    """Whatever a section or its table is called, here or in Python: what one spent, the other has not."""
    path, name = config
    other = TOML.replace("survey", "again").format(data=address(table=f"public.{name}"), table="other")
    whole = f'[dataset.one]\nbudget = {{ epsilon = 1000 }}\nunit = {{ column = "who" }}\n[dataset.one.tables.{name}]\n'
    whole += f'data = "{address()}"\ncolumns = {{ age = {{ int = [0, 120] }} }}\n'
    path.write_text(path.read_text(encoding="utf-8") + other + whole, encoding="utf-8")
    found = read(path).datasets
    places = {ledger_of(found[section]) for section in ("survey", "again", "one")}
    assert places == {f"{address()}&ledger=sulq_public_{name}"}
    run("query", "survey", f"SELECT COUNT(*) FROM {name}", "--epsilon", "400", "--config", str(path))
    assert "600" in run("budget", "again", "--config", str(path))
    refused = RUNNER.invoke(
        app, ("query", "again", "SELECT COUNT(*) FROM other", "--epsilon", "700", "--config", str(path))
    )
    assert refused.exit_code != 0


def test_several_tables_may_lie_in_a_database(tmp_path: Path) -> None:
    """Each table of a dataset has an address; another kind of URL is refused there."""
    path = tmp_path / "sulq.toml"
    text = '[dataset.c]\nbudget = { epsilon = 1 }\n[dataset.c.tables.people]\ndata = "%s"\ncolumns = { a = [0, 1] }\n'
    path.write_text(text % "postgresql://h/b", encoding="utf-8")
    assert read(path).datasets["c"].tables["people"].data == "postgresql://h/b"
    path.write_text(text % "https://h/b", encoding="utf-8")
    with pytest.raises(SetupError, match="bad-config"):
        read(path)


def test_a_server_serves_them_on_the_same_budget(config: tuple[Path, str]) -> None:
    """`sulq serve` holds what `sulq query` asks: one ledger, one copy, and what one spent the other has not."""
    need_network(there=networks())
    path, name = config
    made = declaration(read(path).datasets["survey"])
    assert (made.ledger, made.prepared) == (ledger_of(read(path).datasets["survey"]), None)
    path.write_text(path.read_text(encoding="utf-8") + "[server]\nport = 0\nworkers = 1\n", encoding="utf-8")
    sql = f"SELECT COUNT(*) FROM {name}"
    run("query", "survey", sql, "--epsilon", "400", "--config", str(path))
    running = Running(path.parent)
    try:
        token = running.token()
        running.until("warning: The ledger lies in the database of its data, without an anchor")
        url = running.until(r"http://127\.0\.0\.1:\d+")
        running.until("a dataset is ready")
        shown = command(path.parent, "query", f"{url}/survey", sql, "--epsilon", "500", token=token)
        assert shown.returncode == 0, shown.stderr
        refused = command(
            path.parent, "query", f"{url}/survey", f"{sql} WHERE age > 1", "--epsilon", "200", token=token
        )
        assert refused.returncode == 3
    finally:
        assert running.stop() == 0
    assert "100" in run("budget", "survey", "--config", str(path))
    assert len(copies(name)) == 1


def test_a_server_says_why_it_does_not_hold_spark(tmp_path: Path) -> None:
    """Before it starts anything, with what to do instead; control: the same file can be asked by commands."""
    path = tmp_path / "sulq.toml"
    path.write_text(TOML.format(data="spark://master:7077/visits", table="visits") + "[server]\n", encoding="utf-8")
    found = RUNNER.invoke(app, ("serve", "--config", str(path)))
    assert isinstance(found.exception, SetupError)
    assert found.exception.code == "engine-not-available"
    assert "sulq query" in str(found.exception)
    assert not (tmp_path / "sulq.state").exists()
    assert declared("survey", path).data == "spark://master:7077/visits"
