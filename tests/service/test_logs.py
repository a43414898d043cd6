"""The operator's log: lines of JSON that name what happened, and never an exception's text."""

from __future__ import annotations

import json
import subprocess
import sys

CANARY = "CANARY-22c1"
PROGRAM = f"""
import logging, sys, threading
from sulq.service import logs
logs.start("worker")
log = logging.getLogger("sulq.test")
log.info("it began", extra={{"dataset": "survey", "secret": object()}})
try:
    raise ValueError("{CANARY}")
except ValueError:
    log.exception("it failed")
thread = threading.Thread(target=lambda: int("{CANARY}"))
thread.start(); thread.join()
class Odd:
    def __del__(self): raise OSError("{CANARY}")
Odd()
float("{CANARY}")
"""


def test_no_text_of_an_exception_reaches_the_log_T31() -> None:
    """Logged, uncaught in any thread, or raised where it cannot be: the type is written, the text is not."""
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 1
    assert CANARY not in done.stdout + done.stderr
    lines = [json.loads(line) for line in done.stderr.splitlines()]
    assert [line["event"] for line in lines] == [
        "it began", "it failed", "nobody caught an error", "an error could not be raised", "nobody caught an error",
    ]  # fmt: skip
    assert lines[0] | {"part": "worker", "dataset": "survey", "level": "info"} == lines[0]
    assert "secret" not in lines[0]
    assert [line.get("error") for line in lines[1:3]] == ["ValueError", "ValueError"]
    assert all(line["time"].endswith("+00:00") for line in lines)
