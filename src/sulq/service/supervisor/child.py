"""Start of a server process: reads its settings from a pipe that stays open as long as the supervisor lives."""

from __future__ import annotations

import contextlib
import gc
import os
import threading
from typing import Final

from sulq.answers import wire
from sulq.service import logs
from sulq.service.ipc import Frame
from sulq.service.sandbox import isolation, launcher

# A question makes thousands of small objects, nearly all without cycles: with Python's own thresholds the garbage
# collector took a third of its time.
RARELY: Final = (20_000, 20, 50)


def settings(part: str) -> Frame:
    """Read the supervisor's settings; exit with the supervisor, and disable ptrace and core dumps."""
    isolation.closed()
    logs.start(part)
    gc.freeze()  # what was imported stays: no collection need look at it again
    gc.set_threshold(*RARELY)
    told = wire.strict(_line())
    if not isinstance(told, dict):
        raise TypeError("a child is started by the supervisor")
    threading.Thread(target=_orphaned, daemon=True).start()
    return told


def _line() -> bytes:
    """Standard input up to the end of a line; without Python's buffer, whose lock a thread may hold at exit."""
    found = bytearray()
    while not found.endswith(b"\n"):
        part = os.read(0, 2**16)
        if not part:
            break
        found += part
    return bytes(found)


def tied() -> None:
    """Exit with the proxy to the database, if there is one: the next worker has another."""
    number = os.environ.get(launcher.RELAY)
    if number is not None:
        threading.Thread(target=_severed, args=(int(number),), daemon=True).start()


def _severed(channel: int) -> None:
    with contextlib.suppress(OSError):  # a relay that was killed may leave it broken, which is an end as well
        os.read(channel, 1)
    os._exit(4)


def _orphaned() -> None:
    """Exit when the supervisor is gone: nobody else would stop an overrun."""
    while os.read(0, 2**16):
        pass
    os._exit(0)
