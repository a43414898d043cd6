"""The folder of a running server: its sockets, and what its workers spill; nobody else's to enter, gone with it.

A supervisor that is killed cannot remove its folder, and what a worker had
spilled there is as private as the data (T90). So each holds a lock on a file in
its folder, which the system lets go of with the process, and the next server to
start removes the folders whose lock is free.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import stat
import tempfile
from pathlib import Path
from typing import Final

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
