"""The shape of the repository: tests beside their code, imports where they belong, the free half kept free."""

from __future__ import annotations

import ast
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SRC = ROOT / "src" / "sulq"
TESTS = ROOT / "tests"
SOURCES = {path.relative_to(SRC): ast.parse(path.read_text(encoding="utf-8")) for path in sorted(SRC.rglob("*.py"))}
BESIDE = {"benchmarks", "browser", "conformance", "plans", "privacy"}  # suites over a seam rather than over a file

# Where an import may wait until it is needed: connect's doors, tables that name parts without loading them,
# commands that start fast. Elsewhere only the packages of the extras wait, since they may be absent.
LAZY_FILES = {"__init__.py", "api/connect.py"}
LAZY_FOLDERS = {"cli"}
EXTRAS = {"matplotlib", "pandas", "polars", "psycopg", "pyspark", "scipy"}
FREE = {"learn", "release", "select", "audit", "sql", "client"}


def test_every_source_file_has_its_tests() -> None:
    """tests/ mirrors src/sulq file for file; a test named after a folder may stand for all of it."""
    missing = []
    for path in SOURCES:
        if path.name in {"__init__.py", "__main__.py", "version.py"}:
            continue
        folders = list(path.parents)[:-1]
        places = [path.with_suffix(""), *folders, *(folder / folder.name for folder in folders)]
        if not any((TESTS / place.parent / f"test_{place.name.lstrip('_')}.py").exists() for place in places):
            missing.append(str(path))
    assert missing == []


def test_every_test_file_has_its_source() -> None:
    """A test beside the mirror says which file or folder it is about: test_NAME.py or test_NAME_more.py."""
    known = {(path.parent, path.stem.lstrip("_")) for path in SOURCES}
    known |= {(folder, path.parent.name) for path in SOURCES for folder in (path.parent, path.parent.parent)}
    known |= {(path.parent, "init") for path in SOURCES}
    astray = []
    for test in TESTS.rglob("test_*.py"):
        place = test.relative_to(TESTS).parent
        if place == Path() or place.parts[0] in BESIDE:
            continue
        words = test.stem.split("_")[1:]
        if not any((place, "_".join(words[:n])) in known for n in range(1, len(words) + 1)):
            astray.append(str(test.relative_to(ROOT)))
    assert astray == []


def test_every_test_says_what_it_shows() -> None:
    """Each test has a docstring."""
    silent = [
        f"{path.relative_to(ROOT)}::{node.name}"
        for path in TESTS.rglob("test_*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test") and not ast.get_docstring(node)
    ]
    assert silent == []


def test_nothing_inside_imports_the_package_root() -> None:
    """The root gathers the public names; a part that imported it would close a circle."""
    for path, tree in SOURCES.items():
        for node in ast.walk(tree) if path != Path("__init__.py") else ():
            assert not (isinstance(node, ast.ImportFrom) and (node.module == "sulq" or node.level)), path
            assert not (isinstance(node, ast.Import) and "sulq" in {alias.name for alias in node.names}), path


def test_imports_stand_at_the_top() -> None:
    """Who needs whom is read off the top of a file, but for the places named above."""
    hidden = []
    for path, tree in SOURCES.items():
        if path.as_posix() in LAZY_FILES or path.parts[0] in LAZY_FOLDERS:
            continue
        inner = (n for f in ast.walk(tree) if isinstance(f, (ast.FunctionDef, ast.ClassDef)) for n in ast.walk(f))
        for node in inner:
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            else:
                continue
            hidden += [f"{path}: {name}" for name in names if name.partition(".")[0] not in EXTRAS]
    assert hidden == []


def test_the_free_half_is_named_in_its_contract() -> None:
    """Each part of the free half that exists is forbidden to import the trusted half (import-linter checks it)."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    named = next(contract for contract in contracts if "clever" in contract["name"])["source_modules"]
    existing = {f"sulq.{part.stem}" for part in SRC.iterdir() if part.stem in FREE}
    assert existing <= set(named)
