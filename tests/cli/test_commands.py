"""Commands are loaded by name, one at a time: what a command does not use is not loaded before it starts."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import typer
from typer.main import get_command
from typer.testing import CliRunner

from sulq.cli import app
from sulq.cli.commands import COMMANDS, Loading

ROOT = Path(__file__).resolve().parents[2]
UNUSED = (
    "fastapi", "starlette", "uvicorn", "jinja2", "sulq.service.clerk", "sulq.learn", "sulq.release", "sulq.select",
)  # fmt: skip
ASKED = """import atexit, json, sys
from sulq.cli import main
atexit.register(lambda: print(json.dumps(sorted(sys.modules)), file=sys.stderr))
main()
"""
CONFIG = """[dataset]
data = "people.parquet"
budget = { epsilon = 1 }
[dataset.columns]
age = { int = [0, 120] }
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A data file with its declarations, not yet prepared."""
    pq.write_table(pa.table({"age": list(range(100))}), tmp_path / "people.parquet")
    (tmp_path / "people.sulq.toml").write_text(CONFIG, encoding="utf-8")
    return tmp_path


def loaded(folder: Path, *words: str) -> set[str]:
    """The modules that a command had loaded when it ended."""
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    command = [sys.executable, "-c", ASKED, *words]
    found = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=True)
    return set(json.loads(found.stderr.splitlines()[-1]))


def test_a_query_loads_what_it_uses(folder: Path) -> None:
    """No server, learner or release; the control: `sulq analyst list` does load the server's part."""
    loaded(folder, "prepare", "people.parquet")
    modules = loaded(folder, "query", "people.parquet", "SELECT AVG(age) FROM people", "--epsilon", "0.1")
    assert {"sulq.api.database", "sulq.sql.session", "duckdb"} <= modules
    assert [name for name in UNUSED if name in modules] == []
    assert "pyarrow.compute" not in modules
    (folder / "sulq.toml").write_text("[server]\n", encoding="utf-8")
    assert "sulq.service.clerk" in loaded(folder, "analyst", "list")


def test_naming_the_commands_loads_none(folder: Path) -> None:
    """What is looked up is loaded, and nothing beside it; `sulq budget` needs no engine."""
    assert list(Loading()) == list(COMMANDS) == get_command(app).list_commands(typer.Context(get_command(app)))
    assert len(Loading()) == len(COMMANDS)
    assert Loading().get("nothing") is None
    loaded(folder, "prepare", "people.parquet")
    assert [name for name in ("duckdb", "sqlglot") if name in loaded(folder, "budget", "people.parquet")] == []


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_its_help(name: str) -> None:
    """Each command stands in the help of all, and has one of its own."""
    assert name in CliRunner().invoke(app, ["--help"], env={"COLUMNS": "200"}).output
    found = CliRunner().invoke(app, [name, "--help"], env={"COLUMNS": "200"})
    assert found.exit_code == 0
    assert "Usage" in found.output
