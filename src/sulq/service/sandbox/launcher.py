"""The first step of a sandboxed process: restrictions that the kernel takes from a single-threaded process alone.

    python -P launcher.py COMMAND...

One line of JSON on standard input says what to give up; the command takes over
and finds the rest of its input untouched:

    network   false: a network of its own, with nothing in it
    relay     the proxy's command, started outside that network, its input, and where in the network it listens
    connect   ports that TCP connections may be made to, in that network
    tcp       true: TCP connections stay as they are, and so do sockets that have no file
    read      files and folders that may be read and run
    list      folders whose names may be seen, and no file in them
    write     folders that may be changed; whatever is in none of the lists cannot be opened at all (Landlock)
    closed    files that must not open any more: they are tried

Root's capabilities go too, and no program gives them back. The environment variable
`FOUND` tells the command which restrictions hold; `RELAY` names its end of the proxy's
channel, which closes when either of them ends. Imports the standard library alone.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import json
import os
import socket
import struct
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

FOUND: Final = "SULQ_APART"  # names what was given up, for the command
RELAY: Final = "SULQ_RELAY"  # the number of its end of the relay's channel
MAX_LINE_BYTES: Final = 2**24  # the paths of as many files as a table may have

NEW_USERS: Final = 0x10000000
NEW_NETWORK: Final = 0x40000000
SET_NO_NEW_PRIVS: Final = 38
DROP_RIGHT: Final = 24  # PR_CAPBSET_DROP
AMBIENT_RIGHTS: Final = 47
CLEAR_ALL: Final = 4
RIGHTS: Final = 64  # more than any kernel has
RIGHTS_VERSION: Final = 0x20080522

# Landlock's calls have the same numbers on every machine.
MAKE_RULES, ADD_RULE, RESTRICT_SELF = 444, 445, 446
BENEATH: Final = 1
TO_PORT: Final = 2
EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1, 2, 4, 8
TRUNCATE: Final = 1 << 14
OF_FILES: Final = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE
READING: Final = EXECUTE | READ_FILE | READ_DIR
EVERYTHING: Final = (1 << 13, 1 << 14, 1 << 15, 1 << 15, 1 << 16)  # one past the last right, by the kernel's version
NO_TCP: Final = 3  # neither to listen nor to connect anew
CONNECT: Final = 2  # of them
NO_REACH: Final = 3  # neither abstract sockets nor signals to processes outside
NO_SIGNALS: Final = 2  # of them
SET_FLAGS: Final = 0x8914  # of a network's interface
UP: Final = 1


class _Rules(ctypes.Structure):
    _fields_ = (("files", ctypes.c_uint64), ("network", ctypes.c_uint64), ("scope", ctypes.c_uint64))


class _Beneath(ctypes.Structure):
    _pack_ = 1
    _layout_ = "ms"
    _fields_ = (("allowed", ctypes.c_uint64), ("parent", ctypes.c_int32))


class _Port(ctypes.Structure):
    _fields_ = (("allowed", ctypes.c_uint64), ("port", ctypes.c_uint64))


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def cut_network() -> bool:
    """Move this process, which must have one thread, into a network of its own; whether it is in one."""
    try:
        libc = _libc()
        if libc.unshare(NEW_NETWORK) == 0:
            return True
        user, group = os.geteuid(), os.getegid()
        if libc.unshare(NEW_USERS | NEW_NETWORK) != 0:
            return False
        # Files are reached as before: the new space of users knows this one by its own number.
        Path("/proc/self/setgroups").write_text("deny", encoding="ascii")
        Path("/proc/self/uid_map").write_text(f"{user} {user} 1", encoding="ascii")
        Path("/proc/self/gid_map").write_text(f"{group} {group} 1", encoding="ascii")
    except (OSError, AttributeError):
        return False
    return True


def start_proxy(told: Mapping[str, object]) -> socket.socket:
    """Start the proxy outside the sandbox; the channel over which it is told its settings."""
    ours, theirs = socket.socketpair()
    command, named = [str(word) for word in _list(told.get("command"))], told.get("environment")
    environment = named if isinstance(named, dict) else {}
    subprocess.Popen(  # noqa: S603 - the supervisor's own command, without a shell
        command, stdin=theirs.fileno(), stdout=subprocess.DEVNULL, env=environment
    )
    theirs.close()
    ours.sendall(b"".join(json.dumps(line).encode() + b"\n" for line in _list(told.get("lines"))))
    return ours


def hand_over_listeners(told: Mapping[str, object], channel: socket.socket) -> bool:
    """Hand the proxy listeners in this process's own network; whether it has them."""
    listeners: list[socket.socket] = []
    try:
        with socket.socket() as sock:
            fcntl.ioctl(sock, SET_FLAGS, struct.pack("16sH14x", b"lo", UP))
        for place in _list(told.get("listen")):
            host, port = _list(place)
            listeners.append(socket.create_server((str(host), int(str(port))), backlog=64))
        socket.send_fds(channel, [b"."], [listener.fileno() for listener in listeners])
    except OSError:
        return False
    finally:
        for listener in listeners:
            listener.close()
    return True


def drop_capabilities() -> None:
    """Drop root's capabilities, here and in whatever takes over; a plain user has none."""
    with contextlib.suppress(OSError, AttributeError):
        libc = _libc()
        for right in range(RIGHTS):
            libc.prctl(DROP_RIGHT, right, 0, 0, 0)
        libc.prctl(AMBIENT_RIGHTS, CLEAR_ALL, 0, 0, 0)
        libc.capset((ctypes.c_uint32 * 2)(RIGHTS_VERSION, 0), (ctypes.c_uint32 * 6)())
        libc.prctl(SET_NO_NEW_PRIVS, 1, 0, 0, 0)


def landlock() -> int:
    """The version of the kernel's Landlock; 0 where it has none."""
    try:
        return max(int(_libc().syscall(MAKE_RULES, None, ctypes.c_size_t(0), 1)), 0) if sys.platform == "linux" else 0
    except (OSError, AttributeError):
        return 0


def shut_files(
    read: Iterable[str],
    write: Iterable[str],
    listed: Iterable[str] = (),
    *,
    tcp: bool = False,
    connect: Iterable[int] = (),
) -> bool:
    """Restrict this process, and whatever takes over, to these files (Landlock); whether the kernel does so."""
    version = landlock()
    if not version:
        return False
    libc = _libc()
    handled = EVERYTHING[min(version, len(EVERYTHING)) - 1] - 1
    network = NO_TCP if version >= 4 and not tcp else 0
    scope = NO_SIGNALS if tcp else NO_REACH
    rules = _Rules(handled, network, scope if version >= 6 else 0)
    size = 24 if version >= 6 else 16 if version >= 4 else 8
    made = libc.syscall(MAKE_RULES, ctypes.byref(rules), ctypes.c_size_t(size), 0)
    if made < 0:
        return False
    try:
        for paths, rights in ((read, READING), (listed, READ_DIR), (write, handled & ~EXECUTE)):
            for path in paths:
                _allow(libc, made, path, rights & handled)
        for port in connect if network else ():
            libc.syscall(ADD_RULE, made, TO_PORT, ctypes.byref(_Port(CONNECT, port)), 0)
        return bool(libc.prctl(SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 and libc.syscall(RESTRICT_SELF, made, 0) == 0)
    finally:
        os.close(made)


def _allow(libc: ctypes.CDLL, made: int, path: str, rights: int) -> None:
    """Allow what lies at or below a path; what is not there needs no rule."""
    try:
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        folder = os.path.isdir(path)  # noqa: PTH112 - this file loads as little as it can
        rule = _Beneath(rights if folder else rights & OF_FILES, place)
        libc.syscall(ADD_RULE, made, BENEATH, ctypes.byref(rule), 0)
    finally:
        os.close(place)


def opens(path: str) -> bool:
    """Whether a file or a folder can be opened."""
    try:
        os.close(os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK))
    except OSError:
        return False
    return True


def restrict(told: Mapping[str, object]) -> dict[str, bool]:
    """Restrict this process as told; which restrictions hold."""
    relay = told.get("relay")
    channel = start_proxy(relay) if isinstance(relay, dict) else None
    cut = told.get("network") is False and cut_network()
    relayed = cut and channel is not None and isinstance(relay, dict) and hand_over_listeners(relay, channel)
    if channel is not None and relayed:
        os.set_inheritable(channel.fileno(), True)
        os.environ[RELAY] = str(channel.detach())
    elif channel is not None:
        channel.close()  # and the relay ends
    drop_capabilities()
    lists = {name: [str(item) for item in _list(told.get(name))] for name in ("read", "list", "write", "closed")}
    ports = [int(str(port)) for port in _list(told.get("connect"))]
    shut = shut_files(lists["read"], lists["write"], lists["list"], tcp=told.get("tcp") is True, connect=ports)
    closed = not any(opens(path) for path in lists["closed"])
    return {"network": cut, "relay": relayed, "files": shut and closed}


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def line(at_once: int = 1, most: int = MAX_LINE_BYTES) -> bytes:
    """One line of standard input, and not a byte of the next; read without Python's buffer.

    A last line may be read many bytes `at_once`.
    """
    found = bytearray()
    while not found.endswith(b"\n") and len(found) < most:
        part = os.read(0, at_once)
        if not part:
            break
        found += part
    return bytes(found)


if __name__ == "__main__":
    os.environ[FOUND] = ",".join(name for name, there in restrict(json.loads(line())).items() if there)
    os.execv(sys.argv[1], sys.argv[1:])  # noqa: S606 - the supervisor's own command, without a shell
