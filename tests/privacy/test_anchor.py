"""An old ledger does not pass for the new one, whenever its curator was killed (T46)."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path

from tests.counts import count
from tests.privacy.anchored import STEPS

ROOT = Path(__file__).resolve().parents[2]


def run(*words: object) -> dict[str, object]:
    """Run tests/privacy/anchored.py."""
    paths = os.pathsep.join([str(ROOT), str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-m", "tests.privacy.anchored", *map(str, words)],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_T46_killed_at_any_step_the_anchor_knows_every_acknowledged_debit() -> None:
    """Killed at each step, the ledger opens again, and every older copy of it is refused and mended by a burn (T46)."""
    number = count("T46 kills", short=90, long=1_800)
    found = run(number, random.randrange(2**32))
    assert found["violations"] == []
    assert min(found["hits"].values()) >= number // len(STEPS)
    assert found["debits"] > number  # the children did get somewhere before they died
    assert found["refused"] > number // 3  # so many old copies lacked a debit that somebody was told of


def test_T46_an_answer_before_its_anchor_is_noticed() -> None:
    """Control: children that acknowledge first and write the anchor afterwards are caught."""
    found = run(3 * len(STEPS), random.randrange(2**32), "late")
    assert any("is not anchored" in line for line in found["violations"])
