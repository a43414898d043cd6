"""The list of planted bugs is whole and current: `make mutants` runs them, this looks that it can."""

from __future__ import annotations

import ast
import datetime
import re
from pathlib import Path

import pytest

from tools.mutant import Mutant
from tools.mutants import COPIED, TABLE, Outcome, collect, copied, judged, line, page, planted, tried
from tools.mutants_list import MUTANTS

ROOT = Path(__file__).resolve().parents[1]


def test_every_real_bug_of_the_threat_model_is_planted() -> None:
    """28 bugs of other systems, and those found in our own, each once."""
    assert sum(not mutant.bug.startswith("sulq ") for mutant in MUTANTS) == 28
    assert len({mutant.bug for mutant in MUTANTS}) == len(MUTANTS)


def test_every_named_test_is_found_where_the_bugs_are_planted(tmp_path: Path) -> None:
    """In the copy, down to a parameter. Control: a name that no test has is told."""
    named = sorted({test for mutant in MUTANTS for test in mutant.tests})
    place = copied(tmp_path / "copy")
    assert collect(place, named) == ""
    assert "test_of_no_such_name" in collect(place, ["tests/test_errors.py::test_of_no_such_name"])


def test_the_page_says_when_each_bug_was_last_noticed() -> None:
    """docs/mutants.md has every mutant, all noticed. Control: the page of a run in which one was not says so."""
    text = TABLE.read_text(encoding="utf-8")
    assert re.search(
        rf"^Last run: \d{{4}}-\d\d-\d\d, .*: {len(MUTANTS)} of {len(MUTANTS)} noticed\.$", text, re.MULTILINE
    )
    assert [row for row in text.splitlines() if row.startswith("| ")][1:] == [
        row for mutant in MUTANTS for row in text.splitlines() if row.startswith(f"| {mutant.bug} | {mutant.what} | ")
    ]
    missed = page([Outcome(MUTANTS[0], "", "NOT NOTICED", 1.0)], datetime.date(2026, 1, 1))
    assert "0 of 1 noticed" in missed
    assert "**not noticed**" in missed


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.bug)
def test_a_mutant_is_one_line_of_our_code_and_names_tests_that_exist(mutant: Mutant) -> None:
    """The line stands once in its file, the file with the bug is still Python, and each named test is there."""
    source = (ROOT / "src" / "sulq" / mutant.file).read_text(encoding="utf-8")
    changed = planted(mutant, source)
    ast.parse(changed)
    assert [a != b for a, b in zip(source.splitlines(), changed.splitlines(), strict=True)].count(True) == 1
    for test in mutant.tests:
        path, _, name = test.partition("::")
        text = (ROOT / path).read_text(encoding="utf-8")
        assert not name or f"def {name.partition('[')[0]}(" in text


def test_a_line_that_is_gone_is_an_error_and_not_a_pass(tmp_path: Path) -> None:
    """Control: a stale line, and a bug that nothing notices, both fail; the file is as before afterwards."""
    for name in COPIED:
        assert (ROOT / name).exists()
    (tmp_path / "src" / "sulq").mkdir(parents=True)
    (tmp_path / "tests").mkdir()
    code = tmp_path / "src" / "sulq" / "code.py"
    code.write_text("x = 1\ny = 1\n", encoding="utf-8")
    (tmp_path / "tests" / "test_x.py").write_text(
        'from pathlib import Path\n\n\ndef test_x():\n    assert "x = 1" in Path("src/sulq/code.py").read_text()\n',
        encoding="utf-8",
    )
    tests = ("tests/test_x.py",)
    stale = tried(Mutant("a", "b", "code.py", "z = 1", "z = 2", tests), tmp_path)
    unseen = tried(Mutant("a", "b", "code.py", "y = 1", "y = 2", tests), tmp_path)
    seen = tried(Mutant("a", "b", "code.py", "x = 1", "x = 2", tests), tmp_path)
    missing = tried(Mutant("a", "b", "code.py", "x = 1", "x = 2", ("tests/test_y.py",)), tmp_path)
    assert [outcome.killed for outcome in (stale, unseen, seen, missing)] == [False, False, True, False]
    assert "0 times" in stale.fault
    assert unseen.fault == "NOT NOTICED"
    assert "test_x" in line(seen)
    assert "FAILED" in line(unseen)
    assert code.read_text(encoding="utf-8") == "x = 1\ny = 1\n"
    assert not Outcome(MUTANTS[0], "", "", 0.0).killed


@pytest.mark.parametrize(
    ("summary", "killed"),
    [
        ("FAILED tests/a.py::test_b[1-2] - assert 1 == 2", True),
        ("FAILED tests/a.py::test_b - AssertionError: assert 3 < 2", True),
        ("FAILED tests/a.py::test_b - Failed: DID NOT RAISE <class 'sulq.errors.SulqError'>", True),
        ("FAILED tests/a.py::test_b - ValueError: cannot convert NaN to integer ratio", False),
        ("FAILED tests/a.py::test_b[a b] - sulq.errors.SetupError: no", False),
        ("ERROR tests/a.py::test_b - assert 1 == 2", False),
        ("ERROR tests/a.py", False),
        ("1 failed", False),
    ],
)
def test_a_test_that_breaks_down_is_no_kill(summary: str, killed: bool) -> None:  # noqa: FBT001 - a parameter of the test
    """Only a check that did not hold notices a bug: a crash, or a test that could not be set up, does not."""
    noticed, why = judged(f"..F\n{summary}\n1 failed in 0.1s\n")
    assert (noticed != "", why == "") == (killed, killed)


def test_a_mutant_that_makes_its_test_crash_is_not_killed(tmp_path: Path) -> None:
    """The same end to end: an error that the bug brings about is a fault of the list."""
    (tmp_path / "src" / "sulq").mkdir(parents=True)
    (tmp_path / "tests").mkdir()
    (tmp_path / "src" / "sulq" / "code.py").write_text("x = 1\n", encoding="utf-8")
    text = "from pathlib import Path\n\n\ndef test_x():\n    scope = {}\n"
    text += '    exec(Path("src/sulq/code.py").read_text(), scope)\n    assert scope["x"] == 1\n'
    (tmp_path / "tests" / "test_x.py").write_text(text, encoding="utf-8")
    tests = ("tests/test_x.py",)
    crashed = tried(Mutant("a", "b", "code.py", "x = 1", "x = 1 / 0", tests), tmp_path)
    assert not crashed.killed
    assert "broke down: ZeroDivisionError" in crashed.fault
    assert tried(Mutant("a", "b", "code.py", "x = 1", "x = 2", tests), tmp_path).killed
