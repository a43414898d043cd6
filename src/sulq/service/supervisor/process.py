"""One process the supervisor keeps: a fresh interpreter, its settings through a pipe, its sockets by inheritance.

Its folder holds the server's sockets and what workers spill, which is as private as the data (T90). A supervisor that
is killed cannot remove its folder: it holds a lock on a file there, which the system lets go of with the process, and
the next server to start removes the folders whose lock is free.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Final

from sulq.service.sandbox import file_rules, launcher
from sulq.service.worker import database

# Where each part lives. The tests of faults put their own in place of a worker; the server has no setting for it.
PARTS: Final[dict[str, str]] = {
    "check": "sulq.service.worker.row_check",
    "clerk": "sulq.service.clerk.main",
    "jobs": "sulq.service.jobs.main",
    "look": "sulq.service.worker.file_look",
    "web": "sulq.service.web.main",
    "worker": "sulq.service.worker.main",
}
BARE: Final = frozenset(
    {"check", "jobs", "look", "web", "worker"}
)  # these are told nothing by the environment but what they need
DATA: Final = frozenset({"check", "look", "worker"})
# Memory is limited by addresses, which every thread of a large machine would claim in advance.
FEW_THREADS: Final = {"MALLOC_ARENA_MAX": "2", "OPENBLAS_NUM_THREADS": str(min(os.cpu_count() or 1, 8))}
ONE_THREAD: Final = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
SHORT_LIFE_SECONDS: Final = 5.0  # a process that lives less is restarted after a pause
MAX_PAUSE_SECONDS: Final = 10.0


@dataclass(eq=False, slots=True)
class Process:
    """A part of the server by its name; `generation` counts its starts."""

    name: str
    part: str
    settings: Mapping[str, object] = field(repr=False)
    fds: Sequence[int] = ()
    folder: Path | None = None  # for what it spills; emptied whenever it ends
    generation: int = 0
    short: int = 0
    begun: float = 0.0
    running: subprocess.Popen[bytes] | None = None

    def start(self, ended: Callable[[int], None], more: Mapping[str, object]) -> None:
        """Start it anew; `ended` is told, from another thread, when it has ended, and which start of it."""
        self.generation += 1
        generation = self.generation
        self.begun = time.monotonic()
        settings = {**self.settings, "name": self.name, "generation": generation, **more}
        self.running = launched(self.part, settings, self.fds, self.folder)
        threading.Thread(target=self._wait, args=(self.running, generation, ended), daemon=True).start()

    def _wait(self, running: subprocess.Popen[bytes], generation: int, ended: Callable[[int], None]) -> None:
        running.wait()
        _shut(running.stdin)
        if self.folder is not None:  # a worker that was killed could not remove what it had spilled
            shutil.rmtree(self.folder, ignore_errors=True)
        ended(generation)

    def pause(self) -> float:
        """How long to wait before the next start: longer each time it lived shortly."""
        self.short = self.short + 1 if time.monotonic() - self.begun < SHORT_LIFE_SECONDS else 0
        return 0.0 if self.short <= 1 else min(0.1 * 2.0**self.short, MAX_PAUSE_SECONDS)

    def kill(self) -> None:
        """End it now, whatever it does."""
        if self.running is not None:
            self.running.kill()

    def stop(self, patience: float) -> None:
        """Ask it to end, and insist."""
        if self.running is None:
            return
        self.running.terminate()
        try:
            self.running.wait(patience)
        except subprocess.TimeoutExpired:
            self.running.kill()
            self.running.wait()
        _shut(self.running.stdin)


def launched(
    part: str,
    settings: Mapping[str, object],
    fds: Sequence[int],
    folder: Path | None,
    *,
    stdout: int | None = None,
) -> subprocess.Popen[bytes]:
    """A fresh interpreter for a part. Its standard input stays open: when it closes, the supervisor is gone."""
    command = [sys.executable, "-P", "-m", PARTS[part]]
    environment = {name: value for name, value in os.environ.items() if name in file_rules.KEPT or part not in BARE}
    for ours in (launcher.FOUND, launcher.RELAY):
        environment.pop(ours, None)
    if part == "worker":
        settings = file_rules.settled(settings)
        if file_rules.database_of(settings) is not None:
            environment |= database.variables(os.environ)
    if part in DATA:
        environment |= FEW_THREADS
    if part == "jobs":
        environment |= FEW_THREADS | ONE_THREAD
    if folder is not None:
        folder.mkdir(mode=0o700, exist_ok=True)
        environment["TMPDIR"] = str(folder)
    lines: list[Mapping[str, object]] = [settings]
    allowed = file_rules.of(part, settings, folder)
    if part == "clerk" and allowed is not None and not allowed["tcp"]:  # it connects to no database
        environment = {name: value for name, value in environment.items() if not database.is_secret(name)}
    if allowed is not None:
        command = file_rules.sandboxed(command)
        lines.insert(0, allowed)
    started = subprocess.Popen(  # noqa: S603 - our own interpreter and module
        command, stdin=subprocess.PIPE, stdout=stdout, pass_fds=tuple(fds), env=environment, start_new_session=True
    )
    with contextlib.suppress(BrokenPipeError):  # it ended at once: whoever waits for it will hear
        pipe = started.stdin
        if pipe is not None:
            pipe.write(b"".join(json.dumps(line).encode() + b"\n" for line in lines))
            pipe.flush()
    return started


def _shut(pipe: IO[bytes] | None) -> None:
    if pipe is not None:
        with contextlib.suppress(OSError):
            pipe.close()


PREFIX: Final = "sulq-run-"
LOCK: Final = "lock"


class RunFolder:
    """A new folder, mode 0700, locked as long as this process lives or until `remove`."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix=PREFIX))
        draft = self.path / f".{LOCK}"
        self._lock = os.open(draft, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        draft.rename(self.path / LOCK)  # under this name it was never free

    def remove(self) -> None:
        """Take it away; again is as good as once."""
        shutil.rmtree(self.path, ignore_errors=True)
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1


def sweep() -> list[Path]:
    """Remove what killed servers of this user left behind; what was removed."""
    found = []
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError):  # another server sweeps too, or it is not ours to open
            state = folder.lstat()
            ours = stat.S_ISDIR(state.st_mode) and state.st_uid == os.geteuid() and not state.st_mode & 0o077
            if ours and _left(folder / LOCK):
                shutil.rmtree(folder, ignore_errors=True)
                found.append(folder)
    return found


def _left(lock: Path) -> bool:
    """Whether nobody holds a folder's lock any more."""
    handle = os.open(lock, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(handle)
    return True
