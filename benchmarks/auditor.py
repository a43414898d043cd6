"""Asks over HTTP beside an auditor who verifies a long ledger all the while, against the same asks alone.

    python -m benchmarks.auditor [entries ...]

Rounds with and without the auditor take turns in one service; one with ends when a verification has. The first one
reads the whole ledger, later ones read on from the last checkpoint. As a control, the same where a thread of the clerk
reads, as it did before (benchmarks.reading_clerk).
"""

from __future__ import annotations

import contextlib
import dataclasses
import http.client
import json
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks import data
from benchmarks.ledgers import built
from benchmarks.report import Line, Report
from benchmarks.server import Load, Served, logged, served, used
from benchmarks.timing import Timing

ENTRIES = (10_000, 100_000, 1_000_000)
CONTROL = 10_000  # entries up to which the control runs
ROWS = 100_000
ANALYSTS = 2
ROUNDS = 6
SECONDS = 3.0
BAR = 1.3
QUIET_SECONDS, QUIET_PART, MAX_WAIT_SECONDS = 5.0, 0.03, 900.0


class Auditor:
    """Verifies over and over, as fast as the service replies; `found` are the statuses."""

    def __init__(self, run: Served) -> None:
        self._run = run
        self._stop = threading.Event()
        self.found: list[int] = []

    @contextlib.contextmanager
    def at_work(self) -> Iterator[None]:
        """Verify meanwhile, and afterwards until one verification has come to its end."""
        self._stop.clear()
        thread = threading.Thread(target=self._verify)
        thread.start()
        try:
            yield
        finally:
            self._stop.set()
            thread.join()

    def _verify(self) -> None:
        head = {"Authorization": f"Bearer {self._run.owner}"}
        while not self._stop.is_set() or self.found[-1] != http.HTTPStatus.OK:
            line = http.client.HTTPConnection("127.0.0.1", self._run.port, timeout=300)
            line.request("POST", "/v1/datasets/survey/verify", headers=head)
            reply = line.getresponse()
            self.found.append(reply.status)
            told = json.loads(reply.read())
            line.close()
            if reply.status not in (http.HTTPStatus.OK, http.HTTPStatus.SERVICE_UNAVAILABLE):
                raise RuntimeError(f"the ledger was not verified: {told}")


def settle(run: Served) -> None:
    """Wait until the clerk has read the entries before the checkpoint, as it does aside after each opening."""
    until = time.monotonic() + MAX_WAIT_SECONDS
    while time.monotonic() < until:
        before = sum(used(run.pids).values())
        time.sleep(QUIET_SECONDS)
        if sum(used(run.pids).values()) - before < QUIET_PART * QUIET_SECONDS:
            return
    raise RuntimeError("the service is never quiet")


def timed(load: Load) -> Timing:
    """Seconds an ask."""
    return Timing(load.at(0.5), load.at(0.05), load.at(0.95))


def beside(
    folder: Path, path: Path, ledger: Path, *, seconds: float = SECONDS, clerk: str = ""
) -> tuple[Load, Load, list[int]]:
    """Asks alone, asks beside the auditor, and how its calls ended."""
    alone, both = Load(), Load()
    stubs = {"clerk": clerk} if clerk else None
    with served(folder, path, ledger=str(ledger), stubs=stubs) as service:
        run = dataclasses.replace(service, tokens=service.tokens[:ANALYSTS])
        auditor = Auditor(run)
        run.load(1.0, Load())
        settle(run)
        for _ in range(ROUNDS):
            run.load(seconds, alone)
            with auditor.at_work():
                run.load(seconds, both)
    return alone, both, auditor.found


def auditors(report: Report, folder: Path, sizes: tuple[int, ...] = ENTRIES) -> None:
    """The rows of the report."""
    group = f"The service beside an auditor: {ANALYSTS} analysts over HTTP, `POST .../verify` in a loop"
    path = data.survey(folder / "data.parquet", ROWS)
    with logged(folder / "log"):
        for entries in sizes:
            home = folder / f"ledger-{entries}"
            home.mkdir()
            ledger = built(home / "survey.ledger", entries // 2, synthetic=True)
            alone, both, found = beside(home / "served", path, ledger)
            report.add(
                group, Line(f"an ask beside it, {entries:,} entries, against alone", timed(both), timed(alone), BAR)
            )
            told = f"{entries:,} entries: {found.count(200)} verifications; beside them {both}; alone {alone}"
            if entries <= CONTROL:
                free, slow, _ = beside(home / "control", path, ledger, clerk="benchmarks.reading_clerk")
                told += f"; read by a thread of the clerk instead, an ask takes {slow.at(0.5) / free.at(0.5):.1f} times"
            report.note(group, f"{told}.")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="sulq-bench-") as name:
        auditors(Report(), Path(name), tuple(map(int, sys.argv[1:])) or ENTRIES)
