"""Isolation of a process before it reads a row, and its report of it (`/v1/health`).

Two steps, since the kernel wants the first from a process of one thread:

    launcher.py COMMAND...     no network, no capabilities, no file but its own; then the command takes over
    confine(memory, files)     in the process that reads rows: limits, no core dumps, nobody looks into its memory, and
                               a filter of system calls (`system_calls`)

Where the kernel allows one and not the other, the process says which.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import socket
from pathlib import Path
from typing import Final

from sulq.service.sandbox import launcher, system_calls

NETWORK: Final = Path("/proc/self/ns/net")
STATUS: Final = Path("/proc/self/status")
SET_DUMPABLE: Final = 4


def network() -> int:
    """The name of the network this process is in; 0 where the kernel has none."""
    try:
        return NETWORK.stat().st_ino
    except OSError:
        return 0


def closed() -> None:
    """Disable core dumps, and ptrace by other processes of the same user.

    Root's processes are kept out too, unless they have CAP_SYS_PTRACE, which sandboxed processes gave up.
    """
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None, use_errno=True).prctl(SET_DUMPABLE, 0, 0, 0, 0)


def files() -> str:
    """`own` where this process can open nothing but what is its own, `shared` where it opens what its user may."""
    return "own" if "files" in os.environ.get(launcher.FOUND, "").split(",") else "shared"


def relayed() -> bool:
    """Whether a proxy listens in this process's own network namespace."""
    return "relay" in os.environ.get(launcher.FOUND, "").split(",")


def confine(
    memory: int, files_open: int, *, outside: int, written: int | None = None, database: bool = False
) -> dict[str, object]:
    """Restrict a worker to what it needs, and report the restrictions.

    Limits hold or this raises: a worker without them must not start.

    Args:
        memory: bytes of addresses.
        files_open: at one time.
        outside: the network it must not be in.
        written: bytes of one file.
        database: its rows lie in one, which it reaches through its proxy; without a proxy it reaches nothing.
    """
    apart_from = network() not in (0, outside)
    closed()
    # No limit on processes: the kernel counts all of the user's, and the filter lets none be made.
    resource.setrlimit(resource.RLIMIT_NOFILE, (files_open, files_open))
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    if written is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (written, written))
    tcp = database and apart_from and relayed()
    filtered = system_calls.shut(tcp=tcp)
    refused = _no_socket(socket.AF_UNIX if tcp else socket.AF_INET)
    said = (("namespace", apart_from), ("seccomp", filtered and refused), ("relay", tcp))
    ways = [way for way, there in said if there]
    return {
        "network": "+".join(ways) or "open",
        "files": files(),
        "rights": rights(),
        "seccomp": filtered,
        "namespace": apart_from,
        "memory": memory >> 20,
    }


def rights() -> str:
    """`none` where this process has no capability, `some` where it has one or the kernel does not say."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        line = next(line for line in STATUS.read_text(encoding="ascii").splitlines() if line.startswith("CapEff:"))
        return "some" if int(line.split()[1], 16) else "none"
    return "some"


def _no_socket(family: socket.AddressFamily) -> bool:
    """Whether the filter refuses a socket: tries one."""
    try:
        socket.socket(family).close()
    except PermissionError:
        return True
    except OSError:
        return False
    return False
