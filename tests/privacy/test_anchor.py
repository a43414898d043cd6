"""An old ledger does not pass for the new one, whenever its curator was killed (T46)."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from tests.counts import count
from tests.curator.ledger.places import STORES
from tests.postgres import server
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


def where(kind: str) -> str:
    """Where ledgers lie, as anchored.py wants it said."""
    return "file" if kind == "sqlite" else server().url()


@pytest.mark.parametrize("kind", STORES)
def test_killed_at_any_step_the_anchor_knows_every_acknowledged_debit_T46(kind: str) -> None:
    """Killed at each step, the ledger opens again, and every older copy of it is refused and mended by a burn (T46)."""
    number = count(f"T46 kills, {kind}", short=45 if kind == "sqlite" else 27, long=1_800)
    found = run(number, random.randrange(2**32), where(kind))
    assert found["violations"] == []
    assert min(found["hits"].values()) >= number // len(STEPS)
    assert found["debits"] > number  # the children did get somewhere before they died
    assert found["refused"] > number // 3  # so many old copies lacked a debit that somebody was told of


@pytest.mark.parametrize("kind", STORES)
def test_an_answer_before_its_anchor_is_noticed_T46(kind: str) -> None:
    """Control: children that acknowledge first and write the anchor afterwards are caught."""
    found = run(3 * len(STEPS), random.randrange(2**32), where(kind), "late")
    assert any("is not anchored" in line for line in found["violations"])
