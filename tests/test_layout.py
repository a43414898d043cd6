"""The shape of the repository: tests beside their code, imports where they belong, the free half kept free."""

from __future__ import annotations

import ast
import re
import tomllib
from collections import Counter, defaultdict
from pathlib import Path

import pytest

from tests.trees import SRC, trees

ROOT = Path(__file__).resolve().parents[1]
TESTS = ROOT / "tests"
SOURCES = [path.relative_to(SRC) for path in sorted(SRC.rglob("*.py"))]
BESIDE = {"benchmarks", "browser", "conformance", "plans", "privacy"}  # suites over a seam rather than over a file

# Where an import may wait until it is needed: connect's doors, tables that name parts without loading them,
# commands and a web process that start fast. Elsewhere only the packages of the extras wait, since they may be absent.
LAZY_FILES = {
    "service/web/requests.py",
    "__init__.py", "api/connect.py", "service/console/views/answer.py", "service/jobs/manager.py",
    "service/web/routes/asking.py", "service/web/routes/ledger.py",
}  # fmt: skip
LAZY_FOLDERS = {"cli"}
EXTRAS = {"matplotlib", "opentelemetry", "pandas", "polars", "psycopg", "pyspark", "scipy"}
FREE = {"inference", "learn", "release", "select", "audit", "sql", "client"}

MAX_MODULES = 20  # of a folder, `__init__` not counted
MAX_LINES = 450  # of a file
MIN_LINES_OF_INIT = 2  # of a folder's docstring: what lives here, what may be imported, what must never be here

# Allowances of what is still past a limit. They may only shrink: lower a number, or take a name away, with the change
# that makes it possible; never raise one.
ONE_LINE_INITS = {
    "kernel/ledger", "kernel/mechanisms", "kernel/whole",
}  # fmt: skip
LINES = {
    "values.py": 453,
}  # lines, by name: files move between folders
NAMES_USED_TWICE = "Box Certificate Certified Facts Key Least Node Part Release Shape Table Unit Value Writer"


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
    """Each test has a docstring, and a name that says the behaviour before the ids it covers."""
    tests = [
        (f"{path.relative_to(ROOT)}::{node.name}", node)
        for path in TESTS.rglob("test_*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test")
    ]
    assert [name for name, node in tests if not ast.get_docstring(node)] == []
    assert [name for name, node in tests if re.match(r"test_(SR|[ESTX])\d", node.name)] == []


def test_nothing_inside_imports_the_package_root() -> None:
    """The root gathers the public names; a part that imported it would close a circle."""
    for path, tree in trees().items():
        for node in ast.walk(tree) if path != Path("__init__.py") else ():
            assert not (isinstance(node, ast.ImportFrom) and (node.module == "sulq" or node.level)), path
            assert not (isinstance(node, ast.Import) and "sulq" in {alias.name for alias in node.names}), path


def test_imports_stand_at_the_top() -> None:
    """Who needs whom is read off the top of a file, but for the places named above."""
    hidden = []
    for path, tree in trees().items():
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


def test_a_folder_holds_at_most_twenty_modules() -> None:
    """More of them need rooms, each with a docstring that says what lives there."""
    found = Counter(path.parent.as_posix() for path in SOURCES if path.name != "__init__.py")
    assert {folder: n for folder, n in found.items() if n > MAX_MODULES} == {}


def test_every_folder_says_what_lives_in_it() -> None:
    """What lives here, what may be imported, what must never be here: more than one line of docstring."""
    short = set()
    for path, tree in trees().items():
        if path.name == "__init__.py":
            lines = (ast.get_docstring(tree) or "").splitlines()
            short |= {path.parent.as_posix()} if sum(map(bool, lines)) < MIN_LINES_OF_INIT else set()
    assert short <= ONE_LINE_INITS


def test_no_file_is_longer_than_450_lines() -> None:
    """A longer one holds two ideas."""
    lines = {path: len((SRC / path).read_text(encoding="utf-8").splitlines()) for path in SOURCES}
    assert {str(path): n for path, n in lines.items() if n > LINES.get(path.name, MAX_LINES)} == {}


def test_a_class_name_is_used_once() -> None:
    """But where one class extends the other, or the kernel keeps its own of a statistic that the language names."""
    places: dict[str, list[tuple[Path, ast.ClassDef]]] = defaultdict(list)
    for path, tree in trees().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                places[node.name].append((path, node))
    twice = sorted(name for name, found in places.items() if len(found) > 1 and not _one_thing(name, found))
    assert set(twice) - set(NAMES_USED_TWICE.split()) == set()


def _one_thing(name: str, found: list[tuple[Path, ast.ClassDef]]) -> bool:
    """Whether all but one of these classes extend one of that name, or they lie on both sides of the kernel's wall."""
    extending = [
        any(ast.unparse(base).split("[")[0].split(".")[-1] == name for base in node.bases) for _, node in found
    ]
    sides = {path.parts[:2] if path.parts[0] == "kernel" else path.parts[:1] for path, _ in found}
    return extending.count(False) == 1 or (len(found) == 2 and sides == {("kernel", "whole"), ("language",)})


@pytest.mark.parametrize("base", ["Exact", "exact.Exact", "exact.Exact[int]"])
def test_a_class_that_extends_its_namesake_is_told_from_another(base: str) -> None:
    """The rule of the test above, on classes made for it."""
    one, other = ast.parse("class Exact: ...\nclass Exact(Base): ...").body
    (child,) = ast.parse(f"class Exact({base}): ...").body
    assert _one_thing("Exact", [(Path("a.py"), one), (Path("b.py"), child)])
    assert not _one_thing("Exact", [(Path("a.py"), one), (Path("b.py"), other)])
    assert _one_thing("Exact", [(Path("kernel/whole/a.py"), one), (Path("language/b.py"), other)])
    assert not _one_thing("Exact", [(Path("kernel/a.py"), one), (Path("language/b.py"), other)])
