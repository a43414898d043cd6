"""Idle workers and the asks that wait for one: each worker is handed to one of them, and nobody else is woken."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Final, Generic, TypeVar

MAX_WANTED_SECONDS: Final = 0.1  # that an ask waits for the worker which certified it, while others may be idle

W = TypeVar("W")


class _Waiter(Generic[W]):
    """One ask that waits, and the worker that it was given."""

    __slots__ = ("given", "wanted", "woken")

    def __init__(self, wanted: W | None) -> None:
        self.wanted = wanted
        self.given: W | None = None
        self.woken = threading.Event()


class IdleWorkers(Generic[W]):
    """Hands out workers in the order they came; an ask that was charged waits a moment for the one that knows it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: deque[W] = deque()
        self._waiting: deque[_Waiter[W]] = deque()
        self._closed = False

    def __len__(self) -> int:
        return len(self._idle)

    @property
    def waiting(self) -> int:
        """How many asks wait for one."""
        return len(self._waiting)

    def give(self, worker: W) -> None:
        """Hand a worker to an ask that it has certified, else to the first one that takes any, else keep it idle."""
        with self._lock:
            known = next((each for each in self._waiting if each.wanted is worker), None)
            waiter = known or next((each for each in self._waiting if each.wanted is None), None)
            if waiter is None:
                if not self._closed:
                    self._idle.append(worker)
                return
            self._waiting.remove(waiter)
            waiter.given = worker
        waiter.woken.set()

    def take(self, patience: float, wanted: W | None = None) -> W | None:
        """An idle worker, the wanted one if it is idle soon; None where none is in time."""
        until = time.monotonic() + patience
        mine = _Waiter(wanted)
        with self._lock:
            if self._closed or patience <= 0:
                return None
            if wanted is not None and wanted in self._idle:
                self._idle.remove(wanted)
                return wanted
            if wanted is None and self._idle:
                return self._idle.popleft()
            self._waiting.append(mine)
        if wanted is not None and not mine.woken.wait(min(MAX_WANTED_SECONDS, patience)):
            with self._lock:
                mine.wanted = None
                if mine.given is None and self._idle:
                    self._waiting.remove(mine)
                    return self._idle.popleft()
        mine.woken.wait(max(until - time.monotonic(), 0.0))
        with self._lock:
            if mine in self._waiting:
                self._waiting.remove(mine)
            return mine.given

    def withdraw(self, due: Callable[[W], bool]) -> list[W]:
        """Take out the idle ones for which something holds."""
        with self._lock:
            found = [worker for worker in self._idle if due(worker)]
            for worker in found:
                self._idle.remove(worker)
        return found

    def close(self) -> None:
        """Give nobody a worker any more."""
        with self._lock:
            self._closed = True
            self._idle.clear()
            waiting, self._waiting = self._waiting, deque()
        for waiter in waiting:
            waiter.woken.set()
