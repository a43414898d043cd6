"""Memory over many asks: what a process has resident after each so many, and what is left of one ask.

    python -m benchmarks.soak [asks]

A curator in this process answers, one ask after another and each another question; its ledger is a file, in memory
where the machine has a folder for that, as its syncs are not what is measured. What must
grow is what says that a debit was made: where it stands, whose it was, that its receipt was used. All else is bounded,
so the second half of the asks may leave BYTES_AN_ASK each and no more. A curator that keeps every answer is the
control: it must fail.
"""

from __future__ import annotations

import ctypes
import gc
import os
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import sulq
from benchmarks import data, server
from benchmarks.report import Line, Report
from benchmarks.timing import Count

ASKS: Final = 100_000
SAMPLES: Final = 20
ROWS: Final = 1_000
BYTES_AN_ASK: Final = 500
SERVED_ROUNDS: Final = 10
SERVED_SECONDS: Final = 10.0
PAGE: Final = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True)
class Soak:
    """Resident bytes after so many asks, in order."""

    sampled: tuple[tuple[int, int], ...]

    @property
    def left(self) -> float:
        """Bytes that an ask of the second half leaves."""
        half = [each for each in self.sampled if each[0] >= self.sampled[-1][0] / 2]
        (first, before), (last, after) = half[0], half[-1]
        return (after - before) / (last - first)

    def __str__(self) -> str:
        places = [self.sampled[0], self.sampled[len(self.sampled) // 2], self.sampled[-1]]
        return ", ".join(f"{size / 2**20:.0f} MiB after {asks:,}" for asks, size in places)


def resident(pid: int | str = "self") -> int:
    """Bytes of a process in memory, once what it let go of has been given back."""
    if pid == "self":
        gc.collect()
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if trim is not None:
            trim(0)
    return int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1]) * PAGE


def soaked(ask: Callable[[int], object], asks: int, size: Callable[[], int] = resident) -> Soak:
    """Ask so many times, with a look at the memory now and then."""
    sampled = []
    for number in range(asks):
        ask(number)
        if (number + 1) % (asks // SAMPLES) == 0:
            sampled.append((number + 1, size()))
    return Soak(tuple(sampled))


def in_process(folder: Path, asks: int, *, keep: bool = False) -> Soak:
    """Of a database in this process; `keep`: hold every answer, as a transcript in memory would."""
    path = data.survey(folder / f"soaked-{keep}.parquet", ROWS)
    kept: list[object] = []
    with sulq.connect(
        path,
        table="survey",
        columns=data.COLUMNS,
        budget=sulq.Epsilon(900),
        synthetic=True,
        ledger=folder / f"soaked-{keep}.ledger",
    ) as db:

        def ask(number: int) -> None:
            where = sulq.col("income") < (number % 2_000_000) / 10
            found = db.ask(sulq.Sums((sulq.lit(1),), where), spend=sulq.Epsilon(0.005))
            if keep:
                kept.append(found)

        return soaked(ask, asks)


def in_service(folder: Path, path: Path, seconds: float = SERVED_SECONDS) -> dict[str, Soak]:
    """Of each part of a service that a crowd asks."""
    asks, sampled = 0, dict[str, list[tuple[int, int]]]()
    with server.served(folder / "soaked", path) as run:
        for _ in range(SERVED_ROUNDS):
            round_ = server.Load()
            run.load(seconds, round_)
            asks += len(round_.taken)
            for part, pid in run.pids.items():
                sampled.setdefault(part, []).append((asks, resident(pid)))
    return {part: Soak(tuple(found)) for part, found in sampled.items()}


def soaks(report: Report, folder: Path, *, asks: int = ASKS, seconds: float = SERVED_SECONDS) -> None:
    """The rows of the report: bytes that an ask leaves, against the most it may."""
    group = f"Memory: {asks:,} asks in one process; a service under a crowd"
    found = in_process(folder, asks)
    report.add(group, row("an ask in one process", found, BYTES_AN_ASK))
    report.note(group, f"In one process {found}.")
    path = data.survey(folder / "soak.parquet", ROWS)
    parts = in_service(folder, path, seconds)
    report.note(
        group,
        f"The service: {'; '.join(f'{part} {each}, {each.left:.0f} bytes an ask' for part, each in parts.items())}.",
    )


def row(what: str, found: Soak, most: int) -> Line:
    """Bytes, as a row of the report."""
    left = max(found.left, 0.0)
    return Line(f"bytes that {what} leaves, against the most it may", Count(*[left] * 3), Count(*[most] * 3), 1.0)


def folder() -> tempfile.TemporaryDirectory[str]:
    """A folder for data and ledger."""
    shared = Path("/dev/shm")
    in_memory = shared.is_dir() and os.access(shared, os.W_OK)
    return tempfile.TemporaryDirectory(prefix="sulq-soak-", dir=shared if in_memory else None)


if __name__ == "__main__":
    with folder() as name:
        found = in_process(Path(name), int(sys.argv[1]) if len(sys.argv) > 1 else ASKS)
    print(*(f"{asks:>9,} {size / 2**20:8.1f} MiB" for asks, size in found.sampled), sep="\n")
    print(f"{found.left:.0f} bytes an ask in the second half")
