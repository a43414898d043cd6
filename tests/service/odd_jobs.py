"""The jobs' process with kinds that misbehave, for tests; otherwise the real one."""

from __future__ import annotations

import os
import socket
import sys
import threading
import warnings
from collections.abc import Callable, Iterator

from sulq.api.named_asks import NamedAsks
from sulq.errors import SulqError
from sulq.service.jobs import kinds, main
from sulq.service.jobs.kind import JobKind, JobStep
from sulq.service.web.requests import Body

CANARY = "CANARY-odd-jobs"
BLOCK = 16 * 2**20


class Odd(Body):
    """What is tried."""

    path: str = ""


def computes(_asks: NamedAsks, _asked: Odd) -> Iterator[JobStep]:
    yield JobStep(1, 2, {"found": 1})
    while True:
        pass


def swells(_asks: NamedAsks, _asked: Odd) -> Iterator[JobStep]:
    yield JobStep(1, 2, {"found": 1})
    held = []
    while True:
        held.append(bytearray(BLOCK))


def dies(_asks: NamedAsks, _asked: Odd) -> Iterator[JobStep]:
    yield JobStep(1, 2, {"found": 1})
    os._exit(7)


def speaks(_asks: NamedAsks, _asked: Odd) -> Iterator[JobStep]:
    """A library that says what must not be in a log."""
    yield JobStep(1, 2, {"found": 1})
    print(CANARY)
    print(CANARY, file=sys.stderr)
    os.write(2, CANARY.encode())
    warnings.warn(CANARY, stacklevel=1)
    raise RuntimeError(CANARY)


def returns_much(_asks: NamedAsks, _asked: Odd) -> Iterator[JobStep]:
    for number in range(1, 100):
        yield JobStep(number, 100, {"answers": [CANARY * 2**16] * number})


def pries(asks: NamedAsks, asked: Odd) -> Iterator[JobStep]:
    """Try what no job needs."""
    clerk = asks._oracle.clerk

    def tried(work: Callable[[], object]) -> str:
        try:
            work()
        except (OSError, SulqError) as error:
            return getattr(error, "code", type(error).__name__)
        return "done"

    yield JobStep(
        1,
        1,
        {
            "token": clerk.token,
            "environment": sorted(name for name in os.environ if "sulq" in os.environ[name].lower()),
            "arguments": sys.orig_argv,
            "nice": os.getpriority(os.PRIO_PROCESS, 0),
            "threads": threading.active_count(),
            "tried": {
                "socket": tried(lambda: socket.socket().close()),
                "unix": tried(lambda: socket.socket(socket.AF_UNIX).close()),
                "fork": tried(os.fork),
                "program": tried(lambda: os.execv("/bin/true", ["true"])),
                "parent": tried(lambda: os.kill(os.getppid(), 0)),
                "file": tried(lambda: open(asked.path, "rb").close()),  # noqa: PTH123
                "principals": tried(lambda: clerk.ask("principals")),
                "add": tried(lambda: clerk.ask("add_principal", {"name": "eve", "role": "owner"})),
                "facts": tried(lambda: clerk.ask("facts", dataset="another")),
            },
        },
    )


ODD = (computes, swells, dies, speaks, returns_much, pries)

if __name__ == "__main__":
    kinds.KINDS = (*kinds.KINDS, *(JobKind(run.__name__, "Odd", Odd, run) for run in ODD))
    main.main()
