"""The documentation says what the code does: its Python runs, its generated pages are current, its sources exist.

In a Markdown file the ```python blocks run in order in one namespace and an
empty folder. `<!-- not-run -->` before a block leaves it out. A ```text block
is not compared, since noise changes it, unless `<!-- printed -->` stands before
it: then the last block must have printed it, numbers and spacing aside.
"""

from __future__ import annotations

import contextlib
import io
import re
import subprocess
import sys
from pathlib import Path

import pytest

import sulq
from sulq import errors
from tools import readme, reference
from tools.readme import blocks

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")
NUMBER = re.compile(r"[-+]?\d(?:[\d,_]*\d)?(?:\.\d+)?(?:e[-+]?\d+)?")


def shape(text: str) -> list[str]:
    """What a printed text says when its numbers and spacing are left aside, and how intervals are written."""
    lines = [" ".join(NUMBER.sub("#", line).replace("<#", "#").split()) for line in text.splitlines() if line.strip()]
    return [line.replace("in [#, #]", "+- #") for line in lines]


def run(text: str, name: str) -> None:
    """Run a page's Python and compare what it marks as printed."""
    namespace: dict[str, object] = {"__name__": "__docs__"}
    printed = ""
    for block in blocks(text):
        if block.kind == "python" and block.mark != "not-run":
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                exec(compile("\n" * block.line + block.text, name, "exec"), namespace)
            printed = out.getvalue()
        elif block.kind == "text" and block.mark == "printed":
            assert shape(printed) == shape(block.text), f"{name}, line {block.line}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_the_python_of_a_page_runs(page: Path, tmp_path: Path) -> None:
    """Every block of Python in README.md and docs/ runs as it stands."""
    with contextlib.chdir(tmp_path):
        run(page.read_text(encoding="utf-8"), page.name)


@pytest.mark.parametrize(
    "text",
    ["```python\n1/0\n```\n", "```python\nprint('a 1')\n```\n<!-- printed -->\n```text\nb 2\n```\n"],
)
def test_a_page_that_is_wrong_is_found(text: str) -> None:
    """Control: Python that fails and a text that was not printed are both noticed."""
    with pytest.raises((ZeroDivisionError, AssertionError)):
        run(text, "a page")


def test_numbers_may_differ_and_words_may_not() -> None:
    """Control: a printed text is compared by its words."""
    run("```python\nprint('n = -1.5e3 of 2')\n```\n<!-- printed -->\n```text\nn  = 7 of 3,000\n```\n", "a page")


FIRST = ["README.md", "docs/start.md"]
BARE = "`pip install .`\n```python\nimport sulq\n```\n"


@pytest.mark.parametrize("page", FIRST)
def test_a_first_page_installs_what_it_needs_above_its_python(page: str) -> None:
    """`make wheel` runs these pages in an environment that holds what their install line names, and no more."""
    text = (ROOT / page).read_text(encoding="utf-8")
    assert readme.installed(text) == readme.HERE
    needed = {
        word for block in readme.runs(text) for word in re.findall(r"^(?:import|from) (\w+)", block.text, re.MULTILINE)
    }
    assert needed <= {"sulq", "numpy", "pyarrow"}
    assert f"tools/readme.py {' '.join(FIRST)}" in (ROOT / "Makefile").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        (BARE, 0),
        (BARE.replace("pip install .", "pip install '.[pandas]'"), 1),
        (BARE.partition("\n")[2] + BARE.partition("\n")[0], 1),
        (BARE.replace("import sulq", "import a_module_of_no_package"), 1),
    ],
)
def test_a_page_that_needs_more_than_its_install_line_is_found(text: str, wrong: int, tmp_path: Path) -> None:
    """Control: another line, a line below the block, and a block that needs what the line does not bring."""
    (tmp_path / "page.md").write_text(text, encoding="utf-8")
    command = [sys.executable, "-I", str(ROOT / "tools/readme.py"), str(tmp_path / "page.md")]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    assert found.returncode == wrong, found.stderr


@pytest.mark.parametrize("name", reference.PAGES)
def test_a_generated_page_is_current(name: str) -> None:
    """The committed page is what the code gives; `make docs` writes it anew."""
    page = ROOT / name
    assert page.is_file(), "run make docs"
    assert page.read_text(encoding="utf-8") == reference.PAGES[name](), "run make docs"


def test_every_error_code_has_its_row() -> None:
    """Each code leads to a line that says what to do."""
    page = (ROOT / "docs/reference/errors.md").read_text(encoding="utf-8")
    assert [code for code in errors.CODES if f"| `{code}` | " not in page] == []


def test_every_public_name_has_its_entry() -> None:
    """Each name of the package is described, and by more than its name."""
    page = (ROOT / "docs/reference/python.md").read_text(encoding="utf-8")
    assert [name for name in sulq.__all__ if f"## `sulq.{name}`\n" not in page] == []
    silent = [name for name in sulq.__all__ if callable(getattr(sulq, name)) and not getattr(sulq, name).__doc__]
    assert silent == []


def test_every_citation_resolves() -> None:
    """A key in square brackets, in a docstring or a page, is an entry of docs/references.bib."""
    texts = [(f"{path.relative_to(ROOT)} {where}", text) for path, where, text in reference.docstrings()]
    texts += [(page.name, page.read_text(encoding="utf-8")) for page in PAGES]
    cited = {
        (place, key)
        for place, text in texts
        for group in re.findall(r"\[([^\]]*)\]", text)
        for key in reference.KEY.findall(group)
    }
    cited |= {(claim.where, key) for claim in reference.claims() for key in claim.keys}
    known = reference.bibliography()
    assert sorted(f"{place}: {key}" for place, key in cited if key not in known) == []
    assert cited, "the pattern finds no citation at all"


@pytest.mark.parametrize("folder", ["kernel/mechanisms", "kernel/whole", "compile/statistics"])
def test_every_mechanism_and_statistic_states_its_theorem(folder: str) -> None:
    """A file that decides about privacy has a Privacy, Accuracy or Source line."""
    stated = {claim.path for claim in reference.claims()}
    files = [path for path in (reference.SRC / folder).glob("[a-z]*.py") if path.name != "entropy.py"]
    assert [path.name for path in files if path not in stated] == []


def theory() -> list[Path]:
    return [page for page in sorted((ROOT / "docs" / "theory").glob("*.md")) if page.name != "theorems.md"]


@pytest.mark.parametrize("page", theory(), ids=lambda page: page.name)
def test_every_theory_page_is_bound_to_its_test(page: Path) -> None:
    """A proof names the test that fails when the code leaves it, and that test exists."""
    named = re.findall(r"(tests/[\w/]+\.py)(?:::(\w+))?", page.read_text(encoding="utf-8"))
    assert named, "name a test as tests/FOLDER/test_FILE.py::test_NAME"
    for path, test in named:
        assert (ROOT / path).is_file(), path
        assert not test or f"def {test}(" in (ROOT / path).read_text(encoding="utf-8"), f"{path}::{test}"


def test_every_link_between_pages_leads_somewhere() -> None:
    """A relative link in README.md, docs/ or a page at the root points to a file that exists."""
    broken = [
        f"{page.relative_to(ROOT)}: {target}"
        for page in [*PAGES, *ROOT.glob("*.md")]
        for target in LINK.findall(readme.FENCE.sub("", page.read_text(encoding="utf-8")))
        if "://" not in target and not target.startswith("mailto:") and not (page.parent / target).exists()
    ]
    assert broken == []
