"""What the operator sees: a log of one JSON object a line on stderr, and counts of calls. Names, codes, numbers.

Never a text that data can reach: an exception is written down by its type alone, also one that nobody
caught, since its text may hold a cell (T31).
"""

from __future__ import annotations

import json
import logging
import sys
import threading
from collections import Counter
from datetime import UTC, datetime
from typing import Final

_STANDARD: Final = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
BOUNDS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)  # seconds


class Lines(logging.Formatter):
    """Log records as lines of JSON."""

    def __init__(self, part: str) -> None:
        super().__init__()
        self._part = part

    def format(self, record: logging.LogRecord) -> str:
        """One line; extra fields that are names or numbers are kept, an exception's text is not."""
        told: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "part": self._part,
            "from": record.name,
            "event": record.getMessage(),
        }
        more = {name: value for name, value in vars(record).items() if name not in _STANDARD}
        told |= {name: value for name, value in more.items() if isinstance(value, (str, int, float, bool))}
        if record.exc_info and record.exc_info[0] is not None:
            told["error"] = record.exc_info[0].__name__
        return json.dumps(told)


def start(part: str) -> None:
    """Write this process's log, and what nobody caught, to stderr."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(Lines(part))
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger("sulq").setLevel(logging.INFO)
    log = logging.getLogger("sulq.service")

    def uncaught(kind: type[BaseException]) -> None:
        log.critical("nobody caught an error", extra={"error": kind.__name__})

    sys.excepthook = lambda kind, *_: uncaught(kind)
    threading.excepthook = lambda args: uncaught(args.exc_type)
    sys.unraisablehook = lambda _: log.error("an error could not be raised")


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
