"""The bookkeeping of long runs: how many cases, and what is written down as done."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from tests import counts
from tools import audit
from tools.planned import kind, planned, why
from tools.reached import ROOT, imported, reached


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, 20),
        ({"SULQ_AUDIT": "0"}, 20),
        ({"SULQ_AUDIT": "1"}, 1000),
        ({"SULQ_AUDIT": "1", "SULQ_AUDIT_SHARE": "0.25"}, 250),
        ({"SULQ_AUDIT": "1", "SULQ_AUDIT_SHARE": "0.001"}, 20),
        ({"SULQ_AUDIT_SHARE": "0.5"}, 20),
    ],
)
def test_counts_are_short_long_or_a_share(
    monkeypatch: pytest.MonkeyPatch, settings: dict[str, str], expected: int
) -> None:
    """`make test` runs the short count, `make audit` its share of the long one and never fewer than the short."""
    for name in ("SULQ_AUDIT", "SULQ_AUDIT_SHARE", "SULQ_AUDIT_LOG"):
        monkeypatch.delenv(name, raising=False)
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    assert counts.count("cases", short=20, long=1000) == expected


def test_only_what_passed_is_written_down(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A count asked by a test that fails leaves no line; one that passes leaves one."""
    log = tmp_path / "log"
    monkeypatch.setenv("SULQ_AUDIT_LOG", str(log))
    for test, passed in (("a", False), ("b", True)):
        monkeypatch.setenv("PYTEST_CURRENT_TEST", f"{test} (call)")
        counts.count(f"cases of {test}", short=3, long=9)
        counts.settle(test, passed=passed)
    lines = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    assert lines == [{"name": "cases of b", "done": 3, "planned": 9}]


def test_runs_add_up(tmp_path: Path) -> None:
    """Two runs of a part make a larger part; a suite is complete when every count is reached and it passed."""
    log = tmp_path / "log"
    log.write_text('{"name": "x", "done": 30, "planned": 50}\n' * 2, encoding="utf-8")
    suite = audit.Suite("s", "tests/s.py", result="passed")
    assert audit.add(suite, log, "") == 0.6
    assert suite.counts == {"x": [60, 100]}
    assert not suite.complete
    audit.add(suite, log, "")
    assert suite.counts == {"x": [120, 100]}
    assert suite.complete
    suite.result = "failed"
    assert not suite.complete


def test_a_suite_reaches_what_it_imports_and_no_more(tmp_path: Path) -> None:
    """Straight, through others, inside functions and by name in a string; the parser of SQL is far off."""
    one = tmp_path / "test_one.py"
    one.write_text("def f():\n    from sulq.kernel.ledger import filter\n", encoding="utf-8")
    found = {path.relative_to(ROOT).as_posix() for path in reached([one]) - {one}}
    assert {"src/sulq/kernel/ledger/filter.py", "src/sulq/kernel/facts.py", "src/sulq/__init__.py"} <= found
    assert not any(path.startswith(("src/sulq/sql/", "src/sulq/service/")) for path in found)
    service = reached([ROOT / "tests/privacy/test_service.py"])
    assert {ROOT / "src/sulq/service/clerk/main.py", ROOT / "src/sulq/sources/duckdb/engine.py"} <= service
    run = tmp_path / "test_run.py"
    run.write_text('COMMAND = ["-m", "sulq.service.worker.main"]\n', encoding="utf-8")
    assert ROOT / "src/sulq/service/worker/main.py" in imported(run)
    assert ROOT / "src/sulq/service/sandbox/isolation.py" in reached([run])
    text = tmp_path / "test_text.py"
    text.write_text('"""About sulq.service.worker.main, in words."""\nx = "tests"\n', encoding="utf-8")
    assert imported(text) == {ROOT / "tests/__init__.py"}


def test_a_change_anywhere_a_suite_reaches_starts_its_counts_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """The digest follows every reached file, and no other."""
    suite = audit.Suite("s", "tests/test_audit.py")
    before = audit.digest(suite)
    more = reached([ROOT / suite.target]) | {ROOT / "src/sulq/cli/query.py"}
    monkeypatch.setattr(audit, "reached", lambda _: more)
    assert audit.digest(suite) != before


def test_what_earlier_code_showed_is_told_as_such(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A change starts counts anew; the fullest run before it stays in the table, named by its day, until outdone."""
    monkeypatch.setattr(audit, "HOME", tmp_path)
    name = "tests/test_audit.py"
    full = audit.Suite(name, name, digest="old", result="passed", counts={"x": [9, 9]}, day="2026-01-01")
    state = json.dumps({name: dataclasses.asdict(full)})
    (tmp_path / "state.json").write_text(state, encoding="utf-8")
    now = audit.Suite(name, name)
    now.digest = audit.digest(now)
    (suite,) = audit.load([now])
    assert suite.counts == {}
    assert "| x | cases | 9 | 9 | passed, code of 2026-01-01 |" in audit.table([suite])
    suite.counts, suite.result, suite.day = {"x": [3, 9]}, "passed", "2026-02-02"
    table = audit.table([suite])
    assert "| x | cases | 3 | 9 | passed | 0 |" in table
    assert "| x | cases | 9 | 9 | passed, code of 2026-01-01 |" in table
    suite.counts = {"x": [9, 9]}
    assert "code of" not in audit.table([suite])


def test_a_machine_without_the_state_goes_on_from_the_table(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A table written from what the table says holds the same rows; that code may have changed since is said."""
    monkeypatch.setattr(audit, "HOME", tmp_path)
    first, second = "tests/test_audit.py", "tests/test_docs.py"
    one = audit.Suite(first, first, digest="old", result="passed", day="2026-01-01", seconds=1234.0)
    one.counts = {"x": [1000, 1000], "y": [2, 3]}
    other = audit.Suite(second, second, result="passed", counts={"t": [7, 7]})
    other.day, other.digest = "2026-01-02", audit.digest(other)
    page = tmp_path / "audit.md"
    page.write_text(audit.table([one, other]), encoding="utf-8")
    monkeypatch.setattr(audit, "TABLE", page)
    found = audit.load([dataclasses.replace(each, counts={}, result="not run", digest="new") for each in (one, other)])
    told = audit.table(found)
    assert (
        f"| `{first}` | x | cases | 1,000 | 1,000 | passed, code of 2026-01-01 | 1,234 |\n|  | y | cases | 2 | 3 |"
        in told
    )
    assert f"| `{second}` | t | cases | 7 | 7 | passed, code of {audit.today()} | 0 |" in told
    page.unlink()
    assert [suite.earlier for suite in audit.load([one])] == [{}]


def test_a_page_lists_the_suites_that_plan_counts_and_no_other() -> None:
    """Those whose text asks for a scaled count; a suite that draws generated cases alone has nothing to scale."""
    listed = {suite.target for suite in audit.discover()}
    assert {"tests/answers/test_wire.py", "tests/conformance/test_engines.py"} <= listed
    assert "tests/conformance/test_tpch.py" not in listed
    assert audit.ITS_OWN not in listed
    assert all(planned(ROOT / target) for target in listed)


def test_what_was_never_run_is_listed_with_its_plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A count's name and number are read off the text, as far as the text says them."""
    suite = tmp_path / "test_new.py"
    suite.write_text(
        'counts.count("kills", short=1, long=2_000)\n'
        'count(f"coverage of {x}", short=1, long=len(y))\n'
        '"aba".count("a")\ndb.count(x, spend=y)\n',
        encoding="utf-8",
    )
    assert planned(suite) == {"kills": 2_000, "coverage of ...": 0}
    monkeypatch.setattr(audit, "ROOT", tmp_path)
    monkeypatch.setattr(audit, "digest", lambda _: "")
    page = audit.table([audit.Suite("test_new.py", "test_new.py")])
    assert (
        "| `test_new.py` | coverage of ... | rates | 0 | 0 | not run | 0 |\n|  | kills | faults | 0 | 2,000 |" in page
    )
    assert "never run: 1." in page


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("T43 kills", "faults"),
        ("discrete Laplace: draws at each scale", "draws"),
        ("coverage of intervals", "rates"),
        ("days of the calendar", "all"),
        ("random SQL against DuckDB", "cases"),
    ],
)
def test_each_count_is_of_a_kind_that_says_why_it_is_enough(name: str, expected: str) -> None:
    """By its name; what nothing else fits is a number of generated cases."""
    assert kind(name) == expected
    assert why(expected).endswith(".")
