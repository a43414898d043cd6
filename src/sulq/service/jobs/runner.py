"""One job in a process of its own: it computes, and asks its questions of whoever forked it, over one socket.

What comes and goes is frames of strict JSON (service.ipc), never code. The child sends

    {"confined": ...}                 once, what it gave up
    {"call": ..., "body": ...}        a call of the clerk's; its reply is the one thing that is sent back
    {"done": n, "total": n, "result": ..., "answers": [...]}      a step; of `answers` those that were not sent before
    {"error": ...} or {"end": true}   the last one

It has neither the token nor another way to the clerk. Its memory goes with it, so nothing of a job is left to the next.
"""

from __future__ import annotations

import contextlib
import os
import socket
import threading
from collections.abc import Mapping
from typing import Final, cast

from sulq.api.named_asks import NamedAsks
from sulq.errors import AccessDenied, CuratorError, SulqError
from sulq.service import ipc
from sulq.service.ipc import Frame
from sulq.service.jobs import kinds
from sulq.service.jobs.kind import JobStep
from sulq.service.sandbox import isolation
from sulq.service.web.requests import ClerkClient, ClerkOracle

NICE: Final = 19  # asks come first
MAX_FILES_OPEN: Final = 64
MAX_FILE_BYTES: Final = 2**20  # it may write nowhere; a library that tries must not fill a disk


def run(sock: socket.socket, *, memory: int, outside: int) -> None:
    """Give up what a job does not need, then do the job."""
    with contextlib.suppress(OSError):
        os.nice(NICE)
    confined = isolation.confine(memory, MAX_FILES_OPEN, outside=outside, written=MAX_FILE_BYTES)
    del confined["rights"]  # those of the process it was forked from: its own folder of /proc is closed to it
    with contextlib.suppress(EOFError, OSError):  # nobody is there any more
        ipc.send(sock, {"confined": confined})
        work(sock)


def work(sock: socket.socket) -> None:
    """Do the job that is told first, and tell of its end."""
    told = ipc.receive(sock)
    line = _Line(sock)
    last: Frame = {"end": True}
    try:
        kind = next(kind for kind in kinds.KINDS if kind.name == told["kind"])
        asked = kind.parameters.model_validate(told["parameters"])
        asks = NamedAsks(ClerkOracle(ClerkClient(line.call, None), str(told["dataset"])))
        for step in kind.run(asks, asked):
            line.tell(step)
    except SulqError as error:
        last = ipc.refusal(error)
    except MemoryError:
        last = ipc.refusal(AccessDenied("job-memory", "The job needed more memory than a job may have."))
    except Exception:  # noqa: BLE001 - whatever it was, the analyst hears one constant (T31)
        last = ipc.refusal(CuratorError("engine-failed", ""))
    ipc.send(sock, last)


class _Line:
    """The socket, to a learner that may have threads: one call and its reply at a time."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._lock = threading.Lock()
        self._told = 0  # answers that were sent

    def call(self, frame: Mapping[str, object]) -> Frame:
        """A call of the clerk's, made by whoever has the token."""
        with self._lock:
            ipc.send(self._sock, {"call": frame["call"], "body": frame["body"]})
            return ipc.receive(self._sock)

    def tell(self, step: JobStep) -> None:
        """A step; of a growing list of answers what is new."""
        told: Frame = {"done": step.done, "total": step.total}
        rest = dict(step.result)
        answers = cast("list[object]", rest.pop("answers", None))
        if answers is not None:
            told["answers"], self._told = answers[self._told :], len(answers)
        with self._lock:
            ipc.send(self._sock, {**told, "result": rest})
