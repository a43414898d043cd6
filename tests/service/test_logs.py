"""The operator's log: lines of JSON that name what happened, and never an exception's text."""

from __future__ import annotations

import contextvars
import io
import json
import logging
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from sulq.service import logs

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


@pytest.fixture
def lines() -> Iterator[Callable[[], list[dict[str, object]]]]:
    """What is logged meanwhile, as the server writes it."""
    out = io.StringIO()
    handler = logging.StreamHandler(out)
    handler.setFormatter(logs.Lines("clerk"))
    log = logging.getLogger("sulq")
    before = log.level
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    yield lambda: [json.loads(line) for line in out.getvalue().splitlines()]
    log.removeHandler(handler)
    log.setLevel(before)


def test_lines_say_which_request_they_are_about(lines: Callable[[], list[dict[str, object]]]) -> None:
    """Its id and its principal, also from a thread that works for it; nothing before, nothing after, nothing of others.

    What is no id is left out: another process names it, and the log repeats no text of anybody's.
    """
    log = logging.getLogger("sulq.test")
    log.info("before")
    with logs.during("0123456789abcdef"):
        log.info("unknown")
        logs.about("alice")
        log.info("known")
        with ThreadPoolExecutor(1) as pool:
            pool.submit(contextvars.copy_context().run, log.info, "aside").result()
            pool.submit(log.info, "another").result()
        assert logs.request_named() == {"request": "0123456789abcdef"}
        with logs.during(f"{CANARY}\n", "bob"):
            log.info("odd")
            assert logs.request_named() == {}
        log.info("again")
    log.info("after")
    about = [(line["event"], line.get("request"), line.get("principal")) for line in lines()]
    own = "0123456789abcdef"
    assert about == [
        ("before", None, None), ("unknown", own, None), ("known", own, "alice"), ("aside", own, "alice"),
        ("another", None, None), ("odd", None, "bob"), ("again", own, "alice"), ("after", None, None),
    ]  # fmt: skip


def test_a_histogram_keeps_bounds_and_their_sum() -> None:
    """A time at a bound is within it; one past the last bound is counted apart."""
    found = logs.Histogram()
    for seconds in (0.0, 0.005, 0.0051, 30.0, 31.0):
        found.add(seconds)
    assert found.told() == {"counts": [2, 1, *[0] * (len(logs.BOUNDS) - 3), 1, 1], "sum": pytest.approx(61.0101)}
