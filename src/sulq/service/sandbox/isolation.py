"""Isolation of a process before it reads a row, and its report of it (`/v1/health`).

Two steps, since the kernel wants the first from a process of one thread:

    launcher.py COMMAND...     no network, no capabilities, no file but its own; then the command takes over
    confine(memory, files)     in the process that reads rows: limits, no core dumps, nobody looks into its memory, and
                               a filter of system calls

The filter refuses with EPERM: sockets, programs, new processes (threads pass), signals to others by any call that
sends one, tracing and other processes' memory, mounts, modules, keys, io_uring. `clone3` hides its flags from a
filter, so it is unknown (ENOSYS), and the C library falls back to `clone`. A process whose rows lie in a database may
make TCP sockets (IPv4) and connect them: its network namespace holds nothing but its proxy.

Where the kernel allows one step and not the other, the process says which.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import platform
import resource
import socket
import struct
import sys
import threading
from pathlib import Path
from typing import Final

from sulq.answers import wire
from sulq.service import logs
from sulq.service.ipc import Frame
from sulq.service.sandbox import launcher

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
    filtered = shut(tcp=tcp)
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


SET_NO_NEW_PRIVS: Final = 38
SET_MODE_FILTER: Final = 1
FOR_ALL_THREADS: Final = 1
LOAD, EQUAL, AT_LEAST, HAS_BITS, AND, RETURN = 0x20, 0x15, 0x35, 0x45, 0x54, 0x06  # classic BPF
ALLOW: Final = 0x7FFF0000
REFUSE: Final = 0x00050001  # with EPERM
UNKNOWN: Final = 0x00050026  # with ENOSYS
OTHER_TONGUE: Final = 0x40000000  # x86-64's x32 calls, which would pass by numbers of their own
NUMBER, MACHINE, FIRST, SECOND = 0, 4, 16, 24  # where a filter finds them; the lower half of each argument
THREAD: Final = 0x10000  # CLONE_THREAD, which the kernel takes with shared memory alone
INTERNET, STREAM, KIND = 2, 1, 0xF  # AF_INET; SOCK_STREAM, beside flags
SET_OWNER: Final = (8, 15)  # fcntl's: whom a file's signals go to
SET_GROUP: Final = (0x8901, 0x8902)  # ioctl's: likewise
Step = tuple[int, int, int, int]

# The system calls of each machine: its audit name, its call for filters, what is refused, what is refused in part.
_CALLS: Final = {
    "x86_64": (0xC000003E, 317, {
        "socket": 41, "connect": 42, "bind": 49, "listen": 50, "fork": 57, "vfork": 58, "execve": 59, "ptrace": 101,
        "rt_sigqueueinfo": 129, "setpriority": 141, "pivot_root": 155, "chroot": 161, "mount": 165, "umount2": 166,
        "init_module": 175, "delete_module": 176, "tkill": 200, "kexec_load": 246, "add_key": 248, "request_key": 249,
        "keyctl": 250, "ioprio_set": 251, "unshare": 272, "rt_tgsigqueueinfo": 297, "perf_event_open": 298,
        "open_by_handle_at": 304, "setns": 308, "process_vm_readv": 310, "process_vm_writev": 311, "kcmp": 312,
        "finit_module": 313, "kexec_file_load": 320, "bpf": 321, "execveat": 322, "userfaultfd": 323,
        "pidfd_send_signal": 424, "io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427,
        "pidfd_open": 434, "pidfd_getfd": 438, "process_madvise": 440,
    }, {"ioctl": 16, "clone": 56, "kill": 62, "fcntl": 72, "tgkill": 234, "prlimit64": 302, "clone3": 435}),
    "aarch64": (0xC00000B7, 277, {
        "ioprio_set": 30, "umount2": 39, "mount": 40, "pivot_root": 41, "chroot": 51, "unshare": 97,
        "kexec_load": 104, "init_module": 105, "delete_module": 106, "ptrace": 117, "tkill": 130,
        "rt_sigqueueinfo": 138, "setpriority": 140, "socket": 198, "bind": 200, "listen": 201, "connect": 203,
        "add_key": 217, "request_key": 218, "keyctl": 219, "execve": 221, "rt_tgsigqueueinfo": 240,
        "perf_event_open": 241, "open_by_handle_at": 265, "setns": 268, "process_vm_readv": 270,
        "process_vm_writev": 271, "kcmp": 272, "finit_module": 273, "bpf": 280, "execveat": 281, "userfaultfd": 282,
        "kexec_file_load": 294, "pidfd_send_signal": 424, "io_uring_setup": 425, "io_uring_enter": 426,
        "io_uring_register": 427, "pidfd_open": 434, "pidfd_getfd": 438, "process_madvise": 440,
    }, {"fcntl": 25, "ioctl": 29, "kill": 129, "tgkill": 131, "clone": 220, "prlimit64": 261, "clone3": 435}),
}  # fmt: skip


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_void_p))


def shut(*, tcp: bool = False) -> bool:
    """Install the filter in every thread; False where the kernel or the machine has none."""
    known = _CALLS.get(platform.machine())
    if known is None or sys.platform != "linux":
        return False
    name, call, refused, partly = known
    try:
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.prctl(SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
            return False
        code = filtered(name, refused, partly, tcp=tcp)
        buffer = ctypes.create_string_buffer(code, len(code))
        given = _Program(len(code) // 8, ctypes.cast(buffer, ctypes.c_void_p))
        return bool(libc.syscall(call, SET_MODE_FILTER, FOR_ALL_THREADS, ctypes.byref(given)) == 0)
    except (OSError, AttributeError):
        return False


def filtered(name: int, refused: dict[str, int], partly: dict[str, int], *, tcp: bool) -> bytes:
    """The filter for this process, by a machine's calls."""
    more = of_its_own(partly, os.getpid())
    if tcp:
        more += _tcp(refused["socket"])
        refused = {call: number for call, number in refused.items() if call not in ("socket", "connect")}
    return program(name, sorted(refused.values()), more)


def _tcp(number: int) -> list[Step]:
    """Steps by which sockets of TCP are made, and no others."""
    refuse: Step = (RETURN, 0, 0, REFUSE)
    kind: list[Step] = [(LOAD, 0, 0, SECOND), (AND, 0, 0, KIND), (EQUAL, 1, 0, STREAM), refuse]
    return _where(number, [(LOAD, 0, 0, FIRST), (EQUAL, 1, 0, INTERNET), refuse, *kind, (RETURN, 0, 0, ALLOW)])


def of_its_own(numbers: dict[str, int], process: int) -> list[Step]:
    """Calls that are a process's own as long as they are about itself: signals, limits, threads."""
    steps: list[Step] = []
    for name, allowed in (("kill", (process,)), ("tgkill", (process,)), ("prlimit64", (0, process))):
        inner: list[Step] = [(LOAD, 0, 0, FIRST)]
        for value in allowed:
            inner += [(EQUAL, 0, 1, value), (RETURN, 0, 0, ALLOW)]
        steps += _where(numbers[name], [*inner, (RETURN, 0, 0, REFUSE)])
    for name, refused in (("fcntl", SET_OWNER), ("ioctl", SET_GROUP)):
        inner = [(LOAD, 0, 0, SECOND)]
        for value in refused:
            inner += [(EQUAL, 0, 1, value), (RETURN, 0, 0, REFUSE)]
        steps += _where(numbers[name], [*inner, (RETURN, 0, 0, ALLOW)])
    thread: list[Step] = [(LOAD, 0, 0, FIRST), (HAS_BITS, 0, 1, THREAD), (RETURN, 0, 0, ALLOW), (RETURN, 0, 0, REFUSE)]
    return steps + _where(numbers["clone"], thread) + _where(numbers["clone3"], [(RETURN, 0, 0, UNKNOWN)])


def _where(number: int, inner: list[Step]) -> list[Step]:
    """Steps for one call, which end in a return; for any other call the number is still loaded after them."""
    return [(EQUAL, 0, len(inner), number), *inner]


def program(name: int, refused: list[int], more: list[Step] | None = None) -> bytes:
    """The filter: another machine's calls and those listed are refused with EPERM, the rest pass."""
    steps: list[Step] = [(LOAD, 0, 0, MACHINE), (EQUAL, 1, 0, name), (RETURN, 0, 0, REFUSE), (LOAD, 0, 0, NUMBER)]
    steps += [(AT_LEAST, 0, 1, OTHER_TONGUE), (RETURN, 0, 0, REFUSE)]
    steps += more or []
    for number in refused:
        steps += [(EQUAL, 0, 1, number), (RETURN, 0, 0, REFUSE)]
    steps.append((RETURN, 0, 0, ALLOW))
    return b"".join(struct.pack("=HBBI", *step) for step in steps)


# A question makes thousands of small objects, nearly all without cycles: with Python's own thresholds the garbage
# collector took a third of its time.
RARELY: Final = (20_000, 20, 50)


def settings(part: str) -> Frame:
    """Read the supervisor's settings; exit with the supervisor, and disable ptrace and core dumps."""
    closed()
    logs.start(part)
    gc.freeze()  # what was imported stays: no collection need look at it again
    gc.set_threshold(*RARELY)
    told = wire.strict(launcher.line(2**16, sys.maxsize))  # a thread may hold the lock of Python's buffer at exit
    if not isinstance(told, dict):
        raise TypeError("a child is started by the supervisor")
    threading.Thread(target=_orphaned, daemon=True).start()
    return told


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
