"""Runs the Python of pages in whichever environment this is started in: `make wheel` starts it in an empty one.

A reader pastes the install line of a page, then its blocks. So the line must stand
above them and name what the environment holds: the package alone, without extras.
Nothing but the standard library is imported here.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
INSTALL = re.compile(r"\bpip install ([^\n`#]+)")
HERE = "."  # what is installed where this runs


@dataclass(frozen=True)
class Block:
    """A fenced block of a page."""

    kind: str
    text: str
    line: int
    mark: str  # the comment on the line before it


def blocks(text: str) -> Iterator[Block]:
    """The fenced blocks of a page, in order."""
    for fence in FENCE.finditer(text):
        before = text[: fence.start()].rstrip().rpartition("\n")[2]
        mark = before.removeprefix("<!--").removesuffix("-->").strip() if before.startswith("<!--") else ""
        yield Block(fence[1], fence[2], text.count("\n", 0, fence.start()) + 1, mark)


def runs(text: str) -> list[Block]:
    """The blocks of Python that a reader may paste."""
    return [block for block in blocks(text) if block.kind == "python" and block.mark != "not-run"]


def installed(text: str) -> str | None:
    """What the install line above the first block of Python installs; None where there is no such line."""
    first = runs(text)[0].line
    found = INSTALL.search("\n".join(text.splitlines()[: first - 1]))
    return None if found is None else found[1].strip()


def main(pages: list[str]) -> None:
    """Run each page's blocks in one namespace and an empty folder; end with an error where that fails."""
    texts = [(page, Path(page).read_text(encoding="utf-8")) for page in pages]
    for page, text in texts:
        if installed(text) != HERE:
            sys.exit(f"{page}: `pip install {HERE}` does not stand above the first block of Python")
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            namespace: dict[str, object] = {"__name__": "__page__"}
            for block in runs(text):
                exec(compile("\n" * block.line + block.text, page, "exec"), namespace)  # noqa: S102 - our own pages
            os.chdir("/")
        print(f"{page}: {len(runs(text))} blocks ran after pip install {HERE}")


if __name__ == "__main__":
    main(sys.argv[1:])
