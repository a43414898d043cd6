"""Answers that wait for the next transaction are written by themselves where none comes, and when the process ends."""

from __future__ import annotations

import atexit
import threading
import weakref
from typing import Final, Protocol

from sulq.errors import SulqError

WAIT_SECONDS: Final = 0.2  # for the next debit, which takes the answers along


class Flushable(Protocol):
    """What has answers to write."""

    @property
    def path(self) -> object:
        """Where they go."""

    def flush(self) -> None:
        """Write the answers that wait."""


class LateAnswers:
    """One thread of one ledger, begun when there is something to wait for; it keeps a ledger alive while that waits."""

    def __init__(self, ledger: Flushable) -> None:
        self._ledger = weakref.ref(ledger)
        self._due = threading.Event()
        self._stopped = threading.Event()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._kept: Flushable | None = None  # while an answer waits

    @property
    def path(self) -> object:
        """Where the ledger is; None where it is gone, or in memory."""
        ledger = self._ledger()
        return None if ledger is None else ledger.path

    def note(self) -> None:
        """Say that an answer waits."""
        with self._lock:
            if self._thread is None and not self._stopped.is_set():
                self._thread = threading.Thread(target=self._run, name="sulq late answers", daemon=True)
                self._thread.start()
                _open.add(self)
            self._kept = self._ledger()
        self._due.set()

    def stop(self) -> None:
        """End it; whoever closes the ledger writes what still waits."""
        self._stopped.set()
        self._due.set()
        with self._lock:
            thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    def flush(self) -> None:
        """Write what waits now; where the ledger is busy, once more a moment later, or with the next debit."""
        ledger, self._kept = self._ledger(), None
        if ledger is None:
            return
        try:
            ledger.flush()
        except SulqError as error:
            if error.code == "ledger-busy" and not self._stopped.is_set():
                self._kept = ledger
                self._due.set()

    def _run(self) -> None:
        while self._ledger() is not None:
            if not self._due.wait(60.0):
                continue
            self._due.clear()
            if self._stopped.wait(WAIT_SECONDS):
                return
            self.flush()


_open: weakref.WeakSet[LateAnswers] = weakref.WeakSet()


def flush_of(path: object) -> None:
    """Write the answers of this process that wait for a ledger, before it is opened once more."""
    for each in list(_open):
        if each.path == path is not None:
            each.flush()


def _flush_all() -> None:
    for each in list(_open):
        each.flush()


atexit.register(_flush_all)
