"""Which files a file's code can reach: what it imports, and what that imports, wherever in the text it stands.

A module that is named in a string, as one that is run as a process of its own,
counts as imported. So what is not in the list has no part in what a test shows.
The packages around a module are in it for their own text, not for what they
export of others.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
HOMES: Final = {"sulq": ROOT / "src", "tests": ROOT, "tools": ROOT, "benchmarks": ROOT, "examples": ROOT}


def reached(files: Iterable[Path]) -> set[Path]:
    """The files and all of ours that they import, directly or not."""
    followed: set[Path] = set()
    around: set[Path] = set()
    waiting = list(files)
    while waiting:
        path = waiting.pop()
        if path not in followed:
            followed.add(path)
            around |= packages(path)
            waiting += imported(path)
    return followed | around


@functools.cache
def packages(path: Path) -> frozenset[Path]:
    """The packages a module of ours is in."""
    inside = path.parents if any(path.is_relative_to(home) for home in HOMES.values()) else ()
    return frozenset(folder / "__init__.py" for folder in inside if (folder / "__init__.py").is_file())


@functools.cache
def imported(path: Path) -> frozenset[Path]:
    """The files of ours that one file imports."""
    names = _names(ast.parse(path.read_text(encoding="utf-8")))
    return frozenset(found for name in names if (found := _file(name)) is not None)


def _names(tree: ast.AST) -> Iterator[str]:
    """Every dotted name that may be a module; we import none by its distance."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.isascii():
            yield "sulq" if "import sulq" in node.value or "from sulq" in node.value else node.value  # a script


def _file(name: str) -> Path | None:
    """The file of a module; of a name inside a module, the module's."""
    parts = name.split(".")
    if parts[0] not in HOMES or not all(part.isidentifier() for part in parts):
        return None
    place, found = HOMES[parts[0]], None
    for part in parts:
        place /= part
        if place.with_suffix(".py").is_file():
            return place.with_suffix(".py")
        if (place / "__init__.py").is_file():
            found = place / "__init__.py"
    return found
