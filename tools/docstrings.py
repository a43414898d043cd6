"""Docstrings of src and tests, by file and dotted name, for the pages that are made from them."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
SRC: Final = ROOT / "src" / "sulq"
TESTS: Final = ROOT / "tests"


@functools.cache  # several pages are made of them
def docstrings() -> tuple[tuple[Path, str, str], ...]:
    """File, dotted name and text of every docstring in src."""
    return tuple(_docstrings())


def _docstrings() -> Iterator[tuple[Path, str, str]]:
    for path in sorted(SRC.rglob("*.py")):
        inside = path.relative_to(SRC).with_suffix("").parts
        module = ".".join(("sulq", *(part for part in inside if part != "__init__")))
        yield from ((path, name, text) for name, text in _walk(module, _parsed(path)) if text)


def tests() -> Iterator[tuple[Path, str, str]]:
    """File, name and docstring ("" where there is none) of every test function."""
    for path in sorted(TESTS.rglob("test_*.py")):
        for dotted, text in _walk("", _parsed(path)):
            name = dotted.rpartition(".")[2]
            if name.startswith("test_"):
                yield path, name, text


def _parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def _walk(name: str, node: ast.AST) -> Iterator[tuple[str, str]]:
    if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
        yield name, ast.get_docstring(node) or ""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            yield from _walk(f"{name}.{child.name}", child)
