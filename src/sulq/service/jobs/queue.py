"""Which job runs next: principals take turns, and nobody waits for another's long jobs alone.

There are so many slots for all. A free one goes to the principal with the fewest jobs running; among equals to the one
who was served longest ago, and then to the job that came first. Beside them are as many slots again for principals who
have nothing running: their first job starts at once, however many jobs others run.
"""

from __future__ import annotations

from collections import Counter, deque
from typing import Generic, TypeVar

T = TypeVar("T")


class FairQueue(Generic[T]):
    """Jobs that wait, by principal, and how many of each run. Its caller holds a lock."""

    def __init__(self, slots: int) -> None:
        self._slots = slots
        self._waiting: dict[str, deque[tuple[int, T]]] = {}
        self._running: Counter[str] = Counter()
        self._served: dict[str, int] = {}  # of principals with a job: when one of theirs was last begun
        self._turn = 0

    def add(self, owner: str, item: T) -> None:
        """Let a job wait."""
        self._turn += 1
        self._waiting.setdefault(owner, deque()).append((self._turn, item))

    def take(self) -> T | None:
        """The next job to run, which takes a slot; None while there is none, or no slot for it."""
        running = self._running.total()
        free, spare = running < self._slots, running < 2 * self._slots
        able = [owner for owner in self._waiting if free or (spare and not self._running[owner])]
        if not able:
            return None
        owner = min(able, key=lambda name: (self._running[name], self._served.get(name, 0), self._waiting[name][0][0]))
        _, item = self._waiting[owner].popleft()
        self._turn += 1
        self._served[owner] = self._turn
        self._running[owner] += 1
        self._forget(owner)
        return item

    def end(self, owner: str) -> None:
        """A job that ran has ended: its slot is free."""
        self._running[owner] -= 1
        self._forget(owner)

    def drop(self, owner: str, item: T) -> bool:
        """Take a job out that waits; whether it did."""
        line = self._waiting.get(owner, deque())
        kept = deque(entry for entry in line if entry[1] is not item)
        if len(kept) == len(line):
            return False
        self._waiting[owner] = kept
        self._forget(owner)
        return True

    def _forget(self, owner: str) -> None:
        """Keep nothing of a principal that has nothing here."""
        if not self._waiting.get(owner):
            self._waiting.pop(owner, None)
            if not self._running[owner]:
                del self._running[owner]
                self._served.pop(owner, None)
