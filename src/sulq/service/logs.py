"""What the operator sees: a log of one JSON object a line on stderr, and counts of calls. Names, codes, numbers.

Lines that a request caused carry its id and, where it is known, the name of whose token it came with (`during`).

Never a text that data can reach: an exception is written down by its type alone, also one that nobody
caught, since its text may hold a cell (T31).
"""

from __future__ import annotations

import bisect
import json
import logging
import re
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Final

_STANDARD: Final = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
BOUNDS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)  # seconds


REQUEST_ID: Final = re.compile(r"[0-9a-f]{16,64}")
_request: ContextVar[dict[str, str] | None] = ContextVar("request", default=None)


@contextmanager
def during(request_id: object, principal: str = "") -> Iterator[None]:
    """Have lines of this thread, or task and what it starts, say which request they are about.

    What is no id is left out: it came from another process, and a line of the log has no text of anybody else's.
    """
    known = isinstance(request_id, str) and REQUEST_ID.fullmatch(request_id) is not None
    before = _request.set({"request": str(request_id)} if known else {})
    try:
        about(principal)
        yield
    finally:
        _request.reset(before)


def about(principal: str) -> None:
    """Have further lines of the request say whose it is, where that is known."""
    found = _request.get()
    if found is not None and principal:
        found["principal"] = principal


def request_named() -> dict[str, str]:
    """The field by which a frame to another process names the request that this thread or task works for."""
    return {name: value for name, value in (_request.get() or {}).items() if name == "request"}


_worked: ContextVar[list[float] | None] = ContextVar("worked", default=None)


@contextmanager
def measured() -> Iterator[list[float]]:
    """Collect how long workers take for what is done within (`worked`)."""
    found: list[float] = []
    before = _worked.set(found)
    try:
        yield found
    finally:
        _worked.reset(before)


@contextmanager
def worked() -> Iterator[None]:
    """Measure a worker's part."""
    begun, found = time.monotonic(), _worked.get()
    try:
        yield
    finally:
        if found is not None:
            found.append(time.monotonic() - begun)


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
            **(_request.get() or {}),
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


class Histogram:
    """How often something took how long: a count for each bound that it stayed within, and for what was longer."""

    __slots__ = ("counts", "sum")

    def __init__(self) -> None:
        self.counts = [0] * (len(BOUNDS) + 1)
        self.sum = 0.0

    def add(self, seconds: float) -> None:
        """One more."""
        self.counts[bisect.bisect_left(BOUNDS, seconds)] += 1
        self.sum += seconds

    def told(self) -> dict[str, object]:
        """As JSON; each count for itself."""
        return {"counts": list(self.counts), "sum": self.sum}


class Counts:
    """Shared by the clerk's threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._calls: Counter[tuple[str, str]] = Counter()
        self._times: dict[str, Histogram] = {}
        self._asks: Counter[tuple[str, str]] = Counter()
        self._ask_times: dict[str, Histogram] = {}
        self._events: Counter[str] = Counter()

    def call(self, name: str, outcome: str, seconds: float) -> None:
        """One call, ended: `outcome` is ok or an error's code."""
        with self._lock:
            self._calls[name, outcome] += 1
            self._times.setdefault(name, Histogram()).add(seconds)

    def ask(self, dataset: str, outcome: str, seconds: float) -> None:
        """One ask of a dataset there is, ended: `outcome` is paid, reused, none, or an error's code."""
        with self._lock:
            self._asks[dataset, outcome] += 1
            self._ask_times.setdefault(dataset, Histogram()).add(seconds)

    def event(self, name: str) -> None:
        """Something that happened, such as an overrun."""
        with self._lock:
            self._events[name] += 1

    def told(self) -> dict[str, object]:
        """All counts since the clerk started."""
        with self._lock:
            return {
                "calls": [{"call": c, "outcome": o, "count": n} for (c, o), n in sorted(self._calls.items())],
                "times": {name: found.told() for name, found in sorted(self._times.items())},
                "asks": [{"dataset": d, "outcome": o, "count": n} for (d, o), n in sorted(self._asks.items())],
                "ask_times": {name: found.told() for name, found in sorted(self._ask_times.items())},
                "events": dict(sorted(self._events.items())),
            }
