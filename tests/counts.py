"""How many cases a test runs: few in `make test`, many in `make audit`, and a note of what was run.

    SULQ_AUDIT=1            the long counts
    SULQ_AUDIT_SHARE=0.25   a quarter of them, for a run of limited time (never fewer than the short ones)
    SULQ_AUDIT_RUN=name     other cases than any run of another name; the same again for the same name
    SULQ_AUDIT_LOG=path     JSON lines of what was run: {"name", "done", "planned"}

A count asked inside a test is noted when that test passes; one asked while the
module is imported (a decorator's argument) when all the module's tests passed.
tests/conftest.py tells this module both.
"""

from __future__ import annotations

import json
import math
import os
import random
import sys
from pathlib import Path

_asked: dict[str, list[tuple[str, int, int]]] = {}
_noted: set[str] = set()


def auditing() -> bool:
    """Whether this is a long run."""
    return os.environ.get("SULQ_AUDIT") == "1"


def share() -> float:
    """The part of the long counts this run is asked for."""
    return min(max(float(os.environ.get("SULQ_AUDIT_SHARE", "1")), 0.0), 1.0)


def count(name: str, *, short: int, long: int) -> int:
    """The number of cases to run now, noted under `name` once its test has passed."""
    chosen = max(short, min(long, math.ceil(long * share()))) if auditing() else short
    test = os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" ")[0]
    _asked.setdefault(test or sys._getframe(1).f_globals["__name__"], []).append((name, chosen, long))
    return chosen


def generator(seed: object) -> random.Random:
    """What generated cases are drawn from: the same in every `make test`, fresh in every long run.

    So the cases of several long runs may be added up.
    """
    run = os.environ.get("SULQ_AUDIT_RUN", "") if auditing() else ""
    return random.Random(f"{run} {seed}" if run else seed)


def record(name: str, done: int, planned: int) -> None:
    """Note that `done` of `planned` cases ran; for a test that counts for itself instead of by `count`."""
    _noted.add(name)
    _write(name, done, planned)


def settle(where: str, *, passed: bool) -> None:
    """Write down the counts asked in a test or while importing a module, if it passed."""
    for name, chosen, planned in _asked.pop(where, []):
        if passed and name not in _noted:
            _write(name, chosen, planned)


def _write(name: str, done: int, planned: int) -> None:
    log = os.environ.get("SULQ_AUDIT_LOG")
    if log:
        with Path(log).open("a", encoding="utf-8") as lines:
            lines.write(json.dumps({"name": name, "done": done, "planned": planned}) + "\n")
