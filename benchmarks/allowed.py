"""A peer's process with so many seconds: of the clock and, should the machine be busy, of its own computing too."""

from __future__ import annotations

import json
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

STEP = 0.5  # seconds between two looks at its time
PATIENCE = 4  # times its seconds by the clock, after which it ends though it has not computed as long: it hangs
GONE = (psutil.NoSuchProcess, psutil.AccessDenied)


@dataclass(frozen=True)
class Ended:
    """The JSON lines a process wrote, and how it ended."""

    lines: list[dict[str, Any]]
    late: bool
    failed: bool


def computed(process: psutil.Process) -> float:
    """Seconds of computing by a process and its children; 0 when it has gone."""
    try:
        family = [process, *process.children(recursive=True)]
        return sum(sum(each.cpu_times()[:2]) for each in family)
    except GONE:
        return 0.0


def allowed(words: list[str], seconds: float, cwd: Path | None = None) -> Ended:
    """Run it until it ends, or has had so many seconds both by the clock and of the processors.

    On a quiet machine a process that computes has had both at once; on a busy one it loses nothing to others.
    """
    with tempfile.TemporaryFile("w+") as said:
        child = subprocess.Popen(words, stdout=said, stderr=subprocess.DEVNULL, cwd=cwd)
        process, waited, late = psutil.Process(child.pid), 0.0, False
        while not late:
            try:
                child.wait(STEP)
                break
            except subprocess.TimeoutExpired:
                waited += STEP
            late = waited >= PATIENCE * seconds or (waited >= seconds and computed(process) >= seconds)
        if late:
            for each in [*process.children(recursive=True), process]:
                each.kill()
            child.wait()
        said.seek(0)
        lines = [json.loads(line) for line in said if line.startswith("{") and line.endswith("\n")]
    return Ended(lines, late, not late and child.returncode != 0)
