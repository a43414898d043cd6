"""`sulq forget`: ids from arguments, a file or standard input; none is printed."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from sulq.cli import app
from sulq.errors import SetupError

DECLARED = """[dataset]
data = "t.parquet"
unit = { column = "pid", rows = 2 }
budget = { epsilon = 10 }
columns = { x = [0, 9] }
"""


def run(*words: str, **more: object) -> str:
    found = CliRunner().invoke(app, list(words), env={"COLUMNS": "200"}, **more)
    if found.exit_code and not isinstance(found.exception, SystemExit):
        raise found.exception
    return found.output


@pytest.fixture
def data(tmp_path: Path) -> str:
    """A declared data file of three persons."""
    pq.write_table(pa.table({"pid": ["anna", "ben", "cleo"], "x": [1, 2, 3]}), tmp_path / "t.parquet")
    (tmp_path / "t.sulq.toml").write_text(DECLARED, encoding="utf-8")
    run("prepare", str(tmp_path / "t.parquet"))
    return str(tmp_path / "t.parquet")


@pytest.mark.parametrize("way", ["arguments", "file", "input"])
def test_ids_come_from_arguments_a_file_or_standard_input(data: str, way: str, tmp_path: Path) -> None:
    """The copy is prepared again without them; the words name places, and no id."""
    (tmp_path / "ids").write_text("\ufeffanna\n\ndora\n", encoding="utf-8")
    words = {"arguments": ("anna", "dora"), "file": ("--from", str(tmp_path / "ids")), "input": ("--from", "-")}[way]
    told = run("forget", data, *words, input="anna\ndora\n" if way == "input" else None)
    assert "1 of 2 ids had rows, which are erased." in told
    assert "gave: 2." in told
    assert "restart it" in told
    assert "anna" not in told + "".join(map(str, tmp_path.iterdir()))
    assert (tmp_path / "t.prepared").exists()
    shown = run("ledger", "show", str(tmp_path / "t.ledger"))
    assert "the rows of 2 more ids are left out, where there are any" in shown
    assert "2" in run("query", data, "SELECT COUNT(*) FROM t", "--epsilon", "9")


def test_who_names_nobody_is_refused(data: str, tmp_path: Path) -> None:
    """So is a file that cannot be read."""
    for words, why in (((), "Nobody is named"), (("--from", str(tmp_path / "no")), "cannot be read")):
        with pytest.raises(SetupError, match=why):
            run("forget", data, *words)
