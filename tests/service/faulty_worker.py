"""A worker for tests: the shipped one, on an engine that fails when a question names a certain number.

Every receipt that was acted on is noted beside the prepared copy, so that a second run of
one would be seen. The shipped server has no way to start this.
"""

from __future__ import annotations

import os
import signal
import socket
import time
from collections.abc import Callable
from pathlib import Path

from sulq.curator.run import Rows
from sulq.service.worker import main
from sulq.sources import engines
from sulq.sources.duckdb.engine import DuckEngine

SLOW, RAISES, DIES, SWELLS, REACHES_OUT, PAUSES = 4711, 4712, 4713, 4714, 4715, 4716
CANARY = "CANARY-7f3a"


class Faulty(DuckEngine):
    """Fails as the question's literal says."""

    def _asking(self, tallies):
        asked = repr(tallies)
        if f"{SLOW}" in asked:
            time.sleep(3600)
        if f"{PAUSES}" in asked:
            time.sleep(0.15)
        if f"{RAISES}" in asked:
            raise ValueError(f"cannot convert {CANARY}")
        if f"{DIES}" in asked:
            os.kill(os.getpid(), signal.SIGKILL)
        if f"{SWELLS}" in asked:
            bytearray(2**40)
        if f"{REACHES_OUT}" in asked:
            socket.socket().connect(("192.0.2.1", 80))
        return super()._asking(tallies)


def note(seq: int) -> None:
    with (Path(NOTES[0]) / "runs.log").open("a", encoding="ascii") as file:
        file.write(f"{seq}\n")


NOTES: list[str] = []


def start() -> None:
    """Patch, then run the shipped worker's main."""
    engines.ENGINES["duckdb"] = "tests.service.faulty_worker:Faulty"
    before: Callable[..., None] = Rows.__init__
    opened = main.OpenRows.__init__

    def begun(self, engine, redeem, *rest, **more):
        def noted(receipt, plan, event):
            fresh = redeem(receipt, plan, event)
            if fresh:
                note(receipt.seq)
            return fresh

        before(self, engine, noted, *rest, **more)

    def placed(self, declared, *rest):
        NOTES.append(str(declared.prepared.parent))
        opened(self, declared, *rest)

    Rows.__init__ = begun
    main.OpenRows.__init__ = placed
    main.main()


if __name__ == "__main__":
    start()
