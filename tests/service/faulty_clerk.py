"""A clerk for tests: the shipped one, on a disk that fills up or loses its power, or by a clock that jumps.

SULQ_TEST_CLERK says which, SULQ_TEST_FOLDER where the tests say more: a file
`full` there is a full disk, `clock` holds the seconds by which the clock is off,
`calm` ends the power cuts; `dies-PID` ends the clerk of that number between a debit
and its reply; while `forgets` is there it begins without the names of its datasets.
The shipped server has no way to start this.
"""

from __future__ import annotations

import os
import random
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import apsw

from sulq.curator.ledger.ledger import Ledger
from sulq.service.clerk import main
from sulq.service.clerk.access import Access
from sulq.service.ipc import Frame
from tests.privacy.disks import Disk, PowerCut, VolatileDisk

FOLDER = Path(os.environ.get("SULQ_TEST_FOLDER", "."))
NEVER = 10**9


class FullDisk(Disk):
    """Takes no write while the file `full` is there."""

    def before(self, act: str, path: str, offset: int = 0, data: bytes = b"") -> None:
        if act == "write" and (FOLDER / "full").exists():
            raise apsw.FullError("no space left on device")


class CuttingDisk(VolatileDisk):
    """Loses its power in the middle of something: the process is gone, and so is what was not synced."""

    def before(self, act: str, path: str, offset: int = 0, data: bytes = b"") -> None:
        try:
            super().before(act, path, offset, data)
        except PowerCut:
            self._die()

    def _die(self) -> NoReturn:
        self.settle()
        with (FOLDER / "cuts").open("a", encoding="ascii") as file:
            file.write("cut\n")
        os._exit(9)


def jumping() -> float:
    """The time, off by as much as the tests say."""
    said = FOLDER / "clock"
    return time.time() + (float(said.read_text() or 0) if said.exists() else 0.0)


def slow() -> None:
    """A clerk that takes a second to open a ledger, and may die when an ask is answered."""
    shipped = main.Clerk._reply

    def reply(self: main.Clerk, sock: socket.socket, found: Frame, *, paid: bool) -> None:
        if paid and (FOLDER / f"dies-{os.getpid()}").exists():  # looked at, not read: the clerk may not
            os._exit(9)
        shipped(self, sock, found, paid=paid)

    main.Clerk._reply = reply
    if (FOLDER / "forgets").exists():
        main.expect = lambda *_: None
        late = main.DatasetManager.take_on
        main.DatasetManager.take_on = lambda self, declared, **more: (time.sleep(1.0), late(self, declared, **more))[1]


def options(kind: str) -> dict[str, object]:
    """What the ledger is opened with."""
    if kind == "full":
        DISKS.append(FullDisk())
        return {"vfs": DISKS[-1].name}
    if kind in {"power", "no-sync"}:
        draw = random.Random()
        cut = NEVER if (FOLDER / "calm").exists() else draw.randrange(40, 400)
        DISKS.append(CuttingDisk(cut, draw, honest=kind == "power"))
        return {"vfs": DISKS[-1].name}
    return {"clock": jumping}


DISKS: list[Disk] = []  # a file system lives as long as its object


def start() -> None:
    """Patch, then run the shipped clerk's main."""
    kind = os.environ["SULQ_TEST_CLERK"]
    opened: Callable[..., Ledger] = Ledger.open
    begun: Callable[..., None] = Access.__init__
    Ledger.open = lambda path, **more: opened(path, **more, **options(kind))
    if kind == "slow":
        slow()
        Ledger.open = lambda path, **more: (time.sleep(1.0), opened(path, **more))[1]
    if kind == "clock":
        Access.__init__ = lambda self, path: begun(self, path, clock=jumping)
    main.main()


if __name__ == "__main__":
    start()
