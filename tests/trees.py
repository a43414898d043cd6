"""The package's files as syntax trees: each is parsed once a process, however many tests look through them all."""

from __future__ import annotations

import ast
import functools
from pathlib import Path

SRC = Path(__file__).resolve().parents[1] / "src" / "sulq"


@functools.cache
def tree(path: Path) -> ast.Module:
    """A file of the package; who reads it must not change it."""
    return ast.parse(path.read_text(encoding="utf-8"))


@functools.cache
def trees() -> dict[Path, ast.Module]:
    """All files, by their paths in the package."""
    return {path.relative_to(SRC): tree(path) for path in sorted(SRC.rglob("*.py"))}
