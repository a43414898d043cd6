"""Interleaved timing: each contender in turn, round after round, medians and spread."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Timing:
    """Seconds of one contender over the rounds."""

    median: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.median * 1000:.1f} ms ({self.low * 1000:.1f}..{self.high * 1000:.1f})"


class Count(Timing):
    """Something that is counted, not timed."""

    def __str__(self) -> str:
        return f"{self.median:g} ({self.low:g}..{self.high:g})"


def interleave(
    contenders: dict[str, Callable[[], object]], rounds: int, clock: Callable[[], float] = time.perf_counter
) -> dict[str, Timing]:
    """Run every contender once a round, after one warm-up each, so that a busy moment hits all alike."""
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    for run in contenders.values():
        run()
    for _ in range(rounds):
        for name, run in contenders.items():
            start = clock()
            run()
            seconds[name].append(clock() - start)
    return {name: Timing(statistics.median(found), min(found), max(found)) for name, found in seconds.items()}
