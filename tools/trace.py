"""Trace a process by the files of src/sulq it enters: which ones, how often it calls from one into another, how deep.

In this process by `Trace.during`; in a child by a `sitecustomize` that calls `follow_signals`, since a service's
processes are fresh interpreters. There SIGUSR1 starts a trace and SIGUSR2 ends it; both write a line to standard
error, the second one with what was seen.
Only the standard library is imported here, so that a child is as it would be without a trace.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Final

SRC: Final = str(Path(__file__).resolve().parents[1] / "src" / "sulq") + os.sep
MARK: Final = "sulq-trace "  # begins the line that a child writes


@dataclass
class Trace:
    """What was entered while it was on, by all threads of a process.

    A move is a call from one file of src/sulq into another, within a thread; its return is not counted again.
    Frames of libraries in between are passed over. The depth is the number of frames of src/sulq on one stack.
    """

    files: dict[str, str] = field(default_factory=dict)  # each with the function by which it was entered first
    moves: int = 0
    depth: int = 0
    on: bool = False

    def __post_init__(self) -> None:
        """Each thread has a stack of its own, begun anew with each start."""
        self._starts = 0
        self._own = threading.local()

    def start(self) -> None:
        """Begin anew."""
        self.files, self.moves, self.depth = {}, 0, 0
        self._starts += 1
        self.on = True

    @contextlib.contextmanager
    def during(self) -> Iterator[Trace]:
        """Trace this thread, and those it starts, until the block ends."""
        threading.setprofile(self.profile)
        sys.setprofile(self.profile)
        self.start()
        try:
            yield self
        finally:
            self.on = False
            sys.setprofile(None)
            threading.setprofile(None)  # type: ignore[arg-type]

    def profile(self, frame: FrameType, event: str, _argument: object) -> None:
        """What the interpreter tells of each call and each return of a Python function."""
        name = frame.f_code.co_filename
        if not self.on or event not in {"call", "return"} or not name.startswith(SRC):
            return
        if getattr(self._own, "start", None) != self._starts:
            self._own.start, self._own.stack = self._starts, []
        stack: list[str] = self._own.stack
        if event == "call":
            self.files.setdefault(name.removeprefix(SRC), frame.f_code.co_qualname)
            self.moves += bool(stack) and stack[-1] != name
            stack.append(name)
            self.depth = max(self.depth, len(stack))
        elif stack:  # a call that began before the trace did has no entry
            stack.pop()

    def to_json(self) -> dict[str, object]:
        """As a child writes it."""
        return {"files": self.files, "moves": self.moves, "depth": self.depth}


def follow_signals() -> None:
    """Trace this process from SIGUSR1 to SIGUSR2, which writes what was seen to standard error."""
    trace = Trace()

    def begin(*_: object) -> None:
        write({})
        trace.start()

    def end(*_: object) -> None:
        trace.on = False
        write(trace.to_json())

    def write(told: dict[str, object]) -> None:
        os.write(2, f"{MARK}{json.dumps({'pid': os.getpid(), **told})}\n".encode())

    signal.signal(signal.SIGUSR1, begin)
    signal.signal(signal.SIGUSR2, end)
    threading.setprofile(trace.profile)
    sys.setprofile(trace.profile)
