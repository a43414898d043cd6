"""The walks as notebooks: what is checked in is what the scripts say, and it runs from beginning to end."""

from __future__ import annotations

import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import nbformat
import pytest

from tools import notebooks


def kinds(notebook: nbformat.NotebookNode) -> list[list[str]]:
    """What each cell shows: text that was printed, tables, pictures; several of one kind after each other are one."""
    found = []
    for cell in notebook.cells:
        shown = ["", *(one.get("name") or ",".join(sorted(one.get("data", {}))) for one in cell.get("outputs", []))]
        found.append([after for before, after in pairwise(shown) if after != before])
    return found


@pytest.mark.parametrize("name", notebooks.names())
def test_a_walk_runs_and_shows_what_its_notebook_shows(name: str, tmp_path: Path) -> None:
    """No cell fails, nothing is written to the error stream, and each shows a text, table or picture where it did."""
    kept = nbformat.read(notebooks.FOLDER / f"{name}.ipynb", as_version=4)
    words = [sys.executable, "-m", "tools.notebooks", name, "--into", str(tmp_path)]
    done = subprocess.run(
        words, cwd=notebooks.ROOT, capture_output=True, text=True, check=False, timeout=notebooks.SECONDS
    )
    assert done.returncode == 0, done.stderr[-4000:]
    made = nbformat.read(tmp_path / f"{name}.ipynb", as_version=4)
    assert [(cell.cell_type, cell.source) for cell in made.cells] == [
        (cell.cell_type, cell.source) for cell in kept.cells
    ], f"python -m tools.notebooks {name}"
    assert kinds(made) == kinds(kept)
    assert "stderr" not in {kind for shown in kinds(made) for kind in shown}


def test_the_four_walks_are_there() -> None:
    """An owner's, an analyst's, a data scientist's and a platform engineer's, each with its notebook."""
    walks = {"owner", "analyst", "data_scientist", "platform_engineer"}
    assert walks <= set(notebooks.names())
    assert {path.stem for path in notebooks.FOLDER.glob("*.ipynb")} == set(notebooks.names())


def test_a_notebook_names_no_machine() -> None:
    """No path of the folder or of the project that it ran in."""
    for name in notebooks.names():
        text = (notebooks.FOLDER / f"{name}.ipynb").read_text(encoding="utf-8")
        assert "walk-" not in text
        assert str(notebooks.ROOT) not in text
