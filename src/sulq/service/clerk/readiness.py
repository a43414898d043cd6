"""Whether every dataset can be asked now: looked at on a fixed beat, and never because somebody asks for it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Final

from sulq.errors import SetupError, SulqError
from sulq.service.clerk.worker_pool import OpenDataset
from sulq.service.ipc import Frame

OK: Final = "ok"
STARTING: Final = "starting"  # no dataset has a problem, and not all are open yet
PROBLEM: Final = "problem"
MAX_GONE_SECONDS: Final = 30.0  # without a worker, after which they do not come back


class Readiness:
    """The state of all datasets when it was last looked at.

    Privacy: it follows from files, disks, connections and processes, and not from rows. A worker that is ended with
    its question is back before it would be called gone.
    """

    def __init__(self, datasets: Mapping[str, OpenDataset]) -> None:
        self._datasets = datasets
        self._gone: dict[str, float] = {}  # since when a dataset has no worker
        self.status = STARTING
        self.problems: Mapping[str, SulqError] = {}  # of each dataset that cannot be asked

    def look(self) -> None:
        """Look at every dataset; waits for no disk and no database."""
        datasets = dict(self._datasets)
        problems = {name: problem for name, held in datasets.items() if (problem := self._problem(name, held))}
        opening = [name for name, held in datasets.items() if not held.ready and name not in problems]
        wait = SetupError("not-ready", "It is being opened.", "Wait, or read the server's log.")
        self._gone = {name: since for name, since in self._gone.items() if name in datasets}
        self.problems = problems | dict.fromkeys(opening, wait)
        self.status = PROBLEM if problems else STARTING if opening else OK

    def told(self) -> Frame:
        """Which datasets cannot be asked and why, for operators."""
        problems = [{"dataset": name, **_words(error)} for name, error in sorted(self.problems.items())]
        return {"status": self.status, "problems": problems}

    def _problem(self, name: str, held: OpenDataset) -> SulqError | None:
        if held.problem is not None:
            return held.problem
        if not held.ready or held.rows is None or held.rows.workers:
            self._gone.pop(name, None)
            return None
        since = self._gone.setdefault(name, time.monotonic())
        if time.monotonic() - since < MAX_GONE_SECONDS:
            return None
        return SetupError("not-ready", "Its workers ended and do not come back.", "Read the server's log.")


def _words(error: SulqError) -> Frame:
    return {"code": error.code, "message": error.message, "remedy": error.remedy}
