"""A process that has loaded all kinds of job, and forks one child for each job: it starts in milliseconds.

It forks the process that manages jobs before there is a thread, a token or a setting, and has one thread for good (but
Arrow's allocator's own, which is made for forks): whatever a job's process inherits is the program alone. All it is
told is over one socket, in messages of one size: start a child on a socket that comes along, or end one. It alone knows
the children's process ids and collects them, so that no id is signalled that was given to another process meanwhile.

It ends with the manager or the supervisor, and its children with it. Linux may weigh processes by session, and their
nice value within it alone: so the manager has a session of its own, and this one has little weight as a whole.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import itertools
import os
import select
import signal
import socket
import struct
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from sulq.service import logs
from sulq.service.jobs import runner

START, KILL = 0, 1
MESSAGE: Final = struct.Struct("=BQQQ")  # what to do, the child's number, its memory in bytes, the network outside
WAKE_BYTES: Final = 4096
AUTOGROUP: Final = Path("/proc/self/autogroup")  # of this session, where Linux weighs sessions
SESSION_NICE: Final = 10  # its weight against asks; of the children within it less (runner.NICE)
END_WITH_PARENT: Final = 1  # PR_SET_PDEATHSIG


@dataclass(eq=False, slots=True)
class ForkServer:
    """The manager's end of the socket."""

    sock: socket.socket
    _numbers: itertools.count[int] = field(default_factory=itertools.count)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @classmethod
    def become(cls) -> ForkServer:
        """Turn this process, which must have one thread, into the server; returns in a child, the manager."""
        ours, theirs = socket.socketpair()
        if os.fork() == 0:
            theirs.close()
            with contextlib.suppress(OSError):
                os.setsid()
            return cls(ours)
        try:
            _only(theirs.fileno())
            with contextlib.suppress(OSError):
                AUTOGROUP.write_text(str(SESSION_NICE), encoding="ascii")
            serve(theirs)
        finally:
            os._exit(0)

    def watch(self, ended: Callable[[], None]) -> None:
        """Tell when it has ended."""

        def wait() -> None:
            with contextlib.suppress(OSError):
                self.sock.recv(1)
            ended()

        threading.Thread(target=wait, daemon=True).start()

    def start(self, *, memory: int, outside: int) -> JobProcess:
        """A child with so many bytes of memory; `outside`: the network it must not be in."""
        number = next(self._numbers)
        ours, theirs = socket.socketpair()
        with theirs, self._lock:
            socket.send_fds(self.sock, [MESSAGE.pack(START, number, memory, outside)], [theirs.fileno()])
        return JobProcess(ours, number, self)

    def kill(self, number: int) -> None:
        """End a child at once, whatever it does; one that has ended stays so."""
        with self._lock, contextlib.suppress(OSError):
            self.sock.sendall(MESSAGE.pack(KILL, number, 0, 0))


@dataclass(frozen=True, slots=True)
class JobProcess:
    """One child: the socket to it, which ends when it does."""

    sock: socket.socket
    number: int
    server: ForkServer

    def kill(self) -> None:
        """End it at once."""
        self.server.kill(self.number)


def serve(sock: socket.socket) -> None:
    """Fork, end and collect children until the manager is gone or this is told to end; then end those that are left."""
    logs.start("jobs")
    gc.collect()
    gc.freeze()  # what is shared with the children is not looked at again, and so not copied
    woken, wake = os.pipe()
    os.set_blocking(woken, False)
    os.set_blocking(wake, False)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    poll = select.poll()
    poll.register(sock, select.POLLIN)
    poll.register(woken, select.POLLIN)
    children: dict[int, int] = {}
    told = True
    try:
        while told:
            ready = {number for number, _ in poll.poll()}
            if woken in ready:
                with contextlib.suppress(BlockingIOError):
                    os.read(woken, WAKE_BYTES)
                _collect(children)
            if sock.fileno() in ready:
                told = _told(sock, children)
    finally:
        for pid in children.values():
            os.kill(pid, signal.SIGKILL)


def _told(sock: socket.socket, children: dict[int, int]) -> bool:
    """Do one thing that is told; False where the manager is gone."""
    try:
        said, fds, _, _ = socket.recv_fds(sock, MESSAGE.size, 1)
    except OSError:
        return False
    if len(said) != MESSAGE.size:
        return False
    what, number, memory, outside = MESSAGE.unpack(said)
    if what == KILL:
        _collect(children)
        if number in children:
            os.kill(children[number], signal.SIGKILL)
        return True
    parent = os.getpid()
    try:
        child = os.fork()
    except OSError:  # no process to be had: the socket closes, and the job is told
        child = -1
    if child == 0:
        _run(fds[0], memory, outside, parent)
    if child > 0:
        children[number] = child
    os.close(fds[0])
    return True


def _collect(children: dict[int, int]) -> None:
    """Take note of children that have ended."""
    with contextlib.suppress(ChildProcessError):
        while (pid := os.waitpid(-1, os.WNOHANG)[0]) > 0:
            for number in [number for number, known in children.items() if known == pid]:
                del children[number]


def _run(fd: int, memory: int, outside: int, parent: int) -> None:
    """Be a child: with its one socket, until its job is done."""
    try:
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_DFL)
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(END_WITH_PARENT, signal.SIGKILL, 0, 0, 0)
        _only(fd, silent=True)
        if os.getppid() == parent:
            runner.run(socket.socket(fileno=fd), memory=memory, outside=outside)
    finally:
        os._exit(0)


def _only(kept: int, *, silent: bool = False) -> None:
    """Close all files but one and the log; `silent`: the log too, so that no line of it is a library's."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2) if silent else (0, 1):
        os.dup2(nothing, number)
    os.closerange(3, kept)
    os.closerange(kept + 1, os.sysconf("SC_OPEN_MAX"))
