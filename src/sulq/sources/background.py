"""Rows prepared in a thread of their own, with progress."""

from __future__ import annotations

import threading
from collections.abc import Callable

Progress = Callable[[float], None]


class Preparation:
    """Prepares rows in this thread or in one of its own; callers block until they are ready.

    The next caller gets the exception of a preparation that failed. Nothing is paid until `ready` came back, so a
    failure costs nothing. Progress is an estimate from the owner's rows, so it is told to the owner alone.
    """

    def __init__(self, ready: Callable[[], None], progress: Progress | None = None) -> None:
        self._ready = ready
        self._progress = progress
        self._starting = threading.Lock()
        self._thread: threading.Thread | None = None
        self._part = 0.0
        self._failed: Exception | None = None

    def tell(self, part: float) -> None:
        """Take note of how far it has come, from 0 to 1, and pass it on."""
        self._part = part
        if self._progress is not None:
            self._progress(part)

    @property
    def part(self) -> float | None:
        """How far it has come, from 0 to 1; None where nothing is made ready aside."""
        thread = self._thread
        return self._part if thread is not None and thread.is_alive() else None

    def start(self) -> None:
        """Make the rows ready aside; at most one thread does. The program does not end before it has."""
        with self._starting:
            if self.part is None:
                self._part = 0.0
                self._thread = threading.Thread(target=self._work, name="sulq-preparing")
                self._thread.start()

    def _work(self) -> None:
        try:
            self._ready()
        except Exception as error:  # noqa: BLE001 - raised again where it is heard
            self._failed = error

    def ready(self) -> None:
        """Wait for what is made ready aside, raise what became of it, once; and make sure that the rows are there."""
        self.wait()
        with self._starting:
            failed, self._failed = self._failed, None
        if failed is not None:
            raise failed
        self._ready()

    def wait(self) -> None:
        """Until nothing is made ready aside any more."""
        thread = self._thread
        if thread is not None:
            thread.join()
