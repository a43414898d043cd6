"""Counts for the owner's eyes: calls and how they ended, and how long they took. Names and codes, never a value."""

from __future__ import annotations

import threading
from collections import Counter
from typing import Final

BOUNDS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)  # seconds


class Counts:
    """Shared by the clerk's threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._calls: Counter[tuple[str, str]] = Counter()
        self._times: dict[str, list[int]] = {}
        self._events: Counter[str] = Counter()

    def call(self, name: str, outcome: str, seconds: float) -> None:
        """One call, ended: `outcome` is ok or an error's code."""
        place = next((i for i, bound in enumerate(BOUNDS) if seconds <= bound), len(BOUNDS))
        with self._lock:
            self._calls[name, outcome] += 1
            self._times.setdefault(name, [0] * (len(BOUNDS) + 1))[place] += 1

    def event(self, name: str) -> None:
        """Something that happened, such as an overrun."""
        with self._lock:
            self._events[name] += 1

    def told(self) -> dict[str, object]:
        """All counts since the clerk started."""
        with self._lock:
            calls = [{"call": c, "outcome": o, "count": n} for (c, o), n in sorted(self._calls.items())]
            times = {name: list(found) for name, found in sorted(self._times.items())}
            return {
                "calls": calls,
                "seconds": list(BOUNDS),
                "times": times,
                "events": dict(sorted(self._events.items())),
            }
