"""A contender's process, asked once at a time: how long it took, what it found, how much memory it ever held."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import psutil

from benchmarks.allowed import GONE, PATIENCE, STEP, computed

LEAVING = 10.0  # seconds to end by itself
HERE = Path(__file__).parent / "contenders"


class Ended(Exception):
    """It gives no further answer: "did not finish", "unsupported" or "failed", and why."""

    def __init__(self, outcome: str, why: str) -> None:
        super().__init__(outcome, why)
        self.outcome, self.why = outcome, why


def late(waited: float, spent: float, seconds: float) -> bool:
    """Whether it had its seconds both by the clock and of the processors, or hangs (as benchmarks.allowed has it)."""
    return waited >= PATIENCE * seconds or (waited >= seconds and spent >= seconds)


class Child:
    """One contender on one workload."""

    def __init__(self, python: Path, script: str, told: dict[str, Any], *, log: Path | None = None) -> None:
        self._log = log.open("ab") if log else subprocess.DEVNULL
        self._child = subprocess.Popen(
            [str(python), str(HERE / f"{script}.py"), json.dumps(told)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            env=os.environ | {"TMPDIR": told.get("scratch") or tempfile.gettempdir()},
        )
        self._process = psutil.Process(self._child.pid)
        self._said = selectors.DefaultSelector()
        self._said.register(self._child.stdout, selectors.EVENT_READ)

    def ready(self, seconds: float) -> dict[str, Any]:
        """What it tells when it is ready, which it has so many seconds to be."""
        return self._hear(seconds, "not ready")

    def ask(self, seconds: float) -> dict[str, Any]:
        """One answer, for which it has so many seconds."""
        try:
            self._child.stdin.write(b"\n")
            self._child.stdin.flush()
        except BrokenPipeError:
            raise Ended("failed", "it ended by itself") from None
        return self._hear(seconds, "no answer")

    def peak(self) -> int:
        """The most memory it and its children ever held, in bytes: each one's own peak, added."""
        total = 0
        with contextlib.suppress(*GONE):
            for each in [self._process, *self._process.children(recursive=True)]:
                with contextlib.suppress(OSError, ValueError):
                    status = Path(f"/proc/{each.pid}/status").read_text(encoding="ascii", errors="replace")
                    held = (int(row.split()[1]) for row in status.splitlines() if row.startswith("VmHWM"))
                    total += next(held, 0) * 1024  # one that ended and was not waited for holds nothing
        return total

    def _hear(self, seconds: float, otherwise: str) -> dict[str, Any]:
        before, start = computed(self._process), time.monotonic()
        while not self._said.select(STEP):
            if late(time.monotonic() - start, computed(self._process) - before, seconds):
                raise Ended("did not finish", f"{otherwise} in {seconds:g} s")
        text = self._child.stdout.readline()
        if not text:
            raise Ended("failed", f"it ended with code {self._child.wait()} and said nothing")
        line = json.loads(text)
        for outcome in ("unsupported", "failed"):
            if outcome in line:
                raise Ended(outcome, line[outcome])
        return line

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:  # one that answers to the last may put its things in order
            with contextlib.suppress(OSError, subprocess.TimeoutExpired):
                self._child.stdin.close()
                self._child.wait(LEAVING)
        with contextlib.suppress(*GONE):
            for each in [*self._process.children(recursive=True), self._process]:
                with contextlib.suppress(*GONE):
                    each.kill()
        self._child.wait()
        for pipe in (self._child.stdin, self._child.stdout):
            with contextlib.suppress(OSError):
                pipe.close()
        if self._log != subprocess.DEVNULL:
            self._log.close()
