"""Ctrl-C at any moment: what is said of the debit is so, the ledger is whole, the next ask is answered (T43, T45)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.counts import count

ROOT = Path(__file__).resolve().parents[2]


def child(folder: Path, trials: int, *more: str) -> subprocess.CompletedProcess[str]:
    """Run tests/privacy/interrupted.py; one that hangs is ended, and has failed."""
    paths = os.pathsep.join([str(ROOT), str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    words = [sys.executable, "-m", "tests.privacy.interrupted", str(folder), str(trials), *more]
    environment, limit = os.environ | {"PYTHONPATH": paths}, 60 + 5 * trials
    return subprocess.run(words, check=False, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=limit)


def test_interrupts_at_random_moments_are_told_as_the_ledger_has_them_T43_T45(tmp_path: Path) -> None:
    """Asks, a fit and a release, each sent a real SIGINT: no hang, no debit unsaid, none doubled, none taken back."""
    trials = count("interrupts", short=24, long=300)
    ended = child(tmp_path, trials, "interrupts")
    assert ended.returncode == 0, ended.stderr
    found = json.loads(ended.stdout)
    assert sum(found.values()) == trials
    assert found.get("charged", 0) > 0


def test_a_debit_that_a_call_does_not_hear_of_is_noticed(tmp_path: Path) -> None:
    """The control: where calls are not told of their debits the same trials fail."""
    ended = child(tmp_path, 60, "control", "untold")
    assert ended.returncode != 0
    assert "were charged and it said" in ended.stderr
