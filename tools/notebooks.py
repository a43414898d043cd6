"""The walks of examples/walks as notebooks: each script's cells, run from beginning to end, with what they showed.

    python -m tools.notebooks            (run all and write examples/*.ipynb)
    python -m tools.notebooks owner      (one of them)

A script is cut into cells at lines `# %%`; after `# %% [markdown]` its comments are text. A notebook runs in a folder
of its own, on made-up data.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import nbformat
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

ROOT: Final = Path(__file__).resolve().parents[1]
FOLDER: Final = ROOT / "examples"
SCRIPTS: Final = FOLDER / "walks"
MARK: Final = "# %%"
SECONDS: Final = 300  # a cell may take


def names() -> list[str]:
    """The walks there are."""
    return sorted(path.stem for path in SCRIPTS.glob("[a-z]*.py"))


def cells(text: str) -> Iterator[nbformat.NotebookNode]:
    """The cells of a script; what stands before the first mark is the script's own."""
    for number, part in enumerate(text.split(f"\n{MARK}")[1:]):
        head, _, body = part.partition("\n")
        body = body.strip("\n")
        if head.strip() == "[markdown]":
            lines = (line.removeprefix("#").removeprefix(" ") for line in body.splitlines())
            yield new_markdown_cell("\n".join(lines), id=f"cell-{number}")
        else:
            yield new_code_cell(body, id=f"cell-{number}")


def run(name: str) -> nbformat.NotebookNode:
    """A walk's notebook, run in an empty folder."""
    made = new_notebook(cells=list(cells((SCRIPTS / f"{name}.py").read_text(encoding="utf-8"))))
    made.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    with tempfile.TemporaryDirectory(prefix="walk-") as folder:
        kernel = AsyncKernelManager(kernel_name="python3", transport="ipc", ip=f"{folder}/.kernel")
        client = NotebookClient(made, kernel, timeout=SECONDS, resources={"metadata": {"path": folder}})
        client.execute(env=os.environ | {"MPLBACKEND": "module://matplotlib_inline.backend_inline"})
        text = nbformat.writes(made).replace(folder, ".")
    made = nbformat.reads(text, as_version=4)
    for cell in made.cells:
        cell.metadata.clear()  # when each cell ran
    made.metadata["language_info"] = {"name": "python"}
    return made


def main(words: list[str]) -> None:
    """Run the walks and write their notebooks."""
    parser = argparse.ArgumentParser(prog="python -m tools.notebooks", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("names", nargs="*", default=names(), help="the walks; by default all")
    parser.add_argument("--into", type=Path, default=FOLDER, help="the folder they are written into")
    told = parser.parse_args(words)
    for name in told.names:
        nbformat.write(run(name), told.into / f"{name}.ipynb")
        print(f"wrote {name}.ipynb")


if __name__ == "__main__":
    main(sys.argv[1:])
