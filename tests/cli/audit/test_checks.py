"""`sulq audit`: its checks pass here, fail where something is broken, and the exit code says which."""

from __future__ import annotations

import importlib

import numpy as np
import pytest
from typer.testing import CliRunner

from sulq.audit import ATTACKS
from sulq.cli import app
from sulq.cli.audit.laws import LawScope, Result

command = importlib.import_module("sulq.cli.audit.checks")


def run(checks: dict, monkeypatch: pytest.MonkeyPatch, *more: str):
    monkeypatch.setattr(command, "CHECKS", checks)
    return CliRunner().invoke(app, ["audit", *more])


def test_the_exit_code_says_whether_all_checks_passed(monkeypatch: pytest.MonkeyPatch) -> None:
    """0 where all pass, 1 where one fails; the table has a row each, and --deep reaches the checks."""
    seen = []

    def good(scope: LawScope) -> Result:
        seen.append(scope.deep)
        return Result(passed=True, told="fine")

    done = run({"one": good}, monkeypatch, "--deep")
    assert (done.exit_code, seen) == (0, [True])
    assert "1 of 1 checks passed" in done.output
    done = run({"one": good, "two": lambda scope: Result(passed=scope.deep, told="odd")}, monkeypatch)
    assert done.exit_code == 1
    assert "FAIL" in done.output
    assert "1 of 2 checks passed" in done.output


@pytest.mark.parametrize("name", ["ledger", "membership and canaries"])
def test_a_check_passes_on_this_copy(name: str) -> None:
    """The quick ones whole; the others' parts have tests of their own (tests/audit, tests/privacy)."""
    found = command.CHECKS[name](LawScope())
    assert found.passed, found.told
    assert "controls noticed" in found.told


def test_record_and_replay_notices_its_controls(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few questions here: equal runs, and both controls are noticed; a harness that sees nothing fails the check."""
    monkeypatch.setattr(command, "UNITS", command.UNITS[:1])
    monkeypatch.setattr(command, "QUESTIONS", (30, 30))
    found = command.replay(LawScope(random=np.random.default_rng(1)))
    assert found.passed, found.told
    assert all(kind in found.told for kind in command.KINDS)
    monkeypatch.setattr(command, "differences", lambda *_: [])
    assert not command.replay(LawScope()).passed


def test_record_and_replay_asks_every_kind_or_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every relation and every kind of question is put; a kind that was never answered fails the check."""
    assert {unit.neighbors for unit in command.UNITS} == {"add_remove", "replace_one", "zero_out"}
    asked = command._questions(command.Drawer(np.random.default_rng(2)))
    assert {type(question).__name__ for question in asked} == command.KINDS
    monkeypatch.setattr(command, "UNITS", command.UNITS[:1])
    monkeypatch.setattr(command, "QUESTIONS", (10, 10))
    monkeypatch.setattr(command, "_questions", lambda drawer: [drawer.sums() for _ in range(10)])
    assert not command.replay(LawScope()).passed


def test_an_attack_that_finds_nothing_without_noise_fails_its_check(monkeypatch: pytest.MonkeyPatch) -> None:
    """Control: if the oracle without noise were noisy too, the check would not pass for want of its control."""
    monkeypatch.setattr(command, "exact", lambda db: db)
    monkeypatch.setattr(command, "averaging", lambda *_args, **_more: command.Finding("x", 0, 1, 0.7))
    assert not command.repetition(LawScope()).passed


def test_an_attack_is_on_so_many_that_success_would_refute_the_guarantee(monkeypatch: pytest.MonkeyPatch) -> None:
    """120 guesses or more at epsilon 1. A check on 51, all right without noise, fails: it could show nothing."""
    assert min(command.DATABASES) >= 120
    monkeypatch.setattr(
        command, "averaging", lambda door, **_: command.Finding("x", int(isinstance(door, Exact)), 1, 0.731)
    )
    monkeypatch.setattr(command, "exact", lambda _db: Exact())
    for databases, passed in ((51, False), (120, True)):
        monkeypatch.setattr(command, "DATABASES", (databases, databases))
        assert command.repetition(LawScope()).passed == passed


class Exact:
    """Stands for a database without noise."""


def test_the_made_up_data_can_be_made_up_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The number is printed, and with it the same people come again; without it, others do. Noise has no seed."""
    drawn = []

    def made_up(scope: LawScope) -> Result:
        drawn.append(scope.random.integers(2**60))
        return Result(passed=True, told="fine")

    said = [run({"one": made_up}, monkeypatch, *more).output for more in ((), (), ("--case", "7"), ("--case", "7"))]
    assert "--case 7" in said[2]
    case = said[0].rpartition("--case ")[2].split()[0]
    run({"one": made_up}, monkeypatch, "--case", case)
    assert drawn[2] == drawn[3] != drawn[0] != drawn[1]
    assert drawn[4] == drawn[0]


def test_a_damaged_ledger_that_verifies_fails_the_check(monkeypatch: pytest.MonkeyPatch) -> None:
    """Control: a verification that looks at nothing notices none of the damages, and that is not left out."""
    report = command.ledger(LawScope())
    assert report.passed
    assert f"{3 * len(command.DAMAGES)} of {3 * len(command.DAMAGES)} controls" in report.told
    honest, seen = command.verify, []

    def careless(path, **more):
        seen.append(seen[0] if seen else honest(path, **more))
        return seen[0]

    monkeypatch.setattr(command, "verify", careless)
    found = command.ledger(LawScope())
    assert not found.passed
    assert "0 of 12 controls" in found.told


def test_every_attack_is_run_by_the_command() -> None:
    """What is in ATTACKS is called by a check."""
    assert {attack.__name__ for attack in ATTACKS} <= set(dir(command))
