"""What the clerk has looked up in files that it may not read: each time by a process that ends with the answer."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Final, cast

from sulq.curator.ledger.registry import note_look
from sulq.errors import SetupError
from sulq.service import ipc
from sulq.service.ipc import Frame
from sulq.service.settings import DatasetSettings

MAX_LOOK_SECONDS: Final = 70.0  # seconds for a look at a file's columns
MAX_CHECK_SECONDS: Final = 110.0  # seconds for counting how declarations fit; the web waits a little longer


class FileLooks:
    """Looks under way, each by its number; the supervisor starts the processes and passes on what they say.

    Privacy: what a check counts is exact. It is handed to the one call that waits for it, and kept nowhere.
    """

    def __init__(self, say: Callable[[Frame], None]) -> None:
        self._say = say
        self._lock = threading.Lock()
        self._last = 0
        self._waiting: dict[int, queue.SimpleQueue[Frame]] = {}

    def take(self, frame: Frame, seconds: float) -> Frame:
        """Have one process look, and wait for what it says."""
        replies: queue.SimpleQueue[Frame] = queue.SimpleQueue()
        with self._lock:
            self._last += 1
            number = self._last
            self._waiting[number] = replies
        self._say({**frame, "number": number})
        try:
            return ipc.opened(replies.get(timeout=seconds))
        except queue.Empty:
            raise SetupError("unreadable-data", "The file could not be looked at.") from None
        finally:
            self._waiting.pop(number, None)

    def heard(self, frame: Frame) -> None:
        """Pass on what a process said, if somebody waits for it still."""
        waiting = self._waiting.get(cast("int", frame["looked"]))
        if waiting is not None:
            waiting.put(cast("Frame", frame["reply"]))


def noted_look(declared: DatasetSettings) -> None:
    """Note beside its ledger that the owner of a dataset looks at exact counts over its rows (SR28).

    Privacy: over HTTP only rows that no ledger covers yet are counted. Of others an owner's token, which may be stolen,
    gives answers through noise alone; who has the host has the rows.
    """
    if "://" in declared.ledger:
        why = "The note that you looked is left beside a ledger's file; this ledger lies in a database."
        raise SetupError("not-available", why, "Count by the database's own means, and tell your analysts.")
    if Path(declared.ledger).exists():
        why = (
            "A ledger covers these rows already: over HTTP they are counted before they are registered, and not after."
        )
        raise SetupError("covered-source", why, "Run `sulq check` where the data is.")
    note_look(Path(declared.ledger), [table.facts for table in declared.tables], declared.unit)
