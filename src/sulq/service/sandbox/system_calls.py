"""A filter of system calls for a process that reads rows: no socket, no program, no other process.

A process whose rows lie in a database may make TCP sockets (IPv4) and connect them: its network namespace holds
nothing but its proxy.

Refused with EPERM: sockets, programs, new processes (threads pass), signals to
others by any call that sends one, tracing and other processes' memory, mounts,
modules, keys, io_uring. `clone3` hides its flags from a filter, so it is unknown
here (ENOSYS), and the C library falls back to `clone`.
"""

from __future__ import annotations

import ctypes
import os
import platform
import struct
import sys
from typing import Final

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
