"""The kernel stays small and imports nothing outward; figures are counted from the files themselves."""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

import pytest

from tools import lines

ROOT = Path(__file__).resolve().parents[1]
ALLOWED = {"apsw", "duckdb", "numpy"}  # besides the standard library
DECODES = {"numpy", "psycopg", "pyarrow"}  # likewise, where sources are decoded
NAMED = {"kernel/ledger/postgres.py": {"psycopg"}}


def outward(text: str, allowed: set[str]) -> set[str]:
    """What a file of the kernel imports that it may not."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add("." * node.level + (node.module or ""))
    inside = re.compile(r"sulq\.(errors|version|kernel)(\.|$)")
    return {name for name in names if not inside.match(name) and name.split(".")[0] not in allowed}


def test_the_kernel_is_within_its_budget() -> None:
    """Each room and the whole; rooms add up to the whole."""
    found = lines.rooms()
    assert lines.exceeded(found) == []
    assert sum(found[room.name] for room in lines.KERNEL) == found["kernel"] > 1000


@pytest.mark.parametrize(
    "name", ["certifier", "ledger", "kernel", "annex (statistics of whole tables)", "decoding of sources"]
)
def test_a_kernel_that_grew_is_noticed(name: str) -> None:
    """Control: one line past a budget is one complaint."""
    budget = {room.name: room.budget for room in (*lines.KERNEL, lines.WHOLE, lines.ANNEX, lines.DECODING)}[name]
    assert len(lines.exceeded(lines.rooms() | {name: budget})) == 0
    assert len(lines.exceeded(lines.rooms() | {name: budget + 1})) == 1


def test_the_kernel_imports_itself_errors_version_and_few_libraries() -> None:
    """Read off every file, wherever in it the import stands (import-linter checks the same for what is indirect)."""
    standard = set(sys.stdlib_module_names)
    found = {}
    for path in sorted(lines.files("kernel")):
        name = path.relative_to(lines.SRC).as_posix()
        bad = outward(path.read_text(encoding="utf-8"), standard | ALLOWED | NAMED.get(name, set()))
        if bad:
            found[name] = bad
    assert found == {}


def test_decoding_imports_itself_the_kernel_errors_and_few_libraries() -> None:
    """What is trusted of reading rests on nothing that proposes."""
    allowed = set(sys.stdlib_module_names) | DECODES
    for path in sorted(lines.files("sources/decode")):
        bad = {name for name in outward(path.read_text(encoding="utf-8"), allowed) if "sulq.sources.decode" not in name}
        assert bad == set(), path


@pytest.mark.parametrize(
    "text", ["import sulq.answers.plan", "from sulq import language", "from sulq.kernelized import x", "import pyarrow",
             "def f():\n    from sulq.curator.run import Rows", "from . import x"],
)  # fmt: skip
def test_an_import_outward_is_found(text: str) -> None:
    """Control: so would be each of these; what the kernel may import is not."""
    assert outward(text, {"ast"})
    assert not outward("import ast\nfrom sulq.kernel.facts import Facts\nfrom sulq.errors import SulqError", {"ast"})


def test_what_sees_rows_is_followed_through_its_imports(capsys: pytest.CaptureFixture[str]) -> None:
    """The closure holds what is imported at second hand and inside functions, and the figures are printed."""
    sees = {path.relative_to(lines.SRC).as_posix() for path in lines.closure(lines.files("curator/run.py"))}
    assert {"curator/run.py", "kernel/entropy.py", "language/rowfn/scalar.py"} <= sees
    assert "sql/parse/text.py" not in sees
    assert lines.main() == 0
    shown = capsys.readouterr().out
    for word in ("certifier", "mechanisms", "ledger", "annex", "respondent", "guard", "decoding", "what sees rows"):
        assert word in shown
