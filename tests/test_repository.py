"""What may be committed: no trace of a machine or a registry, nothing large, and what a reader looks for."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

# Each pattern has a bracket somewhere, so that it does not find itself here.
FORBIDDEN = {
    "a path of some machine": r"(?<![\w.~])/(?:[w]ork|[r]oot|[h]ome|[t]mp|[o]pt|[U]sers)/\w",
    "a package registry": r"[p]ypi\.org|[p]ythonhosted|--(?:extra-)?[i]ndex-url|[f]ind-links",
    "how the work was organised": r"(?i)\b(?:iss[u]e #?\d|sub-?[a]gent|[l]anguage model|[c]hatbot|[h]and-?off)\b",
    "a conflict left standing": r"(?m)^(?:<{7}|>{7}) ",
}


def committed() -> list[Path]:
    listing = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if listing.returncode:
        pytest.skip("needs the repository: git lists no files here")
    return [ROOT / name for name in listing.stdout.split("\0") if name and (ROOT / name).is_file()]


@pytest.mark.parametrize("what", FORBIDDEN)
def test_no_file_gives_away_where_it_was_made(what: str) -> None:
    """A committed file names no machine's paths, no registry and nobody's way of working."""
    found = []
    for path in committed():
        text = path.read_bytes().decode("utf-8", errors="replace")
        found += [f"{path.relative_to(ROOT)}: {hit.group()}" for hit in re.finditer(FORBIDDEN[what], text)]
    assert found == []


@pytest.mark.parametrize(
    ("what", "text"),
    [
        ("a path of some machine", "see /ho" + "me/ada/notes"),
        ("a package registry", "https://py" + "pi.org/simple"),
        ("how the work was organised", "as iss" + "ue 7 asks"),
        ("a conflict left standing", "<" * 7 + " ours"),
    ],
)
def test_the_patterns_find_what_they_are_for(what: str, text: str) -> None:
    """Control: each pattern matches an example."""
    assert re.search(FORBIDDEN[what], text)


def test_no_file_is_large() -> None:
    """Nothing above a megabyte is committed."""
    assert [path for path in committed() if path.stat().st_size > 2**20] == []


def test_what_a_reader_looks_for_is_there() -> None:
    """Licence, changes, ways to contribute and to report, third parties, and an executable .ci/run."""
    assert "Apache License" in (ROOT / "LICENSE").read_text(encoding="utf-8")
    for name in ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "THIRD_PARTY.md", "src/sulq/py.typed"):
        assert (ROOT / name).is_file()
    assert os.access(ROOT / ".ci" / "run", os.X_OK)


def test_the_readme_shows_python_and_the_commands_at_once() -> None:
    """The first screen holds Python in use; `make demo` and `make test` are named."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert "```python" in "\n".join(readme.splitlines()[:20])
    assert "make demo" in readme
    assert "make test" in readme


def test_the_promise_and_the_way_to_report_are_published_T92() -> None:
    """SECURITY.md holds the threat model, how to report, and the known vulnerabilities (T92)."""
    security = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    for heading in ("## Reporting", "## Known vulnerabilities", "**Promise.**", "**Not defended.**", "**Timing.**"):
        assert heading in security


def test_every_requirement_is_pinned_T89() -> None:
    """constraints.txt fixes an exact version for all that is installed, and names no index (T89)."""
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = [line for line in lines if line and not line.startswith("#")]
    assert all(re.fullmatch(r"[A-Za-z0-9_.-]+==[\w.]+", line) for line in pins)
    pinned = {re.sub(r"[-_.]+", "-", line.partition("==")[0]).lower() for line in pins}
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    wanted = re.findall(r'^    "([a-z][a-z0-9-]*)>=', project, re.MULTILINE)
    assert wanted
    assert set(wanted) <= pinned


def test_every_decision_is_numbered_and_short() -> None:
    """Decisions are numbered without gaps and stay under a page."""
    pages = sorted((ROOT / "docs" / "decisions").glob("[0-9]*.md"))
    assert [int(page.name[:4]) for page in pages] == list(range(1, len(pages) + 1))
    assert all(len(page.read_text(encoding="utf-8").splitlines()) <= 60 for page in pages)
