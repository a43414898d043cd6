"""A process that reads one ledger and ends: a long one takes a minute of a processor, which no ask is to wait for.

The clerk is one process, whose threads take turns at one interpreter; a thread that reads a ledger would take every
second turn. So the clerk starts another interpreter, which inherits its rules for files and network, at a lower
priority. It is told where the ledger lies over a pipe, since an address may hold a password, and says what it found
over another: a digest, no word of an entry.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, cast

from sulq.answers import wire
from sulq.curator.ledger.full_check import LedgerMoment, LedgerReading, read_ledger
from sulq.curator.ledger.postgres_place import Address
from sulq.errors import CuratorError, SulqError
from sulq.service import ipc
from sulq.service.ipc import Frame
from sulq.service.sandbox import isolation

MODULE: Final = "sulq.service.clerk.ledger_reader"
NICENESS: Final = 15  # a thirtieth of an ask's claim on a processor; with less it would keep the file's lock for long
MAX_WAIT_SECONDS: Final = 60.0  # seconds a call waits for a reading: half of what the web waits for a call


def read_aside(place: Path | Address, passed: tuple[int, str] | None, at: int) -> LedgerReading:
    """What `read_ledger` says, by a process of its own, which ends with this one.

    Raises:
        SetupError: `ledger-damaged`, or what else `read_ledger` raises.
        CuratorError: `engine-failed`; the process ended without a word.
    """
    where = [place.url, place.ledger, place.shown] if isinstance(place, Address) else str(place)
    told = json.dumps({"place": where, "passed": passed, "at": at}).encode() + b"\n"
    command = [sys.executable, "-P", "-m", MODULE]
    # Its standard input stays open until it has spoken: a child without one takes itself for orphaned.
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as reader:  # noqa: S603 - our own
        try:
            os.setpriority(os.PRIO_PROCESS, reader.pid, NICENESS)  # from its start on, which is most of a short reading
            with contextlib.suppress(BrokenPipeError):  # it ended at once, and says nothing
                os.write(cast("Any", reader.stdin).fileno(), told)
            said = cast("Any", reader.stdout).read()
        finally:
            reader.kill()
    if not said:
        raise CuratorError("engine-failed", "The ledger could not be read again.")
    found = ipc.opened(cast("Frame", wire.strict(said)))
    seen = cast("Any", found["passed"])
    return LedgerReading(LedgerMoment(*cast("Any", found["moment"])), None if seen is None else (seen[0], seen[1]))


def read(told: Mapping[str, Any]) -> Frame:
    """What the process says of the ledger that it is told of."""
    try:
        place = Address(*told["place"]) if isinstance(told["place"], list) else Path(told["place"])
        passed = None if told["passed"] is None else (told["passed"][0], told["passed"][1])
        found = read_ledger(place, passed, told["at"])
    except SulqError as error:
        return ipc.refusal(error)
    return {"ok": {"moment": found.moment, "passed": found.passed}}


def main() -> None:
    """Read as the clerk says; end at once when it is gone."""
    told = isolation.settings("reader")
    sys.stdout.write(json.dumps(read(told)))


if __name__ == "__main__":
    main()
