"""The service as a whole: what its parts may hold, by what they import."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import json, sys
import sulq.service.{part}.main
print(json.dumps(sorted(name for name in sys.modules if name.partition(".")[0] in ("duckdb", "sulq"))))
"""


def loaded(part: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(part=part)], capture_output=True, text=True, check=True, timeout=300
    )
    return set(done.stdout.translate(str.maketrans("", "", '[]",\n')).split())


def test_the_clerk_and_the_supervisor_cannot_read_data() -> None:
    """Neither loads an engine or DuckDB; control: the worker does."""
    for part in ("clerk", "supervisor"):
        assert not {name for name in loaded(part) if name.startswith(("duckdb", "sulq.sources"))}, part
    assert {"duckdb", "sulq.sources.source"} <= loaded("worker")


def test_the_web_process_has_no_curator() -> None:
    """What speaks HTTP loads no curator, no ledger and no engine."""
    assert not {
        name for name in loaded("web") if name.startswith(("duckdb", "sulq.compile", "sulq.curator", "sulq.sources"))
    }
